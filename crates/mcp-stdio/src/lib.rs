//! MCP over stdio: one message a line.
//!
//! [`serve`] serves a server over the process's own streams, [`serve_lines`] over any byte stream, and a client
//! connects to a [`Child`].
//!
//! ```no_run
//! use mcp_core::{Client, Server, implementation};
//! use mcp_stdio::Child;
//!
//! # async fn server() -> Result<(), mcp_core::Error> {
//! mcp_stdio::serve(Server::builder(implementation!()).build()).await
//! # }
//! # async fn client() -> Result<(), mcp_core::Error> {
//! let client = Client::connect(Child::new("my-server").arg("--stdio")).await?;
//! # client.disconnect().await; Ok(()) }
//! ```
//!
//! While a process serves on its stdout, nothing else of it may write there: print to stderr.
//!
//! Specification: *stdio*.

mod child;
mod lines;
#[cfg(unix)]
mod pipe;
mod server;

pub use child::{Child, ChildSink, ChildSource, ChildWire};
pub use lines::{LineSink, LineSource, Lines};
pub use server::{serve, serve_lines};

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
