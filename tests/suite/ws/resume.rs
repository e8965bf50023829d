//! Connections that outlive their sockets: the frames, by hand, and what bad peers make of them.

use mcp_core::{Client, ErrorKind, Limits, Principal, client::Backoff};
use mcp_ws::Ws;
use serde_json::json;

use super::{
    client::{peer, switch},
    *,
};
use crate::server::{call, gauge, ping, until};

const GRACE: Duration = Duration::from_secs(30);
const WINDOW: (u64, u64) = (256, 4 << 20);

fn hello(token: Option<&str>, received: u64) -> String {
    json!({ "resume": { "token": token, "received": received, "messages": WINDOW.0, "bytes": WINDOW.1 } }).to_string()
}

fn taken(count: u64) -> String {
    json!({ "resume": { "taken": count } }).to_string()
}

/// The server's hello, with which the connection goes on or begins.
struct Greeted {
    peer: Peer,
    token: String,
    received: u64,
}

impl Served {
    async fn resumable(&self, headers: &[(&str, &str)]) -> Peer {
        let protocol = ("Sec-WebSocket-Protocol", "mcp.resume, mcp");
        let (head, peer) = self.upgrade("/mcp", &[&[protocol], headers].concat()).await;
        assert_eq!(header(&head, "sec-websocket-protocol"), Some("mcp.resume"), "{head:?}");
        peer
    }

    async fn greet_as(&self, headers: &[(&str, &str)], token: Option<&str>, received: u64) -> Greeted {
        let mut peer = self.resumable(headers).await;
        peer.say_raw(&hello(token, received)).await;
        let said = peer.hear().await;
        let token = said["resume"]["token"].as_str().unwrap().to_owned();
        let received = said["resume"]["received"].as_u64().unwrap();
        Greeted { peer, token, received }
    }

    async fn greet(&self, token: Option<&str>, received: u64) -> Greeted {
        self.greet_as(&[], token, received).await
    }
}

impl Peer {
    /// The mark has to be the first thing in the text.
    async fn say_raw(&mut self, text: &str) {
        assert!(text.starts_with(r#"{"resume":"#));
        self.say(text).await;
    }

    /// The next message, whatever is said about messages.
    async fn hear_message(&mut self) -> Value {
        loop {
            let frame = self.next().await.expect("a message");
            if frame.opcode == TEXT && frame.json().get("resume").is_none() {
                return frame.json();
            }
        }
    }
}

async fn resuming() -> (Server, Served) {
    let server = everything_server::server();
    let served = Served::with(WsLayer::new(server.clone()).resume(GRACE)).await;
    (server, served)
}

#[tokio::test]
async fn a_call_goes_on_while_its_socket_is_lost_and_its_answer_comes_on_the_next() {
    let (server, served) = resuming().await;
    let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
    peer.say(call(1, "sleep", json!({ "ms": 100 }))).await;
    until("the call runs", async || gauge(&server).await.0 == 1).await;
    drop(peer);
    until("the call is over", async || gauge(&server).await == (0, 0)).await;
    let Greeted { mut peer, token: same, received } = served.greet(Some(&token), 0).await;
    assert_eq!((same.as_str(), received), (token.as_str(), 1));
    assert_eq!(peer.hear_message().await["result"]["content"][0]["text"], "slept 100 ms");
    peer.say(ping(2)).await;
    assert_eq!(peer.hear_message().await["id"], 2);
}

#[tokio::test]
async fn what_the_client_has_is_not_sent_again_and_what_it_lost_is() {
    let (_server, served) = resuming().await;
    let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
    for id in 1..=3 {
        peer.say(ping(id)).await;
        assert_eq!(peer.hear_message().await["id"], id);
    }
    for (received, next) in [(1, vec![2, 3]), (1, vec![2, 3]), (2, vec![3]), (3, vec![])] {
        drop(peer);
        let again = served.greet(Some(&token), received).await;
        assert_eq!((again.received, &again.token), (3, &token));
        peer = again.peer;
        for id in next {
            assert_eq!(peer.hear_message().await["id"], id);
        }
    }
    peer.say_raw(&taken(3)).await;
    peer.say(ping(4)).await;
    assert_eq!(peer.hear_message().await["id"], 4);
}

/// A legacy session is the connection's, whatever its socket.
#[tokio::test]
async fn a_legacy_session_goes_on_over_a_new_socket() {
    let (_server, served) = resuming().await;
    let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
    peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()).await;
    assert_eq!(peer.hear_message().await["id"], 1);
    peer.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
    peer.say(ping(2)).await;
    assert_eq!(peer.hear_message().await["id"], 2);
    drop(peer);
    let Greeted { mut peer, .. } = served.greet(Some(&token), 2).await;
    let params = json!({ "name": "add", "arguments": { "a": 2, "b": 5 } });
    peer.say(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }).to_string()).await;
    assert_eq!(peer.hear_message().await["result"]["content"][0]["text"], "7");
}

