use std::time::Duration;

use mcp_core::{Client, Era, Revision, implementation};
use mcp_test::{
    ScriptedServer,
    script::{close, expect, expect_as, handshake, modern, raw, rest, send, serve, wait},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::panic_of;

fn text(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

#[tokio::test(start_paused = true)]
async fn a_client_finds_a_server_of_either_era() {
    for (era, heard) in [(Era::Modern, 2), (Era::Legacy, 4)] {
        let call = expect(json!({ "method": "tools/call", "params": { "name": "a" } }));
        let server = ScriptedServer::of(era, [call, send(json!({ "id": "$id", "result": text("b") }))]);
        let client = Client::connect(server.clone()).await.unwrap();
        assert_eq!(client.revision().era(), era);
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        server.done().await;
        assert_eq!((server.connections(), server.received().len()), (1, heard));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_legacy_alone_shakes_hands_at_once() {
    let server = ScriptedServer::new(handshake());
    let legacy = Client::builder(implementation!()).revisions([Revision::LATEST_LEGACY]);
    let _client = legacy.connect(server.clone()).await.unwrap();
    server.done().await;
    assert_eq!(server.methods(), ["initialize", "notifications/initialized"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_expected_is_told_with_its_place() {
    let server = ScriptedServer::modern([expect(json!({ "params": { "name": "a" } })), close()]);
    let client = Client::connect(server.clone()).await.unwrap();
    assert!(client.call::<String>("b", ()).await.is_err());
    let why = panic_of(async move { server.done().await }).await;
    assert!(why.starts_with("step 3 of connection 1: params.name: expected \"a\", got \"b\"\n  expected {"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_did_not_come_is_told_with_what_came() {
    let server = ScriptedServer::modern([expect(json!({ "method": "tools/list" }))]);
    let client = Client::connect(server.clone()).await.unwrap();
    let waiting = server.clone();
    let why = panic_of(async move { waiting.done().await }).await;
    assert!(why.starts_with("waited in vain until the scripts are played; so far came\n  {"), "{why}");
    client.disconnect().await;
    let why = panic_of(async move { server.done().await }).await;
    assert!(why.contains("expected {\"method\":\"tools/list\"}, and the client closed"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_behind_the_last_step_is_told_be_it_before_done_or_on_its_way() {
    for has_come in [true, false] {
        let server = ScriptedServer::modern([]);
        let client = Client::connect(server.clone()).await.unwrap();
        let calling = tokio::spawn(async move { client.call::<String>("a", ()).await });
        if has_come {
            server.heard(2).await;
        }
        let why = panic_of(async move { server.done().await }).await;
        assert!(why.starts_with("behind the last step of connection 1: nothing expects {"), "{why}");
        assert!(why.contains("\"name\":\"a\""), "{why}");
        calling.abort();
    }
}

#[tokio::test]
async fn what_comes_behind_the_last_step_is_told_in_real_time_too() {
    let server = ScriptedServer::modern([]);
    let client = Client::connect(server.clone()).await.unwrap();
    let calling = tokio::spawn(async move { client.call::<String>("a", ()).await });
    let why = panic_of(async move { server.done().await }).await;
    assert!(why.starts_with("behind the last step of connection 1: nothing expects {"), "{why}");
    calling.abort();
}

#[tokio::test(start_paused = true)]
async fn a_script_that_ends_with_rest_takes_what_comes_and_is_done_before_the_client_is() {
    let server = ScriptedServer::new(modern().into_iter().chain([rest()]));
    let client = Client::connect(server.clone()).await.unwrap();
    server.done().await;
    let calling = tokio::spawn(async move { client.call::<String>("a", ()).await });
    server.heard(2).await;
    server.done().await;
    calling.abort();
    assert_eq!(server.methods()[..2], ["server/discover", "tools/call"]);
}

#[tokio::test(start_paused = true)]
async fn time_passes_where_a_script_says_so() {
    let script =
        [expect(json!({})), wait(Duration::from_secs(20)), send(json!({ "id": "$id", "result": text("late") }))];
    let client = Client::connect(ScriptedServer::modern(script)).await.unwrap();
    let start = Instant::now();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "late");
    assert_eq!(start.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn ids_go_by_names_wherever_they_stand() {
    let server = ScriptedServer::modern([
        expect_as("$first", json!({ "method": "tools/call" })),
        expect_as("$second", json!({ "method": "tools/call" })),
        send(json!({ "id": "$second", "result": text("2") })),
        raw("{\"no\": \"message\"}"),
        send(json!({ "id": "$first", "result": text("1") })),
    ]);
    let client = Client::connect(server.clone()).await.unwrap();
    let (first, second) = tokio::join!(client.call::<String>("a", ()), client.call::<String>("b", ()));
    assert_eq!((first.unwrap(), second.unwrap()), ("1".into(), "2".into()));
    server.done().await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_answers_until_the_client_closes_and_no_further_connection_is_taken() {
    let echo = |message: &Value| {
        vec![json!({ "id": message["id"], "result": text(message["params"]["name"].as_str().unwrap()) })]
    };
    let server = ScriptedServer::modern([serve(echo)]);
    let client = Client::connect(server.clone()).await.unwrap();
    for name in ["a", "b"] {
        assert_eq!(client.call::<String>(name, ()).await.unwrap(), name);
    }
    client.disconnect().await;
    server.closed().await;
    server.done().await;
    assert!(Client::connect(server).await.is_err());
}
