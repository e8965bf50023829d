//! Many things at once on one connection.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_suite::{
    Client, Error, ErrorKind, Limits, Server, Tool, ToolError,
    client::{CallOptions, Inbox, IntoTransport, Outgoing, Replies, Transport},
    http::Http,
    implementation,
    jsonrpc::Bytes,
    ws::Ws,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::Barrier, task::JoinSet};

use super::*;
use crate::{
    peer::{
        http::{self, Answer, HttpPeer, Request},
        memory::{expect_as, flood, serve, wait},
    },
    ws::Served as WsServed,
};

const CALLS: usize = 32;

/// Each call asks for its own number, hears its own progress, and must get its own answer.
async fn not_mixed_up(client: &Client) {
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let client = client.clone();
        calls.spawn(async move {
            let heard = Arc::<Mutex<Vec<f64>>>::default();
            let ear = heard.clone();
            let options = CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress));
            let answer: usize = client.call_with("number", json!({ "number": number }), options).await.unwrap();
            assert_eq!(answer, number);
            assert_eq!(*heard.lock().unwrap(), [number as f64]);
        });
    }
    calls.join_all().await;
}

/// The progress and the answer of one call.
fn answered(call: &Value) -> [Value; 2] {
    let params = &call["params"];
    let number = &params["arguments"]["number"];
    let told = json!({ "progressToken": params["_meta"]["progressToken"], "progress": number });
    [
        json!({ "method": "notifications/progress", "params": told }),
        json!({ "id": call["id"], "result": text(&number.to_string()) }),
    ]
}

#[tokio::test(start_paused = true)]
async fn c017_calls_on_one_connection_are_not_mixed_up() {
    for era in ERAS {
        // Answered all together and in reverse: the progress of all, and then the answers.
        let held = Mutex::new(Vec::new());
        let peer = ScriptedPeer::new(opening(era).into_iter().chain([serve(move |call| {
            let mut held = held.lock().unwrap();
            held.push(answered(call));
            if held.len() < CALLS {
                return Vec::new();
            }
            let (progress, answers): (Vec<_>, Vec<_>) =
                held.drain(..).rev().map(|[first, second]| (first, second)).unzip();
            [progress, answers].concat()
        })]));
        let client = Client::builder(implementation!()).connect(peer).await.unwrap();
        for _ in 0..4 {
            not_mixed_up(&client).await;
        }
    }
}

#[tokio::test]
async fn c017_calls_over_http_are_not_mixed_up() {
    for era in ERAS {
        let rule = |request: &Request| {
            let number = request.body["params"]["arguments"]["number"].as_u64().unwrap();
            // The later ones first; half of them as a stream, all with progress.
            let delay = Duration::from_millis(2 * (CALLS as u64 - number));
            Answer::stream(answered(&request.body)).after(delay)
        };
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(rule)).await,
            _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
        };
        let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
        soon(not_mixed_up(&client)).await;
        soon(not_mixed_up(&client)).await;
    }
}

/// Far more calls than there are connections, or than a session of our server's would take at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_over_http_are_all_answered_each_with_its_own() {
    let served = mcp_test::HttpServer::start(everything_server::server()).await;
    for (era, count) in [(Era::Modern, 10_000), (Era::Legacy, 2_000)] {
        let limits = Limits::default().request_timeout(Duration::from_secs(300));
        let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == era);
        let client = Client::builder(implementation!()).limits(limits).revisions(revisions);
        let client = soon(client.connect(Http::new(served.url()))).await.unwrap();
        let mut calls = JoinSet::new();
        for number in 0..count {
            let client = client.clone();
            calls.spawn(async move {
                let sum: i64 = client.call("add", json!({ "a": number, "b": 1 })).await.unwrap();
                assert_eq!(sum, number + 1);
            });
        }
        calls.join_all().await;
        soon(client.disconnect()).await;
    }
}

/// A server whose tool answers with its number, once so many calls are there at once.
fn gathering(count: usize) -> Server {
    #[derive(Deserialize, JsonSchema)]
    struct Number {
        number: usize,
    }
    let all = Arc::new(Barrier::new(count));
    let tool = move |Number { number }: Number| {
        let all = all.clone();
        async move {
            all.wait().await;
            Ok::<_, ToolError>(number)
        }
    };
    let limits = Limits::default().in_flight(count);
    Server::builder(implementation!()).limits(limits).tool(Tool::new("number", tool)).build()
}

