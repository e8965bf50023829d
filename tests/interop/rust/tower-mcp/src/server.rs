//! The server: both eras, over stdio, HTTP and WebSockets.

use std::collections::BTreeMap;

use anyhow::Result;
use calls::{Hanging, PROMPT, QUESTION, RESOURCE, RESOURCE_TEXT};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_mcp::{
    BidirectionalStdioTransport, CallToolResult, DynamicToolRegistry, HttpTransport, McpRouter, NoParams,
    PromptBuilder, RequestContext, ResourceBuilder, ToolBuilder, WebSocketTransport,
    protocol::{
        ElicitFormParams, ElicitRequestParams, GetPromptResult, InputRequest, InputRequiredResult, RequestOutcome,
    },
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Fail {
    message: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Count {
    n: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Register {
    name: String,
}

type Outcome = tower_mcp::Result<RequestOutcome<CallToolResult>>;

pub(crate) async fn serve(wire: &str) -> Result<()> {
    let router = router();
    let app = match wire {
        "stdio" => return Ok(BidirectionalStdioTransport::new(router).run().await?),
        // Only what may sample may ask.
        "ws" => WebSocketTransport::new(router).with_sampling().into_router_at("/mcp"),
        _ => HttpTransport::new(router).with_sampling().into_router_at("/mcp"),
    };
    Ok(axum::serve(calls::listener(wire).await?, app).await?)
}

fn router() -> McpRouter {
    let hanging = Hanging::new();
    let hangs = hanging.clone();
    let (router, registry) = McpRouter::new().server_info("tower-mcp-peer", "1.0.0").with_dynamic_tools();
    let sum = |Add { a, b }: Add| async move { Ok(CallToolResult::text((a + b).to_string())) };
    let error = |Fail { message }: Fail| async move { Ok(CallToolResult::error(message)) };
    let hang = move |context, _: NoParams| hang(hangs.clone(), context);
    let stopped = move || {
        let hanging = hanging.clone();
        async move {
            hanging.stopped().await;
            Ok(CallToolResult::text("stopped"))
        }
    };
    let register = move |Register { name }: Register| {
        let registry = registry.clone();
        async move { Ok(register(&registry, name)) }
    };
    let prompt = |arguments: std::collections::HashMap<String, String>| async move {
        Ok(GetPromptResult::user_message(calls::prompt(|name| arguments.get(name).cloned().unwrap_or_default())))
    };
    router
        .tool(ToolBuilder::new("add").handler(sum).build())
        .tool(ToolBuilder::new("fail").handler(error).build())
        .tool(ToolBuilder::new("count").mrtr_handler(count).build())
        .tool(ToolBuilder::new("question").mrtr_handler(question).build())
        .tool(ToolBuilder::new("hang").mrtr_handler(hang).build())
        .tool(ToolBuilder::new("stopped").no_params_handler(stopped).build())
        .tool(ToolBuilder::new("register").handler(register).build())
        .resource(ResourceBuilder::new(RESOURCE).name("static-text").text(RESOURCE_TEXT))
        .prompt(PromptBuilder::new(PROMPT).required_arg("arg1", "").required_arg("arg2", "").handler(prompt).build())
}

async fn count(context: RequestContext, Count { n }: Count) -> Outcome {
    for step in 1..=n {
        context.report_progress(step.into(), Some(n.into()), None).await;
    }
    Ok(RequestOutcome::Complete(CallToolResult::text(n.to_string())))
}

async fn hang(hanging: Hanging, context: RequestContext) -> Outcome {
    let _hangs = hanging.one_more();
    context.report_progress(1.0, None, None).await;
    context.cancelled().await;
    Ok(RequestOutcome::Complete(CallToolResult::text("it was cancelled")))
}

fn register(registry: &DynamicToolRegistry, name: String) -> CallToolResult {
    let answer = format!("this is {name}");
    let tool = ToolBuilder::new(name.as_str()).no_params_handler(move || {
        let answer = answer.clone();
        async move { Ok(CallToolResult::text(answer)) }
    });
    registry.register(tool.build());
    CallToolResult::text(format!("{name} is there"))
}

/// In the modern era it is called again with the answer.
async fn question(context: RequestContext, _: NoParams) -> Outcome {
    let form = ElicitFormParams {
        mode: None,
        message: QUESTION.to_owned(),
        requested_schema: serde_json::from_value(calls::form())?,
        meta: None,
    };
    let answer: Value = match context.input_responses().and_then(|answers| answers.get("user")) {
        Some(answer) => json!(answer),
        None if context.can_elicit() => json!(context.elicit_form(form).await?),
        None => {
            let user = InputRequest::Elicit(ElicitRequestParams::Form(form));
            let requests = BTreeMap::from([("user".to_owned(), user)]);
            return Ok(RequestOutcome::input_required(InputRequiredResult::with_requests(requests)));
        }
    };
    let name = answer["content"]["name"].as_str().unwrap_or("nobody");
    Ok(RequestOutcome::Complete(CallToolResult::text(format!("Hello, {name}!"))))
}
