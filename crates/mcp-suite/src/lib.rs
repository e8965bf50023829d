#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(all(feature = "http", feature = "stdio", feature = "derive"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "http", feature = "stdio", feature = "derive")),
    doc = "The Model Context Protocol: servers and clients."
)]

mod auto;

pub use auto::{connect_auto, connect_auto_with};
/// Authorization: a client that logs in, and a layer that checks who calls a server.
#[cfg(any(feature = "auth", feature = "auth-server"))]
pub use mcp_auth as auth;
pub use mcp_core::*;
/// Streamable HTTP, server and client.
#[cfg(any(feature = "http-server", feature = "http-client"))]
pub use mcp_http as http;
/// Agent Skills, served and loaded.
#[cfg(feature = "skills")]
pub use mcp_skills as skills;
/// The process's own streams and child processes.
#[cfg(feature = "stdio")]
pub use mcp_stdio as stdio;
/// What servers and clients are tested with.
#[cfg(feature = "test")]
pub use mcp_test as test;
/// WebSocket, server and client.
#[cfg(any(feature = "ws-server", feature = "ws-client"))]
pub use mcp_ws as ws;

/// The examples of `mcp-derive`, which cannot depend on what it writes.
#[cfg(all(doctest, feature = "derive"))]
#[doc = include_str!("../../mcp-derive/README.md")]
mod derive_readme {}

/// The examples of the page about authorization.
#[cfg(all(doctest, feature = "auth", feature = "http"))]
#[doc = include_str!("../../../docs/auth.md")]
mod auth_page {}

/// What nearly every server or client names.
pub mod prelude {
    #[cfg(feature = "derive")]
    pub use mcp_core::{Ask, prompt, resource, tool};
    pub use mcp_core::{
        Client, Context, Error, ErrorKind, Json, Server, Tool, ToolError, implementation, types::CallToolResult,
    };
    #[cfg(feature = "http-client")]
    pub use mcp_http::Http;
    #[cfg(feature = "stdio")]
    pub use mcp_stdio::Child;
    #[cfg(feature = "ws-client")]
    pub use mcp_ws::Ws;
}
