use std::net::{Ipv4Addr, SocketAddr};

use mcp_core::Server;
use mcp_http::{
    DEFAULT_PATH, Routes,
    axum::{self, Router},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// A server over HTTP on a free port of 127.0.0.1, until this is dropped.
///
/// ```
/// use mcp_core::{Server, implementation};
/// use mcp_test::HttpServer;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let server = HttpServer::start(Server::builder(implementation!()).build()).await;
/// assert!(server.url().starts_with("http://127.0.0.1:") && server.url().ends_with("/mcp"));
/// // Client::connect(Http::new(server.url())).await
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a server that is dropped has stopped"]
pub struct HttpServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl HttpServer {
    /// Serves `server` with the defaults.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start(server: Server) -> Self {
        Self::start_routes(Routes::new(server)).await
    }

    /// Serves routes as they are set up.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start_routes(routes: Routes) -> Self {
        Self::start_on(free_port().await, routes)
    }

    /// Serves a router with layers of your own around the routes. Its routes know no address that they are bound to, and
    /// take loopback hosts.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start_router(router: Router) -> Self {
        let listener = free_port().await;
        Self::spawn(address_of(&listener), async {
            axum::serve(listener, router).await.map_err(|error| error.to_string())
        })
    }

    /// Serves routes on a listener of your own; where that listens on every address, [`url`](Self::url) names the
    /// loopback one.
    ///
    /// # Panics
    /// When the listener has no address.
    pub fn start_on(listener: TcpListener, routes: Routes) -> Self {
        let address = address_of(&listener);
        Self::spawn(address, async { routes.serve(listener).await.map_err(|error| error.to_string()) })
    }

    fn spawn(address: SocketAddr, serving: impl Future<Output = Result<(), String>> + Send + 'static) -> Self {
        let task = tokio::spawn(async {
            if let Err(why) = serving.await {
                panic!("serving failed: {why}");
            }
        });
        Self { address, task }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the endpoint, where that is at the default path.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(DEFAULT_PATH)
    }

    /// The URL of a path, which begins with a slash.
    #[must_use]
    pub fn url_of(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn free_port() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap_or_else(|error| panic!("no free port: {error}"))
}

fn address_of(listener: &TcpListener) -> SocketAddr {
    let mut address = listener.local_addr().unwrap_or_else(|error| panic!("a listener without an address: {error}"));
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}
