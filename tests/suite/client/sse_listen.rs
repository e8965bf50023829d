//! The stream that a client of the legacy era opens for what belongs to no call.
//!
//! Specification: *2025-11-25, Transports, Listening for Messages from the Server*.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use mcp_suite::{
    Client, Limits,
    client::{Agreed, Inbox, IntoTransport, ListenEnd, Transport},
    http::Http,
    types::NotificationFilter,
};
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

const PING: &str = r#"{"jsonrpc":"2.0","id":"s-1","method":"ping"}"#;

/// A server whose GETs are answered one after another: with the first answer, the second, and so on with the last.
async fn listening(revision: &'static str, gets: Vec<Answer>) -> (Client, HttpPeer) {
    let seen = AtomicUsize::new(0);
    let rule = move |request: &Request| match request.verb.as_str() {
        "GET" => gets[seen.fetch_add(1, Ordering::SeqCst).min(gets.len() - 1)].clone(),
        // An answer of the client's.
        _ if request.method().is_empty() => Answer::status(202),
        _ => Answer::result(text("b")),
    };
    let server = HttpPeer::start(http::with_session(http::listening(revision, rule))).await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    (client, server)
}

/// Waits for the answer to [`PING`].
async fn pong(server: &HttpPeer) {
    let is_pong = |request: &Request| request.body == json!({ "jsonrpc": "2.0", "id": "s-1", "result": {} });
    server.until("the ping is answered", |seen| seen.iter().any(is_pong)).await;
}

async fn gets(server: &HttpPeer, count: usize) -> Vec<Request> {
    let reached = |seen: &[Request]| seen.iter().filter(|request| request.verb == "GET").count() >= count;
    server.until(&format!("{count} GETs came"), reached).await;
    server.gets()
}

#[tokio::test]
async fn what_the_server_asks_on_its_own_is_heard_and_answered() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let stream = Answer::events(format!("id: 1\ndata:\n\nid: 2\ndata: {PING}\n\n")).without_end();
        let (client, server) = listening(revision, vec![stream]).await;
        pong(&server).await;
        let get = &gets(&server, 1).await[0];
        for (header, value) in [
            ("accept", Some("text/event-stream")),
            ("mcp-session-id", Some("s-1")),
            ("mcp-protocol-version", Some(revision)),
            ("last-event-id", None),
            ("content-type", None),
        ] {
            assert_eq!(get.header(header), value, "{header}");
        }
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    }
}

/// A server that names no session may have the stream all the same; what comes before the handshake's end comes too early.
#[tokio::test]
async fn the_stream_is_opened_after_the_handshake_with_or_without_a_session() {
    let rule = |request: &Request| match request.verb.as_str() {
        "GET" => Answer::events(format!("data: {PING}\n\n")).without_end(),
        _ => Answer::status(202),
    };
    let rest = http::listening("2025-11-25", rule);
    let server = HttpPeer::start(move |request: &Request| match request.method() {
        "notifications/initialized" => rest(request).after(Duration::from_millis(100)),
        _ => rest(request),
    })
    .await;
    let _client = soon(over_http(&server.url())).await.unwrap();
    pong(&server).await;
    let (get, told) = (server.gets().remove(0), server.requests().remove(2));
    assert_eq!((get.header("mcp-session-id"), told.method()), (None, "notifications/initialized"));
    assert!(get.at - told.at >= Duration::from_millis(100));
}

#[tokio::test]
async fn c064_c066_a_server_without_the_stream_is_asked_once() {
    let page = Answer::new(200, "text/plain", "POST here");
    let refusals = [405, 400, 401, 403, 404, 406, 409, 501].map(Answer::status).into_iter().chain([
        page,
        Answer::status(204),
        Answer::new(200, "application/json", "{}"),
        Answer::status(302).header("Location", "/elsewhere"),
    ]);
    let asked = refusals.map(|refusal| async {
        let warnings = crate::peer::log::Warnings::listen();
        let said = format!("{refusal:?}");
        let (client, server) = listening("2025-11-25", vec![refusal]).await;
        gets(&server, 1).await;
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b", "{said}");
        sleep(Duration::from_millis(1500)).await;
        assert_eq!(server.gets().len(), 1, "{said}");
        assert!(warnings.lines().is_empty(), "{said}: {:?}", warnings.lines());
    });
    join_all(asked).await;
}

