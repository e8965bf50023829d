//! Calls whose stream ends before the response: they go on over another connection, in the legacy era and where the
//! stream has ids to go back to.
//!
//! Specification: *2025-11-25, Transports, Resumability and Redelivery*.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mcp_suite::{Client, Error, ErrorKind, client::CallOptions, http::Http};
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

/// The response to the first call of a client of the legacy era, whose handshake is number 0.
const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"b"}]}}"#;

/// A stream that says where to go back to, soon, and nothing else.
const PRIMED: &str = "id: e1\nretry: 150\ndata:\n\n";

fn answered() -> Answer {
    Answer::events(format!("id: e9\ndata: {RESPONSE}\n\n"))
}

/// A server in whose session each call gets this answer, and which answers who comes back to a stream with the others,
/// one after another.
async fn resuming(call: Answer, resumed: impl IntoIterator<Item = Answer>) -> (Client, HttpPeer) {
    let resumed = Mutex::new(resumed.into_iter().collect::<VecDeque<_>>());
    let rule = move |request: &Request| match request.header("last-event-id") {
        Some(_) => resumed.lock().unwrap().pop_front().unwrap_or_else(|| Answer::status(410)),
        None if request.verb == "GET" => Answer::status(405),
        None if request.method() == "notifications/cancelled" => Answer::status(202),
        None => call.clone(),
    };
    let server = HttpPeer::start(http::with_session(http::listening("2025-11-25", rule))).await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    (client, server)
}

/// Who came back to a stream.
fn resumptions(server: &HttpPeer) -> Vec<Request> {
    server.gets().into_iter().filter(|request| request.header("last-event-id").is_some()).collect()
}

/// Where to they came back.
fn places(server: &HttpPeer) -> Vec<String> {
    resumptions(server).iter().map(|request| request.header("last-event-id").unwrap().to_owned()).collect()
}

async fn call(client: &Client) -> Result<String, Error> {
    soon(client.call::<String>("a", ())).await
}

#[tokio::test]
async fn a_stream_that_ends_early_is_resumed_when_it_says() {
    let cut = Arc::<Mutex<Option<Instant>>>::default();
    let clock = cut.clone();
    let stream = Answer::events(PRIMED).on_writing(move || *clock.lock().unwrap() = Some(Instant::now()));
    let (client, server) = resuming(stream, [answered()]).await;
    assert_eq!(call(&client).await.unwrap(), "b");
    let resumptions = resumptions(&server);
    let [resumed] = &resumptions[..] else { panic!("{resumptions:?}") };
    for (header, value) in [
        ("last-event-id", "e1"),
        ("accept", "text/event-stream"),
        ("mcp-session-id", "s-1"),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        assert_eq!(resumed.header(header), Some(value), "{header}");
    }
    assert_eq!((resumed.path.as_str(), resumed.header("content-type")), ("/mcp", None));
    let waited = resumed.at - cut.lock().unwrap().unwrap();
    assert!(waited >= Duration::from_millis(150), "it came back after {waited:?}");
    // The call was made once.
    assert_eq!(server.methods().iter().filter(|method| *method == "tools/call").count(), 1);
}

/// Broken off is no worse than ended in order.
#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed() {
    let half = Answer::events(format!("{PRIMED}id: e2\ndata: {}", &RESPONSE[..20])).broken_off();
    let (client, server) = resuming(half, [Answer::hang_up(), answered()]).await;
    assert_eq!(call(&client).await.unwrap(), "b");
    assert_eq!(places(&server), ["e1", "e1"], "an event that is not whole was not seen");
}

#[tokio::test]
async fn c093_the_last_id_is_kept_over_connections_that_bring_nothing() {
    let (client, server) = resuming(Answer::events(PRIMED), [Answer::events(""), answered()]).await;
    assert_eq!(call(&client).await.unwrap(), "b");
    assert_eq!(places(&server), ["e1", "e1"]);
}

