//! How many requests run at once, and that none gets what is another's.

use std::{collections::HashMap, time::Duration};

use futures_util::future::join_all;
use mcp_core::{Limits, Revision};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::{call, cancel, gauge, ping, text};
use crate::{
    duplex::Peer,
    http::{Post, Served},
};

/// Without the bound a client starts as many handlers as it can write lines.
#[tokio::test(start_paused = true)]
async fn c130_sixty_four_run_and_the_others_wait() {
    let server = everything_server::server();
    let mut peer = Peer::memory(server.clone());
    for id in 0..70 {
        peer.say(&call(id, "sleep", json!({ "ms": 1000 }))).await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(gauge(&server).await, (64, 0));
    let start = Instant::now();
    let mut ids: Vec<u64> = Vec::new();
    for _ in 0..70 {
        ids.push(peer.hear().await["id"].as_u64().unwrap());
    }
    assert!(start.elapsed() < Duration::from_millis(2500), "those that waited started as soon as there was room");
    ids.sort_unstable();
    assert_eq!(ids, (0..70).collect::<Vec<_>>());
    peer.end().await.unwrap();
}

/// Without the second bound a client fills the memory with requests that wait.
#[tokio::test(start_paused = true)]
async fn more_than_1024_do_not_wait() {
    let mut peer = Peer::memory(everything_server::server());
    for id in 0..64 + 1024 + 3 {
        peer.say(&call(id, "sleep", json!({ "ms": 1000 }))).await;
    }
    for id in 64 + 1024..64 + 1024 + 3 {
        let refused = peer.hear().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32603)), "{refused}");
    }
    for _ in 0..64 + 1024 {
        assert_eq!(text(&peer.hear().await), "slept 1000 ms");
    }
    peer.end().await.unwrap();
}

/// A host that gets no answer to a ping takes the server for dead, and one that cannot cancel cannot help it.
#[tokio::test(start_paused = true)]
async fn control_messages_go_past_a_full_house() {
    let server = everything_server::server();
    let mut peer = Peer::memory(server.clone());
    for id in 0..64 + 1024 {
        peer.say(&call(id, "sleep", json!({ "ms": 3_600_000 }))).await;
    }
    let start = Instant::now();
    peer.say(&cancel(3)).await;
    peer.say(&cancel(700)).await;
    peer.say(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    peer.say(&ping("are you there")).await;
    let answer = timeout(Duration::from_secs(60), peer.hear()).await.expect("a ping waits behind no work");
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "are you there", "result": {} }));
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(gauge(&server).await, (64, 1), "what was cancelled made room for one that waited");
}

