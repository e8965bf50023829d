//! MCP over stdio: one message a line.
//!
//! [`serve`] serves a server over the process's own streams ([`Stdio`] where there is more to say), [`serve_lines`] over
//! any byte stream, [`serve_listener`] whoever connects to a socket, and a client connects to a [`Child`].
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
//! While a process serves on its stdout, nothing else of it may write there. On Unix, what is printed all the same goes to
//! stderr ([`Stdio::guard`]); elsewhere, print to stderr only.
//!
//! Specification: *stdio*.

mod child;
mod lines;
mod listener;
mod server;
mod signals;
mod streams;

pub use child::{Child, ChildSink, ChildSource, ChildWire, StderrTail};
pub use lines::{LineSink, LineSource, Lines};
pub use listener::{Listener, serve_listener, serve_listener_until};
pub use server::{Stdio, serve, serve_lines, serve_lines_until};

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
