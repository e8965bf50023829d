//! How a connection ends, and that it does.

use std::{io, time::Duration};

use bytes::Bytes;
use mcp_core::{FrameSink, FrameSource, Limits, Wire, memory, server::serve};
use mcp_jsonrpc::Frame;
use serde_json::json;
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::mpsc,
    time::{Instant, timeout},
};

use super::{call, gauge, ping, text};
use crate::duplex::Peer;

/// What runs when the input ends may finish, and its answer is written.
#[tokio::test(start_paused = true)]
async fn c036_calls_may_finish_when_the_input_ends() {
    let mut peer = Peer::memory(everything_server::server());
    peer.say(&call(1, "sleep", json!({ "ms": 9000 }))).await;
    peer.end_input().await.unwrap();
    assert_eq!(text(&peer.hear().await), "slept 9000 ms");
    peer.end().await.unwrap();
}

/// What waits for its turn is served too.
#[tokio::test(start_paused = true)]
async fn c036_calls_that_wait_may_finish_too() {
    let mut peer = Peer::memory(everything_server::server_with(Limits::default().in_flight(1)));
    for id in 1..=3 {
        peer.say(&call(id, "sleep", json!({ "ms": 1000 }))).await;
    }
    peer.end_input().await.unwrap();
    for id in 1..=3 {
        assert_eq!(peer.hear().await["id"], id);
    }
    peer.end().await.unwrap();
}

/// But not for ever: a closed window must not leave a process behind.
#[tokio::test(start_paused = true)]
async fn c036_the_grace_is_bounded() {
    for (limits, grace) in [
        (Limits::default(), Duration::from_secs(10)),
        (Limits::default().shutdown_grace(Duration::from_secs(2)), Duration::from_secs(2)),
        (Limits::default().shutdown_grace(Duration::ZERO), Duration::ZERO),
        (Limits::default().in_flight(1), Duration::from_secs(10)),
    ] {
        let server = everything_server::server_with(limits);
        let mut peer = Peer::memory(server.clone());
        peer.say(&call(1, "sleep", json!({ "ms": 3_600_000 }))).await;
        peer.say(&call(2, "sleep", json!({ "ms": 3_600_000 }))).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let start = Instant::now();
        peer.end().await.unwrap();
        let took = start.elapsed();
        assert!(took >= grace && took <= grace + Duration::from_millis(100), "{took:?} with a grace of {grace:?}");
        assert_eq!(gauge(&server).await.0, 0);
    }
}

/// A peer that has ended its input and reads nothing, with answers on their way: they cannot be waited for for ever.
#[tokio::test(start_paused = true)]
async fn c036_a_peer_that_reads_nothing_does_not_hold_the_server() {
    // More than the wire holds, and then more than the queue does.
    for requests in [100, 400] {
        let (here, there) = memory();
        let serving = tokio::spawn(serve(everything_server::server(), there));
        let (_unread, mut sink) = here.split();
        for id in 0..requests {
            let sent = timeout(Duration::from_secs(1), sink.send(&mut vec![ping(id).into()])).await;
            if sent.is_err() {
                break;
            }
        }
        sink.close().await.unwrap();
        let ended = timeout(Duration::from_secs(120), serving).await;
        assert!(ended.is_ok(), "with {requests} unread answers the connection never ends");
    }
}

/// A wire whose source fails.
struct Failing {
    before: Vec<Bytes>,
    written: mpsc::UnboundedSender<Bytes>,
}

struct FailingSource(Vec<Bytes>);

struct Written(mpsc::UnboundedSender<Bytes>);

impl Wire for Failing {
    type Source = FailingSource;
    type Sink = Written;

    fn split(self) -> (FailingSource, Written) {
        (FailingSource(self.before), Written(self.written))
    }
}

impl FrameSource for FailingSource {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        if self.0.is_empty() {
            Err(io::ErrorKind::ConnectionReset.into())
        } else {
            Ok(Some(Frame::Line(self.0.remove(0))))
        }
    }
}

impl FrameSink for Written {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        frames.drain(..).for_each(|frame| drop(self.0.send(frame)));
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reset connection is an end like any other, or the server's task stays for ever.
#[tokio::test(start_paused = true)]
async fn c037_a_failing_read_ends_the_connection_and_its_calls() {
    let server = everything_server::server();
    let (written, mut answers) = mpsc::unbounded_channel();
    let before = vec![ping(1).into(), call(2, "sleep", json!({ "ms": 3_600_000 })).into()];
    let serving = tokio::spawn(serve(server.clone(), Failing { before, written }));
    let outcome = timeout(Duration::from_secs(60), serving).await.expect("the connection ends").unwrap();
    assert!(outcome.is_err(), "that reading failed is told");
    assert_eq!(gauge(&server).await.0, 0, "what nobody can cancel any more does not run on");
    assert!(answers.recv().await.is_some(), "what was answered before was written");
}

/// A byte stream that fails.
struct Reset;

impl AsyncRead for Reset {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

/// The same with stdio's framing.
#[tokio::test(start_paused = true)]
async fn c037_a_failing_byte_stream_ends_the_connection() {
    let serving = tokio::spawn(mcp_stdio::serve_lines(everything_server::server(), Reset, tokio::io::sink()));
    assert!(timeout(Duration::from_secs(60), serving).await.expect("the connection ends").unwrap().is_err());
}
