//! Servers that know the transport of 2024-11-05 alone: a stream of events at one path, messages posted to another.
//!
//! Specification: *2025-11-25, Transports, Backwards Compatibility*.

use std::{sync::Arc, time::Duration};

use ::http::{HeaderValue, header::AUTHORIZATION};
use mcp_http::Routes;
use mcp_suite::{
    Client, Error, ErrorKind, Limits,
    client::{CallOptions, ListenEnd},
    http::Http,
    implementation,
    types::NotificationFilter,
};
use mcp_test::HttpServer;
use serde_json::json;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};

use super::*;
use crate::peer::http::{Answer, HttpPeer, Request};

/// Our own server, which has the old transport at `/sse`.
async fn ours() -> HttpServer {
    HttpServer::start_routes(Routes::new(everything_server::server()).http_sse("/sse", "/messages")).await
}

#[tokio::test]
async fn our_client_speaks_to_our_server_over_the_old_transport() {
    let served = ours().await;
    for era in [None, Some(Era::Legacy)] {
        let transport = Http::new(served.url_of("/sse"));
        let client = match era {
            None => soon(Client::connect(transport)).await.unwrap(),
            Some(era) => soon(connect_in(era, transport)).await.unwrap(),
        };
        assert_eq!(client.revision().era(), Era::Legacy);
        assert!(!soon(client.tools()).await.unwrap().is_empty());
        let mut calls = JoinSet::new();
        for number in 0..200_i64 {
            let client = client.clone();
            calls.spawn(async move {
                let sum: i64 = client.call("add", json!({ "a": number, "b": 1 })).await.unwrap();
                assert_eq!(sum, number + 1);
            });
        }
        soon(calls.join_all()).await;
        soon(client.disconnect()).await;
        let error = soon(client.ping()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed);
    }
}

/// What a server of that kind says on its stream, and what it answers with to a GET and to each POST.
struct OldServer {
    say: mpsc::UnboundedSender<Vec<u8>>,
    peer: HttpPeer,
}

/// How the first POST to the path of the stream is refused.
const REFUSALS: [u16; 3] = [405, 404, 400];

/// A server of that kind by hand. Its stream is `first`, and then what the answers to the POSTs are.
async fn by_hand(first: &'static str, refusal: u16) -> OldServer {
    let (say, said) = mpsc::unbounded_channel::<Vec<u8>>();
    let said = Arc::new(Mutex::new(said));
    let peer = HttpPeer::start(move |request: &Request| match (request.verb.as_str(), request.path.as_str()) {
        ("GET", "/mcp") => Answer::events(first).then_from(said.clone()),
        ("POST", "/messages?session=1") => Answer::new(202, "text/plain", "Accepted"),
        _ => Answer::new(refusal, "text/plain", "not this way"),
    })
    .await;
    OldServer { say, peer }
}

const ENDPOINT: &str = "event: endpoint\ndata: /messages?session=1\n\n";

impl OldServer {
    fn say(&self, message: &Value) {
        self.say.send(format!("event: message\ndata: {message}\n\n").into_bytes()).unwrap();
    }

