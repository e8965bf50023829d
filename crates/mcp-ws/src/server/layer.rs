//! The way in for WebSockets: an upgrade becomes a connection, which `mcp_core::server::serve_peer` drives like any other
//! shared wire. After: `crates/mcp-core/src/server/connection.rs`.

use std::{
    future::{Ready, ready},
    net::SocketAddr,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use axum::{extract::Request, response::Response};
use futures_util::future::Either;
use http::{HeaderName, Method, StatusCode, header, request::Parts};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use mcp_core::{
    DEFAULT_PATH, Server,
    origin::{Hosts, Origins, Refused},
    server::{Peer, serve_until},
};
use tokio_util::sync::CancellationToken;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    server::{
        connections::{Admitted, Connections, NotAdmitted},
        greeting::{begin, greet, refuse},
        handshake::{Known, UnknownVersion, Upgrade, single},
        parked::Parked,
        peer, refusal,
    },
    socket::{Counted, Link, Socket},
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
    keep_alive: Option<Duration>,
    idle: Option<Duration>,
    most: usize,
    connections: Arc<Connections>,
    /// Sockets for which there is no place among the connections, unless they turn out to be for one of these.
    arriving: Arc<Connections>,
    stop: CancellationToken,
    knows_versions: bool,
    grace: Option<Duration>,
    most_parked: usize,
    /// Made with the first upgrade, for all services of the layer: a router makes one for each of its routes.
    table: Arc<OnceLock<Arc<Parked<Stream>>>>,
}

/// What a connection runs on.
type Stream = Counted<TokioIo<Upgraded>>;

impl WsLayer {
    /// Upgrades to `server` at `/mcp`, for loopback hosts and origins.
    pub fn new(server: Server) -> Self {
        Self(Endpoint {
            keep_alive: Some(server.limits().keep_alive),
            server,
            path: DEFAULT_PATH.into(),
            origins: Origins::loopback(),
            hosts: Hosts::loopback(),
            idle: None,
            most: 10_000,
            connections: Arc::default(),
            arriving: Arc::default(),
            stop: CancellationToken::new(),
            knows_versions: false,
            grace: None,
            most_parked: 1_000,
            table: Arc::default(),
        })
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

    /// Sets how often a client is pinged; `None`: never. One of which nothing at all was heard for three times as long, four
    /// times at the latest, is taken for dead, and its connection ends. Default:
    /// [`Limits::keep_alive`](mcp_core::Limits), 15 s.
    pub fn keep_alive(mut self, every: impl Into<Option<Duration>>) -> Self {
        self.0.keep_alive = every.into();
        self
    }

    /// Closes a connection, with 1000, when no message came for so long while no request ran and nothing was listened to.
    /// Pings are no messages. A legacy client that has subscribed to something, and asks nothing, is idle. Default: never.
    pub fn idle(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.0.idle = limit.into();
        self
    }

    /// Sets how many connections there may be at once, those without a socket among them; a further upgrade is 503. With
    /// [`resume`](Self::resume), clients that can resume are heard nonetheless, as many at once as may be
    /// [`parked`](Self::parked): whoever comes back to a connection goes on, whoever wants another is closed with 1013. They
    /// are counted for the layer and its clones together. Default: 10,000.
    pub fn connections(mut self, most: usize) -> Self {
        self.0.most = most;
        self
    }

    /// Ends all connections when `stop` fires: what runs may finish within
    /// [`Limits::shutdown_grace`](mcp_core::Limits), then they are closed with 1001. Further upgrades are 503.
    pub fn stop_with(mut self, stop: CancellationToken) -> Self {
        self.0.stop = stop;
        self
    }

    /// Heeds `mcp.version.*` among the offered subprotocols, as draft SEP-1288 has them: an upgrade that names revisions, and
    /// none that the server accepts, is 400. What is spoken is still decided by the messages. Default: they mean nothing.
    pub fn version_subprotocols(mut self, are_heeded: bool) -> Self {
        self.0.knows_versions = are_heeded;
        self
    }

    /// Lets clients that can (subprotocol `mcp.resume`) go on with their connection on another socket, when they lose
    /// theirs, for as long as `grace`; 30 s suits most. Meanwhile its calls go on. Default: what is lost is lost.
    ///
    /// A connection for which more waits than [`Limits::queue_messages`](mcp_core::Limits) or `queue_bytes` allow ends after
    /// [`Limits::stall_timeout`](mcp_core::Limits), 60 s, without a socket as with one that nobody reads; a longer grace
    /// needs a longer limit.
    pub fn resume(mut self, grace: Duration) -> Self {
        self.0.grace = Some(grace);
        self
    }

    /// Sets how many connections may wait for another socket at once; the one that has waited longest ends for a further
    /// one. Default: 1,000.
    pub fn parked(mut self, most: usize) -> Self {
        self.0.most_parked = most;
        self
    }

    pub(super) fn shutdown_grace(&self) -> Duration {
        self.0.server.limits().shutdown_grace
    }

    /// Stops with `stop`, too, and says when all of its connections have ended.
    pub(super) fn stopping(mut self) -> (Self, CancellationToken, impl Future<Output = ()>) {
        let stop = self.0.stop.child_token();
        self.0.stop = stop.clone();
        let (arriving, connections) = (self.0.arriving.clone(), self.0.connections.clone());
        let ended = async move {
            arriving.ended().await;
            connections.ended().await;
        };
        (self, stop, ended)
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
        if request.method() != Method::GET {
            return Either::Left(self.inner.call(request));
        }
        let (mut parts, body) = request.into_parts();
        match take(&self.endpoint, &mut parts) {
            Some(answer) => Either::Right(ready(Ok(answer))),
            None => Either::Left(self.inner.call(Request::from_parts(parts, body))),
        }
    }
}

/// The answer to an upgrade that is ours; the connection is served from then on.
fn take(endpoint: &Arc<Endpoint>, parts: &mut Parts) -> Option<Response> {
    let upgrade = Upgrade::read(&endpoint.path, parts, endpoint.known())?;
    // Behind something that cannot upgrade, such as a test's plain call, this is a request like any other.
    let upgraded = parts.extensions.remove::<OnUpgrade>()?;
    if let Err(refused) = endpoint.check(parts) {
        return Some(refusal::answer(StatusCode::FORBIDDEN, refused.to_string()));
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(UnknownVersion) => return Some(refusal::answer(StatusCode::BAD_REQUEST, endpoint.accepted())),
    };
    let parked = endpoint.parked().filter(|_| upgrade.is_resumable());
    let admitted = match endpoint.admit(parked.is_some()) {
        Ok(admitted) => admitted,
        Err(why) => return Some(refusal::answer(StatusCode::SERVICE_UNAVAILABLE, why.to_string())),
    };
    tokio::spawn(serve(endpoint.clone(), parked, peer::of(parts), upgraded, admitted));
    Some(upgrade.answer())
}

impl Endpoint {
    fn check(&self, parts: &Parts) -> Result<(), Refused> {
        self.hosts.check(text(parts, &header::HOST))?;
        self.origins.check(text(parts, &header::ORIGIN))
    }