#[tokio::test]
async fn c093_an_event_without_an_id_keeps_the_last_and_a_bad_one_is_none() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let (client, server) = resuming(
        Answer::events(format!("{PRIMED}data: {note}\n\n")),
        [
            Answer::events(format!("id: e2\ndata: {note}\n\nid: e\0x\ndata: {note}\n\n")),
            Answer::events(format!("id: e\u{1}\ndata: {note}\n\n")),
            Answer::events("id: é\ndata:\n\n"),
            answered(),
        ],
    )
    .await;
    assert_eq!(call(&client).await.unwrap(), "b");
    // What the peer reads as Latin-1 is UTF-8 on the wire.
    assert_eq!(places(&server), ["e1", "e2", "e2", "Ã©"]);
}

#[tokio::test]
async fn c093_an_empty_id_takes_back_the_last() {
    let (client, server) = resuming(Answer::events(format!("{PRIMED}id\ndata:\n\n")), [answered()]).await;
    assert_eq!(call(&client).await.unwrap_err().kind(), ErrorKind::TransportClosed);
    assert!(resumptions(&server).is_empty());
}

/// Where there is nothing to go back to, the call fails, and it fails at once.
#[tokio::test]
async fn a_stream_without_an_id_fails_its_call_at_once() {
    for stream in ["", ": nothing\n\n", "retry: 10\n\n", "id: e1\nretry: 10\n", "id: e\0\nretry: 10\ndata:\n\n"] {
        for (answer, kind) in [
            (Answer::events(stream), ErrorKind::TransportClosed),
            (Answer::events(stream).broken_off(), ErrorKind::TransportError),
        ] {
            let (client, server) = resuming(answer, [answered()]).await;
            let error = call(&client).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{stream:?}: {error}");
            assert!(resumptions(&server).is_empty(), "{stream:?}");
        }
    }
}

