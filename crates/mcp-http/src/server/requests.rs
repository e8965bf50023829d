//! Whether a connection is answering anything: one that is not may be given up.

use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
    response::Response,
    routing::future::RouteFuture,
    serve::{IncomingStream, Listener},
};
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use mcp_jsonrpc::Bytes;
use tokio::time::Instant;
use tower_service::Service;

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

/// A router that tells each connection of its requests.
pub(super) fn counting(router: Router) -> Counting {
    Counting(router)
}

/// Makes the service of each connection.
pub(super) struct Counting(Router);

impl<L: Listener> Service<IncomingStream<'_, Patient<L>>> for Counting {
    type Response = Counted;
    type Error = Infallible;
    type Future = Ready<Result<Counted, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, stream: IncomingStream<'_, Patient<L>>) -> Self::Future {
        ready(Ok(Counted { router: self.0.clone(), requests: stream.io().requests.clone() }))
    }
}

/// The router as one connection has it.
#[derive(Clone)]
pub(super) struct Counted {
    router: Router,
    requests: Requests,
}

impl Service<Request> for Counted {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Service::<Request>::poll_ready(&mut self.router, cx)
    }

    fn call(&mut self, request: Request) -> Answering {
        let connects = request.method() == Method::CONNECT;
        let running = Some(self.requests.clone().begin());
        Answering { running, connects, response: self.router.call(request) }
    }
}

/// An answer in the making.
pub(super) struct Answering {
    running: Option<Running>,
    connects: bool,
    response: RouteFuture<Infallible>,
}

impl Future for Answering {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(response) = ready!(Pin::new(&mut self.response).poll(cx));
        let Some(running) = self.running.take() else { return Poll::Ready(Ok(response)) };
        if self.connects || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // From here on it is another protocol's, which has bounds of its own.
            std::mem::forget(running);
            return Poll::Ready(Ok(response));
        }
        Poll::Ready(Ok(response.map(|body| Body::new(Kept { body, _running: running }))))
    }
}

/// A request runs for as long as the body of its answer lives.
struct Kept {
    body: Body,
    _running: Running,
}

impl HttpBody for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
