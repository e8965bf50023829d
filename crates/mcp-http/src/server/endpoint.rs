//! The endpoint as a service: the guards come first, then the method.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, extract::Request, response::Response, routing::future::RouteFuture};
use futures_util::{FutureExt, future::Either};
use http::{Method, Version};
use mcp_core::{
    BoxFuture, Era, Revision, Server,
    origin::{Hosts, Origins},
};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::{
    headers::MCP_PROTOCOL_VERSION,
    server::{Sessions, guard, legacy, post, refusal::Refusal, single},
};

/// What a request meets.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) server: Server,
    pub(crate) origins: Origins,
    pub(crate) hosts: Hosts,
    pub(crate) streaming: bool,
    pub(crate) sessions: Option<Sessions>,
    /// Fires when the server is to stop.
    pub(crate) stopping: CancellationToken,
}

/// It answers whatever path it is called at.
#[derive(Debug, Clone)]
pub(super) struct EndpointService(pub(super) Arc<Endpoint>);

impl Service<Request> for EndpointService {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let endpoint = self.0.clone();
        Box::pin(async move { Ok(answer(&endpoint, request).await) })
    }
}

/// The endpoint at its path, and all routes: what [`Routes::into_service`](crate::Routes::into_service) returns.
#[derive(Debug, Clone)]
pub struct RoutesService {
    /// Without a slash at its end; `None` where it takes a router to tell.
    pub(super) path: Option<Arc<str>>,
    pub(super) endpoint: EndpointService,
    pub(super) router: Router,
}

impl Service<Request> for RoutesService {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<BoxFuture<'static, Result<Response, Infallible>>, RouteFuture<Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        match self.path.as_deref().and_then(|path| request.uri().path().strip_prefix(path)) {
            Some("" | "/") => self.endpoint.call(request).left_future(),
            _ => self.router.call(request).right_future(),
        }
    }
}

async fn answer(endpoint: &Endpoint, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if let Err(refusal) = guard::check(endpoint, &parts) {
        return refusal.answer(None);
    }
    // The modern era has no sessions, and so takes nothing but POST.
    let is_modern = names_modern(single::text(&parts.headers, &MCP_PROTOCOL_VERSION));
    let sessions = endpoint.sessions.as_ref().filter(|_| !is_modern);
    match (&parts.method, sessions) {
        (&Method::POST, sessions) => post::post(endpoint, sessions, parts, body).await,
        (&Method::GET, _) if parts.version == Version::HTTP_10 => Refusal::Version.answer(None),
        // Those that were open have been ended already.
        (&Method::GET, Some(_)) if endpoint.stopping.is_cancelled() => Refusal::Stopping.answer(None),
        (&Method::GET, Some(sessions)) if sessions.have_streams() => Box::pin(legacy::get(sessions, parts)).await,
        (&Method::DELETE, Some(sessions)) => Box::pin(legacy::delete(sessions, parts)).await,
        (_, sessions) => {
            let allowed = match sessions {
                Some(sessions) if sessions.have_streams() => "GET, POST, DELETE",
                Some(_) => "POST, DELETE",
                None => "POST",
            };
            Refusal::Method(allowed).answer(None)
        }
    }
}

/// The era comes before any session: a modern request has none, whatever its headers say.
fn names_modern(version: Option<&str>) -> bool {
    version.and_then(Revision::parse).is_some_and(|revision| revision.era() == Era::Modern)
}
