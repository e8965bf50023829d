//! The server: both eras, over stdio and HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use calls::{Hanging, QUESTION, RESOURCE, RESOURCE_TEXT};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequests, InputRequiredResult,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, PromptMessage, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
        ServerCapabilities, ServerConfig, SubscriptionFilter,
    },
    service::{RequestContext, SubscriptionContext},
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;

#[derive(Clone, Default)]
struct Server {
    hanging: Hanging,
    /// The tools that `register` has added.
    added: Arc<Mutex<Vec<String>>>,
    /// How many these are.
    changes: watch::Sender<usize>,
}

pub(crate) async fn serve(wire: &str) -> Result<()> {
    let server = Server::default();
    if wire == "stdio" {
        server.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    let sessions = Arc::<LocalSessionManager>::default();
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), sessions, StreamableHttpServerConfig::default());
    Ok(axum::serve(calls::listener("http").await?, axum::Router::new().nest_service("/mcp", service)).await?)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(capabilities.enable_resources().enable_prompts().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = [
            ("add", json!({ "a": { "type": "integer" }, "b": { "type": "integer" } })),
            ("fail", json!({ "message": { "type": "string" } })),
            ("count", json!({ "n": { "type": "integer" } })),
            ("question", json!({})),
            ("hang", json!({})),
            ("stopped", json!({})),
            ("register", json!({ "name": { "type": "string" } })),
        ];
        let added = self.added().clone();
        let all = tools.into_iter().chain(added.iter().map(|name| (name.as_str(), json!({}))));
        let tools: Vec<Value> = all
            .map(|(name, properties)| json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } }))
            .collect();
        serde_json::from_value(json!({ "tools": tools })).map_err(internal)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let text = match request.name.as_ref() {
            "add" => {
                (arguments["a"].as_i64().unwrap_or_default() + arguments["b"].as_i64().unwrap_or_default()).to_string()
            }
            "fail" => {
                let message = arguments["message"].as_str().unwrap_or_default();
                return Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into());
            }
            "count" => count(arguments["n"].as_u64().unwrap_or_default(), &context).await?,
            "question" => return question(&request, &context).await,
            "hang" => self.hang(&context).await?,
            "stopped" => {
                self.hanging.stopped().await;
                "stopped".to_owned()
            }
            "register" => self.register(arguments["name"].as_str().unwrap_or_default(), &context).await?,
            other => format!("this is {other}"),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != RESOURCE {
            return Err(ErrorData::resource_not_found("there is no such resource", None));
        }
        Ok(ReadResourceResult::new(vec![ResourceContents::text(RESOURCE_TEXT, RESOURCE)]).into())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let text = calls::prompt(|name| arguments[name].as_str().unwrap_or_default().to_owned());
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        // The client has its acknowledgement before this runs: what has changed since then must not be missed.
        if *changes.borrow() > 0 {
            changes.mark_changed();
        }
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = changes.changed() => context.sink().notify_tool_list_changed().await.map_err(internal)?,
            }
        }
    }
}

impl Server {
    fn added(&self) -> MutexGuard<'_, Vec<String>> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn hang(&self, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let _hangs = self.hanging.one_more();
        progress(context, 1).await?;
        context.ct.cancelled().await;
        Ok("it was cancelled".to_owned())
    }

    /// Modern clients hear of it where they listen, legacy ones are told.
    async fn register(&self, name: &str, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        self.added().push(name.to_owned());
        self.changes.send_modify(|changes| *changes += 1);
        if !is_modern(context) {
            context.peer.notify_tool_list_changed().await.map_err(internal)?;
        }
        Ok(format!("{name} is there"))
    }
}

fn internal(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() == Some(ProtocolVersion::V_2026_07_28)
}

async fn progress(context: &RequestContext<RoleServer>, step: u64) -> Result<(), ErrorData> {
    let Some(token) = context.meta.get_progress_token() else { return Ok(()) };
    context.peer.notify_progress(ProgressNotificationParam::new(token, step as f64)).await.map_err(internal)
}

async fn count(n: u64, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    for step in 1..=n {
        progress(context, step).await?;
    }
    Ok(n.to_string())
}

/// In the modern era it is called again with the answer.
async fn question(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: QUESTION.to_owned(),
        requested_schema: serde_json::from_value(calls::form()).map_err(internal)?,
    };
    let content = match request.input_responses.as_ref().and_then(|answers| answers.get("user")) {
        Some(answer) => json!(answer)["content"].clone(),
        None if is_modern(context) => {
            let user = InputRequest::Elicitation(ElicitRequest::new(params));
            return Ok(InputRequiredResult::new(Some(InputRequests::from([("user".to_owned(), user)])), None).into());
        }
        None => context.peer.create_elicitation(params).await.map_err(internal)?.content.unwrap_or_default(),
    };
    let name = content["name"].as_str().unwrap_or("nobody");
    Ok(CallToolResult::success(vec![ContentBlock::text(format!("Hello, {name}!"))]).into())
}