/// A batch is no way around the bound.
#[tokio::test(start_paused = true)]
async fn batches_keep_the_bound() {
    let server = everything_server::server();
    let mut peer = Peer::memory(server.clone());
    let params =
        json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    peer.say(&json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params }).to_string()).await;
    assert_eq!(peer.hear().await["result"]["protocolVersion"], "2025-03-26");
    let sleep = |id: usize| {
        let params = json!({ "name": "sleep", "arguments": { "ms": 1000 } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    for batch in 0..5 {
        let items: Vec<Value> = (0..64).map(|item| sleep(batch * 64 + item)).collect();
        peer.say(&Value::from(items).to_string()).await;
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(gauge(&server).await, (64, 0));
    let mut answered = 0;
    for _ in 0..5 {
        answered += peer.hear().await.as_array().unwrap().len();
    }
    assert_eq!(answered, 5 * 64);
    peer.end().await.unwrap();
}

/// Every connection has a bound of its own, so that one client cannot starve another.
#[tokio::test(start_paused = true)]
async fn one_full_connection_is_no_others_business() {
    let server = everything_server::server_with(Limits::default().in_flight(1));
    let (mut full, mut other) = (Peer::memory(server.clone()), Peer::memory(server));
    full.say(&call(1, "sleep", json!({ "ms": 3_600_000 }))).await;
    full.say(&call(2, "echo", json!({ "text": "waits" }))).await;
    other.say(&call(1, "echo", json!({ "text": "other" }))).await;
    assert_eq!(text(&other.hear().await), "other");
}

/// State keyed by the client's id would hand one caller the other's answer.
#[tokio::test]
async fn c017_callers_with_the_same_id_get_their_own() {
    let served = Served::start(everything_server::server()).await;
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let answers = join_all((0..40).map(|caller| {
            let body = match caller % 2 {
                0 => call(1, "echo", json!({ "text": format!("caller {caller}") })),
                _ => super::call_with_token(1, "count", json!({ "n": caller }), &format!("caller {caller}")),
            };
            let body = if revision == Revision::LATEST { body } else { without_modern_meta(&body) };
            served.send(Post::speaking(revision, body))
        }));
        for (caller, response) in answers.await.iter().enumerate() {
            let messages: Vec<Value> =
                response.messages().iter().map(|message| serde_json::from_slice(message).unwrap()).collect();
            let (answer, progress) = messages.split_last().unwrap();
            if caller % 2 == 0 {
                assert_eq!((text(answer), progress.len()), (&*format!("caller {caller}"), 0));
            } else {
                assert_eq!((text(answer), progress.len()), (&*caller.to_string(), caller));
                assert!(progress.iter().all(|told| told["params"]["progressToken"] == format!("caller {caller}")));
            }
        }
    }
}

fn without_modern_meta(body: &str) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    body["params"]["_meta"].as_object_mut().unwrap().retain(|name, _| name == "progressToken");
    body.to_string()
}

/// Two overlapping calls under one id, each on a connection of its own and both on one that is reused.
#[tokio::test]
async fn c016_overlapping_calls_under_one_id_end_each_with_its_own() {
    let served = Served::start(everything_server::server()).await;
    let slow = served.send(Post::speaking(Revision::LATEST, call(1, "sleep", json!({ "ms": 300 }))));
    let quick = served.send(Post::speaking(Revision::LATEST, call(1, "echo", json!({ "text": "B" }))));
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!((text(&slow.json()), text(&quick.json())), ("slept 300 ms", "B"));
}

/// Requests that were written at once on one connection are answered in their order.
#[tokio::test]
async fn c017_pipelined_requests_are_answered_in_their_order() {
    let served = Served::start(everything_server::server()).await;
    let mut connection = served.connect().await;
    let post = |id, name, arguments| Post::speaking(Revision::LATEST, call(id, name, arguments)).bytes(served.address);
    let slow = post(1, "sleep", json!({ "ms": 50 }));
    let quick = post(2, "echo", json!({ "text": "B" }));
    connection.write(&[slow, quick].concat()).await;
    assert_eq!(text(&connection.response().await.unwrap().json()), "slept 50 ms");
    assert_eq!(text(&connection.response().await.unwrap().json()), "B");
}

/// With real threads: each of many calls on many connections is answered once, with its own text.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c017_many_connections_at_once_mix_nothing_up() {
    let server = everything_server::server();
    let connections = (0..8).map(|connection| {
        let server = server.clone();
        tokio::spawn(async move {
            let mut peer = Peer::memory(server);
            let mut open = HashMap::new();
            for id in 0..200 {
                let said = format!("{connection} {id}");
                peer.say(&call(id, "echo", json!({ "text": said }))).await;
                open.insert(id, said);
            }
            while !open.is_empty() {
                let answer = peer.hear().await;
                let said = open.remove(&answer["id"].as_u64().unwrap()).expect("one answer for each");
                assert_eq!(text(&answer), said);
            }
            peer.end().await.unwrap();
        })
    });
    for connection in join_all(connections).await {
        connection.unwrap();
    }
}

/// Where a layer makes every request wait, a ping waits with it; that must cost no other request its answer.
#[tokio::test(start_paused = true)]
async fn a_ping_that_a_layer_holds_up_displaces_nothing() {
    let later = tower::util::MapFutureLayer::new(|answer| async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer.await
    });
    let echo = mcp_core::Tool::new("echo", || async { Ok::<_, mcp_core::ToolError>("echoed") });
    let server = mcp_core::Server::builder(mcp_core::implementation!()).tool(echo).layer(later).build();
    let mut peer = Peer::memory(server);
    peer.say(&call(1, "echo", json!({}))).await;
    peer.say(&ping(1)).await;
    let answers = [peer.hear().await, peer.hear().await];
    let results: Vec<&Value> = answers.iter().filter(|answer| answer.get("error").is_none()).collect();
    assert_eq!(results.len(), 1, "one of them is refused: {answers:?}");
    assert_eq!(text(results[0]), "echoed");
    peer.end().await.unwrap();
}

/// Where everything waits, pings are no way around what may wait.
#[tokio::test(start_paused = true)]
async fn pings_that_a_layer_holds_up_are_bounded() {
    let later = tower::util::MapFutureLayer::new(|answer| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        answer.await
    });
    let limits = Limits::default().in_flight(2).waiting(3);
    let server = mcp_core::Server::builder(mcp_core::implementation!()).limits(limits).layer(later).build();
    let mut peer = Peer::memory(server);
    for id in 0..20 {
        peer.say(&ping(id)).await;
    }
    let mut refused = 0;
    for _ in 0..20 {
        refused += u32::from(peer.hear().await["error"]["code"] == -32603);
    }
    // Twice two that run, and three that wait.
    assert_eq!(refused, 20 - (4 + 3));
    peer.end().await.unwrap();
}
