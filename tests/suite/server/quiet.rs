//! What the log is told, and what it is not.

use mcp_core::{Client, Resource, Revision, Server, Tool, ToolError, implementation, types::CallToolResult};
use serde_json::json;
use tracing::Level;

use super::call;
use crate::{
    duplex::Peer,
    http::{Post, Served},
    peer::log::Warnings,
};

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

/// D10 is three lines a request at INFO.
#[tokio::test]
async fn d10_a_normal_request_is_logged_at_debug_at_most_on_every_wire() {
    let log = Warnings::listen_from(Level::INFO);
    let peers = [
        Peer::memory(everything_server::server()),
        Peer::lines(everything_server::server()),
        Peer::ws(everything_server::server()).await,
    ];
    for mut peer in peers {
        peer.say(&call(1, "add", json!({ "a": 2, "b": 5 }))).await;
        assert_eq!(super::text(&peer.hear().await), "7");
        peer.say(&call(2, "fail", json!({ "message": "x" }))).await;
        peer.hear().await;
        peer.say(&call(3, "nothing of that name", json!({}))).await;
        peer.hear().await;
    }
    let served = Served::start(everything_server::server()).await;
    let answer = served.send(Post::speaking(Revision::LATEST, call(1, "add", json!({ "a": 2, "b": 5 })))).await;
    assert_eq!(super::text(&answer.json()), "7");
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// Whatever is wrong with a request is its caller's to know.
#[tokio::test]
async fn d10_a_refused_request_is_logged_at_debug_at_most() {
    let log = Warnings::listen_from(Level::INFO);
    for mut peer in [Peer::memory(everything_server::server()), Peer::lines(everything_server::server())] {
        for wrong in ["garbage", "[]", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#] {
            peer.say(wrong).await;
            assert!(peer.hear().await["error"].is_object());
        }
    }
    let served = Served::start(everything_server::server()).await;
    for (body, status) in [("garbage", 400), ("[]", 400), (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, 200)] {
        assert_eq!(served.send(Post::speaking(Revision::LATEST_LEGACY, body)).await.status(), status);
    }
    assert_eq!(log.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn d10_a_handshake_and_its_end_are_logged_at_debug_at_most() {
    let log = Warnings::listen_from(Level::INFO);
    let mut peer = Peer::memory(everything_server::server());
    peer.open(Revision::LATEST_LEGACY).await.unwrap();
    peer.end().await.unwrap();
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// So is a client's work, questions and changes among it.
#[tokio::test]
async fn d10_a_client_logs_at_debug_at_most() {
    let log = Warnings::listen_from(Level::INFO);
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let client = Client::builder(implementation!()).revisions([revision]);
        let client = client.connect(everything_server::server()).await.unwrap();
        assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
        client.call::<String>("fail", json!({ "message": "x" })).await.unwrap_err();
        client.disconnect().await;
    }
    assert_eq!(log.lines(), Vec::<String>::new());
}

/// C162: a name that breaks the rule works, and its author is told of the rule.
#[test]
fn c162_an_odd_name_is_warned_of_and_a_usual_one_is_not() {
    let log = Warnings::listen();
    let longest = "n".repeat(128);
    for usual in ["a", "a.b-c_D9", &longest] {
        Server::builder(implementation!()).tool(Tool::new(usual, nothing)).try_build().unwrap();
    }
    assert_eq!(log.lines(), Vec::<String>::new());
    for odd in ["a/b", "a b", "größe", &format!("{longest}n")] {
        Server::builder(implementation!()).tool(Tool::new(odd, nothing)).try_build().unwrap();
        assert!(log.lines().iter().any(|line| line.contains(odd) && line.contains("1 to 128")), "{:?}", log.lines());
    }
}

/// C151: the log names the tool, since its caller cannot mend it.
#[tokio::test]
async fn c151_a_promise_that_is_not_kept_is_an_internal_error_and_the_log_names_the_tool() {
    let log = Warnings::listen();
    let text = || async { Ok::<_, ToolError>(CallToolResult::text("x")) };
    let tool = Tool::new("liar", text).output_schema(mcp_core::jsonrpc::Raw::empty_object());
    let server = Server::builder(implementation!()).tool(tool).build();
    let answer = server.handle(call(1, "liar", json!({}))).await.unwrap();
    assert!(String::from_utf8(answer.to_vec()).unwrap().contains("-32603"));
    assert!(log.lines().iter().any(|line| line.contains("liar")), "{:?}", log.lines());
}

/// C169, and what else a strict client would refuse a whole list for: its author is told at once.
#[test]
fn c169_what_no_client_would_take_cannot_be_registered() {
    let raw = |text: &str| mcp_core::jsonrpc::Raw::parse(text.to_owned()).unwrap();
    for uri in ["report-1.pdf", "/x/report", "", "x: y", "x:\u{0}", "1x:a"] {
        let server = Server::builder(implementation!()).resource(Resource::fixed(uri, "name", "text")).try_build();
        assert!(server.is_err(), "{uri:?}");
    }
    assert!(Server::builder(implementation!()).resource(Resource::fixed("x:a", "", "text")).try_build().is_err());
    for schema in ["true", "{}", "5", r#"{"type":"string"}"#, r#"{"type":["object","null"]}"#] {
        let tool = Tool::with_schema("a", raw(schema), |_, _| async { Ok(CallToolResult::default()) });
        let error = Server::builder(implementation!()).tool(tool).try_build().unwrap_err();
        assert!(error.to_string().contains("`a`") && error.to_string().contains("input schema"), "{error}");
    }
    for schema in ["true", "[]", "null", "5"] {
        let tool = Tool::new("a", nothing).output_schema(raw(schema));
        assert!(Server::builder(implementation!()).tool(tool).try_build().is_err(), "{schema}");
    }
    assert!(Server::builder(implementation!()).tool(Tool::new("a", nothing).meta(raw("[1]"))).try_build().is_err());
}
