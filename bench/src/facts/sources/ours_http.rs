use mcp_suite::prelude::*;
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

#[tokio::main]
async fn main() -> Result<(), Error> {
    let server = Server::builder(implementation!()).tool(Tool::new("add", add).describe("Add two integers")).build();
    mcp_suite::http::serve(server, "127.0.0.1:8080").await
}
