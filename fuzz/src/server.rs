//! A small server that has one of each, and nothing that panics: a panic ends the fuzzer, caught or not.

use std::{sync::LazyLock, time::Duration};

use mcp_core::{
    Context, Limits, Prompt, Resource, ResourceTemplate, Server, ServerBuilder, Tool, ToolError, implementation,
    server::{PromptArguments, form},
    types::LogLevel,
    uri_template::Variables,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// Of small bounds, so that the fuzzer meets them.
pub(crate) fn limits() -> Limits {
    Limits::default()
        .message_bytes(16 << 10)
        .in_flight(4)
        .waiting(4)
        .queue_messages(16)
        .queue_bytes(32 << 10)
        .page_size(2)
        .subscriptions(2)
        .subscribed_uris(2)
        .sessions(8)
        .tasks(4)
        .handler_timeout(Some(Duration::from_secs(60)))
        .question_timeout(Duration::from_secs(60))
}

/// One for all runs, since it keeps nothing of a connection that has ended.
pub(crate) fn server() -> Server {
    static SERVER: LazyLock<Server> = LazyLock::new(|| builder().build());
    SERVER.clone()
}

pub(crate) fn builder() -> ServerBuilder {
    Server::builder(implementation!())
        .limits(limits())
        .tool(Tool::new("add", add))
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("fail", fail))
        .tool(Tool::new("sleep", sleep))
        .tool(Tool::new("count", count))
        .tool(Tool::new("ask", ask))
        .resource(Resource::fixed("x:one", "one", "1"))
        .resource(Resource::fixed("x:two", "two", "2"))
        .resource(Resource::fixed("x:three", "three", "3"))
        .template(ResourceTemplate::new("y://{id}/{+rest}", "template", template))
        .prompt(Prompt::new("greet", greet))
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

async fn add(Add { a, b }: Add) -> Result<i64, ToolError> {
    Ok(a.wrapping_add(b))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Echo { text }: Echo) -> Result<String, ToolError> {
    Ok(text)
}

async fn fail() -> Result<(), ToolError> {
    Err(ToolError::new("no such row"))
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u16,
}

async fn sleep(Sleep { ms }: Sleep) -> Result<(), ToolError> {
    tokio::time::sleep(Duration::from_millis(ms.into())).await;
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u8,
}

async fn count(context: Context, Count { n }: Count) -> Result<u8, ToolError> {
    for step in 1..=n {
        context.progress(step.into(), None, "").await;
        context.log(LogLevel::Info, "count", step).await;
    }
    Ok(n)
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn ask(context: Context) -> Result<String, ToolError> {
    let first: Name = context.elicit("first", form("Who are you?")).await?;
    let second: Name = context.elicit("second", form(first.name)).await?;
    Ok(second.name)
}

async fn template(_: Context, variables: Variables) -> Result<String, ToolError> {
    Ok(variables.get("id").unwrap_or_default().to_owned())
}

async fn greet(_: Context, _: PromptArguments) -> Result<String, ToolError> {
    Ok("hello".to_owned())
}
