use std::{any::Any, convert::Infallible, fmt::Debug, future::IntoFuture, io, net::SocketAddr, sync::Arc};

use axum::{Router, extract::Request, response::Response, serve::Listener};
use mcp_core::{
    Error, ErrorKind, Limits, Server,
    origin::{Hosts, Origins},
};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::{
    DEFAULT_PATH,
    server::{
        Sessions,
        endpoint::{Endpoint, EndpointService, RoutesService},
        legacy,
        listener::Patient,
        requests,
        stop::{self, Ends},
    },
};

/// The routes of a server, with the defaults: at `/mcp`, for loopback hosts and origins, with streams.
///
/// ```
/// # let server = mcp_core::Server::builder(mcp_core::implementation!()).build();
/// let app = axum::Router::new().merge(mcp_http::routes(server));
/// # let _: axum::Router = app;
/// ```
pub fn routes(server: Server) -> Router {
    Routes::new(server).into_router()
}

/// Serves a server over HTTP at `/mcp` of `address`, for loopback hosts and the bound address.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve(server: Server, address: impl ToSocketAddrs) -> Result<(), Error> {
    let failed = |error| Error::caused(ErrorKind::TransportError, "the address could not be bound", error);
    Routes::new(server).serve(TcpListener::bind(address).await.map_err(failed)?).await
}

/// The routes of a server in the making.
#[derive(Debug, Clone)]
#[must_use = "routes do nothing until a router or a listener has them"]
pub struct Routes {
    path: String,
    endpoint: Endpoint,
    /// Where clients of HTTP+SSE listen, and where they post to.
    http_sse: Option<(String, String)>,
}

impl Routes {
    /// The routes of `server` with the defaults.
    pub fn new(server: Server) -> Self {
        let sessions = Some(Sessions::new(&server));
        let (origins, hosts) = (Origins::loopback(), Hosts::loopback());
        let stopping = CancellationToken::new();
        let endpoint = Endpoint { server, origins, hosts, streaming: true, sessions, stopping };
        Self { path: DEFAULT_PATH.into(), endpoint, http_sse: None }
    }

    /// Sets the endpoint's path, which begins with a slash; the same path with a slash behind it is served too.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Sets the `Origin` values that are accepted. Default: loopback ones; requests without the header always are.
    pub fn origins(mut self, origins: Origins) -> Self {
        self.endpoint.origins = origins;
        self
    }

