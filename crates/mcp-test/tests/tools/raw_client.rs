use mcp_core::{Context, Server, Tool, ToolError, implementation};
use mcp_test::{RawClient, assert_like};
use serde_json::json;

use crate::{panic_of, server};

#[tokio::test(start_paused = true)]
async fn a_tool_is_called_in_both_eras() {
    for mut client in [RawClient::modern(server()), RawClient::legacy(server()).await] {
        let answer = client.call("add", json!({ "a": 2, "b": 5 })).await;
        assert_like(&json!({ "result": { "content": [{ "text": "7" }] } }), &answer);
        client.end().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_before_an_answer_is_heard_after_it() {
    async fn tell(context: Context) -> Result<(), ToolError> {
        context.progress(1.0, None, "half").await;
        Ok(())
    }
    let server = Server::builder(implementation!()).tool(Tool::new("tell", tell)).build();
    let mut client = RawClient::modern(server);
    let params = json!({ "name": "tell", "_meta": { "progressToken": "p" } });
    assert_like(&json!({ "id": 1, "result": {} }), &client.request("tools/call", params).await);
    assert_like(&json!({ "method": "notifications/progress", "params": { "message": "half" } }), &client.hear().await);
    client.silence().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_said_goes_as_it_is() {
    let mut client = RawClient::connect(server());
    client.say("{").await;
    assert_like(&json!({ "id": null, "error": { "code": -32700 } }), &client.hear().await);
    client.say(json!({ "jsonrpc": "2.0", "id": "x", "method": "ping" })).await;
    assert_like(&json!({ "id": "x", "result": {} }), &client.hear().await);
    client.end().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_fails_where_something_comes_or_nothing_does() {
    let mut client = RawClient::connect(server());
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    let why = client.silence().await.unwrap_err().to_string();
    assert!(why.starts_with("a message that nothing expects: {"), "{why}");
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    let why = client.end().await.unwrap_err().to_string();
    assert!(why.starts_with("a message at the end: {"), "{why}");
    assert_eq!(client.send("{}").await.unwrap_err().to_string(), "the input has ended already");

    let mut client = RawClient::connect(server());
    let why = panic_of(async move { client.hear().await }).await;
    assert_eq!(why, "expected a message: no message in 3600s");
}

/// In real time a person waits.
#[tokio::test]
async fn in_real_time_silence_is_short() {
    let mut client = RawClient::modern(server());
    let start = std::time::Instant::now();
    client.silence().await.unwrap();
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_agree_is_told() {
    let modern_only = Server::builder(implementation!()).revisions([mcp_core::Revision::LATEST]).build();
    let why = panic_of(async move { drop(RawClient::legacy(modern_only).await) }).await;
    assert!(why.starts_with("at the handshake: result: expected "), "{why}");
}
