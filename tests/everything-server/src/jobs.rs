//! Tools that run as tasks: what the conformance suite drives of the tasks extension.

use std::time::Duration;

use mcp_suite::{Context, ServerBuilder, Tool, ToolError, server::form};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

pub(crate) fn add_to(builder: ServerBuilder) -> ServerBuilder {
    builder
        .tool(Tool::new("greet", greet).describe("Says hello, at once"))
        .tool(Tool::new("slow_compute", slow_compute).describe("Takes so many seconds").task())
        .tool(Tool::new("failing_job", failing_job).describe("Fails after a second").task().task_only())
        .tool(Tool::new("protocol_error_job", protocol_error_job).describe("Ends with an error of the protocol").task())
        .tool(Tool::new("confirm_delete", confirm_delete).describe("Asks before it deletes").task())
        .tool(Tool::new("multi_input", multi_input).describe("Asks two things at once").task())
        .tool(
            Tool::new("test_tool_with_task", test_tool_with_task)
                .describe("Asks first, and goes on as a task")
                .task_when_told()
                .task_only(),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn greet(Name { name }: Name) -> Result<String, ToolError> {
    Ok(format!("Hello, {name}!"))
}

#[derive(Deserialize, JsonSchema)]
struct Work {
    seconds: f64,
    #[serde(default)]
    label: String,
}

async fn slow_compute(Work { seconds, label }: Work) -> Result<String, ToolError> {
    sleep(Duration::try_from_secs_f64(seconds)?).await;
    Ok(format!("{label} took {seconds} s"))
}

async fn failing_job() -> Result<(), ToolError> {
    sleep(Duration::from_secs(1)).await;
    Err(ToolError::new("The job failed"))
}

async fn protocol_error_job() -> Result<(), ToolError> {
    panic!("this job knows no other end")
}

#[derive(Deserialize, JsonSchema)]
struct File {
    filename: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    confirm: bool,
}

async fn confirm_delete(context: Context, File { filename }: File) -> Result<String, ToolError> {
    let question = form::<Confirmation>(format!("Delete {filename}?"));
    let Confirmation { confirm } = context.elicit("confirm", question).await?;
    Ok(if confirm { format!("{filename} is deleted") } else { format!("{filename} is kept") })
}

async fn multi_input(context: Context) -> Result<String, ToolError> {
    let name = context.elicit("name", form::<Name>("Who are you?"));
    let confirmation = context.elicit("confirm", form::<Confirmation>("Go on?"));
    let (name, confirmation) = tokio::join!(name, confirmation);
    Ok(format!("{} says {}", name?.name, confirmation?.confirm))
}

async fn test_tool_with_task(context: Context) -> Result<String, ToolError> {
    let Name { name } = context.elicit("user_name", form::<Name>("Who are you?")).await?;
    context.go_on_as_task().await;
    sleep(Duration::from_millis(100)).await;
    Ok(format!("Hello, {name}, from a task"))
}
