//! The way in for WebSockets: an upgrade becomes a connection, which `mcp_core::server::serve_peer` drives like any other
//! shared wire. After: `crates/mcp-core/src/server/connection.rs`.

use std::{
    future::{Ready, ready},
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{body::Body, extract::Request, response::Response};
use futures_util::future::Either;
use http::{HeaderName, HeaderValue, StatusCode, header, request::Parts};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use mcp_core::{
    DEFAULT_PATH, Server,
    origin::{Hosts, Origins, Refused},
    server::{Peer, serve_peer},
};
use mcp_jsonrpc::{ErrorObject, code, encode};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    Socket,
    server::{
        counted::Counted,
        handshake::{Upgrade, single},
        peer,
    },
};

/// A layer that takes WebSocket upgrades at a path, and passes all else on to what is behind it.
///
/// What it takes is a `GET` over HTTP/1.1 with the headers of RFC 6455: version 13 and a key of 16 bytes. Before an
/// upgrade, `Host` and `Origin` are checked, and refused with 403 as over HTTP. Whoever wants credentials puts a layer
/// in front of this one, which tells who it is by a [`Principal`](mcp_core::Principal) in the request's extensions.
///
/// ```
/// use mcp_core::{Server, implementation};
/// use mcp_ws::WsLayer;
///
/// let server = Server::builder(implementation!()).build();
/// let app: axum::Router = axum::Router::new().layer(WsLayer::new(server).path("/socket"));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a layer does nothing until a router has it"]
pub struct WsLayer(Endpoint);

/// What an upgrade meets.
#[derive(Debug, Clone)]
struct Endpoint {
    server: Server,
    path: Arc<str>,
    origins: Origins,
    hosts: Hosts,
}

impl WsLayer {
    /// Upgrades to `server` at `/mcp`, for loopback hosts and origins.
    pub fn new(server: Server) -> Self {
        Self(Endpoint { server, path: DEFAULT_PATH.into(), origins: Origins::loopback(), hosts: Hosts::loopback() })
    }

    /// Sets the path; the same path with a slash behind it is served too.
    pub fn path(mut self, path: &str) -> Self {
        self.0.path = path.into();
        self
    }

    /// Sets the `Origin` values that are accepted. Default: loopback ones; requests without the header always are.
    pub fn origins(mut self, origins: Origins) -> Self {
        self.0.origins = origins;
        self
    }

    /// Sets the `Host` values that are accepted. Default: loopback ones, and the bound address with
    /// [`serve`](Self::serve).
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.0.hosts = hosts;
        self
    }

    pub(super) fn bound(mut self, address: SocketAddr) -> Self {
        self.0.hosts = self.0.hosts.bound(address);
        self
    }
}

impl<S> Layer<S> for WsLayer {
    type Service = WsService<S>;

    fn layer(&self, inner: S) -> WsService<S> {
        WsService { endpoint: Arc::new(self.0.clone()), inner }
    }
}

/// What [`WsLayer`] makes of a service.
#[derive(Debug, Clone)]
pub struct WsService<S> {
    endpoint: Arc<Endpoint>,
    inner: S,
}

impl<S> Service<Request> for WsService<S>
where
    S: Service<Request, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.endpoint.take(&mut parts) {
            Some(answer) => Either::Right(ready(Ok(answer))),
            None => Either::Left(self.inner.call(Request::from_parts(parts, body))),
        }
    }
}

impl Endpoint {
    /// The answer to an upgrade that is ours; the connection is served from then on.
    fn take(&self, parts: &mut Parts) -> Option<Response> {
        let upgrade = Upgrade::read(&self.path, parts)?;
        // Behind something that cannot upgrade, such as a test's plain call, this is a request like any other.
        let upgraded = parts.extensions.remove::<OnUpgrade>()?;
        if let Err(refused) = self.check(parts) {
            return Some(refuse(&refused));
        }
        tokio::spawn(serve(self.server.clone(), peer::of(parts), upgraded));
        Some(upgrade.answer())
    }

    fn check(&self, parts: &Parts) -> Result<(), Refused> {
        self.hosts.check(text(parts, &header::HOST))?;
        self.origins.check(text(parts, &header::ORIGIN))
    }
}

/// A header's value; what stands twice, or is no text, becomes text that no rule accepts.
fn text<'a>(parts: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    parts.headers.get(name)?;
    Some(single(&parts.headers, name).and_then(|value| value.to_str().ok()).unwrap_or("(more than one, or not text)"))
}

fn refuse(refused: &Refused) -> Response {
    let error = ErrorObject::new(code::INVALID_REQUEST, refused.to_string());
    let mut response = Response::new(Body::from(encode::error(None, &error)));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn serve(server: Server, peer: Peer, upgraded: OnUpgrade) {
    let upgraded: Upgraded = match upgraded.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "an upgrade did not come about"),
    };
    let writes = Arc::default();
    let stream = Counted { stream: TokioIo::new(upgraded), writes: Arc::clone(&writes) };
    let socket = Socket::server(stream, server.limits().message_bytes, writes).await;
    if let Err(error) = serve_peer(server, socket, peer).await {
        tracing::debug!(?error, "a socket ended");
    }
}
