//! What a cancelled call leaves behind: no message, no handler, no task.

use std::time::Duration;

use mcp_core::{
    Context, FrameSink as _, FrameSource as _, Limits, Revision, Server, Tool, ToolError, Wire as _, implementation,
    memory, server::serve,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{call, call_with_token, cancel, gauge, ping, until};
use crate::{
    duplex::Peer,
    fixture,
    http::{Connection, Post, Served},
};

/// With threads the handler runs while the cancellation is read, and may tell of progress right then. Once a later ping
/// is answered, the cancellation has been read, and nothing of the call may come any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c133_nothing_of_a_call_comes_behind_its_cancellation() {
    let server = everything_server::server();
    for round in 0..40 {
        let mut peer = Peer::memory(server.clone());
        peer.say(&call_with_token(5, "count", json!({ "n": 3_000_000 }), "p")).await;
        while peer.hear().await["params"]["progress"] != json!(f64::from(round % 7 + 1)) {}
        peer.say(&cancel(5)).await;
        peer.say(&ping("fence")).await;
        while peer.hear().await["id"] != "fence" {}
        // A second fence: what is queued behind the first one would come before it.
        tokio::time::sleep(Duration::from_millis(1)).await;
        peer.say(&ping("end")).await;
        let next = peer.hear().await;
        assert_eq!(next["id"], "end", "in round {round}, behind the cancellation came {next}");
    }
    until("no handler runs", async || gauge(&server).await.0 == 0).await;
}

/// A handler's token tells what it has spawned that the call is over.
#[tokio::test(start_paused = true)]
async fn a_cancelled_calls_token_fires() {
    let (server, fired) = fixture::watched(Limits::default());
    let mut peer = Peer::memory(server);
    peer.say(&call(1, "watched", json!({}))).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(timeout(Duration::from_secs(60), fired.notified()).await.is_err(), "not before the call is over");
    peer.say(&cancel(1)).await;
    timeout(Duration::from_secs(60), fired.notified()).await.expect("the token fires");
    peer.silence().await.unwrap();
}

/// The same where the server's limit ends the call.
#[tokio::test(start_paused = true)]
async fn a_timed_out_calls_token_fires() {
    let (server, fired) = fixture::watched(Limits::default().handler_timeout(Some(Duration::from_secs(5))));
    let mut peer = Peer::memory(server);
    peer.say(&call(1, "watched", json!({}))).await;
    assert_eq!(peer.hear().await["result"]["isError"], true);
    timeout(Duration::from_secs(60), fired.notified()).await.expect("the token fires");
}

/// The same where the connection's input ends and the grace runs out.
#[tokio::test(start_paused = true)]
async fn c139_a_closed_connections_tokens_fire_within_the_grace() {
    let (server, fired) = fixture::watched(Limits::default());
    let mut peer = Peer::memory(server);
    peer.say(&call(1, "watched", json!({}))).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ending = tokio::spawn(async move { peer.end().await });
    timeout(Duration::from_secs(11), fired.notified()).await.expect("the token fires within the grace");
    ending.await.unwrap().unwrap();
}

/// What is read of a call whose client is gone goes nowhere, so it ends at once and not after the grace.
#[tokio::test(start_paused = true)]
async fn c139_calls_end_at_once_when_nobody_reads_their_answers() {
    let server = everything_server::server();
    let (here, there) = memory();
    let serving = tokio::spawn(serve(server.clone(), there));
    let (mut source, mut sink) = here.split();
    sink.send(&mut vec![call(1, "sleep", json!({ "ms": 3_600_000 })).into(), ping(2).into()]).await.unwrap();
    source.next().await.unwrap().unwrap();
    assert_eq!(gauge(&server).await, (1, 0));
    drop(source);
    // The next write finds out.
    sink.send(&mut vec![ping(3).into()]).await.unwrap();
    let outcome = timeout(Duration::from_secs(1), serving).await.expect("the connection ends at once").unwrap();
    assert!(outcome.is_err(), "that the peer is gone is told");
    assert_eq!(gauge(&server).await, (0, 1));
}

/// Who drops the future ends the connection.
#[tokio::test(start_paused = true)]
async fn c139_dropping_the_connection_ends_its_calls() {
    let server = everything_server::server();
    let (here, there) = memory();
    let (mut source, mut sink) = here.split();
    sink.send(&mut vec![call(1, "sleep", json!({ "ms": 3_600_000 })).into(), ping(2).into()]).await.unwrap();
    let serving = tokio::spawn(serve(server.clone(), there));
    source.next().await.unwrap().unwrap();
    assert_eq!(gauge(&server).await, (1, 0));
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(gauge(&server).await, (0, 1));
}

