//! Requests that are given up: by the caller, by time, by the end of the connection.
//!
//! Specification: *Cancellation*; *Streamable HTTP, Cancellation*; *2025-11-25, Cancellation*.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_suite::{
    Blame, Client, Error, ErrorKind, Limits, Server, Tool, ToolError, client::CallOptions, http::Http, implementation,
};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer, Request},
    memory::{close, expect_as, serve, wait},
    process::shell,
};

const SECOND: Duration = Duration::from_secs(1);

fn within(patience: Duration) -> CallOptions {
    CallOptions::new().timeout(patience)
}

/// The id of the first call on a connection of that era.
fn first_call(era: Era) -> u64 {
    if era == Era::Modern { 1 } else { 2 }
}

/// A token ends its call at once with that reason, and the server is told once.
#[tokio::test(start_paused = true)]
async fn c133_a_cancelled_token_ends_its_call_and_no_other() {
    for era in ERAS {
        let id = first_call(era);
        let mut script = vec![
            expect_as("$call", json!({ "id": id, "method": "tools/call" })),
            expect(json!({ "id": id + 1, "method": "tools/call" })),
            expect(json!({ "method": "notifications/cancelled", "params": { "requestId": id } })),
            send(json!({ "id": "$call", "result": text("late") })),
            send(json!({ "id": "$call", "error": { "code": -32800, "message": "Request cancelled" } })),
            send(json!({ "id": id + 1, "result": text("other") })),
        ];
        script.extend(answers("a", "b"));
        let (client, peer) = connected(era, script).await;
        let token = tokio_util::sync::CancellationToken::new();
        let start = Instant::now();
        let options = CallOptions::new().cancel_with(token.clone());
        let (given_up, other, ()) = tokio::join!(
            biased;
            client.call_with::<String>("slow", (), options),
            client.call::<String>("other", ()),
            async {
                peer.heard(opening_length(era) + 2).await;
                token.cancel();
                token.cancel();
            }
        );
        let error = given_up.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::RequestCancelled, Blame::Caller), "{era:?}");
        assert_eq!((other.unwrap(), start.elapsed()), ("other".to_owned(), Duration::ZERO));
        // Cancelled before it is begun, it is not sent.
        let options = CallOptions::new().cancel_with(token);
        let error = client.call_with::<String>("never", (), options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCancelled);
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        peer.done().await;
    }
}

/// What is answered is not cancelled, and what was never sent neither.
#[tokio::test(start_paused = true)]
async fn c133_only_what_is_in_flight_is_cancelled() {
    for era in ERAS {
        let (client, peer) = connected(era, answers("a", "b")).await;
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        drop(client.call::<String>("never polled", ()));
        let bad = client.call::<String>("a", json!([1])).await.unwrap_err();
        assert_eq!((bad.kind(), bad.blame()), (ErrorKind::InvalidParams, Blame::Caller));
        drop(client);
        peer.closed().await;
        assert!(!peer.methods().contains(&"notifications/cancelled".into()));
    }
}

/// Every request of a caller's, and not the calls of tools alone.
#[tokio::test(start_paused = true)]
async fn a_request_of_any_kind_is_cancelled_when_its_time_is_over() {
    let limits = Limits::default().request_timeout(SECOND);
    for era in ERAS {
        let peer = ScriptedPeer::new(opening(era));
        let client = Client::builder(implementation!()).limits(limits.clone()).connect(peer.clone()).await.unwrap();
        let before = opening_length(era);
        let mut expected = vec!["tools/list", "notifications/cancelled", "tools/call", "notifications/cancelled"];
        assert_eq!(client.tools().await.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(client.call::<()>("a", ()).await.unwrap_err().kind(), ErrorKind::Timeout);
        if era == Era::Legacy {
            assert_eq!(client.ping().await.unwrap_err().kind(), ErrorKind::Timeout);
            expected.extend(["ping", "notifications/cancelled"]);
        }
        peer.heard(before + expected.len()).await;
        assert_eq!(peer.methods()[before..], expected);
        for pair in peer.received()[before..].chunks(2) {
            assert_eq!(pair[1]["params"]["requestId"], pair[0]["id"]);
        }
    }
}

/// A server whose tool has an effect that can be counted, and takes its time.
fn effective(done: &Arc<AtomicUsize>, begun: &Arc<AtomicUsize>) -> Server {
    let (done, begun) = (done.clone(), begun.clone());
    let tool = move || {
        let (done, begun) = (done.clone(), begun.clone());
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            sleep(3 * SECOND).await;
            done.fetch_add(1, Ordering::SeqCst);
            Ok::<_, ToolError>("paid")
        }
    };
    Server::builder(implementation!()).tool(Tool::new("pay", tool)).build()
}