    /// Waits for a message of that method, and answers it.
    async fn answer(&self, method: &str, result: Value) {
        let is_it = |request: &Request| request.path.starts_with("/messages") && request.method() == method;
        self.peer.until(&format!("{method} came"), |seen| seen.iter().any(is_it)).await;
        let id = self.peer.requests().into_iter().find(is_it).unwrap().body["id"].clone();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    async fn connect(&self) -> Client {
        let connecting = tokio::spawn({
            let url = self.peer.url();
            async move { Client::connect(Http::new(url).header(AUTHORIZATION, HeaderValue::from_static("t"))).await }
        });
        self.answer("initialize", initialized("2024-11-05")).await;
        soon(connecting).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn a_refused_handshake_is_tried_on_the_old_transport() {
    for refusal in REFUSALS {
        let server = by_hand(ENDPOINT, refusal).await;
        let client = server.connect().await;
        assert_eq!(client.revision(), Revision::V2024_11_05);
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.call::<String>("a", ()).await }
        });
        // It asks and tells on its own, too.
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": 1 } }));
        server.say(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
        server.say(&json!({ "jsonrpc": "2.0", "id": "s-1", "method": "ping" }));
        let pong = json!({ "jsonrpc": "2.0", "id": "s-1", "result": {} });
        server.peer.until("the ping is answered", |seen| seen.iter().any(|request| request.body == pong)).await;
        server.answer("tools/call", text("b")).await;
        assert_eq!(soon(call).await.unwrap().unwrap(), "b");
        for request in server.peer.requests().iter().chain(&server.peer.gets()) {
            assert_eq!(request.header("authorization"), Some("t"));
        }
        assert_eq!(server.peer.gets().len(), 1, "one stream is all there is");
        soon(client.disconnect()).await;
        server.peer.hung_up().await;
        assert!(!server.peer.methods().contains(&"DELETE".to_owned()));
    }
}

/// What has no data is no message, and what is no message harms nothing: not on this stream either.
#[tokio::test]
async fn c086_an_event_without_data_is_no_message_on_the_old_transport() {
    let warnings = crate::peer::log::Warnings::listen();
    let server = by_hand(
        "retry: 1500\n\nid: s1/0\ndata:\n\nevent: endpoint\ndata: /messages?session=1\n\nid: s1/1\ndata:\n\n",
        405,
    )
    .await;
    let client = server.connect().await;
    for odd in [
        "id: s1/2\nretry: 1500\ndata:\n\n",
        ": comment\n\n",
        "event: message\ndata: \n\n",
        "data: no JSON\n\n",
        "event: hologram\ndata: {}\n\n",
    ] {
        server.say.send(odd.into()).unwrap();
    }
    let call = tokio::spawn(async move { client.call::<String>("a", ()).await });
    server.answer("tools/call", text("b")).await;
    assert_eq!(soon(call).await.unwrap().unwrap(), "b");
    assert!(warnings.lines().is_empty(), "{:?}", warnings.lines());
}

#[tokio::test]
async fn progress_comes_on_the_stream_too_and_a_call_that_is_given_up_is_cancelled() {
    let server = by_hand(ENDPOINT, 405).await;
    let client = server.connect().await;
    let (heard, mut ear) = mpsc::unbounded_channel();
    let call = tokio::spawn({
        let options = CallOptions::new().on_progress(move |progress| heard.send(progress.progress).unwrap());
        let client = client.clone();
        async move { client.call_with::<String>("a", (), options).await }
    });
    server.peer.until("the call came", |seen| seen.iter().any(|request| request.method() == "tools/call")).await;
    let token = server.peer.requests().last().unwrap().body["params"]["_meta"]["progressToken"].clone();
    for step in [1, 2] {
        let params = json!({ "progressToken": token, "progress": step });
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
        assert_eq!(soon(ear.recv()).await, Some(f64::from(step)));
    }
    call.abort();
    let told = |seen: &[Request]| seen.iter().any(|request| request.method() == "notifications/cancelled");
    server.peer.until("the server is told", told).await;
    // The answer that comes all the same is nobody's.
    server.answer("tools/call", text("late")).await;
    let ping = tokio::spawn(async move { client.ping().await });
    server.answer("ping", json!({})).await;
    soon(ping).await.unwrap().unwrap();
}

#[tokio::test]
async fn pending_calls_fail_when_the_stream_ends() {
    let server = by_hand(ENDPOINT, 405).await;
    let client = server.connect().await;
    let mut changes = soon(client.listen(NotificationFilter::new().tools())).await.unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call::<String>("a", ()).await }
    });
    server.peer.until("the call came", |seen| seen.iter().any(|request| request.method() == "tools/call")).await;
    drop(server.say);
    assert_eq!(soon(call).await.unwrap().unwrap_err().kind(), ErrorKind::TransportClosed);
    assert_eq!(soon(changes.next()).await, None);
    assert!(matches!(changes.ended(), Some(ListenEnd::Lost(_))), "{:?}", changes.ended());
    // So do those that come later, and nothing is sent for them.
    assert_eq!(soon(client.ping()).await.unwrap_err().kind(), ErrorKind::TransportClosed);
    assert!(!server.peer.methods().contains(&"ping".to_owned()));
}

