use std::time::Duration;

use mcp_suite::{Context, Json, Tool, ToolError, types::LogLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gauge::Gauge;

/// The tools.
pub(crate) fn all() -> Vec<Tool> {
    let gauge = Gauge::default();
    let (for_sleep, for_count) = (gauge.clone(), gauge.clone());
    vec![
        Tool::new("add", add).describe("Add two integers"),
        Tool::new("echo", echo).describe("Return the text"),
        Tool::new("sleep", move |args| sleep(for_sleep.clone(), args)).describe("Wait for some milliseconds"),
        Tool::new("inflight", move || inflight(gauge.clone()))
            .describe("How many handlers run now, and how many calls were cancelled so far"),
        Tool::new("fail", fail).describe("Fail with the message"),
        Tool::new("panic", panic).describe("Panic with the message"),
        Tool::new("count", move |context, args| count(for_count.clone(), context, args))
            .describe("Count to n, telling of progress"),
        Tool::new("big", big).describe("Return a text of that many bytes"),
        Tool::new("register", register).describe("Add a tool of that name"),
        Tool::new("unregister", unregister).describe("Remove the tool of that name"),
        Tool::new("touch", touch).describe("Say that a resource was updated, and whether anybody was told"),
        Tool::new("log", log).describe("Say the text at that level"),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

async fn add(Add { a, b }: Add) -> Result<i64, ToolError> {
    a.checked_add(b).ok_or_else(|| ToolError::new("the sum does not fit into 64 bits"))
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Echo { text }: Echo) -> Result<String, ToolError> {
    Ok(text)
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

async fn sleep(gauge: Gauge, Sleep { ms }: Sleep) -> Result<String, ToolError> {
    let run = gauge.begin();
    tokio::time::sleep(Duration::from_millis(ms)).await;
    run.done();
    Ok(format!("slept {ms} ms"))
}

#[derive(Serialize, JsonSchema)]
struct InFlight {
    running: u64,
    cancelled: u64,
}

async fn inflight(gauge: Gauge) -> Result<Json<InFlight>, ToolError> {
    Ok(Json(InFlight { running: gauge.running(), cancelled: gauge.cancelled() }))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

async fn fail(Message { message }: Message) -> Result<(), ToolError> {
    Err(ToolError::new(message))
}

async fn panic(Message { message }: Message) -> Result<(), ToolError> {
    panic!("{message}")
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u32,
    /// How long each step takes, in milliseconds.
    #[serde(default)]
    ms: u64,
}

async fn count(gauge: Gauge, context: Context, Count { n, ms }: Count) -> Result<u32, ToolError> {
    let run = gauge.begin();
    for step in 1..=n {
        context.progress(step.into(), Some(n.into()), format!("step {step} of {n}")).await;
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
    run.done();
    Ok(n)
}

#[derive(Deserialize, JsonSchema)]
struct Big {
    bytes: usize,
}

async fn big(Big { bytes }: Big) -> Result<String, ToolError> {
    const MOST: usize = 64 << 20;
    if bytes > MOST { Err(ToolError::new(format!("at most {MOST} bytes"))) } else { Ok("x".repeat(bytes)) }
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

async fn register(context: Context, Named { name }: Named) -> Result<String, ToolError> {
    let answer = format!("this is {name}");
    let tool = Tool::new(name.clone(), move || {
        let answer = answer.clone();
        async move { Ok::<_, ToolError>(answer) }
    });
    context.server().tools().add(tool.describe("Added while the server ran"))?;
    Ok(format!("{name} is there"))
}

async fn unregister(context: Context, Named { name }: Named) -> Result<String, ToolError> {
    match context.server().tools().remove(&name) {
        true => Ok(format!("{name} is gone")),
        false => Err(ToolError::new(format!("there is no {name}"))),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

async fn touch(context: Context, Touch { uri }: Touch) -> Result<bool, ToolError> {
    Ok(context.server().resource_updated(&uri))
}

#[derive(Deserialize, JsonSchema)]
struct Log {
    level: String,
    logger: Option<String>,
    text: String,
}

async fn log(context: Context, Log { level, logger, text }: Log) -> Result<(), ToolError> {
    let level = LogLevel::parse(&level).ok_or_else(|| ToolError::new("no such level"))?;
    context.log(level, logger.as_deref().unwrap_or_default(), text).await;
    Ok(())
}
