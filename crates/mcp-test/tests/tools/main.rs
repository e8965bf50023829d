//! Each tool sees what it is for, and fails where it should, in words that name the place.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, in its helpers too")]

mod golden;
#[cfg(feature = "http")]
mod http;
mod raw_client;
mod scripted_server;

use mcp_core::{Server, Tool, ToolError, implementation};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

async fn add(Add { a, b }: Add) -> Result<i64, ToolError> {
    Ok(a + b)
}

/// A server with one tool.
fn server() -> Server {
    Server::builder(implementation!()).tool(Tool::new("add", add)).build()
}

/// The words that a future panics with.
async fn panic_of<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> String {
    let Err(error) = tokio::spawn(future).await else { panic!("it does not panic") };
    let panic = error.into_panic();
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| (*panic.downcast_ref::<&str>().unwrap()).to_owned())
}