/// The server has not noticed yet that the old socket is gone.
#[tokio::test]
async fn a_second_socket_takes_over_and_the_first_is_closed() {
    let (_server, served) = resuming().await;
    let Greeted { peer: mut old, token, .. } = served.greet(None, 0).await;
    old.say(ping(1)).await;
    assert_eq!(old.hear_message().await["id"], 1);
    let Greeted { mut peer, received, .. } = served.greet(Some(&token), 0).await;
    assert_eq!(received, 1);
    assert_eq!(peer.hear_message().await["id"], 1);
    let closed = old.next().await.expect("a close frame");
    assert_eq!((closed.code(), closed.reason()), (1008, "resumed on another socket"));
    peer.say(ping(2)).await;
    assert_eq!(peer.hear_message().await["id"], 2);
}

#[tokio::test]
async fn a_token_that_is_unknown_forged_or_somebody_elses_begins_anew() {
    use axum::{extract::Request, middleware::Next};
    let who = async |mut request: Request, next: Next| {
        let name = request.headers().get("x-who").map(|name| name.to_str().unwrap().to_owned());
        if let Some(name) = name {
            request.extensions_mut().insert(Principal::new(name));
        }
        next.run(request).await
    };
    let layer = WsLayer::new(everything_server::server()).resume(GRACE);
    let served = Served::router(axum::Router::new().layer(layer).layer(axum::middleware::from_fn(who))).await;
    let alice = [("X-Who", "alice")];
    let Greeted { mut peer, token, .. } = served.greet_as(&alice, None, 0).await;
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "256 bits: {token}");
    peer.say(ping(1)).await;
    peer.hear_message().await;
    let forged = token.replace(['a', 'b', 'c'], "d").replace(['0', '1', '2'], "3");
    let upper = token.to_uppercase();
    for (headers, token) in [
        (&alice[..], "f".repeat(64)),
        (&alice[..], forged),
        (&alice[..], upper),
        (&alice[..], token[1..].to_owned()),
        (&alice[..], String::new()),
        (&[("X-Who", "mallory")][..], token.clone()),
        (&[][..], token.clone()),
    ] {
        let mut other = served.greet_as(headers, Some(&token), 1).await;
        assert_eq!(other.received, 0);
        assert_ne!(other.token, token);
        other.peer.say(ping(9)).await;
        assert_eq!(other.peer.hear_message().await["id"], 9);
    }
    // It is unharmed.
    peer.say(ping(2)).await;
    assert_eq!(peer.hear_message().await["id"], 2);
    drop(peer);
    assert_eq!(served.greet_as(&alice, Some(&token), 2).await.received, 2);
}

#[tokio::test]
async fn what_is_no_hello_is_closed_with_1008() {
    let (_server, served) = resuming().await;
    for text in [ping(1), taken(0), "garbage".into(), format!(" {}", hello(None, 0)), r#"{"resume":null}"#.into()] {
        let mut peer = served.resumable(&[]).await;
        peer.say(&text).await;
        let closed = peer.next().await.expect("a close frame");
        assert_eq!((closed.code(), closed.reason()), (1008, "the first text has to be about resuming"), "{text}");
    }
}

/// Nobody is let keep what is longer than a first text may be; what follows a first text at once is no part of it.
#[tokio::test]
async fn a_first_text_is_heard_no_further_than_it_may_be_long() {
    let (_server, served) = resuming().await;
    let mut peer = served.resumable(&[]).await;
    let long = peer.frame(true, TEXT, &vec![b' '; 1 << 20]);
    peer.write(&long[..4 << 10]).await;
    // Sooner than patience with it ends.
    let closed = timeout(Duration::from_secs(5), peer.next()).await.unwrap().expect("a close frame");
    assert_eq!((closed.code(), closed.reason()), (1008, "the first text has to be about resuming"));

    let mut peer = served.resumable(&[]).await;
    let mut all = peer.frame(true, TEXT, hello(None, 0).as_bytes());
    (0..100).for_each(|id| all.extend(peer.frame(true, TEXT, ping(id).as_bytes())));
    peer.write(all).await;
    for id in 0..100 {
        assert_eq!(peer.hear_message().await["id"], id);
    }
}