/// Nobody hears anything more then, and whoever listens has to know. What was once there may come back.
#[tokio::test]
async fn a_stream_that_is_refused_later_ends_who_listens_and_is_tried_again() {
    let refusals = [401, 403, 404, 405, 302].map(Answer::status).into_iter().chain([
        Answer::new(200, "text/plain", "POST here"),
        Answer::new(403, "text/plain", "no").header("WWW-Authenticate", "Bearer"),
    ]);
    let refused = refusals.enumerate().map(|(number, refusal)| async move {
        let said = format!("{refusal:?}");
        // With credentials the place in it is good still; else it may be what is refused.
        let place = matches!(number, 0 | 6).then_some("1");
        let back = Answer::events(format!("data: {PING}\n\n")).without_end();
        let (opened, seen) = (Answer::events("retry: 0\nid: 1\ndata:\n\n"), AtomicUsize::new(0));
        let rule = move |request: &Request| match request.verb.as_str() {
            "GET" => [&opened, &refusal, &back][seen.fetch_add(1, Ordering::SeqCst).min(2)].clone(),
            _ => Answer::status(202),
        };
        // Without a session, 404 is a refusal like any other.
        let server = HttpPeer::start(http::listening("2025-11-25", rule)).await;
        let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
        let mut changes = soon(client.listen(NotificationFilter::new().tools())).await.unwrap();
        assert_eq!(soon(changes.next()).await, None, "{said}");
        assert!(matches!(changes.ended(), Some(ListenEnd::Lost(_))), "{said}: {:?}", changes.ended());
        pong(&server).await;
        let places = gets(&server, 3).await;
        assert_eq!(places[1].header("last-event-id"), Some("1"), "{said}");
        assert_eq!(places[2].header("last-event-id"), place, "{said}");
    });
    join_all(refused).await;
}

/// A connection that opens and ends is not a connection that works.
#[tokio::test]
async fn c091_a_stream_that_ends_at_once_is_not_opened_all_the_time() {
    let stubborn = [
        Answer::events(""),
        Answer::events(": hello\n\n"),
        Answer::events("retry: 0\n\n"),
        Answer::events("id: same\nretry: 0\ndata:\n\n"),
        Answer::hang_up(),
        Answer::status(503),
    ];
    let asked = stubborn.map(|answer| async {
        let said = format!("{answer:?}");
        let (_client, server) = listening("2025-11-25", vec![answer]).await;
        gets(&server, 2).await;
        sleep(Duration::from_secs(3)).await;
        let count = server.gets().len();
        assert!(count <= 10, "{said}: {count} times");
    });
    join_all(asked).await;
}

#[tokio::test]
async fn the_stream_is_gone_back_to_where_it_stood_and_when_it_says() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let (_client, server) = listening(
        "2025-11-25",
        vec![
            Answer::events(format!("id: 1\nretry: 120\ndata:\n\nid: 2\ndata: {note}\n\n")),
            Answer::events(format!("data: {note}\n\n")).broken_off(),
            Answer::events(format!("id: 3\ndata: {PING}\n\n")).without_end(),
        ],
    )
    .await;
    pong(&server).await;
    let gets = gets(&server, 3).await;
    let places: Vec<_> = gets.iter().map(|get| get.header("last-event-id")).collect();
    assert_eq!(places, [None, Some("2"), Some("2")]);
    for pair in gets.windows(2) {
        assert!(pair[1].at - pair[0].at >= Duration::from_millis(120), "{:?}", pair[1].at - pair[0].at);
    }
}

/// One bad message, or one too long, is not the end of all that would have come.
#[tokio::test]
async fn what_is_no_message_harms_nothing() {
    let garbage = "data: no JSON\n\ndata: []\n\ndata: 1\n\nevent: endpoint\ndata: /messages\n\ndata: {}\n\n";
    let (_client, server) =
        listening("2025-11-25", vec![Answer::events(format!("{garbage}data: {PING}\n\n")).without_end()]).await;
    pong(&server).await;
    let endless = Answer::events(format!("retry: 100\ndata: {}", "x".repeat(5 << 20))).without_end();
    let (_client, server) =
        listening("2025-11-25", vec![endless, Answer::events(format!("data: {PING}\n\n")).without_end()]).await;
    pong(&server).await;
}

/// An answer belongs to the stream of its call.
#[tokio::test]
async fn an_answer_on_this_stream_answers_nothing() {
    let wrong = json!({ "jsonrpc": "2.0", "id": 1, "result": text("wrong") });
    let rule = move |request: &Request| match request.verb.as_str() {
        "GET" => Answer::events("").then(Duration::from_millis(100), format!("data: {wrong}\n\ndata: {PING}\n\n")),
        _ if request.method().is_empty() => Answer::status(202),
        _ => Answer::result(text("right")).after(Duration::from_millis(400)),
    };
    let server = HttpPeer::start(http::listening("2025-11-25", rule)).await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "right");
    pong(&server).await;
}