/// The forms that an answer over HTTP may be on its way to when its reader goes.
fn ways(revision: Revision) -> Vec<(&'static str, Post)> {
    let meta = if revision == Revision::LATEST { super::modern_meta() } else { json!({}) };
    let post = |name: &str, arguments: Value, token: bool| {
        let mut meta = meta.clone();
        if token {
            meta["progressToken"] = "t".into();
        }
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        Post::speaking(revision, body.to_string())
    };
    let sleep = || json!({ "ms": 60_000 });
    vec![
        ("JSON to come", post("sleep", sleep(), false).header("Accept", "application/json")),
        ("either to come", post("sleep", sleep(), false)),
        ("a stream kept alive", post("sleep", sleep(), false).header("Accept", "text/event-stream")),
        ("a stream with a token", post("sleep", sleep(), true)),
        ("a stream of progress", post("count", json!({ "n": u32::MAX }), true)),
    ]
}

/// Destructive work must not go on when its caller has gone, and there is no session that it could come back to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c068_a_caller_that_hangs_up_cancels_its_call() {
    for revision in [Revision::V2025_03_26, Revision::V2025_11_25, Revision::LATEST] {
        for (way, post) in ways(revision) {
            let server = everything_server::server_with(Limits::default().keep_alive(Duration::from_millis(20)));
            let served = Served::start(server.clone()).await;
            let mut connection = served.connect().await;
            connection.write(&post.bytes(served.address)).await;
            until("the handler runs", async || gauge(&server).await.0 == 1).await;
            tokio::time::sleep(Duration::from_millis(40)).await;
            connection.abort();
            let told = format!("in {revision}, with {way}, a handler was cancelled");
            until(&told, async || gauge(&server).await == (0, 1)).await;
        }
    }
}

/// Half of a request is no request: nothing runs and nothing stays.
#[tokio::test]
async fn c068_a_caller_that_hangs_up_within_its_request_leaves_nothing() {
    let server = everything_server::server();
    let served = Served::start(server.clone()).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let post = Post::speaking(Revision::LATEST, call(1, "sleep", json!({ "ms": 60_000 }))).bytes(served.address);
    for cut in [1, 20, post.len() / 2, post.len() - 1] {
        let mut connection: Connection = served.connect().await;
        connection.write(&post[..cut]).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        connection.abort();
    }
    until("all tasks have ended", async || tasks() <= before).await;
    assert_eq!(gauge(&server).await, (0, 0));
}

/// What a handler has left running may go on to tell of progress; nobody hears of it once the call is answered.
#[tokio::test(start_paused = true)]
async fn d07_no_progress_comes_behind_the_answer() {
    async fn leaves(context: Context, pauses: bool) -> Result<(), ToolError> {
        tokio::spawn(async move {
            for step in 1..=3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                context.progress(f64::from(step), None, "late").await;
            }
        });
        if pauses {
            tokio::time::sleep(Duration::from_millis(1500)).await;
        }
        Ok(())
    }
    for pauses in [false, true] {
        let tool = Tool::new("leaves", move |context: Context| leaves(context, pauses));
        let mut peer = Peer::memory(Server::builder(implementation!()).tool(tool).build());
        peer.say(&call_with_token(1, "leaves", json!({}), "t")).await;
        if pauses {
            assert_eq!(peer.hear().await["params"]["progress"], 1.0);
        }
        assert_eq!(peer.hear().await["id"], 1);
        peer.silence().await.unwrap();
    }
}

/// What a handler holds when its time is over may panic as it is dropped: that is a panic like any other.
#[tokio::test(start_paused = true)]
async fn d01_a_panic_on_the_way_out_is_answered_and_frees_the_id() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a secret");
        }
    }
    async fn holds() -> Result<(), ToolError> {
        let _bomb = Bomb;
        std::future::pending().await
    }
    let tool = Tool::new("holds", holds).timeout(Duration::from_secs(1));
    let mut peer = Peer::memory(Server::builder(implementation!()).tool(tool).build());
    for _ in 0..2 {
        peer.say(&call(1, "holds", json!({}))).await;
        let answer = peer.hear().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32603)), "{answer}");
    }
}
