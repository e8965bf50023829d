//! The legacy handshake: its order, and what may come between.
//!
//! Specification: *2025-11-25, Lifecycle, Initialization*.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_suite::{Client, ErrorKind, Limits, http::Http, implementation};
use serde_json::json;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer, Request},
    memory::{expect_as, wait},
};

/// Each client has a session of its own, which is ready only when its `initialized` is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c117_no_request_overtakes_the_end_of_the_handshake() {
    const CLIENTS: usize = 32;
    let ready = Arc::new(Mutex::new((0, HashSet::<String>::new())));
    let rule = http::legacy("2025-11-25", |_| Answer::status(500));
    let server = HttpPeer::start(move |request| {
        let session = request.header("mcp-session-id").unwrap_or_default().to_owned();
        match request.method() {
            "initialize" => {
                let mut ready = ready.lock().unwrap();
                ready.0 += 1;
                rule(request).header("Mcp-Session-Id", &format!("s-{}", ready.0))
            }
            "notifications/initialized" => {
                let ready = ready.clone();
                // The server takes it when it answers it, not before.
                Answer::status(202).after(Duration::from_millis(50)).on_writing(move || {
                    ready.lock().unwrap().1.insert(session.clone());
                })
            }
            "tools/call" if ready.lock().unwrap().1.contains(&session) => Answer::result(text("b")),
            "tools/call" => Answer::error(400, -32602, "not initialized"),
            _ => rule(request),
        }
    })
    .await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let url = server.url();
        clients.spawn(async move {
            let client = over_http(&url).await.unwrap();
            client.call::<String>("a", ()).await
        });
    }
    for outcome in soon(clients.join_all()).await {
        assert_eq!(outcome.unwrap(), "b");
    }
    let posts = server.requests().into_iter().filter(|request| request.verb == "POST").count();
    assert_eq!(posts, 4 * CLIENTS);
}

/// On a shared wire the order of frames is all there is.
#[tokio::test(start_paused = true)]
async fn c117_on_a_shared_wire_initialized_goes_first() {
    for _ in 0..8 {
        let (client, peer) = connected(Era::Legacy, answers("a", "b")).await;
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        peer.done().await;
        assert_eq!(peer.methods()[1..], ["initialize", "notifications/initialized", "tools/call"]);
    }
}

#[tokio::test]
async fn c120_over_http_what_comes_before_the_answer_does_no_harm() {
    let rest = http::with_session(http::legacy("2025-11-25", |_| Answer::status(202)));
    let server = HttpPeer::start(move |request| match request.method() {
        "initialize" => Answer::stream([
            json!({ "method": "server.ready", "params": {} }),
            json!({ "method": "notifications/message", "params": { "level": "info", "data": "up" } }),
            json!({ "id": "p-1", "method": "ping" }),
            json!({ "id": "$id", "result": initialized("2025-11-25") }),
        ])
        .header("Mcp-Session-Id", "s-1"),
        _ => rest(request),
    })
    .await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    server.until("the ping is answered", |all| all.iter().any(|r| r.body["id"] == "p-1")).await;
    let pong = server.requests().into_iter().find(|request| request.body["id"] == "p-1").unwrap();
    assert_eq!((pong.body["result"].clone(), pong.header("mcp-session-id")), (json!({}), Some("s-1")));
}