/// There are no ids in the modern era, whatever a server says: a stream that ended is a call that ended.
#[tokio::test]
async fn a_modern_stream_is_not_resumed() {
    let server = HttpPeer::start(http::modern(|_| Answer::events(PRIMED))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let error = call(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
    sleep(Duration::from_millis(400)).await;
    assert!(server.gets().is_empty());
}

#[tokio::test]
async fn c094_nothing_is_resumed_after_the_response() {
    let stream = format!("id: e1\nretry: 10\ndata:\n\nid: e2\ndata: {RESPONSE}\n\n");
    let (client, server) = resuming(Answer::events(stream), [answered()]).await;
    assert_eq!(call(&client).await.unwrap(), "b");
    sleep(Duration::from_millis(500)).await;
    assert!(resumptions(&server).is_empty());
}

#[tokio::test]
async fn c094_nothing_is_resumed_after_disconnecting() {
    let (client, server) = resuming(Answer::events(PRIMED), [answered()]).await;
    let pending = tokio::spawn({
        let client = client.clone();
        async move { client.call::<String>("a", ()).await }
    });
    server.until("the call came", |seen| seen.iter().any(|request| request.method() == "tools/call")).await;
    soon(client.disconnect()).await;
    let error = soon(pending).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransportClosed);
    sleep(Duration::from_millis(500)).await;
    assert!(resumptions(&server).is_empty());
}

/// A call that nobody waits for is not resumed, and the server is told.
#[tokio::test]
async fn a_call_that_is_given_up_is_not_resumed() {
    let far = "id: e1\nretry: 60000\ndata:\n\n";
    let (client, server) = resuming(Answer::events(far), []).await;
    let options = CallOptions::new().timeout(Duration::from_millis(300));
    let error = soon(client.call_with::<String>("a", (), options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    let told = |seen: &[Request]| seen.iter().any(|request| request.method() == "notifications/cancelled");
    server.until("the server is told", told).await;
    assert!(resumptions(&server).is_empty());
}

/// A server that brings nothing is not asked for ever, nor often.
#[tokio::test]
async fn resuming_in_vain_slows_down_and_ends_with_the_calls_time() {
    let nothing = (0..100).map(|_| Answer::events("retry: 1\n\n"));
    let (client, server) = resuming(Answer::events("id: e1\nretry: 1\ndata:\n\n"), nothing).await;
    let options = CallOptions::new().timeout(Duration::from_secs(2));
    let error = soon(client.call_with::<String>("a", (), options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    let count = resumptions(&server).len();
    assert!((1..=4).contains(&count), "{count} times");
}

/// As long as each connection brings something new, the call goes on: this is how servers have their clients poll.
#[tokio::test]
async fn a_stream_may_be_cut_as_often_as_it_brings_something() {
    let polls = (2..10).map(|at| Answer::events(format!("id: e{at}\nretry: 1\ndata:\n\n")));
    let (client, server) = resuming(Answer::events("id: e1\nretry: 1\ndata:\n\n"), polls.chain([answered()])).await;
    assert_eq!(call(&client).await.unwrap(), "b");
    assert_eq!(places(&server), ["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9"]);
}

#[tokio::test]
async fn a_server_that_will_not_resume_fails_the_call_at_once() {
    for (answer, status, kind) in [
        (Answer::status(405), 405, ErrorKind::TransportError),
        (Answer::new(400, "text/plain", "no such event"), 400, ErrorKind::TransportError),
        (Answer::new(401, "text/plain", "who are you"), 401, ErrorKind::Unauthorized),
        (Answer::new(200, "text/html", "<p>hello</p>"), 200, ErrorKind::ProtocolInvalid),
        // Not as a call that was never begun, which would be made again.
        (Answer::status(404), 404, ErrorKind::TransportClosed),
    ] {
        let (client, server) = resuming(Answer::events(PRIMED), [answer]).await;
        let error = call(&client).await.unwrap_err();
        assert_eq!((error.status(), error.kind()), (Some(status), kind), "{error}");
        assert_eq!(resumptions(&server).len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    let busy = [Answer::status(503), Answer::status(500), Answer::status(429).header("Retry-After", "1")];
    let called = busy.map(|answer| async {
        let (client, server) = resuming(Answer::events(PRIMED), [answer, answered()]).await;
        assert_eq!(call(&client).await.unwrap(), "b");
        assert_eq!(places(&server), ["e1", "e1"]);
    });
    join_all(called).await;
}

/// What is heard on either connection is heard in order, and the answer is the call's own.
#[tokio::test]
async fn progress_goes_on_over_the_cut() {
    let progress = |step: u32| {
        let params = json!({ "progressToken": 1, "progress": step });
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        format!("id: p{step}\nretry: 100\ndata: {message}\n\n")
    };
    let another = RESPONSE.replace(r#""id":1"#, r#""id":99"#);
    let (client, server) = resuming(
        Answer::events(progress(1) + &progress(2)),
        [
            Answer::events(progress(3)),
            Answer::events(format!("{}data: {another}\n\ndata: {RESPONSE}\n\n", progress(4))),
        ],
    )
    .await;
    let heard = Arc::<Mutex<Vec<f64>>>::default();
    let ear = heard.clone();
    let options = CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress));
    assert_eq!(soon(client.call_with::<String>("a", (), options)).await.unwrap(), "b");
    assert_eq!(*heard.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(places(&server), ["p2", "p3"]);
}

/// A handshake may come as a stream too, and be cut.
#[tokio::test]
async fn a_handshake_is_resumed_in_the_session_that_it_began() {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "result": initialized("2025-11-25") });
    let hello = Answer::events(format!("data: {hello}\n\n"));
    let server = HttpPeer::start(move |request: &Request| match (request.method(), request.header("last-event-id")) {
        ("initialize", _) => Answer::events(PRIMED).header("Mcp-Session-Id", "s-1"),
        ("notifications/initialized", _) => Answer::status(202),
        (_, Some("e1")) if request.header("mcp-session-id") == Some("s-1") => hello.clone(),
        _ => Answer::status(405),
    })
    .await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    assert_eq!(client.revision().as_str(), "2025-11-25");
}

/// Our own server ends the connection of this tool's call, and has its client come back.
#[tokio::test]
async fn our_client_polls_our_server() {
    let served = mcp_test::HttpServer::start(everything_server::server()).await;
    let client = soon(connect_in(Era::Legacy, Http::new(served.url()))).await.unwrap();
    assert!(!soon(client.call::<String>("test_reconnection", ())).await.unwrap().is_empty());
    soon(client.disconnect()).await;
}
