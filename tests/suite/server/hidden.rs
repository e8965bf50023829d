//! What some callers see and others do not: to these it is as if it were not there.

use mcp_core::{
    Exchange, Principal, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    server::{Peer, serve_peer},
    types::{CacheHint, CacheHints, CallToolResult, Completion, PromptArgument},
};
use mcp_test::RawClient;
use serde_json::{Value, json};
use std::time::Duration;

use crate::http::{Post, Served};

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

fn is_secret(name: &str) -> bool {
    name.contains("secret")
}

fn sees(exchange: &Exchange, name: &str) -> bool {
    exchange.principal().is_some() || !is_secret(name)
}

/// Half of everything is for those who are somebody.
fn server() -> Server {
    let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    let routed = Tool::with_schema("secret.routed", Raw::parse(schema).unwrap(), |_, _| async {
        Ok(CallToolResult::text("routed"))
    });
    let prompt = |name: &str| {
        Prompt::new(name, |_, _| async { Ok("a prompt") })
            .argument(PromptArgument::new("a"))
            .complete("a", |_, _, _| async { Ok(Completion::default()) })
    };
    let template = |uri: &str| ResourceTemplate::new(uri, "template", |_, _| async { Ok("of a template") });
    Server::builder(implementation!())
        .tool(Tool::new("open", nothing))
        .tool(Tool::new("secret", nothing))
        .tool(routed)
        .prompt(prompt("open"))
        .prompt(prompt("secret"))
        .resource(Resource::fixed("x:open", "open", "text"))
        .resource(Resource::fixed("x:secret", "secret", "text"))
        .template(template("x:open/{id}"))
        .template(template("x:secret/{id}"))
        .tool_filter(|exchange, tool| sees(exchange, &tool.definition().name))
        .prompt_filter(|exchange, prompt| sees(exchange, &prompt.definition().name))
        .resource_filter(|exchange, resource| sees(exchange, &resource.definition().uri))
        .template_filter(|exchange, template| sees(exchange, &template.definition().uri_template))
        .cache_hints(CacheHints::default().tools(CacheHint::public(Duration::from_secs(60))))
        .build()
}

async fn client(principal: Option<&str>) -> RawClient {
    let (here, there) = mcp_core::memory();
    let peer = Peer::new().principal(principal.map(Principal::new));
    let mut client = RawClient::over(here, serve_peer(server(), there, peer));
    client.open(mcp_core::Revision::V2025_11_25).await.unwrap();
    client
}

const REQUESTS: [(&str, &str); 8] = [
    ("tools/call", r#"{"name":"$"}"#),
    ("prompts/get", r#"{"name":"$"}"#),
    ("resources/read", r#"{"uri":"x:$"}"#),
    ("resources/read", r#"{"uri":"x:$/1"}"#),
    ("resources/subscribe", r#"{"uri":"x:$"}"#),
    ("resources/subscribe", r#"{"uri":"x:$/1"}"#),
    ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"$"},"argument":{"name":"a","value":""}}"#),
    ("completion/complete", r#"{"ref":{"type":"ref/resource","uri":"x:$/{id}"},"argument":{"name":"id","value":""}}"#),
];

async fn ask(client: &mut RawClient, method: &str, params: &str, name: &str) -> Value {
    let params = serde_json::from_str(&params.replace('$', name)).unwrap();
    client.request(method, params).await
}

/// The error to a name, with the name taken out.
fn error(answer: &Value, name: &str) -> String {
    assert!(answer["error"].is_object(), "{answer}");
    answer["error"].to_string().replace(name, "$")
}

#[tokio::test]
async fn what_is_hidden_answers_as_what_is_not_there() {
    let (mut ada, mut nobody) = (client(Some("ada")).await, client(None).await);
    for (method, params) in REQUESTS {
        let answer = ask(&mut ada, method, params, "secret").await;
        assert!(answer["result"].is_object(), "{method} {params}: {answer}");
        let hidden = ask(&mut nobody, method, params, "secret").await;
        let absent = ask(&mut nobody, method, params, "absent").await;
        assert_eq!(error(&hidden, "secret"), error(&absent, "absent"), "{method} {params}");
        assert!(ask(&mut nobody, method, params, "open").await["result"].is_object());
    }
}

#[tokio::test]
async fn what_is_hidden_is_in_no_list() {
    let (mut ada, mut nobody) = (client(Some("ada")).await, client(None).await);
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let all = ada.request(method, json!({})).await.to_string();
        let some = nobody.request(method, json!({})).await.to_string();
        assert!(is_secret(&all) && all.contains("open"), "{all}");
        assert!(!is_secret(&some) && some.contains("open"), "{some}");
    }
}

/// A list that differs from caller to caller must not be kept for all, whatever the hint says.
#[tokio::test]
async fn a_filtered_list_is_cached_for_who_asked() {
    let meta = super::modern_meta();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let answer: Value = serde_json::from_slice(&server().handle(list.to_string()).await.unwrap()).unwrap();
    assert_eq!((&answer["result"]["ttlMs"], &answer["result"]["cacheScope"]), (&json!(60000), &json!("private")));
}

/// What headers a tool wants would tell that it is there.
#[tokio::test]
async fn a_hidden_tool_is_not_told_by_its_headers() {
    let served = Served::start(server()).await;
    let call = |name: &str| {
        let call = super::call(1, name, json!({ "region": "eu" }));
        Post::speaking(mcp_core::Revision::LATEST, call)
    };
    let hidden = served.send(call("secret.routed")).await;
    let absent = served.send(call("absent.routed")).await;
    assert_eq!(hidden.status(), absent.status());
    assert_eq!(error(&hidden.json(), "secret"), error(&absent.json(), "absent"));
}

/// It hides everything rather than anything.
#[tokio::test]
async fn a_filter_that_panics_shows_nothing_and_says_nothing() {
    let server = Server::builder(implementation!())
        .tool(Tool::new("open", nothing))
        .tool_filter(|_: &Exchange, _: &Tool| panic!("a secret"))
        .build();
    let mut client = RawClient::modern(server);
    for (method, params) in [("tools/list", json!({})), ("tools/call", json!({ "name": "open" }))] {
        let answer = client.request(method, params).await;
        assert!(answer["error"]["code"] == -32603 && !answer.to_string().contains("secret"), "{answer}");
    }
}
