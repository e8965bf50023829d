//! What a handler asks a legacy client, on shared wires.

use std::time::Duration;

use mcp_core::{
    Context, Limits, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    types::{CreateMessageParams, ElicitParams, SamplingMessage},
};
use serde_json::{Value, json};

use super::{cancel, ping};
use crate::duplex::{Peer, Wire};

fn form() -> ElicitParams {
    ElicitParams::form("Sure?", Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap())
}

async fn ask(context: Context) -> Result<String, ToolError> {
    let answer = context.elicit("sure", form()).await?;
    Ok(format!("{} {}", answer.action.as_str(), answer.content.unwrap_or(Raw::empty_object()).as_str()))
}

async fn visit(context: Context) -> Result<String, ToolError> {
    let page = ElicitParams::url("Log in", "https://example.com/login", "visit-1");
    Ok(context.elicit("login", page).await?.action.as_str().to_owned())
}

async fn both(context: Context) -> Result<String, ToolError> {
    let say = |what: &str| CreateMessageParams::new([SamplingMessage::user(what)], 10);
    let (one, other) = tokio::join!(context.sample("one", say("one")), context.sample("other", say("other")));
    Ok(format!("{} {}", one?.to_text(), other?.to_text()))
}

async fn whereabouts(context: Context) -> Result<String, ToolError> {
    context.ping().await?;
    let roots = context.roots("roots").await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
}

fn server() -> Server {
    let limits = Limits::default().question_timeout(Duration::from_secs(5));
    Server::builder(implementation!())
        .limits(limits)
        .tool(Tool::new("ask", ask))
        .tool(Tool::new("visit", visit))
        .tool(Tool::new("both", both))
        .tool(Tool::new("whereabouts", whereabouts))
        .build()
}

async fn greeted(mut peer: Peer, capabilities: Value) -> Peer {
    let client = json!({ "name": "t", "version": "0" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    peer.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()).await;
    assert!(peer.hear().await["result"].is_object());
    peer.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    peer
}

fn plain_call(id: u64, name: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name } }).to_string()
}

fn answer(question: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string()
}

async fn asked(peer: &mut Peer, method: &str) -> Value {
    let question = peer.hear().await;
    assert_eq!(question["method"], method, "{question}");
    question
}

