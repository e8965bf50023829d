//! The servers that are measured.

use mcp_core::{Context, Exchange, Principal, Server, Tool, ToolError, implementation};
use mcp_jsonrpc::Raw;
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

async fn progressing(context: Context) -> Result<(), ToolError> {
    context.progress(1.0, Some(2.0), "half of it").await;
    Ok(())
}

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

/// A server whose tools are called.
pub(crate) fn small() -> Server {
    Server::builder(implementation!())
        .tool(Tool::new("add", add).describe("Add two integers"))
        .tool(Tool::new("progressing", progressing).describe("Tells of progress once"))
        .build()
}

/// A server whose tools are listed.
pub(crate) fn with_tools(count: usize) -> Server {
    let server = Server::builder(implementation!()).build();
    server.tools().add((0..count).map(listed)).unwrap();
    server
}

/// The same where each caller sees half of them: those whose number is odd, or those whose number is even.
pub(crate) fn with_hidden_tools(count: usize) -> Server {
    let sees = |exchange: &Exchange, tool: &Tool| {
        let is_odd = tool.definition().name.ends_with(['1', '3', '5', '7', '9']);
        exchange.principal().is_some_and(|principal| is_odd == (principal.id() == ODD))
    };
    let server = Server::builder(implementation!()).tool_filter(sees).build();
    server.tools().add((0..count).map(listed)).unwrap();
    server
}

const ODD: &str = "odd";

/// Who sees every other tool.
pub(crate) fn odd() -> Principal {
    Principal::new(ODD)
}

fn listed(index: usize) -> Tool {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}}}"#;
    let tool = Tool::new(format!("tool_{index:03}"), nothing).describe("Does this and that, as the name says");
    tool.output_schema(Raw::parse(schema).unwrap())
}