    /// Sets the `Host` values that are accepted. Default: loopback ones, and the bound address with
    /// [`serve`](Self::serve).
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.endpoint.hosts = hosts;
        self
    }

    /// Whether a request may be answered with a stream of events. Default: yes. Without, progress is not told.
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.endpoint.streaming = streaming;
        self
    }

    /// Also serves clients that know only the HTTP+SSE transport of 2024-11-05, which listen at one path and post to another,
    /// as `/sse` and `/messages`. Default: no. Its connections cannot be resumed.
    ///
    /// Specification: *2024-11-05, Transports, HTTP with SSE*.
    pub fn http_sse(mut self, listen: impl Into<String>, messages: impl Into<String>) -> Self {
        self.http_sse = Some((listen.into(), messages.into()));
        self
    }

    /// Keeps the sessions of legacy clients elsewhere, or hands out their handle beforehand. They must be of this server.
    pub fn with_sessions(mut self, sessions: Sessions) -> Self {
        self.endpoint.sessions = Some(sessions);
        self
    }

    /// Keeps no sessions: each request of a legacy client is served by itself, and GET and DELETE are 405.
    pub fn stateless(mut self) -> Self {
        self.endpoint.sessions = None;
        self
    }

    /// The sessions of legacy clients, unless there are none.
    #[must_use]
    pub fn sessions(&self) -> Option<&Sessions> {
        self.endpoint.sessions.as_ref()
    }

    /// The router.
    ///
    /// # Panics
    /// When a path does not begin with a slash, or is there twice.
    pub fn into_router(self) -> Router {
        let path = self.path.trim_end_matches('/');
        let endpoint = Arc::new(self.endpoint);
        // With and without the slash, and no redirect, on which clients lose bodies or credentials.
        let service = EndpointService(endpoint.clone());
        let router = Router::new().route_service(&format!("{path}/"), service.clone());
        let router = if path.is_empty() { router } else { router.route_service(path, service) };
        match self.http_sse {
            Some((listen, messages)) => router.merge(legacy::http_sse_routes(endpoint, &listen, &messages)),
            None => router,
        }
    }

    /// The same as a `tower` service, for [`serve_service`]: where the path is plain text, a request for it takes no router.
    /// Its extensions then have nothing of a router's either, as `OriginalUri`.
    ///
    /// # Panics
    /// When a path does not begin with a slash, or is there twice.
    pub fn into_service(self) -> RoutesService {
        let is_plain = !self.path.contains(['{', '}']);
        let path = is_plain.then(|| self.path.trim_end_matches('/').into());
        let endpoint = EndpointService(Arc::new(self.endpoint.clone()));
        RoutesService { path, endpoint, router: self.into_router() }
    }

    /// Serves them on `listener` as [`serve_service`] does, also for the bound address as host, where it is an IP address.
    ///
    /// # Errors
    /// When the listener's address cannot be told.
    pub async fn serve<L: Listener<Addr: Debug + 'static>>(self, listener: L) -> Result<(), Error> {
        let routes = self.bound(&listener)?;
        let limits = routes.endpoint.server.limits().clone();
        serve_service(routes.into_service(), listener, &limits).await
    }

    /// The same until `signal`, as `tokio::signal::ctrl_c()`. Then no connection is taken any more, streams for what belongs
    /// to no request end, and what still runs may finish within [`Limits::shutdown_grace`](mcp_core::Limits); the rest is
    /// cut off. The server's tasks end last ([`Server::end_tasks`](mcp_core::Server::end_tasks)).
    ///
    /// # Errors
    /// When the listener's address cannot be told.
    pub async fn serve_until<L: Listener<Addr: Debug + 'static>>(
        self,
        listener: L,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let mut routes = self.bound(&listener)?;
        let (server, sessions) = (routes.endpoint.server.clone(), routes.endpoint.sessions.clone());
        let (signalled, cut) = (CancellationToken::new(), CancellationToken::new());
        routes.endpoint.stopping = signalled.clone();
        let severed = CancellationToken::new();
        let listener = Patient { listener, patience: server.limits().stall_timeout, severed: severed.clone() };
        let told = signalled.clone();
        let service = requests::counting(routes.into_service(), Some(cut.clone()));
        let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
            signal.await;
            told.cancel();
        });
        let ends = Ends { signalled, cut, severed };
        let served = stop::until(serving.into_future(), ends, &server, sessions).await;
        server.end_tasks().await;
        served.map_err(failed)
    }

    fn bound<L: Listener<Addr: Debug + 'static>>(mut self, listener: &L) -> Result<Self, Error> {
        let bound = listener.local_addr().map_err(failed)?;
        if let Some(bound) = (&bound as &dyn Any).downcast_ref::<SocketAddr>() {
            self.endpoint.hosts = self.endpoint.hosts.bound(*bound);
        }
        Ok(self)
    }
}

/// Serves any service on `listener` for ever, a router for one: a TCP listener, with `TCP_NODELAY`, or a Unix one, or any
/// other.
///
/// A connection whose peer reads nothing of an answer for [`Limits::stall_timeout`] ends, and so does one that is answering
/// nothing and gets no whole head of a request for as long. It cannot be told to stop: that, [`Routes::serve_until`] does,
/// or `axum::serve`. A layer finds no `ConnectInfo` of the peer's address: for
/// that, give the router to `axum::serve`.
///
/// ```no_run
/// # #[cfg(unix)]
/// # async fn example(server: mcp_core::Server) -> Result<(), Box<dyn std::error::Error>> {
/// let listener = tokio::net::UnixListener::bind("/run/my-server.sock")?;
/// let limits = server.limits().clone();
/// mcp_http::serve_service(mcp_http::routes(server), listener, &limits).await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// When the listener fails.
pub async fn serve_service<S, L>(service: S, listener: L, limits: &Limits) -> Result<(), Error>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + 'static,
    L: Listener<Addr: Debug>,
{
    let listener = Patient { listener, patience: limits.stall_timeout, severed: CancellationToken::new() };
    axum::serve(listener, requests::counting(service, None)).await.map_err(failed)
}

fn failed(error: io::Error) -> Error {
    Error::caused(ErrorKind::TransportError, "the server failed", error)
}
