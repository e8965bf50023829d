//! A server with the tool `add`, written with tower-mcp as its documentation shows it.

use schemars::JsonSchema;
use serde::Deserialize;
use tower_mcp::{CallToolResult, McpRouter, ToolBuilder};

/// What `add` takes.
#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// The server.
#[must_use]
pub fn router() -> McpRouter {
    let add = ToolBuilder::new("add")
        .description("Add two integers")
        .handler(|Add { a, b }: Add| async move { Ok(CallToolResult::text((a + b).to_string())) })
        .build();
    McpRouter::new().server_info("peer", "1").tool(add)
}