#[tokio::test]
async fn the_modern_era_is_without_the_stream_and_does_not_ask_for_it() {
    let server = HttpPeer::start(http::modern(|_| Answer::result(text("b")))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    sleep(Duration::from_millis(300)).await;
    assert!(server.gets().is_empty());
}

#[tokio::test]
async fn the_stream_ends_with_the_client() {
    let endless = || vec![Answer::events("id: 1\ndata:\n\n").without_end()];
    let (client, server) = listening("2025-11-25", endless()).await;
    gets(&server, 1).await;
    soon(client.disconnect()).await;
    server.hung_up().await;

    let (client, server) = listening("2025-11-25", endless()).await;
    gets(&server, 1).await;
    drop(client);
    server.hung_up().await;

    // While it waits to come back, too.
    for disconnects in [true, false] {
        let (client, server) = listening("2025-11-25", vec![Answer::events("retry: 300\n\n")]).await;
        gets(&server, 1).await;
        if disconnects {
            soon(client.disconnect()).await;
        }
        drop(client);
        sleep(Duration::from_millis(800)).await;
        assert_eq!(server.gets().len(), 1);
    }
}

/// A transport that is opened anew listens anew, and once.
#[tokio::test]
async fn the_stream_ends_when_the_transport_is_opened_anew() {
    let server = HttpPeer::start(|_| Answer::events("id: 1\ndata:\n\n").without_end()).await;
    let limits = Limits::default();
    let transport = Arc::new(Http::new(server.url()).into_transport(&limits).unwrap());
    let agreed = Agreed::new(Revision::V2025_11_25);
    transport.open(Inbox::new(&limits)).await.unwrap();
    transport.agreed(&agreed);
    gets(&server, 1).await;
    transport.open(Inbox::new(&limits)).await.unwrap();
    server.hung_up().await;
    transport.agreed(&agreed);
    let gets = gets(&server, 2).await;
    assert_eq!(gets[1].header("last-event-id"), None, "it is another stream");
}

/// Our own server tells of its changes there.
#[tokio::test]
async fn our_client_hears_our_server() {
    let served = mcp_test::HttpServer::start(everything_server::server()).await;
    let heard = Arc::new(AtomicUsize::new(0));
    let client = Client::builder(mcp_suite::implementation!())
        .revisions([Revision::V2025_11_25])
        .observer(Ear(heard.clone()))
        .connect(Http::new(served.url()));
    let client = soon(client).await.unwrap();
    soon(client.call::<String>("register", json!({ "name": "new" }))).await.unwrap();
    soon(async {
        while heard.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    soon(client.disconnect()).await;
}

struct Ear(Arc<AtomicUsize>);

impl mcp_suite::observer::Observer for Ear {
    fn notification(&self, notified: &mcp_suite::observer::NotificationEvent<'_>) {
        if notified.method == "notifications/tools/list_changed" {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Many servers drop what they ask on this stream while it is not open, even where it is about a call.
#[tokio::test]
async fn the_first_calls_wait_for_the_stream_to_be_open() {
    let (say, said) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
    let said = Arc::new(tokio::sync::Mutex::new(said));
    let is_open = Arc::new(AtomicUsize::new(0));
    let opened = is_open.clone();
    let rule = move |request: &Request| match request.verb.as_str() {
        "GET" => {
            let opened = opened.clone();
            let answer = Answer::events("").then_from(said.clone()).after(Duration::from_millis(100));
            answer.on_writing(move || opened.store(1, Ordering::SeqCst))
        }
        _ if request.method() == "tools/call" && opened.load(Ordering::SeqCst) == 0 => Answer::silence(),
        _ => Answer::result(text("b")),
    };
    let server = HttpPeer::start(http::with_session(http::listening("2025-11-25", rule))).await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    drop(say);
}

/// Some servers answer only once there is something to say, and calls go out all the same.
#[tokio::test]
async fn a_stream_that_is_never_answered_holds_no_call_for_long() {
    let (client, server) = listening("2025-11-25", vec![Answer::silence()]).await;
    for _ in 0..2 {
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    }
    assert_eq!(gets(&server, 1).await.len(), 1);
}
