//! A server with the tools of the benchmark, written as this project's README shows it.

use mcp_suite::{
    Context, Error, Limits, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    server::{Resource, form},
    types::CallToolResult,
};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    /// Whether to add
    go: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

async fn add(Add { a, b }: Add) -> Result<i64, ToolError> {
    Ok(a + b)
}

async fn echo(Echo { text }: Echo) -> Result<String, ToolError> {
    Ok(text)
}

async fn progress(context: Context, Add { a, b }: Add) -> Result<i64, ToolError> {
    context.progress(1.0, Some(2.0), "adding").await;
    Ok(a + b)
}

async fn ask(context: Context, Add { a, b }: Add) -> Result<i64, ToolError> {
    let Approval { go } = context.elicit("approve", form::<Approval>("Add them?")).await?;
    if go { Ok(a + b) } else { Err(ToolError::new("Nothing was added")) }
}

async fn touch(context: Context, Touch { uri }: Touch) -> Result<bool, ToolError> {
    Ok(context.server().resource_updated(&uri))
}

/// The server, with so many tools in all.
///
/// # Errors
/// When a tool is not valid.
pub fn server(tools: usize) -> Result<Server, Error> {
    let server = Server::builder(implementation!())
        .tool(Tool::new("add", add).describe("Add two integers"))
        .tool(Tool::new("echo", echo).describe("Echo a text"))
        .tool(Tool::new("progress", progress).describe("Add two integers, and tell of it"))
        .tool(Tool::new("ask", ask).describe("Add two integers if the user agrees"))
        .tool(Tool::new("touch", touch).describe("Say that a resource was updated"))
        .resource(Resource::fixed("bench://changes", "changes", "what changes"))
        .limits(limits())
        .build();
    server.tools().add(crate::fillers(tools).map(filler))?;
    Ok(server)
}

/// The defaults, but for the listeners and sessions that some rows have more of.
fn limits() -> Limits {
    Limits::default().subscriptions(10_000).sessions(20_000)
}

fn filler(name: String) -> Tool {
    let schema = Raw::parse(crate::FILLER_SCHEMA).unwrap_or(Raw::empty_object());
    Tool::with_schema(name, schema, async |_, _| Ok(CallToolResult::text("done"))).describe(crate::FILLER)
}
