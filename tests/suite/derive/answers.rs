//! Questions as parameters: asked before the body runs, at once, in either era.

use std::sync::atomic::{AtomicU32, Ordering};

use mcp_core::ErrorKind;
use mcp_suite::{
    Client, Context, ToolError,
    prelude::{Ask, prompt, resource, tool},
    types::{ElicitParams, ElicitResult},
};
use mcp_test::{RawClient, assert_like};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    go: bool,
}

struct Runs(AtomicU32);

#[tool]
async fn deploy(
    runs: &Runs,
    context: Context,
    service: String,
    #[ask("Deploy {service}, 100 %?")] approval: Ask<Approval>,
    #[ask("Who are you?")] who: Ask<Name>,
) -> Result<String, ToolError> {
    runs.0.fetch_add(1, Ordering::Relaxed);
    Ok(format!("{service} {} {} {}", approval.go, who.name, context.revision()))
}

#[tool]
async fn greet(#[ask("Who?")] Ask(Name { name }): Ask<Name>) -> Result<String, ToolError> {
    Ok(name)
}

#[prompt]
async fn review(code: String, #[ask("Who wrote {code}?")] who: Ask<Name>) -> Result<String, ToolError> {
    Ok(format!("{code} by {}", who.name))
}

#[resource("x:/{id}")]
async fn page(id: u8, #[ask("Who reads {id}?")] who: Ask<Name>) -> Result<String, ToolError> {
    Ok(format!("{id} for {}", who.name))
}

#[resource("x:log")]
async fn log(#[ask("Who?")] who: Ask<Name>) -> Result<String, ToolError> {
    Ok(who.0.name)
}

fn server() -> Server {
    let server = builder().tool(deploy_tool()).tool(greet_tool()).state(Runs(AtomicU32::new(0)));
    server.prompt(review_prompt()).template(page_template()).resource(log_resource()).build()
}

#[tokio::test]
async fn answers_are_there_when_the_body_runs() {
    for revision in ERAS {
        let server = server();
        let client = client(server.clone(), revision).await;
        let said: String = client.call("deploy", json!({ "service": "web" })).await.unwrap();
        assert_eq!(said, format!("web true <Who are you?> {revision}"));
        assert_eq!(server.state::<Runs>().unwrap().0.load(Ordering::Relaxed), 1);
        assert_eq!(client.call::<String>("greet", ()).await.unwrap(), "<Who?>");
        let text = |result: mcp_suite::types::GetPromptResult| result.messages[0].content.as_text().map(str::to_owned);
        let prompt = client.get_prompt("review", json!({ "code": "x" })).await.unwrap();
        assert_eq!(text(prompt).as_deref(), Some("x by <Who wrote x?>"));
        for (uri, text) in [("x:/7", "7 for <Who reads 7?>"), ("x:log", "<Who?>")] {
            assert_eq!(client.read_resource(uri).await.unwrap().contents[0].as_text(), Some(text));
        }
    }
}

#[tokio::test]
async fn a_model_does_not_see_them_and_all_are_asked_at_once() {
    let properties = schema(&deploy_tool())["properties"].clone();
    assert_eq!(properties.as_object().unwrap().keys().collect::<Vec<_>>(), ["service"]);
    let mut client = RawClient::modern(server());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let params = json!({ "name": "deploy", "arguments": { "service": "web" }, "_meta": meta });
    let asked = client.request("tools/call", params).await;
    let message = |text: &str| json!({ "params": { "message": text } });
    let requests = json!({ "approval": message("Deploy web, 100 %?"), "who": message("Who are you?") });
    assert_like(&json!({ "result": { "inputRequests": requests } }), &asked);
}

#[tokio::test]
async fn whoever_declines_ends_the_call_before_its_body() {
    for revision in ERAS {
        let server = server();
        let client = Client::builder(implementation!()).revisions([revision]);
        let client = client.on_elicit(|_: ElicitParams| async { Ok(ElicitResult::decline()) });
        let client = client.connect(server.clone()).await.unwrap();
        let error = client.call::<String>("deploy", json!({ "service": "web" })).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HandlerFailed);
        assert!(error.to_string().contains("declined"), "{error}");
        assert_eq!(server.state::<Runs>().unwrap().0.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_form_that_no_client_can_show_is_found_where_the_tool_is_registered() {
    #[derive(Deserialize, JsonSchema)]
    struct Nested {
        inner: Name,
    }
    #[tool]
    async fn nested(#[ask("Who?")] who: Ask<Nested>) -> Result<String, ToolError> {
        Ok(who.0.inner.name)
    }
    assert!(builder().tool(nested_tool()).try_build().unwrap_err().to_string().contains("`inner`"));
}

#[tokio::test]
async fn a_test_gives_the_answers_itself() {
    assert_eq!(greet(Ask(Name { name: "Ada".into() })).await.unwrap(), "Ada");
}
