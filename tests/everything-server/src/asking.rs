//! A server that asks its client, for the tests that have every wire and every revision.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mcp_suite::{
    Context, Limits, Prompt, Resource, Server, Tool, ToolError, implementation,
    server::{PromptArguments, form},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::gauge::Gauge;

/// The server. It waits for an answer half a second.
#[must_use]
pub fn asking_server() -> Server {
    let (gauge, numbers) = (Gauge::default(), Arc::<AtomicU64>::default());
    let of_one = gauge.clone();
    Server::builder(implementation!())
        .limits(Limits::default().question_timeout(Duration::from_millis(500)))
        .tool(Tool::new("one", move |context| counted(of_one.clone(), context)).describe("Asks one thing"))
        .tool(Tool::new("two", two).describe("Asks two things at once"))
        .tool(Tool::new("dependent", dependent).describe("Asks one thing, and then about its answer"))
        .tool(Tool::new("once", move |context| once(numbers.clone(), context)).describe("Draws a number, and asks"))
        .tool(Tool::new("running", move || running(gauge.clone())).describe("How many runs of `one` there are now"))
        .resource(Resource::new("test://asks", "asks", one).describe("Asks before it is read"))
        .prompt(Prompt::new("asks", |context, _: PromptArguments| one(context)).describe("Asks before it is filled in"))
        .build()
}

async fn running(gauge: Gauge) -> Result<u64, ToolError> {
    Ok(gauge.running())
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn name(context: &Context, key: &str) -> Result<String, ToolError> {
    Ok(context.elicit(key, form::<Name>(key)).await?.name)
}

async fn one(context: Context) -> Result<String, ToolError> {
    Ok(format!("hello {}", name(&context, "who").await?))
}

async fn counted(gauge: Gauge, context: Context) -> Result<String, ToolError> {
    let run = gauge.begin();
    let said = one(context).await;
    run.done();
    said
}

async fn two(context: Context) -> Result<String, ToolError> {
    let (one, other) = tokio::join!(name(&context, "left"), name(&context, "right"));
    Ok(format!("{} and {}", one?, other?))
}

async fn dependent(context: Context) -> Result<String, ToolError> {
    let first = name(&context, "first").await?;
    let second = name(&context, &format!("after {first}")).await?;
    Ok(format!("{first}, then {second}"))
}

async fn once(numbers: Arc<AtomicU64>, context: Context) -> Result<String, ToolError> {
    let draw = async || Ok::<_, ToolError>(numbers.fetch_add(1, Ordering::Relaxed));
    let number = context.once("number", draw).await?;
    let name = name(&context, "who").await?;
    let drawn = numbers.load(Ordering::Relaxed);
    Ok(format!("{name} is number {number}, and {drawn} number(s) were drawn"))
}