#[tokio::test]
async fn a_question_goes_to_the_client_and_its_answer_to_the_handler_on_every_shared_wire() {
    for wire in [Wire::Memory, Wire::Lines, Wire::Ws] {
        let peer = match wire {
            Wire::Memory => Peer::memory(server()),
            Wire::Lines => Peer::lines(server()),
            _ => Peer::ws(server()).await,
        };
        let mut peer = greeted(peer, json!({ "elicitation": {}, "roots": {} })).await;
        for (result, text) in [
            (json!({ "action": "accept", "content": { "a": 1 } }), r#"accept {"a":1}"#),
            (json!({ "action": "decline" }), "decline {}"),
            (json!({ "action": "cancel" }), "cancel {}"),
        ] {
            peer.say(&plain_call(1, "ask")).await;
            let question = asked(&mut peer, "elicitation/create").await;
            assert_eq!(question["params"]["message"], "Sure?");
            assert_eq!(question["params"]["requestedSchema"], json!({ "type": "object", "properties": {} }));
            peer.say(&answer(&question, result)).await;
            assert_eq!(super::text(&peer.hear().await), text, "{wire:?}");
        }
        peer.say(&plain_call(2, "whereabouts")).await;
        let question = asked(&mut peer, "ping").await;
        peer.say(&answer(&question, json!({}))).await;
        let question = asked(&mut peer, "roots/list").await;
        peer.say(&answer(&question, json!({ "roots": [{ "uri": "file:///a" }, { "uri": "file:///b", "name": "b" }] })))
            .await;
        assert_eq!(super::text(&peer.hear().await), "file:///a file:///b");
    }
}

/// Two at once, answered the other way round; and the loop goes on meanwhile (C130).
#[tokio::test(start_paused = true)]
async fn c130_answers_find_their_questions_in_any_order_and_nothing_waits_for_them() {
    let mut peer = greeted(Peer::memory(server()), json!({ "sampling": {} })).await;
    peer.say(&plain_call(1, "both")).await;
    let one = asked(&mut peer, "sampling/createMessage").await;
    let other = asked(&mut peer, "sampling/createMessage").await;
    assert_ne!(one["id"], other["id"]);
    peer.say(&ping(2)).await;
    assert_eq!(peer.hear().await["id"], 2);
    for (question, text) in [(&other, "second"), (&one, "first")] {
        let said = json!({ "type": "text", "text": text });
        peer.say(&answer(question, json!({ "role": "assistant", "content": said, "model": "m" }))).await;
    }
    assert_eq!(super::text(&peer.hear().await), "first second");
}

#[tokio::test(start_paused = true)]
async fn what_the_client_cannot_do_is_an_error_that_names_it_and_nothing_is_asked() {
    for (capabilities, tool, missing) in [
        (json!({}), "ask", "elicitation"),
        (json!({ "elicitation": { "url": {} } }), "ask", "elicitation"),
        (json!({ "elicitation": {} }), "visit", "elicitation"),
        (json!({ "elicitation": {} }), "both", "sampling"),
    ] {
        let mut peer = greeted(Peer::memory(server()), capabilities).await;
        peer.say(&plain_call(1, tool)).await;
        let answer = peer.hear().await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"].to_string().contains(missing), "{answer}");
    }
    let mut peer = greeted(Peer::memory(server()), json!({ "elicitation": { "form": {}, "url": {} } })).await;
    peer.say(&plain_call(1, "visit")).await;
    let question = asked(&mut peer, "elicitation/create").await;
    assert_eq!((&question["params"]["mode"], &question["params"]["elicitationId"]), (&json!("url"), &json!("visit-1")));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_an_answer_without_shape_are_failures_of_the_tool() {
    let mut peer = greeted(Peer::memory(server()), json!({ "elicitation": {} })).await;
    peer.say(&plain_call(1, "ask")).await;
    let question = asked(&mut peer, "elicitation/create").await;
    let error = json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no user here" } });
    peer.say(&error.to_string()).await;
    let failure = peer.hear().await;
    assert!(failure["result"]["isError"] == true && super::text(&failure).contains("no user here"), "{failure}");
    for result in [json!({ "action": "maybe" }), json!({}), json!([])] {
        peer.say(&plain_call(2, "ask")).await;
        let question = asked(&mut peer, "elicitation/create").await;
        peer.say(&answer(&question, result)).await;
        let failure = peer.hear().await;
        assert_eq!(failure["result"]["isError"], true, "{failure}");
    }
}

/// What nobody waits for is dropped: unknown ids, answers that come twice or late.
#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_time_or_its_call_and_is_taken_back() {
    let mut peer = greeted(Peer::memory(server()), json!({ "elicitation": {} })).await;
    peer.say(&plain_call(1, "ask")).await;
    let question = asked(&mut peer, "elicitation/create").await;
    let mut said = [peer.hear().await, peer.hear().await];
    said.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(said[0]["method"], "notifications/cancelled");
    assert_eq!(said[0]["params"]["requestId"], question["id"]);
    assert!(said[1]["result"]["isError"] == true && super::text(&said[1]).contains("5 s"), "{said:?}");
    peer.say(&answer(&question, json!({ "action": "accept" }))).await;
    peer.say(r#"{"jsonrpc":"2.0","id":"nobody's","result":{}}"#).await;
    peer.say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}"#).await;

    peer.say(&plain_call(2, "ask")).await;
    let question = asked(&mut peer, "elicitation/create").await;
    peer.say(&cancel(2)).await;
    let taken_back = asked(&mut peer, "notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    peer.say(&ping(3)).await;
    assert_eq!(peer.hear().await["id"], 3);
}

/// Over HTTP without sessions, say: nobody is there to be asked.
#[tokio::test]
async fn what_comes_by_itself_cannot_be_asked() {
    let failure = server().handle(plain_call(1, "ask")).await.unwrap();
    let failure: Value = serde_json::from_slice(&failure).unwrap();
    assert_eq!(failure["error"]["code"], -32602, "it declared nothing: {failure}");
}
