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
mod contained;
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
#[cfg(test)]
mod model;
pub mod observer;
pub mod origin;
mod pending;
mod percent;
mod revision;
mod secrets;
/// The server: build one, serve it on a wire, hand it single messages.
pub mod server;
mod shown;
pub mod store;
mod sync;
pub mod types;
pub mod uri_template;
mod validate;
mod wire;

pub use client::{Client, ClientBuilder};
pub use contained::{Panicked, contained};
pub use error::{Blame, Error, ErrorKind, ToolError};
pub use fault::{Fault, mcp_code};
pub use head::{ProgressToken, meta_key};
pub use limits::Limits;
pub use mcp_jsonrpc as jsonrpc;
pub use memory::{MemorySink, MemorySource, MemoryWire, memory};
pub use mirror::{MirrorPlan, MirroredValue};
pub use revision::{Era, Revision, Revisions};
pub use schemars;
pub use secrets::Secrets;
pub use server::{
    Arrival, Ask, Context, Exchange, Json, Principal, Prompt, PromptRegistry, Registry, Reply, Resource,
    ResourceRegistry, ResourceTemplate, Server, ServerBuilder, TemplateRegistry, Tool, ToolRegistry,
};
pub use shown::shown;
pub use wire::{Farewell, FrameSink, FrameSource, Wire};

/// Makes a prompt of an `async fn`, by a function beside it that returns the [`Prompt`].
///
/// ```
/// use mcp_core::{Context, Server, ToolError, implementation, prompt, server::PromptArguments, types::Completion};
///
/// /// Ask for a review
/// #[prompt]
/// async fn review(
///     /// What is to be reviewed
///     code: String,
///     #[complete(styles)] style: Option<String>,
/// ) -> Result<String, ToolError> {
///     Ok(format!("Review this code, {}:\n{code}", style.as_deref().unwrap_or("as you like")))
/// }
///
/// async fn styles(_: Context, typed: String, _: PromptArguments) -> Result<Completion, ToolError> {
///     Ok(["briefly", "thoroughly"].into_iter().filter(|style| style.starts_with(&typed)).collect())
/// }
///
/// let server = Server::builder(implementation!()).prompt(review_prompt()).build();
/// ```
#[cfg(feature = "derive")]
pub use mcp_derive::prompt;
/// Makes a resource of an `async fn`, or a template where the URI has variables, by a function beside it that returns the
/// [`Resource`] or [`ResourceTemplate`].
///
/// ```
/// use mcp_core::{Server, ToolError, implementation, resource};
///
/// /// What has happened
/// #[resource("file:///app.log", mime_type = "text/plain")]
/// async fn log() -> Result<String, ToolError> { Ok(std::fs::read_to_string("app.log")?) }
///
/// /// A user
/// #[resource("users:///{id}")]
/// async fn user(id: u64) -> Result<String, ToolError> {
///     if id == 1 { Ok("Ada".into()) } else { Err(ToolError::not_found()) }
/// }
///
/// let server = Server::builder(implementation!()).resource(log_resource()).template(user_template()).build();
/// ```
#[cfg(feature = "derive")]
pub use mcp_derive::resource;
/// Makes a tool of an `async fn`, by a function beside it that returns the [`Tool`].
///
/// ```
/// use mcp_core::{Ask, Context, Server, ToolError, implementation, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// /// Add two integers
/// #[tool(read_only)]
/// async fn add(
///     /// The first one
///     a: i64,
///     #[arg(default = 1)] b: i64,
/// ) -> Result<i64, ToolError> {
///     Ok(a + b)
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Approval { go: bool }
///
/// /// Deploy a service
/// #[tool(destructive)]
/// async fn deploy(
///     context: Context,
///     service: String,
///     #[ask("Deploy {service}?")] approval: Ask<Approval>,
/// ) -> Result<String, ToolError> {
///     context.progress(0.5, Some(1.0), "asked");
///     Ok(format!("{service}: {}", approval.go))
/// }
///
/// let server = Server::builder(implementation!()).tool(add_tool()).tool(deploy_tool()).build();
/// ```
///
/// A method of a state becomes a tool of one such state:
///
/// ```
/// use std::sync::Arc;
/// # use mcp_core::{Server, ToolError, implementation, tool};
///
/// struct Weather { unit: &'static str }
///
/// impl Weather {
///     /// What the weather will be
///     #[tool]
///     async fn forecast(&self, city: String) -> Result<String, ToolError> {
///         Ok(format!("20 {} in {city}", self.unit))
///     }
/// }
///
/// let weather = Arc::new(Weather { unit: "°C" });
/// let server = Server::builder(implementation!()).tool(weather.forecast_tool()).build();
/// ```
#[cfg(feature = "derive")]
pub use mcp_derive::tool;

/// What the macros' expansions name, beside what is public.
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod __private {
    pub use schemars;
    pub use serde;
    pub use tokio::try_join;
}

/// Entry points for the fuzzer.
#[cfg(fuzzing)]
pub mod fuzz {
    pub use crate::uri_template::fuzz as uri_template;

    /// The parameters of a request.
    pub fn head(data: &[u8]) {
        crate::head::fuzz(data);
    }
}

/// The README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
