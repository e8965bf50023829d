//! MCP over WebSocket, one message a text frame.
//!
//! [`WsLayer`] takes upgrades in front of any axum router, [`serve`] does so on an address of its own, and a client
//! connects to [`Ws`].
//!
//! ```no_run
//! use mcp_core::{Client, Server, implementation};
//! use mcp_ws::{Ws, WsLayer};
//!
//! # async fn server(router: axum::Router) -> axum::Router {
//! let server = Server::builder(implementation!()).build();
//! router.layer(WsLayer::new(server)) // HTTP and WebSocket at one endpoint
//! # }
//! # async fn client() -> Result<(), mcp_core::Error> {
//! let client = Client::connect(Ws::new("ws://127.0.0.1:8080/mcp")).await?;
//! # client.disconnect().await; Ok(()) }
//! ```
//!
//! No revision of the protocol describes this wire. What is sent over it is what the shared wires send, stdio among
//! them.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
mod client;
#[cfg(all(test, any(feature = "client", feature = "server")))]
#[path = "../../mcp-core/src/model.rs"]
mod model;
#[cfg(feature = "server")]
mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod socket;

#[cfg(feature = "server")]
pub use axum;
#[cfg(feature = "client")]
pub use client::Ws;
pub use http;
#[cfg(feature = "tls")]
pub use rustls;
#[cfg(feature = "server")]
pub use server::{BearerSubprotocol, BearerSubprotocolService, WsLayer, WsService, request_parts, serve};
#[cfg(any(feature = "client", feature = "server"))]
pub use socket::{Counted, Socket, SocketSink, SocketSource};

/// The subprotocol that both sides agree on (`Sec-WebSocket-Protocol`).
pub const SUBPROTOCOL: &str = "mcp";

/// The subprotocol of sides that can go on with a connection on another socket. An extension of this crate's.
pub const RESUME_SUBPROTOCOL: &str = "mcp.resume";

/// How a subprotocol begins that tells a token.
#[cfg(any(feature = "client", feature = "server"))]
const AUTH_SUBPROTOCOL: &str = "mcp.auth.";

/// How a subprotocol begins that tells a revision.
#[cfg(feature = "server")]
const VERSION_SUBPROTOCOL: &str = "mcp.version.";

/// The README's examples.
#[cfg(all(doctest, feature = "client", feature = "server"))]
#[doc = include_str!("../README.md")]
mod readme {}
