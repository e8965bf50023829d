use schemars::JsonSchema;
use serde::Deserialize;
use tower_mcp::{BoxError, CallToolResult, McpRouter, StdioTransport, ToolBuilder};

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let add = ToolBuilder::new("add")
        .description("Add two integers")
        .handler(|Add { a, b }: Add| async move { Ok(CallToolResult::text((a + b).to_string())) })
        .build();
    let router = McpRouter::new().server_info("adder", "1").tool(add);
    StdioTransport::new(router).run().await?;
    Ok(())
}
