//! The Model Context Protocol: types, server and client, without sockets and without HTTP.
//!
//! Five revisions in two eras, one handler text for all of them. The transports are crates of their own (`mcp-stdio`,
//! `mcp-http`), and `mcp-suite` gathers them behind features.
//!
//! ```
//! use mcp_core::{Client, Server, Tool, ToolError, implementation};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use serde_json::json;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! async fn add(Add { a, b }: Add) -> Result<i64, ToolError> { Ok(a + b) }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let server = Server::builder(implementation!()).tool(Tool::new("add", add).describe("Add two integers")).build();
//! let client = Client::connect(server).await?; // in memory; any transport likewise
//! let sum: i64 = client.call("add", json!({ "a": 2, "b": 5 })).await?;
//! assert_eq!(sum, 7);
//! # Ok::<(), mcp_core::Error>(()) }).unwrap();
//! ```

/// Where servers on the network have their endpoint, unless told otherwise.
pub const DEFAULT_PATH: &str = "/mcp";

/// A future whose type is erased, as transports and layers return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub mod client;
mod deadline;
mod error;
mod fault;
mod head;
mod hub;
mod limits;
mod lock;
mod mailbox;
mod memory;
pub mod method;
mod mirror;
pub mod observer;
pub mod origin;
mod pending;
mod revision;
/// The server: build one, serve it on a wire, hand it single messages.
pub mod server;
mod shown;
pub mod store;
pub mod types;
pub mod uri_template;
mod validate;
mod wire;

pub use client::{Client, ClientBuilder};
pub use error::{Blame, Error, ErrorKind, ToolError};
pub use fault::{Fault, mcp_code};
pub use head::{ProgressToken, meta_key};
pub use limits::Limits;
pub use mcp_jsonrpc as jsonrpc;
pub use memory::{MemorySink, MemorySource, MemoryWire, memory};
pub use mirror::{MirrorPlan, MirroredValue};
pub use revision::{Era, Revision, Revisions};
pub use schemars;
pub use server::{
    Arrival, Context, Exchange, Json, Principal, Prompt, PromptRegistry, Registry, Reply, Resource, ResourceRegistry,
    ResourceTemplate, Server, ServerBuilder, TemplateRegistry, Tool, ToolRegistry,
};
pub use shown::shown;
pub use wire::{FrameSink, FrameSource, Wire};

/// Entry points for the fuzzer.
#[cfg(fuzzing)]
pub mod fuzz {
    pub use crate::uri_template::fuzz as uri_template;
}

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