#[tokio::test(start_paused = true)]
async fn c136_a_call_is_sent_once_whatever_becomes_of_it() {
    for era in ERAS {
        let (done, begun) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let client = connect_in(era, effective(&done, &begun)).await.unwrap();
        let error = client.call_with::<String>("pay", (), within(SECOND)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        sleep(60 * SECOND).await;
        assert_eq!(begun.load(Ordering::SeqCst), 1, "it ran once");
        assert_eq!(done.load(Ordering::SeqCst), 0, "and was cancelled before it was done");
        assert_eq!(client.call::<String>("pay", ()).await.unwrap(), "paid");
        assert_eq!((begun.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (2, 1));
    }
}

fn silent_tools(request: &Request) -> Answer {
    match request.method() {
        "tools/call" if request.body["params"]["name"] == "a" => Answer::result(text("b")),
        "tools/call" => Answer::silence(),
        _ => Answer::status(202),
    }
}

/// A pool may replace a connection that is closed already, and must not repeat what was read on one that closes now.
#[tokio::test]
async fn c136_over_http_a_call_that_was_read_is_not_sent_again() {
    let half = Answer::new(200, "application/json", r#"{"jsonrpc":"2.0","#).broken_off();
    for answer in [Answer::hang_up(), half, Answer::events(": begun\n\n").broken_off(), Answer::status(503)] {
        for era in ERAS {
            let answer = answer.clone();
            let rule = move |request: &Request| match request.body["params"]["name"].as_str() {
                Some("pay") => answer.clone(),
                _ => Answer::result(text("b")),
            };
            let server = match era {
                Era::Modern => HttpPeer::start(http::modern(rule)).await,
                _ => HttpPeer::start(http::with_session(http::legacy("2025-11-25", rule))).await,
            };
            let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
            // On a connection that was used before.
            assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
            soon(client.call::<String>("pay", ())).await.unwrap_err();
            assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
            let paid = server.requests().into_iter().filter(|request| request.body["params"]["name"] == "pay").count();
            assert_eq!(paid, 1, "{era:?}");
        }
    }
}

#[tokio::test]
async fn c136_over_legacy_http_a_timeout_is_told_by_a_post() {
    let server = HttpPeer::start(http::with_session(http::legacy("2025-06-18", silent_tools))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let error = soon(client.call_with::<()>("pay", (), within(Duration::from_millis(200)))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    server.until("it is cancelled", |all| all.iter().any(|r| r.method() == "notifications/cancelled")).await;
    let requests = server.requests();
    let call = requests.iter().find(|request| request.method() == "tools/call").unwrap();
    let cancel = requests.iter().find(|request| request.method() == "notifications/cancelled").unwrap();
    assert_eq!(cancel.body["params"]["requestId"], call.body["id"]);
    assert_eq!(cancel.body.get("id"), None);
    assert_eq!(cancel.header("mcp-session-id"), Some("s-1"));
    assert_eq!(cancel.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(requests.iter().filter(|request| request.method() == "tools/call").count(), 1);
}

/// An answered call is not cancelled, though its stream goes on.
#[tokio::test]
async fn c133_over_http_what_is_answered_is_not_cancelled() {
    let rule = http::legacy("2025-11-25", |request| match request.method() {
        "tools/call" => Answer::stream([json!({ "id": "$id", "result": text("b") })]).without_end(),
        _ => Answer::status(202),
    });
    let server = HttpPeer::start(rule).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    server.given_up("tools/call").await;
    sleep(Duration::from_millis(50)).await;
    assert!(!server.methods().contains(&"notifications/cancelled".into()));
}

/// The handshake must not be cancelled, on any wire.
#[tokio::test]
async fn the_handshake_is_never_cancelled() {
    let server = HttpPeer::start(|_| Answer::silence()).await;
    let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == Era::Legacy);
    let limits = Limits::default().request_timeout(Duration::from_millis(200));
    let client = Client::builder(implementation!()).limits(limits).revisions(revisions);
    let error = soon(client.connect(Http::new(server.url()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(server.methods(), ["initialize"]);
}

/// Ten calls that nobody answers.
fn ten(client: &Client) -> JoinSet<Result<String, Error>> {
    let mut calls = JoinSet::new();
    for _ in 0..10 {
        let client = client.clone();
        calls.spawn(async move { client.call::<String>("slow", ()).await });
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn c140_disconnecting_fails_what_is_pending_at_once_and_may_be_repeated() {
    for era in ERAS {
        let (client, peer) = connected(era, []).await;
        let calls = ten(&client);
        peer.heard(opening_length(era) + 10).await;
        let start = Instant::now();
        let (first, second) = (client.clone(), client.clone());
        tokio::join!(first.disconnect(), second.disconnect());
        for outcome in calls.join_all().await {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed);
            assert!(error.to_string().contains("closed"), "{error}");
        }
        client.disconnect().await;
        assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
        peer.closed().await;
        after_the_end(&client).await;
    }
}

/// The kinds and the blame of what is asked of a client that was disconnected.
async fn after_the_end(client: &Client) {
    for error in [
        client.call::<String>("a", ()).await.unwrap_err(),
        client.call_raw("a", ()).await.unwrap_err(),
        client.clone().tools().await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportClosed, Blame::Caller), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn c140_a_server_that_goes_away_fails_what_is_pending_at_once() {
    for era in ERAS {
        let calls = (0..10).map(|_| expect(json!({ "method": "tools/call" })));
        let (client, peer) = connected(era, calls.chain([wait(SECOND), close()])).await;
        let start = Instant::now();
        for outcome in ten(&client).join_all().await {
            let error = outcome.unwrap_err();
            assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportClosed, Blame::Transport));
            assert!(error.to_string().contains("ended"), "the cause is told: {error}");
        }
        assert_eq!(start.elapsed(), SECOND);
        // There is no connection any more, and no caller waits for one.
        let error = client.call::<String>("a", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed);
        assert_eq!(start.elapsed(), SECOND);
        peer.done().await;
        client.disconnect().await;
        client.disconnect().await;
    }
}

#[tokio::test]
async fn c140_over_http_disconnecting_fails_what_is_pending_at_once() {
    for era in ERAS {
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(silent_tools)).await,
            _ => HttpPeer::start(http::with_session(http::legacy("2025-11-25", silent_tools))).await,
        };
        let client = soon(over_http(&server.url())).await.unwrap();
        let calls = ten(&client);
        let all_came = |all: &[Request]| all.iter().filter(|request| request.method() == "tools/call").count() == 10;
        server.until("the calls came", all_came).await;
        soon(client.disconnect()).await;
        let outcomes = timeout(SOON, calls.join_all()).await;
        let outcomes = outcomes.unwrap_or_else(|_| panic!("{era:?}: pending calls outlive their connection"));
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TransportClosed);
        }
    }
}

/// A call that is told to have failed for want of a connection must not have been made.
#[tokio::test]
async fn over_http_nothing_is_sent_after_the_end() {
    for era in ERAS {
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(|_| Answer::result(text("b")))).await,
            _ => HttpPeer::start(http::with_session(http::legacy("2025-11-25", |_| Answer::result(text("b"))))).await,
        };
        let client = soon(over_http(&server.url())).await.unwrap();
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
        soon(client.disconnect()).await;
        let before = server.methods();
        soon(after_the_end(&client)).await;
        assert_eq!(server.methods(), before, "{era:?}");
    }
}

/// How many tasks the runtime has.
fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn c140_no_task_outlives_a_client() {
    for era in ERAS {
        for disconnects in [false, true] {
            let before = tasks();
            let (client, peer) = connected(era, []).await;
            let mut calls = ten(&client);
            peer.heard(opening_length(era) + 10).await;
            if disconnects {
                client.disconnect().await;
            }
            calls.shutdown().await;
            drop(client);
            peer.closed().await;
            sleep(SECOND).await;
            assert_eq!(tasks(), before, "{era:?}, disconnects: {disconnects}");
        }
    }
}

/// A client that cannot connect leaves nothing behind, and one that nobody waits for any more neither.
#[tokio::test(start_paused = true)]
async fn no_task_outlives_a_failed_connect() {
    let before = tasks();
    let peer = ScriptedPeer::new([
        expect(json!({ "method": "initialize" })),
        send(json!({ "id": "$id", "result": initialized("1999-01-01") })),
    ]);
    connect_in(Era::Legacy, peer.clone()).await.unwrap_err();
    peer.closed().await;
    sleep(SECOND).await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn no_connection_outlives_a_connect_that_was_given_up() {
    let before = tasks();
    let peer = ScriptedPeer::new([expect(json!({ "method": "server/discover" }))]);
    assert!(timeout(SECOND, Client::connect(peer.clone())).await.is_err());
    sleep(SECOND).await;
    assert_eq!(tasks(), before, "tasks of the connection live on");
    peer.closed().await;
}

/// The same with a process, which would live as long as this one.
#[tokio::test]
async fn no_process_outlives_a_connect_that_was_given_up() {
    let (ended, told) = tokio::sync::oneshot::channel();
    let ended = std::sync::Mutex::new(Some(ended));
    let child = shell("while read -r line; do :; done; echo ended >&2").on_stderr(move |_| {
        ended.lock().unwrap().take().map(|ended| ended.send(()));
    });
    assert!(timeout(Duration::from_millis(200), Client::connect(child)).await.is_err());
    assert!(timeout(SOON, told).await.is_ok(), "the process lives on");
}

/// All clones are one connection, and it ends with the last of them.
#[tokio::test(start_paused = true)]
async fn a_connection_ends_with_the_last_clone() {
    let (client, peer) = connected(Era::Modern, [answers("a", "b"), answers("a", "c")].concat()).await;
    let clone = client.clone();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    drop(client);
    sleep(SECOND).await;
    assert_eq!(clone.call::<String>("a", ()).await.unwrap(), "c");
    drop(clone);
    peer.closed().await;
}

/// Tools of a server are tools that hold its connection.
#[tokio::test(start_paused = true)]
async fn a_tool_of_a_server_fails_as_a_tool_when_its_connection_is_gone() {
    let listed = json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] });
    let (client, _peer) = connected(
        Era::Modern,
        [expect(json!({ "method": "tools/list" })), send(json!({ "id": "$id", "result": listed })), close()],
    )
    .await;
    let between = Server::builder(implementation!()).build();
    between.tools().add(client.tools().await.unwrap()).unwrap();
    let outer = Client::connect(between).await.unwrap();
    let error = outer.call::<String>("a", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::HandlerFailed, Blame::Peer));
    assert!(error.to_string().contains("connection"), "{error}");
}

