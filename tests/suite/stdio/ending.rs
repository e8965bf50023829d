//! Connections that are ended from this side: by whoever serves, and not by the peer.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_core::{
    FrameSink as _, FrameSource as _, Limits, Server, Wire as _, implementation, memory,
    observer::{CloseReason, ConnectionEvent, Observer},
    server::{Peer, serve_until},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::server::{call, gauge, ping, text};

/// What runs is answered, what comes later is not read, and the end is one in good order.
#[tokio::test(start_paused = true)]
async fn c036_what_runs_may_finish_when_serving_is_to_end() {
    let (here, there) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(there);
    let ending = CancellationToken::new();
    let signal = ending.clone().cancelled_owned();
    let serving = tokio::spawn(mcp_stdio::serve_lines_until(everything_server::server(), reader, writer, signal));
    let (reader, mut writer) = tokio::io::split(here);
    let mut answers = BufReader::new(reader);
    writer.write_all(format!("{}\n", call(1, "sleep", json!({ "ms": 9000 }))).as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    ending.cancel();
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Nobody is left who could take this.
    let _ = writer.write_all(format!("{}\n", ping(2)).as_bytes()).await;
    let mut line = String::new();
    answers.read_line(&mut line).await.unwrap();
    assert_eq!(text(&serde_json::from_str(&line).unwrap()), "slept 9000 ms");
    let mut rest = String::new();
    answers.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "", "the stream has ended, and nothing was behind the answer");
    serving.await.unwrap().unwrap();
}

/// Not for ever: neither what runs, nor a peer that reads nothing, holds up the end.
#[tokio::test(start_paused = true)]
async fn c036_the_grace_of_an_end_is_bounded() {
    for unread in [0, 100, 400] {
        let server = everything_server::server();
        let (here, there) = memory();
        let ending = CancellationToken::new();
        let signal = ending.clone().cancelled_owned();
        let serving = tokio::spawn(serve_until(server.clone(), there, Peer::new(), None, signal));
        let (_unread, mut sink) = here.split();
        sink.send(&mut vec![call(1, "sleep", json!({ "ms": 3_600_000 })).into()]).await.unwrap();
        for id in 0..unread {
            let _ = timeout(Duration::from_secs(1), sink.send(&mut vec![ping(id + 2).into()])).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        ending.cancel();
        timeout(Duration::from_secs(3600), serving).await.expect("it ends").unwrap().unwrap();
        // As long for what runs as for what is to be written.
        assert!(start.elapsed() <= 2 * Limits::default().shutdown_grace, "{:?} with {unread}", start.elapsed());
        assert_eq!(gauge(&server).await.0, 0);
    }
}

/// A client that floods does not keep the server from ending.
#[tokio::test(start_paused = true)]
async fn c036_a_peer_that_never_pauses_does_not_hold_up_the_end() {
    let (here, there) = memory();
    let ending = CancellationToken::new();
    let serving = tokio::spawn(serve_until(
        everything_server::server(),
        there,
        Peer::new(),
        None,
        ending.clone().cancelled_owned(),
    ));
    let (mut source, mut sink) = here.split();
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = source.next().await {} });
    let writing = tokio::spawn(async move {
        for _ in 0..50_000 {
            if sink.send(&mut vec![ping(1).into()]).await.is_err() {
                return true;
            }
        }
        false
    });
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    ending.cancel();
    serving.await.unwrap().unwrap();
    reading.await.unwrap();
    assert!(writing.await.unwrap(), "it was read to its end");
}

#[derive(Clone, Default)]
struct Closed(Arc<Mutex<Vec<String>>>);

impl Observer for Closed {
    fn connection_closed(&self, _: &ConnectionEvent, reason: &CloseReason<'_>) {
        self.0.lock().unwrap().push(format!("{reason:?}"));
    }
}

/// Observers are told who ended it.
#[tokio::test(start_paused = true)]
async fn who_ended_a_connection_is_told() {
    let closed = Closed::default();
    let server = Server::builder(implementation!()).observer(closed.clone()).build();
    let ((here, there), ending) = (memory(), CancellationToken::new());
    ending.cancel();
    serve_until(server.clone(), there, Peer::new(), None, ending.cancelled_owned()).await.unwrap();
    drop(here);
    let (here, there) = memory();
    drop(here);
    serve_until(server, there, Peer::new(), None, std::future::pending()).await.unwrap();
    assert_eq!(*closed.0.lock().unwrap(), ["Local", "Peer"]);
}

/// Whoever listens to changes hears that there will be no more.
#[tokio::test(start_paused = true)]
async fn streams_of_changes_end_in_good_order_with_the_connection() {
    let ((here, there), ending) = (memory(), CancellationToken::new());
    let signal = ending.clone().cancelled_owned();
    let serving = tokio::spawn(serve_until(everything_server::server(), there, Peer::new(), None, signal));
    let (mut source, mut sink) = here.split();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    sink.send(&mut vec![listen.to_string().into()]).await.unwrap();
    let mut heard = Vec::new();
    while let Some(mcp_jsonrpc::Frame::Line(line)) = source.next().await.unwrap() {
        heard.push(serde_json::from_slice::<Value>(&line).unwrap());
        ending.cancel();
    }
    assert_eq!(heard[0]["method"], "notifications/subscriptions/acknowledged");
    assert!(heard.len() == 2 && heard[1]["id"] == 1 && heard[1]["result"].is_object(), "{heard:?}");
    serving.await.unwrap().unwrap();
}