/// A peer that says nothing must not hold the end of a server.
#[tokio::test]
async fn a_server_that_stops_waits_for_no_first_text() {
    let stop = tokio_util::sync::CancellationToken::new();
    let layer = WsLayer::new(everything_server::server()).resume(GRACE);
    let mut served = Served::until(layer, stop.clone().cancelled_owned()).await;
    let mut mute = served.resumable(&[]).await;
    stop.cancel();
    let closed = mute.next().await.expect("a close frame");
    assert_eq!((closed.code(), closed.reason()), (1001, "the server is stopping"));
    timeout(Duration::from_secs(5), &mut served.task).await.expect("the end of serving").unwrap();
}

#[tokio::test]
async fn what_was_never_sent_cannot_have_been_received_or_taken() {
    let (_server, served) = resuming().await;
    for wrong in [2, u64::MAX] {
        let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
        peer.say(ping(1)).await;
        peer.hear_message().await;
        drop(peer);
        let mut peer = served.resumable(&[]).await;
        peer.say_raw(&hello(Some(&token), wrong)).await;
        let closed = loop {
            let frame = peer.next().await.expect("a close frame");
            if frame.opcode == CLOSE {
                break frame;
            }
        };
        assert_eq!(closed.code(), 1002, "{wrong}");
        // Nobody can say any more what the two have of one another.
        until("it is gone", async || served.greet(Some(&token), 0).await.token != token).await;

        let Greeted { mut peer, .. } = served.greet(None, 0).await;
        peer.say_raw(&taken(wrong)).await;
        assert_eq!(peer.next().await.expect("a close frame").code(), 1002);
    }
}

/// What waits for a client that tells of nothing is bounded, and so is what such a client may send.
#[tokio::test]
async fn a_client_that_never_says_what_it_took_gets_no_more_than_a_window() {
    let server = everything_server::server_with(Limits::default().queue_messages(4));
    let served = Served::with(WsLayer::new(server).resume(GRACE)).await;
    let Greeted { mut peer, .. } = served.greet(None, 0).await;
    for id in 1..=8 {
        peer.say(ping(id)).await;
    }
    for id in 1..=4 {
        assert_eq!(peer.hear_message().await["id"], id);
    }
    let more = timeout(Duration::from_millis(300), peer.hear_message()).await;
    assert!(more.is_err(), "{more:?}");
    // Every word about it makes room.
    peer.say_raw(&taken(2)).await;
    for id in 5..=6 {
        assert_eq!(peer.hear_message().await["id"], id);
    }
    peer.say_raw(&taken(6)).await;
    for id in 7..=8 {
        assert_eq!(peer.hear_message().await["id"], id);
    }
    // It goes on to ask, and never says again what it took: its questions are not taken either, and it knew how many fit.
    let closed = loop {
        let frame = peer.frame(true, TEXT, ping(9).as_bytes());
        let _ = peer.stream.write_all(&frame).await;
        match timeout(Duration::from_millis(1), peer.next()).await {
            Ok(Some(frame)) if frame.opcode == CLOSE => break frame,
            Ok(None) => panic!("no close frame"),
            _ => {}
        }
    };
    assert_eq!((closed.code(), closed.reason()), (1008, "more came than there is room for"));
}

#[tokio::test]
async fn a_connection_that_nobody_comes_back_to_ends_after_its_grace() {
    let server = everything_server::server();
    let served = Served::with(WsLayer::new(server.clone()).resume(Duration::from_millis(200))).await;
    let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
    peer.say(call(1, "sleep", json!({ "ms": 600_000 }))).await;
    until("the call runs", async || gauge(&server).await.0 == 1).await;
    drop(peer);
    until("the call was cancelled", async || gauge(&server).await == (0, 1)).await;
    assert_ne!(served.greet(Some(&token), 0).await.token, token);
}

/// An orderly end is the end, and nobody waits for more.
#[tokio::test]
async fn a_connection_that_is_closed_is_not_kept() {
    let (server, served) = resuming().await;
    let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
    peer.say(call(1, "sleep", json!({ "ms": 600_000 }))).await;
    until("the call runs", async || gauge(&server).await.0 == 1).await;
    peer.send(true, CLOSE, 1000u16.to_be_bytes()).await;
    peer.closed_with(1000).await;
    until("the call was cancelled", async || gauge(&server).await == (0, 1)).await;
    assert_ne!(served.greet(Some(&token), 0).await.token, token);
}

