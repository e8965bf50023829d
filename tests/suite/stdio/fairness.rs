//! One peer that floods keeps neither itself from being answered nor a control message from being read.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mcp_core::{
    Context, FrameSink, FrameSource, Limits, Server, Tool, ToolError, Wire, implementation, jsonrpc::Raw,
    server::serve, types::ElicitParams,
};
use mcp_jsonrpc::Frame;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    duplex::Peer,
    server::{call, gauge, ping, text},
};

/// A source that always has something at hand, and so never gives anybody else a turn by itself.
struct Flood {
    first: Vec<String>,
    read: Arc<AtomicUsize>,
    most: usize,
    answered: Arc<AtomicUsize>,
}

struct Flooding(Flood);

/// Notes how much was read when the first answer was written.
struct Noting(Arc<AtomicUsize>, Arc<AtomicUsize>);

impl Wire for Flood {
    type Source = Flooding;
    type Sink = Noting;

    fn split(self) -> (Flooding, Noting) {
        let noting = Noting(self.read.clone(), self.answered.clone());
        (Flooding(self), noting)
    }
}

impl FrameSource for Flooding {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        let read = self.0.read.fetch_add(1, Ordering::Relaxed);
        if read == self.0.most {
            return Ok(None);
        }
        let noise = || r#"{"jsonrpc":"2.0","method":"notifications/noise"}"#.to_owned();
        let frame = self.0.first.pop().unwrap_or_else(noise);
        Ok(Some(Frame::Line(frame.into())))
    }
}

impl FrameSink for Noting {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        frames.clear();
        let _ = self.1.compare_exchange(0, self.0.load(Ordering::Relaxed), Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is ready is written, and what runs goes on, though something to read is always at hand.
#[tokio::test(start_paused = true)]
async fn a_flood_does_not_keep_answers_from_being_written() {
    const MOST: usize = 100_000;
    // The one is answered at once, the other from a task of its own.
    for asked in [ping(1), call(1, "echo", json!({ "text": "x" })), call(1, "sleep", json!({ "ms": 0 }))] {
        let (read, answered) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let flood = Flood { first: vec![asked.clone()], read, most: MOST, answered: answered.clone() };
        serve(everything_server::server(), flood).await.unwrap();
        let answered = answered.load(Ordering::Relaxed);
        assert!(answered > 0 && answered < 2000, "{asked} was answered behind {answered} messages");
    }
}

/// A cancellation in the middle of a flood is heeded, with every place taken and as many waiting as may.
#[tokio::test(start_paused = true)]
async fn c130_a_cancellation_within_a_flood_is_heeded() {
    let server = everything_server::server_with(Limits::default().in_flight(2));
    let mut peer = Peer::memory(server.clone());
    for id in 0..1000 {
        peer.say(&call(id, "sleep", json!({ "ms": 3_600_000 }))).await;
        if id == 500 {
            let params = json!({ "requestId": 0 });
            peer.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string())
                .await;
            peer.say(&ping("in between")).await;
        }
    }
    assert_eq!(peer.hear().await["id"], "in between");
    assert_eq!(gauge(&server).await, (2, 1), "one was cancelled, and the next in line has its place");
}

/// A handler that waits for an answer of its client's holds a place; the answer comes past all who wait for one.
#[tokio::test(start_paused = true)]
async fn c130_an_answer_of_the_client_goes_past_a_full_house() {
    async fn ask(context: Context) -> Result<String, ToolError> {
        let form = ElicitParams::form("Sure?", Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap());
        Ok(context.elicit("sure", form).await?.action.as_str().to_owned())
    }

    let server = Server::builder(implementation!()).limits(Limits::default().in_flight(1)).tool(Tool::new("ask", ask));
    let mut peer = Peer::memory(server.build());
    let client = json!({ "name": "t", "version": "0" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": client });
    peer.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }).to_string()).await;
    peer.hear().await;
    peer.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    for id in 1..=100 {
        let params = json!({ "name": "ask", "arguments": {} });
        peer.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()).await;
    }
    for id in 1..=100 {
        let question = timeout(Duration::from_secs(60), peer.hear()).await.expect("it is asked");
        assert_eq!(question["method"], "elicitation/create");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
        peer.say(&answer.to_string()).await;
        let reply = timeout(Duration::from_secs(60), peer.hear()).await.expect("it is answered");
        assert_eq!((&reply["id"], text(&reply)), (&json!(id), "decline"));
    }
    peer.end().await.unwrap();
}