/// In each phase a ping is answered with its own id, and what is no method of a client with -32601.
#[tokio::test(start_paused = true)]
async fn a_server_is_answered_in_every_phase() {
    let asks = || {
        let mut script = Script::new();
        // Ids of the server's own space: they may be strings, and equal to the client's.
        for id in [json!(0), json!("0"), json!(""), json!(-7), json!(123_456_789_012_345_678_u64)] {
            script.extend([
                send(json!({ "id": id, "method": "ping", "params": { "_meta": {} } })),
                expect(json!({ "jsonrpc": "2.0", "id": id, "result": {} })),
                send(json!({ "id": id, "method": "roots/list" })),
                expect(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601 } })),
                send(json!({ "id": id, "method": "no/such/method", "params": {} })),
                expect(json!({ "id": id, "error": { "code": -32601 } })),
            ]);
        }
        script
    };
    let opening = vec![expect_as("$initialize", json!({ "method": "initialize" }))];
    let opened = vec![
        send(json!({ "id": "$initialize", "result": initialized("2025-11-25") })),
        expect(json!({ "method": "notifications/initialized" })),
    ];
    let called = vec![expect_as("$call", json!({ "method": "tools/call" }))];
    let answered = vec![send(json!({ "id": "$call", "result": text("b") }))];
    let peer = ScriptedPeer::new([opening, asks(), opened, asks(), called, asks(), answered, asks()].concat());
    let client = connect_in(Era::Legacy, peer.clone()).await.unwrap();
    // Between the handshake and the first call the script asks; its frames must not meet the call.
    peer.heard(2 + 30).await;
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    peer.done().await;
}

/// Specification: *stdio, Sending Messages*: in the modern era a client never writes a response.
#[tokio::test(start_paused = true)]
async fn a_modern_client_answers_no_requests() {
    let (client, peer) = connected(
        Era::Modern,
        [
            vec![
                expect_as("$call", json!({ "method": "tools/call" })),
                send(json!({ "id": 1, "method": "ping" })),
                send(json!({ "id": "r", "method": "roots/list" })),
                wait(Duration::from_secs(1)),
                send(json!({ "id": "$call", "result": text("b") })),
            ],
            answers("a", "c"),
        ]
        .concat(),
    )
    .await;
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    let again = client.call::<String>("a", ()).await;
    let responses: Vec<_> = peer.received().into_iter().filter(|message| message.get("method").is_none()).collect();
    assert!(responses.is_empty(), "the client wrote {responses:?}");
    assert_eq!(again.unwrap(), "c");
}

#[tokio::test]
async fn a_refused_end_of_the_handshake_is_no_connection() {
    for refusal in [Answer::status(400), Answer::error(400, -32600, "no"), Answer::new(404, "text/plain", "gone")] {
        let said = format!("{refusal:?}");
        let rest = http::with_session(http::legacy("2025-11-25", |_| Answer::status(202)));
        let server = HttpPeer::start(move |request: &Request| match request.method() {
            "notifications/initialized" => refusal.clone(),
            _ => rest(request),
        })
        .await;
        let error = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
        assert!(error.status().is_some_and(|status| status >= 400), "{said}: {error}");
        assert_eq!(server.methods(), ["initialize", "notifications/initialized", "DELETE"], "{said}");
    }
}

/// No server may keep a client waiting for ever, whatever it is that it does not answer.
#[tokio::test]
async fn a_handshake_whose_end_is_never_answered_ends_by_its_timeout() {
    let rest = http::legacy("2025-11-25", |_| Answer::status(202));
    let server = HttpPeer::start(move |request: &Request| match request.method() {
        "notifications/initialized" => Answer::silence(),
        _ => rest(request),
    })
    .await;
    let limits = Limits::default().request_timeout(Duration::from_millis(300));
    let connecting = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    let outcome = tokio::time::timeout(SOON, connecting).await;
    let error = outcome.expect("connecting hangs").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// The answer to one question of the server must not wait for the server to take the answer to another.
#[tokio::test]
async fn a_server_that_is_slow_to_take_one_answer_gets_the_next() {
    let rule = http::legacy("2025-11-25", |request| match request.method() {
        "tools/call" => Answer::stream([
            json!({ "id": "p-1", "method": "ping" }),
            json!({ "id": "p-2", "method": "ping" }),
            json!({ "id": "$id", "result": text("b") }),
        ]),
        _ if request.body["id"] == "p-1" => Answer::silence(),
        _ => Answer::status(202),
    });
    let server = HttpPeer::start(rule).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    let answered = |id: &'static str| move |all: &[Request]| all.iter().any(|request| request.body["id"] == id);
    server.until("the first ping is answered", answered("p-1")).await;
    let second = server.until("the second ping is answered", answered("p-2"));
    assert!(tokio::time::timeout(SOON, second).await.is_ok(), "the second ping waits for the first");
}
