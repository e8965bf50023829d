//! How connections end that nobody has broken: dead peers, idle ones, bounds, and servers that stop.

use std::sync::Arc;

use mcp_core::{Client, ErrorKind, Limits, implementation};
use mcp_ws::Ws;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    client::{modern, peer},
    *,
};
use crate::server::{call, gauge, modern_meta, ping, until};

const QUICK: Duration = Duration::from_millis(100);

/// What a half-open link looks like: nothing comes, and nothing fails.
#[tokio::test]
async fn c114_calls_on_a_half_open_link_fail_once_it_is_found_out() {
    let url = peer(|mut peer| async move {
        modern(&mut peer).await;
        std::future::pending::<()>().await;
    })
    .await;
    let client = soon("connecting", Client::connect(Ws::new(url).keep_alive(QUICK))).await.unwrap();
    let call = || client.call::<String>("a", ());
    let (a, b, c) = soon("the calls", async { tokio::join!(call(), call(), call()) }).await;
    for outcome in [a, b, c] {
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.is_safe_to_retry()), (ErrorKind::TransportClosed, false), "{error:?}");
        assert!(error.to_string().contains("nothing was heard of the peer for 300 ms"), "{error}");
    }
}

#[tokio::test]
async fn c114_calls_of_a_client_that_is_not_there_any_more_are_cancelled() {
    let server = everything_server::server();
    let served = Served::with(WsLayer::new(server.clone()).keep_alive(QUICK)).await;
    let mut peer = served.open().await;
    peer.say(call(1, "sleep", json!({ "ms": 600_000 }))).await;
    // It reads, and answers nothing.
    let mut pings = 0;
    while let Some(frame) = peer.next().await {
        assert_eq!(frame.opcode, PING, "{frame:?}");
        pings += 1;
    }
    assert!((2..=3).contains(&pings), "{pings}");
    until("the call was cancelled", async || gauge(&server).await == (0, 1)).await;
}

/// What runs, and what is listened to, is no idleness, however quiet it is.
#[tokio::test]
async fn a_connection_that_is_idle_for_too_long_is_closed_in_order() {
    let server = everything_server::server();
    let served = Served::with(WsLayer::new(server).idle(QUICK)).await;
    let closed = async |peer: &mut Peer| {
        let frame = peer.next().await.expect("a close frame");
        assert_eq!((frame.code(), frame.reason()), (1000, "idle for too long"));
    };
    closed(&mut served.open().await).await;

    let mut peer = served.open().await;
    peer.say(call(1, "sleep", json!({ "ms": 5 * QUICK.as_millis() as u64 }))).await;
    assert_eq!(peer.hear().await["id"], 1);
    closed(&mut peer).await;

    let mut peer = served.open().await;
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": modern_meta() });
    peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }).to_string())
        .await;
    assert_eq!(peer.hear().await["method"], "notifications/subscriptions/acknowledged");
    tokio::time::sleep(5 * QUICK).await;
    peer.say(ping(2)).await;
    assert_eq!(peer.hear().await["id"], 2);
}

#[tokio::test]
async fn a_connection_more_than_there_may_be_is_refused_until_one_ends() {
    let served = Served::with(WsLayer::new(everything_server::server()).connections(2)).await;
    let (first, _second) = (served.open().await, served.open().await);
    assert!(served.refused(&[], "503").await.contains("2 connections"));
    drop(first);
    until("there is room", async || served.upgrade("/mcp", &[]).await.0[0].contains("101")).await;
}

#[tokio::test]
async fn a_server_that_stops_lets_calls_finish_and_closes_with_1001() {
    let server = everything_server::server_with(Limits::default().shutdown_grace(Duration::from_secs(2)));
    let stop = CancellationToken::new();
    let mut served = Served::until(WsLayer::new(server.clone()), stop.clone().cancelled_owned()).await;
    let (mut short, mut long, mut none) = (served.open().await, served.open().await, served.open().await);
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": modern_meta() });
    none.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }).to_string())
        .await;
    assert_eq!(none.hear().await["method"], "notifications/subscriptions/acknowledged");
    short.say(call(1, "sleep", json!({ "ms": 300 }))).await;
    long.say(call(1, "sleep", json!({ "ms": 600_000 }))).await;
    until("the calls run", async || gauge(&server).await.0 == 2).await;
    stop.cancel();
    assert_eq!(short.hear().await["result"]["content"][0]["text"], "slept 300 ms");
    // Whoever listens is told the end.
    assert_eq!(none.hear().await["id"], 1);
    for peer in [&mut short, &mut none, &mut long] {
        let frame = peer.next().await.expect("a close frame");
        assert_eq!((frame.code(), frame.reason()), (1001, "the server is stopping"));
    }
    drop((short, none, long));
    soon("the end of serving", &mut served.task).await.unwrap();
    assert_eq!(gauge(&server).await, (0, 1));
}

/// What the client makes of it.
#[tokio::test]
async fn a_client_is_told_that_its_server_stops_and_later_upgrades_are_refused() {
    let server = everything_server::server_with(Limits::default().shutdown_grace(Duration::ZERO));
    let stop = CancellationToken::new();
    let served = Served::with(WsLayer::new(server.clone()).stop_with(stop.clone())).await;
    let client = Arc::new(soon("connecting", Client::connect(Ws::new(served.url()))).await.unwrap());
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call::<String>("sleep", json!({ "ms": 600_000 })).await }
    });
    until("the call runs", async || gauge(&server).await.0 == 1).await;
    stop.cancel();
    let error = soon("the call", calling).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("1001 (it is going away): the server is stopping"), "{error}");
    assert!(served.refused(&[], "503").await.contains("stopping"));
    let error = soon("connecting", Client::connect(Ws::new(served.url()))).await.unwrap_err();
    assert_eq!(error.status(), Some(503));
}

/// The edge of `Limits::keep_alive`, which is what holds where neither side says otherwise.
#[tokio::test]
async fn the_limit_says_how_often_to_ask_unless_the_layer_does() {
    let server = |every| everything_server::server_with(Limits::default().keep_alive(every));
    let served = Served::with(WsLayer::new(server(QUICK))).await;
    assert_eq!(served.open().await.next().await.unwrap().opcode, PING);
    let served = Served::with(WsLayer::new(server(QUICK)).keep_alive(None)).await;
    let mut peer = served.open().await;
    assert!(timeout(5 * QUICK, peer.next()).await.is_err());
    let url = self::peer(|mut peer| async move {
        modern(&mut peer).await;
        while peer.next().await.unwrap().opcode != PING {}
        peer.send(true, CLOSE, 1000u16.to_be_bytes()).await;
        while peer.next().await.is_some() {}
    })
    .await;
    let limits = Limits::default().keep_alive(QUICK);
    let client = Client::builder(implementation!()).limits(limits).connect(Ws::new(url)).await.unwrap();
    soon("the end", client.call::<String>("a", ())).await.unwrap_err();
}