/// `at_most` bounds a call by itself, whatever the patience between signs of life is.
#[tokio::test(start_paused = true)]
async fn at_most_is_at_most() {
    let peer = ScriptedPeer::new([serve(|message| match message["method"].as_str() {
        Some("server/discover") => vec![json!({ "id": message["id"], "result": discovered() })],
        _ => Vec::new(),
    })]);
    let client = Client::builder(implementation!()).connect(peer).await.unwrap();
    for (options, expected) in [
        (CallOptions::new().at_most(2 * SECOND), 2000),
        (within(SECOND).at_most(2 * SECOND), 1000),
        (within(3 * SECOND).at_most(2 * SECOND), 2000),
        (CallOptions::new(), 30_000),
        // A longer patience than the general bound is asked for, and given.
        (within(900 * SECOND), 900_000),
    ] {
        let start = Instant::now();
        let error = client.call_with::<()>("a", (), options).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed().as_millis()), (ErrorKind::Timeout, expected));
    }
}

/// A server that does not even take a cancellation holds nothing of the client's, neither after a while nor after its end.
#[tokio::test(flavor = "current_thread")]
async fn cancellations_that_nobody_takes_leave_nothing_behind() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let rule = http::legacy("2025-11-25", |_: &Request| Answer::silence());
    let server = HttpPeer::start(move |request: &Request| match request.method() {
        "notifications/cancelled" => Answer::silence(),
        _ => rule(request),
    })
    .await;
    let limits = Limits::default().request_timeout(Duration::from_millis(300));
    let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == Era::Legacy);
    for disconnects in [false, true] {
        let builder = Client::builder(implementation!()).limits(limits.clone()).revisions(revisions.clone());
        let client = soon(builder.connect(Http::new(server.url()))).await.unwrap();
        for _ in 0..20 {
            client.call_with::<String>("a", (), within(Duration::from_millis(5))).await.unwrap_err();
        }
        let heard =
            |server: &HttpPeer| server.methods().iter().filter(|method| *method == "notifications/cancelled").count();
        while heard(&server) < 20 {
            sleep(Duration::from_millis(5)).await;
        }
        let before = alive();
        if disconnects {
            client.disconnect().await;
        }
        soon(async {
            while alive() + 20 > before {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }
}
