//! A server with the tools of the benchmark, written with rmcp as its documentation shows it. Its router of tools is
//! made once, and not for each call as where the macro is left to keep it.

use std::sync::Arc;

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        tool::InputResponses,
        wrapper::Parameters,
    },
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, InputRequest,
        InputRequiredResult, ProgressNotificationParam, RequestMetaObject, ServerCapabilities, ServerConfig,
        SubscriptionFilter, Tool,
    },
    schemars,
    service::SubscriptionContext,
    tool, tool_handler, tool_router,
};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Touch {
    uri: String,
}

/// Changes that may wait for a listener.
const CHANGES: usize = 64;

/// The type of the server.
#[derive(Clone)]
pub struct Adder {
    tools: Arc<ToolRouter<Self>>,
    changes: broadcast::Sender<String>,
}

/// The server, with so many tools in all.
#[must_use]
pub fn server(tools: usize) -> Adder {
    let mut router = Adder::tool_router();
    crate::fillers(tools).map(filler).for_each(|tool| router.add_route(tool));
    Adder { tools: Arc::new(router), changes: broadcast::Sender::new(CHANGES) }
}

fn filler(name: String) -> ToolRoute<Adder> {
    let schema: rmcp::model::JsonObject = serde_json::from_str(crate::FILLER_SCHEMA).unwrap_or_default();
    ToolRoute::new_dyn(Tool::new(name, crate::FILLER, schema), |_| {
        Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into()) })
    })
}

#[tool_router]
impl Adder {
    #[tool(description = "Add two integers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Echo a text")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }

    #[tool(description = "Add two integers, and tell of it")]
    async fn progress(
        &self,
        Parameters(Add { a, b }): Parameters<Add>,
        meta: RequestMetaObject,
        client: Peer<RoleServer>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0).with_message("adding");
            client
                .notify_progress(progress)
                .await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok((a + b).to_string())
    }

    #[tool(description = "Add two integers if the user agrees")]
    async fn ask(
        &self,
        Parameters(Add { a, b }): Parameters<Add>,
        InputResponses(answers): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(answer) = answers.as_ref().and_then(|answers| answers.get("approve")) else {
            return Ok(question()?.into());
        };
        if answer["content"]["go"] != true {
            return Err(ErrorData::invalid_params("nothing was added", None));
        }
        Ok(CallToolResult::success(vec![ContentBlock::text((a + b).to_string())]).into())
    }

    #[tool(description = "Say that a resource was updated")]
    fn touch(&self, Parameters(Touch { uri }): Parameters<Touch>) -> String {
        self.changes.send(uri).is_ok().to_string()
    }
}

fn question() -> Result<InputRequiredResult, ErrorData> {
    let schema = json!({ "type": "object", "properties": { "go": { "type": "boolean" } }, "required": ["go"] });
    let requested_schema =
        serde_json::from_value(schema).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let form = ElicitRequestParams::FormElicitationParams { meta: None, message: "Add them?".into(), requested_schema };
    let questions = [("approve".to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))];
    Ok(InputRequiredResult::new(Some(questions.into()), Some("approve".into())))
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Adder {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe();
        ServerConfig::new(offers.build())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => {
                    let Ok(uri) = change else { return Ok(()) };
                    let told = context.sink().notify_resource_updated(uri).await;
                    told.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
                }
            }
        }
    }
}
