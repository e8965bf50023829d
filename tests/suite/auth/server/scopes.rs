//! What callers may not use, they do not see; and are told what it takes when they ask for it.

use mcp_auth::{StaticKeys, Verified};
use mcp_core::{Client, ErrorKind, implementation};
use mcp_http::reqwest::header::{AUTHORIZATION, HeaderValue};
use mcp_ws::Ws;
use serde_json::json;

use super::{Site, guarded};

async fn site() -> Site {
    let all = ["write", "audit", "prompts", "secrets"];
    let keys = StaticKeys::new()
        .key("all", Verified::new("ada").scopes(all))
        .key("some", Verified::new("bob").scopes(["write"]))
        .key("over", Verified::new("eve").scopes(all).expires_at(1));
    Site::start(guarded(keys).build().unwrap()).await
}

const ALL: (&str, &str) = ("authorization", "Bearer all");
const SOME: (&str, &str) = ("authorization", "Bearer some");

#[tokio::test]
async fn what_needs_more_than_a_caller_has_is_in_no_list() {
    let site = site().await;
    for (method, hidden) in [("tools/list", "write"), ("prompts/list", "secret"), ("resources/list", "x:secret/1")] {
        let all = site.ask(&[ALL], method, json!({})).await.text;
        let some = site.ask(&[SOME], method, json!({})).await.text;
        assert!(all.contains(hidden) && !some.contains(&format!("\"{hidden}\"")), "{all} {some}");
    }
}

#[tokio::test]
async fn what_needs_more_is_refused_with_all_that_it_needs() {
    let site = site().await;
    for (method, params, needed) in [
        ("tools/call", json!({ "name": "write" }), "write audit"),
        ("prompts/get", json!({ "name": "secret" }), "prompts"),
        ("resources/read", json!({ "uri": "x:secret/1" }), "secrets"),
        ("resources/read", json!({ "uri": "x:secret/2" }), "secrets"),
    ] {
        let answer = site.ask(&[SOME], method, params.clone()).await;
        assert_eq!((answer.status, answer.challenged("error")), (403, Some("insufficient_scope")), "{answer:?}");
        assert_eq!(answer.challenged("scope"), Some(needed));
        assert!(answer.challenged("resource_metadata").is_some());
        let body = answer.json();
        assert_eq!((&body["id"], &body["error"]["data"]["scope"]), (&json!(1), &json!(needed)), "{body}");
        let allowed = site.ask(&[ALL], method, params).await;
        assert!(allowed.status == 200 && !allowed.text.contains("insufficient_scope"), "{allowed:?}");
    }
}

#[tokio::test]
async fn a_legacy_call_and_one_that_wants_a_stream_are_refused_alike() {
    let site = site().await;
    let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "write" } });
    for revision in ["2025-11-25", "2025-03-26"] {
        let answer = site.post(&[SOME, ("mcp-protocol-version", revision)], call.clone()).await;
        assert_eq!((answer.status, answer.challenged("scope")), (403, Some("write audit")), "{answer:?}");
        assert_eq!(answer.json()["id"], 7);
    }
    let answer = site.call_with(&[SOME], "whoami").await;
    assert_eq!(answer.said(), "bob");
}

#[tokio::test]
async fn a_call_on_a_socket_is_refused_in_its_answer() {
    let site = site().await;
    let url = format!("ws://{}/mcp", site.address());
    let open = |token| {
        Client::builder(implementation!()).connect(Ws::new(&url).header(AUTHORIZATION, HeaderValue::from_static(token)))
    };
    let client = open("Bearer some").await.unwrap();
    let error = client.call::<String>("write", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("write audit"), "{error:?}");
    assert_ne!(error.kind(), ErrorKind::TransportClosed);
    assert_eq!(client.call::<String>("whoami", json!({})).await.unwrap(), "bob");
}

/// A socket may outlive the token that opened it by days.
#[tokio::test]
async fn a_token_that_is_over_serves_no_call() {
    let site = site().await;
    let answer = site.call("over").await;
    assert!(
        answer.status == 200 && answer.json()["error"]["message"].as_str().unwrap().contains("expired"),
        "{answer:?}"
    );
}