    /// A place among the connections; where there is none, one that may be for a connection that has its place is heard.
    fn admit(&self, may_resume: bool) -> Result<Admitted, NotAdmitted> {
        let admitted = self.connections.admit(self.most, &self.stop);
        match admitted {
            Err(NotAdmitted::Full(_)) if may_resume => self.arriving.admit(self.most_parked, &self.stop).or(admitted),
            admitted => admitted,
        }
    }

    fn parked(&self) -> Option<Arc<Parked<Stream>>> {
        let grace = self.grace?;
        Some(self.table.get_or_init(|| Arc::new(Parked::new(grace, self.most_parked))).clone())
    }

    fn known(&self) -> Known {
        let versions = self.knows_versions.then(|| self.server.revisions());
        Known { resume: self.grace.is_some(), versions }
    }

    fn accepted(&self) -> String {
        let accepted: Vec<String> = self.server.revisions().iter().map(|revision| revision.to_string()).collect();
        format!("no revision in common; the server accepts mcp.version. with {}", accepted.join(", "))
    }
}

/// A header's value; what stands twice, or is no text, becomes text that no rule accepts.
fn text<'a>(parts: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    parts.headers.get(name)?;
    Some(single(&parts.headers, name).and_then(|value| value.to_str().ok()).unwrap_or("(more than one, or not text)"))
}

async fn serve(
    endpoint: Arc<Endpoint>,
    parked: Option<Arc<Parked<Stream>>>,
    peer: Peer,
    upgraded: OnUpgrade,
    admitted: Admitted,
) {
    let upgraded: Upgraded = match upgraded.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "an upgrade did not come about"),
    };
    let limits = endpoint.server.limits();
    let link = Link::server(TokioIo::new(upgraded), limits.message_bytes, endpoint.keep_alive).await;
    let opened = match parked {
        None => Some((Socket::new(link, None), admitted)),
        Some(parked) => open(&endpoint, &parked, &peer, link, admitted).await,
    };
    let Some((socket, admitted)) = opened else { return };
    let ending = endpoint.stop.cancelled();
    if let Err(error) = serve_until(endpoint.server.clone(), socket, peer, endpoint.idle, ending).await {
        tracing::debug!(?error, "a connection ended");
    }
    drop(admitted);
}

/// A new connection on the socket, and its place among them; `None` where the socket has gone to a connection that was
/// there already, or to nobody.
async fn open(
    endpoint: &Endpoint,
    parked: &Arc<Parked<Stream>>,
    peer: &Peer,
    link: Link<Stream>,
    admitted: Admitted,
) -> Option<(Socket<Stream>, Admitted)> {
    let owner = peer.who().map(|principal| principal.digest());
    let (link, theirs) = greet(link, parked, owner, &endpoint.stop).await?;
    let place = if endpoint.connections.has(&admitted) {
        Ok(admitted)
    } else {
        endpoint.connections.admit(endpoint.most, &endpoint.stop)
    };
    match place {
        Ok(place) => Some((begin(link, parked, owner, theirs, endpoint.server.limits()).await?, place)),
        Err(why) => {
            refuse(link, why.into()).await;
            None
        }
    }
}