/// As many calls at once as the server waits for, each of which must get its own answer.
async fn gather(transport: impl IntoTransport, era: Era, count: usize) {
    let limits = Limits::default().request_timeout(Duration::from_secs(300));
    let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == era);
    let client = Client::builder(implementation!()).limits(limits).revisions(revisions);
    let client = client.connect(transport).await.unwrap();
    let mut calls = JoinSet::new();
    for number in 0..count {
        let client = client.clone();
        calls.spawn(async move {
            let answer: usize = client.call("number", json!({ "number": number })).await.unwrap();
            assert_eq!(answer, number);
        });
    }
    calls.join_all().await;
    client.disconnect().await;
}

const MANY: usize = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_in_memory_are_all_answered_each_with_its_own() {
    for era in ERAS {
        gather(gathering(MANY), era, MANY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_over_websocket_are_all_answered_each_with_its_own() {
    for era in ERAS {
        let served = WsServed::start(gathering(MANY)).await;
        gather(Ws::new(served.url()), era, MANY).await;
    }
}

/// So many at once and no more; who is given up while it waits was never sent.
#[tokio::test]
async fn calls_over_http_wait_their_turn() {
    const AT_ONCE: usize = 3;
    for era in ERAS {
        let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (count, top) = (now.clone(), most.clone());
        let rule = move |request: &Request| {
            if request.method() != "tools/call" {
                return Answer::status(202);
            }
            top.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let done = count.clone();
            let left = move || _ = done.fetch_sub(1, Ordering::SeqCst);
            Answer::result(text("b")).after(Duration::from_millis(50)).on_writing(left)
        };
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(rule)).await,
            _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
        };
        let client = soon(connect_in(era, Http::new(server.url()).calls_at_once(AT_ONCE))).await.unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..5 * AT_ONCE {
            let client = client.clone();
            calls.spawn(async move { client.call::<String>("a", ()).await.unwrap() });
        }
        let are_called = |seen: &[Request]| seen.iter().filter(|seen| seen.method() == "tools/call").count() >= AT_ONCE;
        server.until("all turns are taken", are_called).await;
        let options = CallOptions::new().timeout(Duration::from_millis(1));
        let error = soon(client.call_with::<String>("a", (), options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        soon(calls.join_all()).await;
        assert!(most.load(Ordering::SeqCst) <= AT_ONCE, "{} at once", most.load(Ordering::SeqCst));
        let methods = server.methods();
        assert_eq!(methods.iter().filter(|method| *method == "tools/call").count(), 5 * AT_ONCE);
        assert!(!methods.iter().any(|method| method == "notifications/cancelled"), "{methods:?}");
    }
}

/// Frames that count how many of them are alive, and the most that ever were.
#[derive(Clone, Default)]
pub(super) struct Census(Arc<Counts>);

#[derive(Default)]
struct Counts {
    alive: AtomicUsize,
    most: AtomicUsize,
}

struct Counted(String, Census);

impl Census {
    pub(super) fn frame(&self, text: String) -> Bytes {
        let alive = self.0.alive.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most.fetch_max(alive, Ordering::SeqCst);
        Bytes::from_owner(Counted(text, self.clone()))
    }

    pub(super) fn most(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.0.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What is about nothing in particular fills no memory, waits behind nothing and holds up nothing.
#[tokio::test(start_paused = true)]
async fn a_flood_of_notifications_fills_no_memory_and_holds_up_no_answer() {
    for era in ERAS {
        for count in [200, 20_000] {
            let census = Census::default();
            let counting = census.clone();
            let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
            let mut script = vec![expect(json!({ "method": "tools/call" }))];
            script.push(flood(count, move |_| counting.frame(note.into())));
            script.push(send(json!({ "id": "$id", "result": text("b") })));
            script.extend(answers("a", "c"));
            let (client, peer) = connected(era, script).await;
            let start = tokio::time::Instant::now();
            assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
            assert_eq!(client.call::<String>("a", ()).await.unwrap(), "c");
            assert_eq!(start.elapsed(), Duration::ZERO);
            peer.done().await;
            // The wire itself holds 64, the client's queue as many as its limit says.
            let most = Limits::default().queue_messages + 64 + 8;
            assert!(census.most() <= most, "{} of {count} were kept", census.most());
        }
    }
}

/// A wire on which the server never takes an answer of the client's.
struct Stuck<T> {
    inner: T,
    stuck: Arc<AtomicUsize>,
}

impl<T: Transport> Transport for Stuck<T> {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.open(inbox)
    }

    fn request(&self, out: Outgoing) -> Replies {
        self.inner.request(out)
    }

    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>> {
        if out.method.is_some() {
            return self.inner.send(out);
        }
        self.stuck.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// Questions that cannot be answered now are not hoarded, neither as they came nor as answers.
#[tokio::test(start_paused = true)]
async fn questions_that_cannot_be_answered_fill_no_memory() {
    const PINGS: usize = 5000;
    let (census, limits) = (Census::default(), Limits::default());
    let counting = census.clone();
    let ping = move |id| counting.frame(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    let script = [legacy(), vec![expect(json!({ "method": "tools/call" })), flood(PINGS, ping)]].concat();
    let inner = ScriptedPeer::new(script).into_transport(&limits).unwrap();
    let stuck = Arc::<AtomicUsize>::default();
    let client = Client::builder(implementation!()).connect(Stuck { inner, stuck: stuck.clone() }).await.unwrap();
    // Whether it is answered does not matter; the reader has had all the time of the world.
    let _ = client.call::<String>("a", ()).await;
    let most = limits.queue_messages + limits.in_flight + 64 + 8;
    let kept = census.most() + stuck.load(Ordering::SeqCst);
    assert!(kept <= most, "{kept} of {PINGS} were kept");
}

#[tokio::test]
async fn a_flood_of_notifications_on_a_stream_holds_up_no_answer() {
    let note = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let stream = format!("{note}\n\n").repeat(5000)
        + "data: {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}}\n\n";
    let server = HttpPeer::start(http::modern(move |_| Answer::events(stream.clone()))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

/// A server may ask much before it reads any answer; neither side may wait for the other for ever.
#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_ends_in_order() {
    const PINGS: usize = 250;
    let mut script = vec![expect_as("$call", json!({ "method": "tools/call" }))];
    script.extend((0..PINGS).map(|id| send(json!({ "id": format!("p-{id}"), "method": "ping" }))));
    script.extend((0..PINGS).map(|id| expect(json!({ "id": format!("p-{id}"), "result": {} }))));
    script.push(send(json!({ "id": "$call", "result": text("b") })));
    let (client, peer) = connected(Era::Legacy, script).await;
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    peer.done().await;
}

/// More calls than a server runs at once; all are served in the end.
#[tokio::test(start_paused = true)]
async fn more_calls_than_run_at_once_are_all_answered() {
    for era in ERAS {
        let client = connect_in(era, everything_server::server()).await.unwrap();
        let mut calls = JoinSet::new();
        for number in 0..500_i64 {
            let client = client.clone();
            calls.spawn(async move {
                let sum: i64 = client.call("add", json!({ "a": number, "b": 1 })).await.unwrap();
                assert_eq!(sum, number + 1);
            });
        }
        calls.join_all().await;
    }
}

/// A server that reads nothing for a while costs what the queue holds, however many calls are tried meanwhile: a call
/// that was never written is withdrawn, and needs no cancelling.
#[tokio::test(start_paused = true)]
async fn calls_that_cannot_be_written_fill_no_memory() {
    const CALLS: usize = 2000;
    for era in ERAS {
        let peer = ScriptedPeer::new(opening(era).into_iter().chain([wait(Duration::from_secs(3600))]));
        let client = Client::builder(implementation!()).limits(Limits::default().queue_messages(4));
        let client = client.connect(peer.clone()).await.unwrap();
        peer.heard(opening_length(era)).await;
        for _ in 0..CALLS {
            let options = CallOptions::new().timeout(Duration::from_millis(10));
            let error = client.call_with::<String>("a", (), options).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout);
        }
        tokio::time::sleep(Duration::from_secs(7200)).await;
        // The wire itself holds 64; what got onto it or was on its way is cancelled, and nothing else.
        let calls = peer.methods().iter().filter(|method| *method == "tools/call").count();
        let cancels = peer.methods().iter().filter(|method| *method == "notifications/cancelled").count();
        assert!(calls <= 64 + 2 * 4 && cancels <= calls, "{calls} calls and {cancels} cancellations were written");
    }
}

/// An odd bound, and the usual way to write that there is none.
#[tokio::test(start_paused = true)]
async fn bounds_at_the_edge_of_sense_are_no_hang_and_no_panic() {
    let limits = Limits::default().in_flight(0).queue_messages(0).queue_bytes(0);
    let limits = limits.request_timeout(Duration::MAX).request_timeout_max(Duration::MAX).probe_timeout(Duration::MAX);
    let mut script = legacy();
    script.push(send(json!({ "id": "ours", "method": "ping" })));
    script.push(expect(json!({ "id": "ours", "result": {} })));
    script.extend(answers("a", "b"));
    let peer = ScriptedPeer::new(script);
    let client = Client::builder(implementation!()).limits(limits).connect(peer.clone()).await.unwrap();
    peer.heard(opening_length(Era::Legacy) + 1).await;
    let options = CallOptions::new().timeout(Duration::MAX).at_most(Duration::MAX);
    assert_eq!(client.call_with::<String>("a", (), options).await.unwrap(), "b");
    peer.done().await;
}