#[tokio::test]
async fn the_one_that_waited_longest_makes_room() {
    let server = everything_server::server();
    let served = Served::with(WsLayer::new(server.clone()).resume(GRACE).parked(2)).await;
    let mut tokens = Vec::new();
    for round in 1..=3 {
        let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
        peer.say(call(1, "sleep", json!({ "ms": 600_000 }))).await;
        until("the call runs", async || gauge(&server).await.0 == round.min(3)).await;
        tokens.push(token);
        drop(peer);
        // Its loss is noticed before the next one's.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    until("the first has ended", async || gauge(&server).await == (2, 1)).await;
    let greeted: Vec<bool> = [
        served.greet(Some(&tokens[0]), 0).await,
        served.greet(Some(&tokens[1]), 0).await,
        served.greet(Some(&tokens[2]), 0).await,
    ]
    .iter()
    .zip(&tokens)
    .map(|(greeted, token)| greeted.token == *token)
    .collect();
    assert_eq!(greeted, [false, true, true]);
}

/// The connection of whoever comes back has its place already, and must not stand in its own way.
#[tokio::test]
async fn where_no_more_are_taken_one_still_comes_back_and_a_new_one_is_told() {
    let server = everything_server::server();
    let served = Served::with(WsLayer::new(server.clone()).connections(1).resume(GRACE)).await;
    let Greeted { mut peer, token, .. } = served.greet(None, 0).await;
    peer.say(call(1, "sleep", json!({ "ms": 100 }))).await;
    until("the call runs", async || gauge(&server).await.0 == 1).await;
    drop(peer);
    until("the call is over", async || gauge(&server).await == (0, 0)).await;
    for other in [None, Some("f".repeat(64))] {
        let mut peer = served.resumable(&[]).await;
        peer.say_raw(&hello(other.as_deref(), 0)).await;
        let closed = peer.next().await.expect("a close frame");
        assert_eq!((closed.code(), closed.reason()), (1013, "no more connections are taken"), "{other:?}");
    }
    assert!(served.refused(&[], "503").await.contains("1 connections"));
    let Greeted { mut peer, token: same, received } = served.greet(Some(&token), 0).await;
    assert_eq!((same.as_str(), received), (token.as_str(), 1));
    assert_eq!(peer.hear_message().await["result"]["content"][0]["text"], "slept 100 ms");
    // Its place is free once it has ended.
    peer.send(true, CLOSE, 1000u16.to_be_bytes()).await;
    drop(peer);
    until("there is room", async || served.upgrade("/mcp", &[]).await.0[0].contains("101")).await;
}

/// Whoever says nothing holds one of few places.
#[tokio::test]
async fn where_no_more_are_taken_few_are_heard_at_once() {
    let layer = WsLayer::new(everything_server::server()).connections(1).resume(GRACE).parked(2);
    let served = Served::with(layer).await;
    let _only = served.greet(None, 0).await;
    let (first, _second) = (served.resumable(&[]).await, served.resumable(&[]).await);
    let resume = [("Sec-WebSocket-Protocol", "mcp.resume")];
    assert!(served.refused(&resume, "503").await.contains("1 connections"));
    drop(first);
    until("there is room", async || served.upgrade("/mcp", &resume).await.0[0].contains("101")).await;
}

/// Thousands come and are lost: no more wait than may, which shows by the connections that there are.
#[tokio::test]
async fn thousands_that_are_lost_hold_no_more_than_their_bound() {
    const PARKED: usize = 50;
    let layer = WsLayer::new(everything_server::server()).resume(GRACE).parked(PARKED).connections(PARKED + 20);
    let served = Served::with(layer).await;
    for _ in 0..2000 {
        until("there is room", async || {
            let (head, mut peer) = served.upgrade("/mcp", &[("Sec-WebSocket-Protocol", "mcp.resume")]).await;
            if !head[0].contains("101") {
                return false;
            }
            peer.say_raw(&hello(None, 0)).await;
            assert_eq!(peer.hear().await["resume"]["received"], 0);
            true
        })
        .await;
    }
}

/// Our client and a server that has forgotten it.
#[tokio::test]
async fn what_a_server_has_forgotten_fails_and_says_so() {
    let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let url = peer(move |mut peer| {
        let number = connections.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            switch(&mut peer, "Sec-WebSocket-Protocol: mcp.resume\r\n").await;
            let said = peer.hear().await;
            assert_eq!(said["resume"]["token"].is_null(), number == 0, "{said}");
            peer.say_raw(&hello(Some(&number.to_string()), 0)).await;
            if number == 0 {
                let probe = peer.hear().await;
                let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
                peer.say(json!({ "jsonrpc": "2.0", "id": probe["id"], "result": result }).to_string()).await;
                peer.hear_message().await;
                return;
            }
            while peer.next().await.is_some() {}
        }
    })
    .await;
    let client = Client::connect(Ws::new(url).resume(Backoff::new().first(Duration::from_millis(1)))).await.unwrap();
    let error = soon("the call", client.call::<String>("a", ())).await.unwrap_err();
    assert_eq!((error.kind(), error.is_safe_to_retry()), (ErrorKind::TransportClosed, false));
    assert!(error.to_string().contains("does not have it any more"), "{error}");
}
