//! MCP over Streamable HTTP: [`routes`] for axum, [`serve`] for less ado, and [`Http`], the client's transport.
//!
//! ```no_run
//! use mcp_core::{Client, Server, implementation};
//! use mcp_http::Http;
//!
//! # async fn server() -> Result<(), mcp_core::Error> {
//! mcp_http::serve(Server::builder(implementation!()).build(), "127.0.0.1:8080").await
//! # }
//! # async fn client() -> Result<(), mcp_core::Error> {
//! let client = Client::connect(Http::new("http://127.0.0.1:8080/mcp")).await?;
//! # client.disconnect().await; Ok(()) }
//! ```
//!
//! Authentication, CORS and rate limits are layers on the router, in front of these routes. Whoever authenticates tells who
//! it is by a [`Principal`](mcp_core::Principal) in the request's extensions.
//!
//! Specification: *Streamable HTTP*.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
mod client;
mod defaults;
mod headers;
#[cfg(all(test, feature = "server"))]
#[path = "../../mcp-core/src/model.rs"]
mod model;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod sync;

#[cfg(feature = "server")]
pub use axum;
#[cfg(feature = "client")]
pub use client::{Http, HttpTransport};
pub use defaults::{DEFAULT_CALLS_AT_ONCE, DEFAULT_EVENT_LIFETIME, DEFAULT_REPLAY_CAPACITY, MAX_RETRY};
pub use headers::{LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
pub use http;
pub use mcp_core::DEFAULT_PATH;
#[cfg(feature = "client")]
pub use reqwest;
#[cfg(feature = "server")]
pub use server::{Routes, RoutesService, Sessions, request_parts, routes, serve, serve_service};

/// Entry points for the fuzzer.
#[cfg(all(fuzzing, feature = "client"))]
pub mod fuzz {
    /// Server-sent events, cut anywhere.
    pub fn events(data: &[u8]) {
        crate::client::fuzz_events(data);
    }

    /// The stream of a call, whose connection ends anywhere.
    pub fn http_stream(data: &[u8]) {
        crate::client::fuzz_stream(data);
    }

    /// Headers that mirror a body, and those that say which form of answer is wanted.
    #[cfg(feature = "server")]
    pub fn headers(data: &[u8]) {
        crate::headers::fuzz(data);
        crate::server::fuzz_accept(data);
    }
}

/// The README's examples.
#[cfg(all(doctest, feature = "client", feature = "server"))]
#[doc = include_str!("../README.md")]
mod readme {}
