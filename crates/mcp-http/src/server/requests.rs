//! Whether a connection is answering anything: one that is not may be given up.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{
        ConnectInfo, Request,
        connect_info::{Connected, IntoMakeServiceWithConnectInfo},
    },
    middleware::{Next, from_fn},
    response::Response,
    serve::{IncomingStream, Listener},
};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use crate::server::listener::Patient;

/// The requests of one connection whose heads have come, and whose answers have not gone.
#[derive(Debug, Clone)]
pub(super) struct Requests(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    running: usize,
    /// When the last one was answered, or the connection began.
    since: Instant,
}

impl Default for Requests {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { running: 0, since: Instant::now() })))
    }
}

impl Requests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long there has been none; `None` while there is one.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let state = self.state();
        (state.running == 0).then(|| state.since.elapsed())
    }

    fn begin(self) -> Running {
        self.state().running += 1;
        Running(self)
    }
}

/// One of them; it is over when this is dropped.
struct Running(Requests);

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.since = Instant::now();
    }
}

impl<L: Listener> Connected<IncomingStream<'_, Patient<L>>> for Requests {
    fn connect_info(stream: IncomingStream<'_, Patient<L>>) -> Self {
        stream.io().requests.clone()
    }
}

/// A router that tells each connection of its requests.
pub(super) fn counting(router: Router) -> IntoMakeServiceWithConnectInfo<Router, Requests> {
    router.layer(from_fn(count)).into_make_service_with_connect_info()
}

async fn count(ConnectInfo(requests): ConnectInfo<Requests>, request: Request, next: Next) -> Response {
    let running = requests.begin();
    let connects = request.method() == Method::CONNECT;
    let response = next.run(request).await;
    if connects || response.status() == StatusCode::SWITCHING_PROTOCOLS {
        // From here on it is another protocol's, which has bounds of its own.
        std::mem::forget(running);
        return response;
    }
    // It lives as long as the body does, which keeps its length.
    let keep = move |error| {
        let _ = &running;
        error
    };
    response.map(|body| Body::new(body.map_err(keep)))
}
