//! A server with the tools of the benchmark, written with tower-mcp as its documentation shows it.

use schemars::JsonSchema;
use serde::Deserialize;
use tower_mcp::{
    CallToolResult, ElicitAction, ElicitFieldValue, ElicitFormParams, ElicitFormSchema, ElicitRequestParams,
    ElicitResult, Error, InputRequest, InputRequiredResult, InputResponse, McpRouter, RequestContext, RequestOutcome,
    Tool, ToolBuilder,
    extract::{Context, Json},
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

/// The server, with so many tools in all.
#[must_use]
pub fn router(tools: usize) -> McpRouter {
    let router = McpRouter::new().server_info("peer", "1");
    let router = [add(), echo(), progress(), ask(), touch()].into_iter().fold(router, McpRouter::tool);
    crate::fillers(tools).map(filler).fold(router, McpRouter::tool)
}

fn add() -> Tool {
    ToolBuilder::new("add")
        .description("Add two integers")
        .handler(|Add { a, b }: Add| async move { Ok(CallToolResult::text((a + b).to_string())) })
        .build()
}

fn echo() -> Tool {
    ToolBuilder::new("echo")
        .description("Echo a text")
        .handler(|Echo { text }: Echo| async move { Ok(CallToolResult::text(text)) })
        .build()
}

fn progress() -> Tool {
    ToolBuilder::new("progress")
        .description("Add two integers, and tell of it")
        .extractor_handler((), |context: Context, Json(Add { a, b }): Json<Add>| async move {
            context.report_progress(1.0, Some(2.0), Some("adding")).await;
            Ok(CallToolResult::text((a + b).to_string()))
        })
        .build()
}

fn ask() -> Tool {
    ToolBuilder::new("ask")
        .description("Add two integers if the user agrees")
        .mrtr_handler(|context: RequestContext, Add { a, b }: Add| async move {
            match context.input_responses().and_then(|answers| answers.get("approve")) {
                None => Ok(RequestOutcome::input_required(question())),
                Some(InputResponse::Elicit(answer)) if agrees(answer) => {
                    Ok(RequestOutcome::Complete(CallToolResult::text((a + b).to_string())))
                }
                Some(_) => Err(Error::invalid_params("nothing was added")),
            }
        })
        .build()
}

fn agrees(answer: &ElicitResult) -> bool {
    let go = answer.content.as_ref().and_then(|fields| fields.get("go"));
    answer.action == ElicitAction::Accept && matches!(go, Some(ElicitFieldValue::Boolean(true)))
}

fn question() -> InputRequiredResult {
    let form = ElicitFormParams {
        mode: None,
        message: "Add them?".into(),
        requested_schema: ElicitFormSchema::new().boolean_field("go", None, true),
        meta: None,
    };
    let questions = [("approve".to_owned(), InputRequest::Elicit(ElicitRequestParams::Form(form)))];
    InputRequiredResult::with_requests(questions.into()).with_request_state("approve")
}

fn touch() -> Tool {
    ToolBuilder::new("touch")
        .description("Say that a resource was updated")
        .extractor_handler((), |context: Context, Json(Touch { uri }): Json<Touch>| async move {
            Ok(CallToolResult::text(context.notify_resource_updated(uri).to_string()))
        })
        .build()
}

fn filler(name: String) -> Tool {
    let schema = serde_json::from_str(crate::FILLER_SCHEMA).unwrap_or_default();
    ToolBuilder::new(name)
        .description(crate::FILLER)
        .input_schema(schema)
        .handler(|_: serde_json::Value| async { Ok(CallToolResult::text("done")) })
        .build()
}
