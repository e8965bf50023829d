//! Whether a connection is answering anything: one that is not may be given up. And what cuts answers off that outlive a
//! stop.

use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    extract::Request,
    response::Response,
    serve::{IncomingStream, Listener},
};
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use mcp_jsonrpc::Bytes;
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower_service::Service;

use crate::server::{listener::Patient, refusal::Refusal};

/// The requests of one connection whose heads have come, and whose answers have not gone.
#[derive(Debug, Clone)]
pub(super) struct Requests(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    running: usize,
    /// It is another protocol's from now on, which has bounds of its own.
    is_handed_over: bool,
    /// When the last one was answered, or the connection began.
    since: Instant,
}

impl Default for Requests {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { running: 0, is_handed_over: false, since: Instant::now() })))
    }
}

impl Requests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long there has been none; `None` while there is one, or the connection is no longer HTTP's.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let state = self.state();
        (state.running == 0 && !state.is_handed_over).then(|| state.since.elapsed())
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

/// A service that tells each connection of its requests, and cuts their answers off when `cut` fires, if there is one.
pub(super) fn counting<S>(service: S, cut: Option<CancellationToken>) -> Counting<S> {
    Counting { service, cut: cut.map(Arc::new) }
}

/// Makes the service of each connection.
pub(super) struct Counting<S> {
    service: S,
    cut: Option<Arc<CancellationToken>>,
}

impl<S: Clone, L: Listener> Service<IncomingStream<'_, Patient<L>>> for Counting<S> {
    type Response = Counted<S>;
    type Error = Infallible;
    type Future = Ready<Result<Counted<S>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, stream: IncomingStream<'_, Patient<L>>) -> Self::Future {
        let (service, cut) = (self.service.clone(), self.cut.clone());
        ready(Ok(Counted { service, requests: stream.io().requests.clone(), cut }))
    }
}

/// The service as one connection has it.
#[derive(Clone)]
pub(super) struct Counted<S> {
    service: S,
    requests: Requests,
    cut: Option<Arc<CancellationToken>>,
}

impl<S: Service<Request, Response = Response, Error = Infallible>> Service<Request> for Counted<S> {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let connects = request.method() == Method::CONNECT;
        let running = Some(self.requests.clone().begin());
        Answering { response: self.service.call(request), running, connects, cut: Cut::new(self.cut.clone()) }
    }
}

pin_project! {
    /// An answer in the making.
    pub(super) struct Answering<F> {
        #[pin]
        response: F,
        running: Option<Running>,
        connects: bool,
        cut: Cut,
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Answering<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Poll::Ready(Ok(response)) = this.response.poll(cx) else {
            return this.cut.poll(cx).map(|()| Ok(Refusal::Stopping.answer(None)));
        };
        let Some(running) = this.running.take() else { return Poll::Ready(Ok(response)) };
        if (*this.connects && response.status().is_success()) || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            running.0.state().is_handed_over = true;
            return Poll::Ready(Ok(response));
        }
        let cut = Cut::new(this.cut.token.clone());
        Poll::Ready(Ok(response.map(|body| Body::new(Kept { body, cut, has_said: false, _running: running }))))
    }
}

/// Whether an answer is to be cut off. The token is shared as a whole, as each clone of its own takes a lock of all; and it is
/// listened to only once something waits.
struct Cut {
    token: Option<Arc<CancellationToken>>,
    listening: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Cut {
    fn new(token: Option<Arc<CancellationToken>>) -> Self {
        Self { token, listening: None }
    }

    fn has_come(&self) -> bool {
        self.token.as_ref().is_some_and(|token| token.is_cancelled())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(token) = &self.token else { return Poll::Pending };
        let listen = || Box::pin(CancellationToken::clone(token).cancelled_owned());
        self.listening.get_or_insert_with(listen).as_mut().poll(cx)
    }
}

/// A request runs for as long as the body of its answer lives, which keeps its length.
struct Kept {
    body: Body,
    cut: Cut,
    has_said: bool,
    _running: Running,
}

impl HttpBody for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Most have one frame. A stream may have the next one always ready, and ends all the same.
        if std::mem::replace(&mut self.has_said, true) && self.cut.has_come() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => self.cut.poll(cx).map(|()| None),
            ready => ready,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