/// A message that is refused fails its own call, at once, and no other.
#[tokio::test]
async fn a_post_that_is_refused_fails_its_call_at_once() {
    let served = ours().await;
    let limits = Limits::default();
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(served.url_of("/sse")));
    let client = soon(client).await.unwrap();
    let error = soon(client.call::<Value>("add", json!({ "a": "x".repeat(5 << 20) }))).await.unwrap_err();
    assert_eq!(error.status(), Some(413), "{error}");
    assert_eq!(soon(client.call::<i64>("add", json!({ "a": 1, "b": 1 }))).await.unwrap(), 2);
}

async fn refused(first: Answer, limits: Limits) -> (Error, HttpPeer) {
    let server = HttpPeer::start(move |request: &Request| match request.verb.as_str() {
        "GET" => first.clone(),
        _ => Answer::new(405, "text/plain", "POST is not for this"),
    })
    .await;
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    (soon(client).await.unwrap_err(), server)
}

/// Then the error is about what was refused at first, and nothing is posted anywhere.
#[tokio::test]
async fn what_is_no_server_of_that_kind_is_not_spoken_to() {
    let limits = Limits::default().probe_timeout(Duration::from_millis(300));
    for answer in [
        Answer::status(405),
        Answer::hang_up(),
        Answer::new(200, "text/html", ENDPOINT),
        Answer::events(""),
        Answer::events("data: {}\n\n").without_end(),
        Answer::events("id: 1\ndata:\n\n").without_end(),
        Answer::events("data: {}\n\n").then(Duration::ZERO, ENDPOINT),
        Answer::events(": hello\n\n").without_end(),
        Answer::events("event: endpoint\ndata: /messages\n").without_end(),
        Answer::events("x".repeat(5 << 20)).without_end(),
        Answer::silence(),
        Answer::status(302).header("Location", "/messages"),
    ] {
        let said = format!("{answer:?}");
        let (error, server) = refused(answer, limits.clone()).await;
        assert_eq!((error.kind(), error.status()), (ErrorKind::TransportError, Some(405)), "{said}: {error}");
        assert!(error.to_string().contains("POST is not for this"), "{said}: {error}");
        assert_eq!(server.methods(), ["server/discover", "initialize"], "{said}");
        assert_eq!(server.gets().len(), 1, "{said}");
    }
}

/// A server that names another's endpoint would have the client's credentials sent there.
#[tokio::test]
async fn an_endpoint_of_another_origin_is_refused() {
    let other = HttpPeer::start(|_| Answer::status(202)).await;
    for named in [
        format!("{}/messages?secret", other.origin()),
        other.origin().replace("http:", "") + "/secret",
        "https://127.0.0.1/secret".into(),
        "ftp://127.0.0.1/secret".into(),
    ] {
        let stream = Answer::events(format!("event: endpoint\ndata: {named}\n\n")).without_end();
        let (error, server) = refused(stream, Limits::default()).await;
        let message = error.to_string();
        assert!(message.contains("another origin") && message.contains("405"), "{message}");
        assert!(!message.contains("secret"), "{message}");
        assert_eq!(server.methods(), ["server/discover", "initialize"]);
        server.hung_up().await;
    }
    assert!(other.requests().is_empty() && other.gets().is_empty());
}

/// Statuses that say something else than that there is no such transport are believed.
#[tokio::test]
async fn only_some_refusals_are_a_reason_to_try_it() {
    for status in [401, 403, 406, 429, 500, 503] {
        let server = HttpPeer::start(move |_| Answer::new(status, "text/plain", "no")).await;
        let error = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert!(server.gets().is_empty(), "{status}");
    }
    // An answer in JSON-RPC is one of a server that knows the transport.
    let server = HttpPeer::start(|_| Answer::error(400, -32602, "no")).await;
    let error = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
    assert_eq!(error.object().map(|object| object.code), Some(-32602), "{error}");
    assert!(server.gets().is_empty());
    // In the modern era there was never such a thing.
    let server = HttpPeer::start(|_| Answer::status(405)).await;
    soon(connect_in(Era::Modern, Http::new(server.url()))).await.unwrap_err();
    assert!(server.gets().is_empty());
}
