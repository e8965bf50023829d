//! HTTP as it is on the wire: no client library stands between a test and the bytes.

mod cases;
mod cors;
mod docs;
mod http2;
mod latency;
mod old_sse;
mod questions;
mod raw;
mod resume;
mod session;
mod sessions;
mod stop;
mod stores;
mod tables;
mod times;

use std::net::SocketAddr;

pub(crate) use cases::or_panic;
use mcp_core::Server;
use mcp_http::Routes;
use mcp_test::HttpServer;
pub(crate) use raw::{Connection, Event, Post, Response, events, soon};
use tokio::net::TcpListener;

/// A server that listens until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _server: HttpServer,
}

impl Served {
    /// Serves on a free port of this machine, without sessions.
    pub(crate) async fn start(server: Server) -> Self {
        Self::with(Routes::new(server).stateless(), "127.0.0.1").await
    }

    /// Serves these routes on a free port of `host`.
    pub(crate) async fn with(routes: Routes, host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).await.expect("a free port");
        let server = HttpServer::start_on(listener, routes);
        Self { address: server.address(), _server: server }
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await
    }

    /// Sends one request on a connection of its own and reads the whole answer.
    pub(crate) async fn send(&self, post: Post) -> Response {
        let mut connection = self.connect().await;
        // What is refused is not read to its end.
        connection.write_what_goes(&post.bytes(self.address)).await;
        connection.response_to(&post).await.expect("an answer")
    }
}
