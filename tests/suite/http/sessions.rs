//! Legacy sessions over HTTP: whose they are, how they begin and end, and what is served within them.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use mcp_core::{
    Exchange, Limits, ResourceTemplate, Revision, Server, Tool, ToolError, implementation,
    observer::{CloseReason, ConnectionEvent, Observer},
    server::Introduction,
    store::SessionId,
};
use mcp_http::Routes;
use serde_json::{Value, json};

use super::{
    Connection, Post, Response,
    session::{Doors, Host, INITIALIZED, Session, WATCHED, brief, builder, call, hello, ping, request},
};
use crate::server::until;

/// A refusal: a status, and a JSON-RPC error that has the request's id where there is one.
#[track_caller]
fn refused(response: &Response, status: u16, id: impl Into<Value>) {
    let id: Value = id.into();
    assert_eq!(response.status(), status, "{}", response.text());
    assert_eq!(response.head.header("content-type"), Some("application/json"));
    let body = response.json();
    assert_eq!((&body["jsonrpc"], &body["id"], &body["error"]["code"]), (&json!("2.0"), &id, &json!(-32600)), "{body}");
    assert!(body["error"]["message"].as_str().is_some_and(|why| why.len() > 10), "{body}");
    assert!(response.head.header("mcp-session-id").is_none());
}

#[track_caller]
fn served(response: &Response) {
    assert!(response.status() == 200 && response.json()["result"].is_object(), "{}", response.text());
}

/// Whether the session is there, by a POST.
async fn is_alive(host: &Host, session: &Session) -> bool {
    let response = host.send(session.post(ping(9))).await;
    match response.status() {
        200 => true,
        404 => false,
        other => panic!("a ping's status is {other}: {}", response.text()),
    }
}

// How sessions begin.

#[tokio::test]
async fn initialize_mints_an_id_and_each_is_another() {
    let host = Host::start().await;
    let mut ids = HashSet::new();
    for _ in 0..50 {
        let id = host.open().await.id;
        assert!(id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{id}");
        assert!(ids.insert(id));
    }
    assert_eq!((host.sessions.count(), host.sessions.ids().len()), (50, 50));
}

/// The id is a secret, so it is told once.
#[tokio::test]
async fn only_the_answer_to_initialize_has_the_id_in_its_head() {
    let host = Host::start().await;
    let session = host.open().await;
    for body in [ping(1), INITIALIZED.to_owned(), call(2, json!({})), call(3, json!({ "say": 1 }))] {
        let response = host.send(session.post(body)).await;
        assert!(response.head.header("mcp-session-id").is_none());
        assert!(!response.text().contains(&session.id));
    }
    let debug = format!("{:?} {:?}", host.sessions, host.sessions.ids());
    assert!(!debug.contains(&session.id), "{debug}");
}

#[tokio::test]
async fn c048_what_is_no_successful_initialize_mints_nothing() {
    let host = Host::start().await;
    let mismatched = request(1, "initialize", json!({ "protocolVersion": "2026-07-28", "capabilities": 5 }));
    let modern = Post::new(hello(Revision::V2025_11_25)).header("MCP-Protocol-Version", "2026-07-28");
    let posts = [
        (Post::new(request(1, "tools/list", json!({}))), 400),
        (Post::new("{"), 400),
        (Post::new("[]"), 400),
        (Post::new(r#"{"jsonrpc":"2.0","id":null,"method":"initialize"}"#), 400),
        (Post::new(request(1, "initialize", json!({ "protocolVersion": 5 }))), 200),
        (Post::new(request(1, "initialize", json!({}))), 200),
        (Post::new(mismatched), 200),
        (modern, 400),
    ];
    for _ in 0..20 {
        for (post, status) in posts.clone() {
            let response = host.send(post).await;
            assert_eq!(response.status(), status, "{}", response.text());
            assert!(response.json()["error"].is_object() && response.head.header("mcp-session-id").is_none());
        }
    }
    assert_eq!(host.sessions.count(), 0);
}

/// What a layer refuses, and what panics, is no handshake.
#[tokio::test]
async fn c048_an_initialize_that_fails_inside_the_server_mints_nothing() {
    let server = Server::builder(implementation!())
        .introduce(|_: &Exchange, _: Introduction| -> Introduction { panic!("no") })
        .build();
    let host = Host::serve(Routes::new(server.clone()), server, Doors::default()).await;
    let response = host.send(Post::new(hello(Revision::V2025_11_25))).await;
    assert!(response.json()["error"].is_object() && response.head.header("mcp-session-id").is_none());
    assert_eq!(host.sessions.count(), 0);
}

#[tokio::test]
async fn c071_initialize_heeds_neither_a_version_header_nor_an_id() {
    let host = Host::start().await;
    let first = host.open().await;
    for id in [first.id.as_str(), "gone-1", "0123456789abcdef0123456789abcdef"] {
        for version in [None, Some("2025-03-26"), Some("2025-11-25")] {
            let post = Post::new(hello(Revision::V2025_06_18)).header("Mcp-Session-Id", id);
            let post = version.into_iter().fold(post, |post, version| post.header("MCP-Protocol-Version", version));
            let fresh = host.initialize(post, Revision::V2025_06_18).await;
            assert!(fresh.id != first.id && fresh.id != id);
            assert!(is_alive(&host, &fresh).await);
        }
    }
    assert!(is_alive(&host, &first).await);
    assert_eq!(host.sessions.count(), 10);
}

#[tokio::test]
async fn initialize_as_a_stream_has_the_id_in_its_head_and_one_event() {
    let host = Host::start().await;
    let mut stream = host.stream(&Post::new(hello(Revision::V2025_11_25)).header("Accept", "text/event-stream")).await;
    assert!(stream.is_stream() && stream.head.header("mcp-session-id").is_some_and(|id| id.len() == 32));
    let event = stream.next().await.unwrap();
    assert_eq!(event.json()["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(stream.next().await, None);
}

/// The head has to wait for the handshake, however long that takes.
#[tokio::test]
async fn an_initialize_that_is_slower_than_the_keep_alive_still_has_its_id() {
    let slow = tower::layer::layer_fn(|inner| Slow { inner });
    let limits = Limits::default().keep_alive(Duration::from_millis(20));
    let server = Server::builder(implementation!()).limits(limits).layer(slow).build();
    let host = Host::serve(Routes::new(server.clone()), server, Doors::default()).await;
    assert!(is_alive(&host, &host.open().await).await);
}

/// Who goes away before the handshake is over has no session, and takes no room.
#[tokio::test]
async fn c048_an_initialize_whose_client_goes_away_mints_nothing() {
    let slow = tower::layer::layer_fn(|inner| Slow { inner });
    let server = Server::builder(implementation!()).limits(Limits::default().sessions(1)).layer(slow).build();
    let host = Host::serve(Routes::new(server.clone()), server, Doors::default()).await;
    let mut connection = Connection::open(host.address).await;
    connection.write(&Post::new(hello(Revision::V2025_11_25)).bytes(host.address)).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    connection.abort();
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(host.sessions.count(), 0);
    assert!(is_alive(&host, &host.open().await).await);
}

/// Waits before it goes on.
#[derive(Clone)]
pub(super) struct Slow<S> {
    pub(super) inner: S,
}

impl<S> tower::Service<Exchange> for Slow<S>
where
    S: tower::Service<Exchange> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = mcp_core::BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        let mut inner = self.inner.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            inner.call(exchange).await
        })
    }
}

/// D11: there is a cap on sessions, and those that are there are served beyond it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d11_of_too_many_initializes_as_many_succeed_as_there_is_room_for() {
    let host = Host::within(Limits::default().sessions(5)).await;
    let first = host.open().await;
    let hello = || host.send(Post::new(hello(Revision::V2025_11_25)));
    let responses = join_all((0..30).map(|_| hello())).await;
    let (minted, others): (Vec<_>, Vec<_>) = responses.iter().partition(|response| response.status() == 200);
    assert_eq!((minted.len(), host.sessions.count()), (4, 5));
    others.iter().for_each(|other| refused(other, 503, 0));
    assert!(is_alive(&host, &first).await);
    assert_eq!(host.send(first.delete()).await.status(), 204);
    assert_eq!((hello().await.status(), hello().await.status()), (200, 503));
}

#[tokio::test]
async fn c116_requests_are_served_before_initialized_and_that_may_come_late_or_twice() {
    let host = Host::start().await;
    let session = host.initialize(Post::new(hello(Revision::V2025_11_25)), Revision::V2025_11_25).await;
    served(&host.send(session.post(request(1, "tools/list", json!({})))).await);
    let (tools, initialized) = tokio::join!(
        host.send(session.post(request(2, "tools/list", json!({})))),
        host.send(session.post(INITIALIZED)),
    );
    served(&tools);
    assert_eq!(initialized.status(), 202);
    assert_eq!(host.send(session.post(INITIALIZED)).await.status(), 202);
    served(&host.work(&session, 3, json!({})).await);
}

#[tokio::test]
async fn c118_a_log_level_may_be_set_before_initialized() {
    let host = Host::start().await;
    let session = host.initialize(Post::new(hello(Revision::V2025_11_25)), Revision::V2025_11_25).await;
    served(&host.send(session.post(request(1, "logging/setLevel", json!({ "level": "error" })))).await);
    assert_eq!(host.send(session.post(INITIALIZED)).await.status(), 202);
    let quiet = host.work(&session, 2, json!({ "say": 3 })).await;
    assert!(!quiet.is_stream(), "words of the level info are not for this session");
}

#[tokio::test]
async fn c121_initialized_without_a_session_is_refused_and_initialize_works_behind_it() {
    let host = Host::start().await;
    refused(&host.send(Post::new(INITIALIZED)).await, 400, Value::Null);
    assert!(is_alive(&host, &host.open().await).await);
}

// Whose they are.

/// Without an id 400, with one that is none 404, and for all the same.
#[tokio::test]
async fn c047_without_an_id_400_and_with_one_that_is_not_there_404() {
    let host = Host::start().await;
    let session = host.open().await;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let bodies = [(ping(7), json!(7)), (INITIALIZED.to_owned(), Value::Null), (answer.to_owned(), Value::Null)];
    for (body, id) in &bodies {
        refused(&host.send(Post::new(body.as_str())).await, 400, id.clone());
    }
    let upper = session.id.to_uppercase();
    let (short, long, two) = (&session.id[1..], "a".repeat(10 << 10), format!("{0}, {0}", session.id));
    for wrong in ["", "gone-1", short, &upper, &long, &two, "ünïcode"] {
        if wrong == session.id {
            continue;
        }
        for (body, id) in &bodies {
            refused(&host.send(session.another(wrong).post(body.as_str())).await, 404, id.clone());
        }
        refused(&host.send(session.another(wrong).get()).await, 404, Value::Null);
        refused(&host.send(session.another(wrong).delete()).await, 404, Value::Null);
    }
    for post in [session.get(), session.delete()] {
        refused(&host.send(post.never("Mcp-Session-Id")).await, 400, Value::Null);
    }
    assert!(is_alive(&host, &session).await);
}

/// Who routes by the first and who checks the second would see different sessions.
#[tokio::test]
async fn an_id_that_stands_twice_is_400_on_every_verb() {
    let host = Host::start().await;
    let session = host.open().await;
    for post in [session.post(ping(1)), session.get(), session.delete()] {
        refused(&host.send(post.add("Mcp-Session-Id", session.id.as_str())).await, 400, Value::Null);
    }
    let twice = session.get().header("Last-Event-ID", "a-1").add("Last-Event-ID", "a-1");
    refused(&host.send(twice).await, 400, Value::Null);
    assert!(is_alive(&host, &session).await);
}

#[tokio::test]
async fn c047_another_principals_session_is_like_one_that_is_not_there() {
    let host = Host::with_principals().await;
    for (owner, others) in [(Some("ada.1"), [Some("bob.1"), None]), (None, [Some("bob.1"), Some("ada.1")])] {
        let session = host.of(owner).await;
        for other in others {
            let (foreign, absent) = (session.as_of(other), session.as_of(other).another(&"0".repeat(32)));
            for request in [|session: &Session| session.post(ping(1)), Session::get, Session::delete] {
                let (foreign, absent) = (host.send(request(&foreign)).await, host.send(request(&absent)).await);
                assert_eq!((foreign.status(), &foreign.body), (404, &absent.body));
            }
        }
        assert!(is_alive(&host, &session).await);
    }
}

#[tokio::test]
async fn c077_the_same_subject_with_another_token_is_served() {
    let host = Host::with_principals().await;
    let session = host.of(Some("ada.first")).await;
    let refreshed = session.as_of(Some("ada.second"));
    let who = request(1, "tools/call", json!({ "name": "who", "arguments": {} }));
    assert_eq!(host.send(refreshed.post(who)).await.json()["result"]["content"][0]["text"], "ada");
}

/// So is whoever comes back for a stream, or reads what is pushed.
#[tokio::test]
async fn c077_a_stream_is_read_and_resumed_with_another_token() {
    let host = Host::with_principals().await;
    let session = host.of(Some("ada.first")).await;
    let refreshed = session.as_of(Some("ada.second"));
    let id = host.working(&session, 1, json!({ "say": 2 })).await.hear().await.unwrap().id;
    assert_eq!(host.resume(&refreshed, &id).await.rest().await.len(), 2);
    let mut standalone = host.listen(&refreshed).await;
    assert!(host.push(&session, 7).await);
    assert_eq!(standalone.numbers(1).await, [7]);
}

#[tokio::test]
async fn c077_a_call_is_cancelled_with_another_token() {
    let host = Host::with_principals().await;
    let session = host.of(Some("ada.first")).await;
    let working = host.begin(&session, 1, json!({ "door": "a" })).await;
    host.doors.running(1).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let refreshed = session.as_of(Some("ada.second"));
    assert_eq!(host.send(refreshed.post(cancel)).await.status(), 202);
    host.doors.dropped(1).await;
    drop(working);
}

#[tokio::test]
async fn c077_a_session_is_ended_with_another_token() {
    let host = Host::with_principals().await;
    let session = host.of(Some("ada.first")).await;
    assert!(host.send(session.as_of(Some("ada.second")).delete()).await.status() < 300);
    assert!(!is_alive(&host, &session).await);
}

/// Who is not let in at all does not learn which sessions there are.
#[tokio::test]
async fn c047_credentials_come_before_sessions() {
    let host = Host::with_principals().await;
    let session = host.of(Some("ada.1")).await.as_of(Some("bad.1"));
    for post in [session.post(ping(1)), session.another("gone-1").post(ping(1)), session.get(), session.delete()] {
        assert_eq!(host.send(post).await.status(), 401);
    }
    assert_eq!(host.sessions.count(), 1);
}

// The revision.

#[tokio::test]
async fn c070_a_session_speaks_one_revision_and_without_the_header_that_one() {
    let host = Host::start().await;
    let session = host.speaking(Revision::V2025_06_18).await;
    for wrong in ["1999-01-01", "2025-03-26", "2025-11-25", "", "2025-06-18 x"] {
        for post in [session.post(request(1, "tools/list", json!({}))), session.get(), session.delete()] {
            let response = host.send(post.header("MCP-Protocol-Version", wrong)).await;
            assert_eq!(response.status(), 400, "{wrong}: {}", response.text());
            assert!(response.json()["error"].is_object());
        }
    }
    let doubled = session.post(ping(1)).add("MCP-Protocol-Version", "2025-06-18");
    assert_eq!(host.send(doubled).await.status(), 400);
    served(&host.send(session.post(request(1, "tools/list", json!({}))).never("MCP-Protocol-Version")).await);
    assert_eq!(host.send(session.delete().never("MCP-Protocol-Version")).await.status(), 204);
}

/// The era comes before any session is looked up.
#[tokio::test]
async fn a_modern_request_is_served_without_the_session_that_it_names() {
    let host = Host::start().await;
    let session = host.open().await;
    let body = crate::server::call(1, "work", json!({}));
    for id in [session.id.as_str(), "gone-1"] {
        let response = host.send(Post::speaking(Revision::LATEST, body.as_str()).header("Mcp-Session-Id", id)).await;
        served(&response);
        assert!(response.head.header("mcp-session-id").is_none());
    }
    let bare = host.send(session.post(ping(1)).header("MCP-Protocol-Version", "2026-07-28")).await;
    assert_eq!((bare.status(), &bare.json()["error"]["code"]), (400, &json!(-32602)));
    for post in [session.get(), session.delete()] {
        let response = host.send(post.header("MCP-Protocol-Version", "2026-07-28")).await;
        refused(&response, 405, Value::Null);
        assert_eq!(response.head.header("allow"), Some("POST"));
    }
    assert!(is_alive(&host, &session).await);
}

/// D03: a body that is no request is 400 with a JSON-RPC error as JSON, in a session and without.
#[tokio::test]
async fn d03_a_body_that_is_no_message_is_400_in_json() {
    let host = Host::start().await;
    let session = host.open().await;
    for (body, code) in
        [("{", -32700), ("", -32700), (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600), ("5", -32600)]
    {
        for post in [Post::new(body), session.post(body)] {
            let response = host.send(post).await;
            assert_eq!(response.status(), 400, "{body}: {}", response.text());
            assert_eq!(response.head.header("content-type"), Some("application/json"));
            assert_eq!((&response.json()["id"], &response.json()["error"]["code"]), (&Value::Null, &json!(code)));
        }
    }
    let batch = format!("[{},{}]", ping(1), ping(2));
    let response = host.send(session.post(batch)).await;
    refused(&response, 400, Value::Null);
}

#[tokio::test]
async fn a_session_of_2025_03_26_has_batches() {
    let host = Host::start().await;
    let session = host.speaking(Revision::V2025_03_26).await;
    let response = host.send(session.post(format!("[{},{INITIALIZED},{}]", ping(1), call(2, json!({}))))).await;
    let ids: Vec<_> = response.json().as_array().unwrap().iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!((response.status(), ids), (200, vec![json!(1), json!(2)]));
    let answers = r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#;
    for batch in [format!("[{INITIALIZED},{INITIALIZED}]"), answers.to_owned()] {
        let response = host.send(session.post(batch)).await;
        assert_eq!((response.status(), response.body.len()), (202, 0));
    }
    let response = host.send(session.post(format!("[{}]", hello(Revision::V2025_03_26)))).await;
    assert!(response.json()[0]["error"].is_object() && response.head.header("mcp-session-id").is_none());
    assert_eq!(host.sessions.count(), 1);
}

/// A batch is a call like others: its session is held, and it outlives its connection.
#[tokio::test]
async fn c068_a_batch_holds_its_session_and_outlives_its_connection() {
    let host = Host::within(brief()).await;
    let session = host.speaking(Revision::V2025_03_26).await;
    let batch = |door: &str| session.post(format!("[{}]", call(1, json!({ "door": door }))));
    let (slow, ()) = tokio::join!(host.send(batch("a")), async {
        tokio::time::sleep(brief().session_idle * 3).await;
        host.doors.open("a");
    });
    assert_eq!((slow.status(), &slow.json()[0]["id"]), (200, &json!(1)), "{}", slow.text());
    let mut connection = Connection::open(host.address).await;
    connection.write(&batch("b").bytes(host.address)).await;
    host.doors.running(1).await;
    connection.abort();
    until("the connection is gone", async || is_alive(&host, &session).await).await;
    host.doors.open("b");
    host.doors.done(2).await;
}

// How they end.

#[tokio::test]
async fn delete_ends_a_session_at_once_and_only_once() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 1 })).await;
    let cursor = stream.hear().await.unwrap().id;
    let response = host.send(session.delete()).await;
    assert_eq!((response.status(), response.body.len(), host.sessions.count()), (204, 0, 0));
    refused(&host.send(session.delete()).await, 404, Value::Null);
    refused(&host.send(session.post(ping(1))).await, 404, 1);
    refused(&host.send(session.get()).await, 404, Value::Null);
    refused(&host.send(session.get().header("Last-Event-ID", cursor)).await, 404, Value::Null);
    assert!(!host.push(&session, 1).await);
}

#[tokio::test]
async fn the_end_of_a_session_ends_all_that_it_has() {
    let host = Host::within(Limits::default().session_streams(2)).await;
    let session = host.open().await;
    let mut standalone = host.listen(&session).await;
    let mut streaming = host.working(&session, 1, json!({ "say": 1, "door": "never" })).await;
    assert_eq!(streaming.numbers(1).await, [1]);
    let mut waiting = host.begin(&session, 2, json!({ "door": "never" })).await;
    let detached = host.begin(&session, 3, json!({ "door": "never" })).await;
    host.doors.running(3).await;
    detached.abort();
    let start = Instant::now();
    assert_eq!(host.send(session.delete()).await.status(), 204);
    assert!(standalone.rest().await.is_empty() && streaming.rest().await.is_empty());
    refused(&waiting.response().await.unwrap(), 404, 2);
    host.doors.running(0).await;
    host.doors.dropped(3).await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_deletes_one_ends_the_session_and_what_races_is_served_or_404() {
    let host = Host::start().await;
    for _ in 0..20 {
        let session = host.open().await;
        let deletes = join_all((0..8).map(|_| host.send(session.delete())));
        let pings = join_all((0..8).map(|id| host.send(session.post(ping(id)))));
        let (deletes, pings) = tokio::join!(deletes, pings);
        let ended = deletes.iter().filter(|response| response.status() == 204).count();
        assert_eq!(ended, 1);
        let statuses = deletes.iter().map(Response::status).filter(|status| *status != 204);
        assert!(statuses.chain(pings.iter().map(Response::status)).all(|status| matches!(status, 200 | 404)));
        assert_eq!(host.sessions.count(), 0);
    }
}

#[tokio::test]
async fn whoever_has_the_handle_lists_sessions_and_ends_them() {
    let host = Host::start().await;
    let (one, other) = (host.open().await, host.open().await);
    let mut stream = host.listen(&one).await;
    let id = SessionId::parse(&one.id).unwrap();
    assert!(host.sessions.ids().contains(&id));
    assert!(host.sessions.end(id).await && !host.sessions.end(id).await);
    assert!(!host.sessions.end(SessionId::random()).await);
    assert!(stream.rest().await.is_empty());
    assert!(!is_alive(&host, &one).await && is_alive(&host, &other).await);
    assert_eq!(host.sessions.count(), 1);
}

/// Counts sessions, and keeps why they ended.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<(u32, Vec<String>)>>);

impl Observer for Ends {
    fn connection_opened(&self, connection: &ConnectionEvent) {
        assert_eq!(connection.transport, "http");
        self.0.lock().unwrap().0 += 1;
    }

    fn connection_closed(&self, _: &ConnectionEvent, reason: &CloseReason<'_>) {
        self.0.lock().unwrap().1.push(format!("{reason:?}"));
    }
}

#[tokio::test]
async fn observers_hear_of_each_session_once_and_why_it_ended() {
    let (ends, doors) = (Ends::default(), Doors::default());
    let limits = brief().sessions(3);
    let server = builder(&doors, limits).observer(ends.clone()).build();
    let host = Host::serve(Routes::new(server.clone()), server, doors).await;
    let (deleted, ended) = (host.open().await, host.open().await);
    host.open().await;
    assert_eq!(host.send(Post::new(hello(Revision::V2025_11_25))).await.status(), 503);
    assert_eq!(host.send(deleted.delete()).await.status(), 204);
    assert!(host.sessions.end(SessionId::parse(&ended.id).unwrap()).await);
    until("the third expires", async || host.sessions.count() == 0).await;
    let heard = async || ends.0.lock().unwrap().1.len() == 3;
    until("each end is told", heard).await;
    assert_eq!(*ends.0.lock().unwrap(), (3, vec!["Peer".to_owned(), "Local".to_owned(), "Expired".to_owned()]));
}

#[tokio::test]
async fn c047_a_session_that_was_idle_for_too_long_is_404_on_every_verb() {
    let host = Host::within(brief()).await;
    let session = host.open().await;
    for _ in 0..4 {
        tokio::time::sleep(brief().session_idle / 2).await;
        assert!(is_alive(&host, &session).await, "each request renews it");
    }
    until("it expires", async || host.sessions.count() == 0).await;
    refused(&host.send(session.post(ping(1))).await, 404, 1);
    refused(&host.send(session.delete()).await, 404, Value::Null);
}

#[tokio::test]
async fn a_session_of_which_nothing_is_heard_after_initialize_ends_sooner() {
    let limits = Limits::default().session_provisional(Duration::from_millis(300)).session_streams(0);
    let host = Host::within(limits).await;
    let used = host.open().await;
    let unused = host.initialize(Post::new(hello(Revision::V2025_11_25)), Revision::V2025_11_25).await;
    until("one expires", async || host.sessions.count() == 1).await;
    assert!(!is_alive(&host, &unused).await && is_alive(&host, &used).await);
}

/// Who may open a stream is given the time to come back to it.
#[tokio::test]
async fn with_streams_a_session_lives_for_a_lease_at_least() {
    let limits = brief().session_streams(1).session_lease(Duration::from_secs(3));
    let host = Host::within(limits).await;
    let session = host.open().await;
    tokio::time::sleep(brief().session_idle * 2).await;
    assert!(is_alive(&host, &session).await);
}

/// D05: the idle timer does not end what still runs, and after it there is a whole idle time again.
#[tokio::test]
async fn d05_a_call_holds_its_session_however_long_it_runs() {
    let host = Host::within(brief()).await;
    let session = host.open().await;
    let idle = brief().session_idle;
    for (id, accept) in [(1, "application/json"), (2, "text/event-stream"), (3, "application/json, text/event-stream")]
    {
        let door = format!("door {id}");
        let mut connection = Connection::open(host.address).await;
        let post = session.post(call(id, json!({ "door": door }))).header("Accept", accept);
        connection.write(&post.bytes(host.address)).await;
        host.doors.running(1).await;
        tokio::time::sleep(idle * 3).await;
        host.doors.open(&door);
        let response = connection.response().await.unwrap();
        assert!(response.status() == 200 && response.text().contains("done"), "{}", response.text());
        tokio::time::sleep(idle / 2).await;
        assert!(is_alive(&host, &session).await);
    }
    until("it expires all the same", async || host.sessions.count() == 0).await;
    assert_eq!(host.send(session.post(ping(1))).await.status(), 404);
}

/// D05, for calls that say something and for those whose connection is gone.
#[tokio::test]
async fn d05_a_streamed_and_a_detached_call_hold_their_session() {
    let host = Host::within(brief()).await;
    let session = host.open().await;
    let mut stream = host.working(&session, 1, json!({ "say": 1, "door": "a", "then": 1 })).await;
    assert_eq!(stream.numbers(1).await, [1]);
    let detached = host.begin(&session, 2, json!({ "door": "b" })).await;
    host.doors.running(2).await;
    detached.abort();
    tokio::time::sleep(brief().session_idle * 3).await;
    host.doors.open("a");
    assert_eq!(stream.rest().await.last().unwrap().message["id"], 1);
    tokio::time::sleep(brief().session_idle * 2).await;
    assert!(is_alive(&host, &session).await, "the detached call holds it");
    host.doors.open("b");
    host.doors.done(2).await;
}

/// D05, for a stream that is open.
#[tokio::test]
async fn d05_an_open_stream_holds_its_session_and_its_end_lets_go() {
    let limits = brief().session_streams(1).session_lease(Duration::from_millis(600));
    let host = Host::within(limits).await;
    let session = host.open().await;
    let mut stream = host.listen(&session).await;
    tokio::time::sleep(brief().session_idle * 3).await;
    assert!(host.push(&session, 1).await);
    assert_eq!(stream.numbers(1).await, [1]);
    drop(stream);
    until("it expires", async || host.sessions.count() == 0).await;
}

// Without sessions.

#[tokio::test]
async fn c067_without_sessions_an_id_means_nothing_and_there_is_nothing_to_get_or_delete() {
    let served = super::Served::start(Server::builder(implementation!()).build()).await;
    let response = served.send(Post::new(hello(Revision::V2025_11_25))).await;
    assert!(response.status() == 200 && response.head.header("mcp-session-id").is_none());
    let response = served.send(Post::new(ping(1)).header("Mcp-Session-Id", "gone-1")).await;
    assert_eq!(response.status(), 200);
    for target in ["GET /mcp", "DELETE /mcp", "PUT /mcp"] {
        for revision in [Revision::V2025_03_26, Revision::V2025_11_25, Revision::LATEST] {
            let post = Post::to(target, "").speaks(revision).header("Accept", "text/event-stream");
            let response = served.send(post).await;
            refused(&response, 405, Value::Null);
            assert_eq!(response.head.header("allow"), Some("POST"));
        }
    }
}

/// C066: where there is no stream to open, GET says so, and never with 200.
#[tokio::test]
async fn c066_without_streams_a_get_is_405_and_names_what_is_left() {
    let host = Host::within(Limits::default().session_streams(0)).await;
    let session = host.open().await;
    for (post, allowed) in [(session.get(), "POST, DELETE"), (Post::to("PUT /mcp", ""), "POST, DELETE")] {
        let response = host.send(post).await;
        refused(&response, 405, Value::Null);
        assert_eq!(response.head.header("allow"), Some(allowed));
    }
    let host = Host::start().await;
    let response = host.send(Post::to("PATCH /mcp", "")).await;
    assert_eq!((response.status(), response.head.header("allow")), (405, Some("GET, POST, DELETE")));
}

#[tokio::test]
async fn c050_without_sessions_calls_leave_nothing_behind() {
    let doors = Doors::default();
    let served = super::Served::start(builder(&doors, Limits::default()).build()).await;
    let mut connection = served.connect().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut before = None;
    for id in 0..1000 {
        connection.write(&Post::new(call(id, json!({}))).bytes(served.address)).await;
        assert_eq!(connection.response().await.unwrap().status(), 200);
        before.get_or_insert_with(tasks);
    }
    assert_eq!(Some(tasks()), before);
}

// Calls.

/// C016: two requests with one id in flight have an answer each, on their own connections.
#[tokio::test]
async fn c016_calls_with_one_id_in_flight_have_an_answer_each() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut one = host.begin(&session, 1, json!({ "door": "one", "bytes": 1 })).await;
    let mut other = host.begin(&session, 1, json!({ "door": "other", "bytes": 2 })).await;
    host.doors.running(2).await;
    host.doors.open("other");
    let text = |response: Response| response.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(other.response().await.unwrap()), "xx");
    host.doors.open("one");
    assert_eq!(text(one.response().await.unwrap()), "x");
}

fn cancelled(id: impl Into<Value>) -> String {
    let id: Value = id.into();
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string()
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_in_whatever_form_it_waits() {
    let host = Host::start().await;
    let session = host.open().await;
    let mut streaming = host.working(&session, 1, json!({ "say": 1, "door": "never" })).await;
    let cursor = streaming.hear().await.unwrap().id;
    let mut either = host.begin(&session, 1, json!({ "door": "never" })).await;
    let mut json = Connection::open(host.address).await;
    let post = session.post(call(1, json!({ "door": "never" }))).header("Accept", "application/json");
    json.write(&post.bytes(host.address)).await;
    host.doors.running(3).await;
    assert_eq!(host.send(session.post(cancelled(1))).await.status(), 202);
    assert!(streaming.rest().await.is_empty());
    assert_eq!((either.response().await.unwrap().body.len(), json.response().await.unwrap().body.len()), (0, 0));
    host.doors.dropped(3).await;
    let mut again = host.resume(&session, &cursor).await;
    assert!(again.is_stream() && again.rest().await.is_empty());
    assert!(is_alive(&host, &session).await);
}

#[tokio::test]
async fn a_cancellation_that_fits_no_call_of_this_session_does_nothing() {
    let host = Host::start().await;
    let (session, other) = (host.open().await, host.open().await);
    let mut call = host.begin(&session, 1, json!({ "door": "a" })).await;
    host.doors.running(1).await;
    assert_eq!(host.send(other.post(cancelled(1))).await.status(), 202);
    for strange in [json!("1"), json!(2), json!(0), json!(1.5), Value::Null, json!({})] {
        assert_eq!(host.send(session.post(cancelled(strange))).await.status(), 202);
    }
    let bare = r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#;
    assert_eq!(host.send(session.post(bare)).await.status(), 202);
    host.doors.open("a");
    assert_eq!(call.response().await.unwrap().json()["id"], 1);
    assert_eq!(host.send(session.post(cancelled(1))).await.status(), 202);
    assert!(is_alive(&host, &session).await);
}

/// C132: whatever wins, a call that is cancelled as it ends has one answer at most, and the session serves on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c132_a_cancellation_that_races_with_the_answer_leaves_one_at_most() {
    let host = Host::start().await;
    let session = host.open().await;
    for id in 1..=40 {
        let say = id % 3;
        let mut call = host.begin(&session, id, json!({ "say": say, "door": "a" })).await;
        host.doors.running(1).await;
        let cancelling = host.send(session.post(cancelled(id)));
        let opening = async {
            tokio::time::sleep(Duration::from_micros(id * 20)).await;
            host.doors.open("a");
        };
        let (cancelled, (), response) = tokio::join!(cancelling, opening, call.response());
        assert_eq!(cancelled.status(), 202);
        let answer = format!("\"id\":{id},");
        assert!(response.unwrap().text().matches(&answer).count() <= 1);
        assert!(is_alive(&host, &session).await);
        host.doors.close("a");
        host.doors.running(0).await;
    }
}

/// C068: in a session a call goes on without its connection; without sessions it ends with it.
#[tokio::test]
async fn c068_a_call_outlives_its_connection_in_a_session_and_only_there() {
    let host = Host::start().await;
    let session = host.open().await;
    for (id, work) in [(1, json!({ "door": "a" })), (2, json!({ "say": 1, "door": "a" }))] {
        let connection = host.begin(&session, id, work).await;
        host.doors.running(1).await;
        connection.abort();
        tokio::time::sleep(Duration::from_millis(50)).await;
        host.doors.open("a");
        host.doors.done(id).await;
    }
    host.doors.dropped(0).await;
    let modern = Post::speaking(Revision::LATEST, crate::server::call(3, "work", json!({ "door": "never" })));
    let mut connection = Connection::open(host.address).await;
    connection.write(&modern.header("Mcp-Session-Id", session.id.as_str()).bytes(host.address)).await;
    host.doors.running(1).await;
    connection.abort();
    host.doors.dropped(1).await;
}

/// D11: so many calls of a session run, so many wait, and the rest are told; pings and cancellations pass.
#[tokio::test]
async fn d11_calls_of_a_session_are_bounded_and_pings_pass() {
    let host = Host::within(Limits::default().in_flight(2).waiting(1)).await;
    let (session, other) = (host.open().await, host.open().await);
    let mut running =
        [host.begin(&session, 1, json!({ "door": "a" })).await, host.begin(&session, 2, json!({ "door": "a" })).await];
    host.doors.running(2).await;
    let mut waiting = host.begin(&session, 3, json!({ "door": "a" })).await;
    until("the rest are refused", async || {
        let response = host.send(session.post(request(4, "tools/list", json!({})))).await;
        response.json()["error"].is_object()
    })
    .await;
    assert!(is_alive(&host, &session).await);
    served(&host.send(other.post(request(1, "tools/list", json!({})))).await);
    (0..3).for_each(|_| host.doors.open("a"));
    for connection in running.iter_mut().chain([&mut waiting]) {
        assert!(connection.response().await.unwrap().json()["result"].is_object());
    }
    served(&host.send(session.post(request(5, "tools/list", json!({})))).await);
}

/// Those that wait are bounded in bytes too, since they outlive their connections; what runs is not counted there.
#[tokio::test]
async fn d11_calls_of_a_session_that_wait_are_bounded_in_bytes() {
    let host = Host::within(Limits::default().in_flight(1).queue_bytes(64 << 10)).await;
    let session = host.open().await;
    let padded = |id: u64| call(id, json!({ "door": "a", "padding": "x".repeat(40 << 10) }));
    let mut connections = Vec::new();
    for id in 1..=3 {
        let mut connection = Connection::open(host.address).await;
        connection.write(&session.post(padded(id)).bytes(host.address)).await;
        connections.push(connection);
        if id == 1 {
            host.doors.running(1).await;
        }
    }
    // The two that wait have as much as may wait, so not even a small one is taken.
    let is_busy = async || {
        for _ in 0..50 {
            let asking = host.send(session.post(request(9, "tools/list", json!({}))));
            if let Ok(response) = tokio::time::timeout(Duration::from_millis(200), asking).await {
                return response.json()["error"]["code"] == -32603;
            }
        }
        false
    };
    assert!(is_busy().await, "a further one is refused");
    assert!(is_alive(&host, &session).await);
    // Those whose connection is lost wait on, and count until they have their turn.
    connections.pop().unwrap().abort();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(is_busy().await, "it is refused all the same");
    (0..3).for_each(|_| host.doors.open("a"));
    host.doors.done(3).await;
    served(&host.send(session.post(request(5, "tools/list", json!({})))).await);
}

/// The requests of a batch are calls like others: so many run, so many wait, each can be cancelled.
#[tokio::test]
async fn d11_requests_of_a_batch_run_within_the_bounds_of_their_session() {
    let host = Host::within(Limits::default().in_flight(2).waiting(3)).await;
    let session = host.speaking(Revision::V2025_03_26).await;
    let items: Vec<_> = (1..=6).map(|id| call(id, json!({ "door": "a" }))).chain([ping(7)]).collect();
    let mut connection = Connection::open(host.address).await;
    connection.write(&session.post(format!("[{}]", items.join(","))).bytes(host.address)).await;
    host.doors.running(2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    host.doors.running(2).await;
    let refused = host.send(session.post(request(8, "tools/list", json!({})))).await;
    assert_eq!(refused.json()["error"]["code"], -32603, "they all wait already: {}", refused.text());
    assert_eq!(host.send(session.post(cancelled(5))).await.status(), 202);
    (0..4).for_each(|_| host.doors.open("a"));
    let answers = connection.response().await.unwrap().json();
    let kind = |answer: &Value| (answer["id"].as_u64().unwrap(), answer["error"]["code"].as_i64());
    let kinds: Vec<_> = answers.as_array().unwrap().iter().map(kind).collect();
    assert_eq!(kinds, [(1, None), (2, None), (3, None), (4, None), (6, Some(-32603)), (7, None)]);
    // One whose last call was cancelled has no answer.
    let mut connection = Connection::open(host.address).await;
    connection.write(&session.post(format!("[{}]", call(1, json!({ "door": "b" })))).bytes(host.address)).await;
    host.doors.running(1).await;
    assert_eq!(host.send(session.post(cancelled(1))).await.status(), 202);
    assert_eq!(connection.response().await.unwrap().status(), 202);
    host.doors.dropped(1).await;
}

/// Whoever wants no bounds says so with the largest of numbers.
#[tokio::test]
async fn bounds_may_be_as_large_as_numbers_are() {
    const NONE: usize = usize::MAX;
    let limits = Limits::default().in_flight(NONE).waiting(NONE).blocking(NONE).queue_messages(NONE).queue_bytes(NONE);
    let limits = limits.session_streams(NONE).session_events(NONE).session_event_bytes(NONE).all_event_bytes(NONE);
    let limits = limits.sessions(NONE).subscribed_uris(NONE).client_bytes(NONE).message_bytes(NONE);
    let limits = limits.session_idle(Duration::MAX).session_provisional(Duration::MAX).session_lease(Duration::MAX);
    let limits = limits.session_event_age(Duration::MAX).keep_alive(Duration::MAX).stall_timeout(Duration::MAX);
    let doors = Doors::default();
    let blocking = Tool::blocking("block", || Ok::<_, ToolError>("done"));
    let server = builder(&doors, limits).tool(blocking).build();
    let host = Host::serve(Routes::new(server.clone()), server, doors).await;
    let session = host.open().await;
    served(&host.send(session.post(request(1, "tools/call", json!({ "name": "block" })))).await);
    assert!(host.work(&session, 2, json!({ "say": 1 })).await.text().contains("done"));
    let mut stream = host.listen(&session).await;
    assert!(host.push(&session, 1).await);
    assert_eq!(stream.numbers(1).await, [1]);
    assert_eq!(host.send(session.delete()).await.status(), 204);
}

/// What is subscribed to is kept as long as the session is, so each URI is bounded too.
#[tokio::test]
async fn a_uri_that_is_too_long_is_not_subscribed_to() {
    let doors = Doors::default();
    let everything = ResourceTemplate::new("x:{rest}", "all", |_, _| async { Ok("of a template") });
    let server = builder(&doors, Limits::default()).template(everything).build();
    let host = Host::serve(Routes::new(server.clone()), server, doors).await;
    let session = host.open().await;
    let most = Limits::default().uri_bytes;
    let of_length = |length: usize| json!({ "uri": format!("x:{}", "y".repeat(length - 2)) });
    served(&host.send(session.post(request(1, "resources/subscribe", of_length(most)))).await);
    let error = host.send(session.post(request(2, "resources/subscribe", of_length(most + 1)))).await.json();
    let why = error["error"]["message"].as_str().unwrap();
    assert!(error["error"]["code"] == -32602 && why.contains(&most.to_string()) && why.len() < 200, "{why}");
    served(&host.send(session.post(request(3, "resources/unsubscribe", of_length(most + 1)))).await);
}

/// What a client says of itself is kept as long as its session is, so it is bounded.
#[tokio::test]
async fn c048_a_client_that_says_too_much_of_itself_has_no_session() {
    let host = Host::start().await;
    let most = Limits::default().client_bytes;
    let client = |padding: usize| json!({ "name": "x".repeat(padding), "version": "1" });
    let capabilities = |padding: usize| json!({ "experimental": { "x": { "x": "x".repeat(padding) } } });
    let fits = most - client(0).to_string().len() - capabilities(0).to_string().len();
    for (client, capabilities, is_taken) in [
        (client(fits), capabilities(0), true),
        (client(fits + 1), capabilities(0), false),
        (client(0), capabilities(fits), true),
        (client(0), capabilities(fits + 1), false),
    ] {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
        let response = host.send(Post::new(request(0, "initialize", params))).await;
        assert_eq!(response.head.header("mcp-session-id").is_some(), is_taken, "{}", response.text());
        if !is_taken {
            let error = &response.json()["error"];
            assert!(error["code"] == -32602 && error["message"].as_str().unwrap().contains("16384"), "{error}");
        }
    }
    assert_eq!(host.sessions.count(), 2);
}

#[tokio::test]
async fn a_log_level_is_one_sessions_own() {
    let host = Host::start().await;
    let (loud, quiet) = (host.open().await, host.open().await);
    served(&host.send(quiet.post(request(1, "logging/setLevel", json!({ "level": "error" })))).await);
    assert!(host.work(&loud, 2, json!({ "say": 1 })).await.is_stream());
    assert!(!host.work(&quiet, 2, json!({ "say": 1 })).await.is_stream());
    let response = host.send(quiet.post(request(3, "logging/setLevel", json!({ "level": "loud" })))).await;
    assert_eq!(response.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn a_posted_answer_that_nobody_waits_for_is_202() {
    let host = Host::start().await;
    let session = host.open().await;
    for answer in
        [r#"{"jsonrpc":"2.0","id":77,"result":{}}"#, r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}"#]
    {
        let response = host.send(session.post(answer)).await;
        assert_eq!((response.status(), response.body.len()), (202, 0));
    }
    assert!(is_alive(&host, &session).await);
}

/// The guards come before any session is looked up.
#[tokio::test]
async fn a_foreign_origin_is_403_on_every_verb_and_leaves_the_session_alone() {
    let host = Host::start().await;
    let session = host.open().await;
    for (name, value) in [("Origin", "null"), ("Origin", "https://evil.example"), ("Host", "evil.example")] {
        for post in [session.post(ping(1)), session.get(), session.delete()] {
            refused(&host.send(post.header(name, value)).await, 403, Value::Null);
        }
    }
    assert!(is_alive(&host, &session).await);
}

// What changes.

async fn subscribe(host: &Host, session: &Session) {
    served(&host.send(session.post(request(1, "resources/subscribe", json!({ "uri": WATCHED })))).await);
}

#[tokio::test]
async fn c170_only_who_has_subscribed_is_told_once_a_burst_and_not_after_the_end() {
    let host = Host::start().await;
    let (one, other) = (host.open().await, host.open().await);
    subscribe(&host, &one).await;
    let (mut told, mut untold) = (host.listen(&one).await, host.listen(&other).await);
    for _ in 0..1000 {
        assert!(host.server.resource_updated(WATCHED));
    }
    let heard = told.hear().await.unwrap().message;
    assert_eq!(
        (&heard["method"], &heard["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(WATCHED))
    );
    told.is_quiet().await;
    untold.is_quiet().await;
    served(&host.send(one.post(request(2, "resources/unsubscribe", json!({ "uri": WATCHED })))).await);
    assert!(!host.server.resource_updated(WATCHED));
    subscribe(&host, &one).await;
    assert!(host.server.resource_updated(WATCHED));
    assert_eq!(host.send(one.delete()).await.status(), 204);
    assert!(!host.server.resource_updated(WATCHED));
}

#[tokio::test]
async fn c170_the_expiry_of_a_session_forgets_what_it_was_subscribed_to() {
    let host = Host::within(brief()).await;
    subscribe(&host, &host.open().await).await;
    assert!(host.server.resource_updated(WATCHED));
    until("it is forgotten", async || !host.server.resource_updated(WATCHED)).await;
}

/// One notification, on one stream, also where that opens after the change; none before the client is ready.
#[tokio::test]
async fn a_change_of_a_list_is_told_once_to_each_session_also_to_a_stream_that_opens_later() {
    let host = Host::within(Limits::default().session_streams(2)).await;
    let session = host.initialize(Post::new(hello(Revision::V2025_11_25)), Revision::V2025_11_25).await;
    let add = |name: &'static str| {
        host.server.tools().add([Tool::new(name, async || Ok::<_, ToolError>("x"))]).unwrap();
    };
    add("one");
    let mut first = host.listen(&session).await;
    first.is_quiet().await;
    assert_eq!(host.send(session.post(INITIALIZED)).await.status(), 202);
    assert_eq!(first.hear().await.unwrap().message["method"], "notifications/tools/list_changed");
    let mut second = host.listen(&session).await;
    second.is_quiet().await;
    add("two");
    let heard = tokio::select! { heard = first.hear() => heard, heard = second.hear() => heard };
    assert_eq!(heard.unwrap().message["method"], "notifications/tools/list_changed");
    tokio::join!(first.is_quiet(), second.is_quiet());
}

/// A client that goes away while it sends holds nothing.
#[tokio::test]
async fn a_body_that_never_ends_does_not_hold_its_session() {
    let host = Host::within(brief()).await;
    let session = host.open().await;
    let mut connection = Connection::open(host.address).await;
    connection.write(&session.post("{").header("Content-Length", "1000").bytes(host.address)).await;
    until("it expires", async || host.sessions.count() == 0).await;
    connection.abort();
}

// What they cost.

/// Ten thousand sessions that do nothing: bytes and tasks each.
#[test]
fn ten_thousand_idle_sessions_cost_little() {
    const COUNT: usize = 10_000;
    const MOST: i64 = 4 << 10;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = everything_server::server();
    let routes = Routes::new(server);
    let (sessions, router) = (routes.sessions().unwrap().clone(), routes.into_router());
    let open = async || {
        let post = |body: String| {
            let request = http::Request::post("/mcp").header("host", "localhost");
            let request = request
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream");
            (request, axum::body::Body::from(body))
        };
        let send = async |(request, body): (http::request::Builder, axum::body::Body)| {
            tower::ServiceExt::oneshot(router.clone(), request.body(body).unwrap()).await.unwrap()
        };
        let response = send(post(hello(Revision::V2025_11_25))).await;
        assert_eq!(response.status(), 200);
        let id = response.headers()["mcp-session-id"].clone();
        let (request, body) = post(INITIALIZED.to_owned());
        assert_eq!(send((request.header("mcp-session-id", id), body)).await.status(), 202);
    };
    let tasks = || runtime.metrics().num_alive_tasks();
    runtime.block_on(open());
    let tasks_before = tasks();
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            for _ in 1..COUNT {
                open().await;
            }
        });
    });
    assert_eq!(sessions.count(), COUNT);
    let (each, tasks) = (counted.bytes_current / (COUNT as i64 - 1), tasks() - tasks_before);
    println!("an idle session: {each} bytes, {} tasks", tasks as f64 / COUNT as f64);
    assert!((1..=MOST).contains(&each), "{each} bytes a session");
    assert_eq!(tasks, 0);
    // All of it goes again.
    let freed = allocation_counter::measure(|| {
        runtime.block_on(async {
            for id in sessions.ids() {
                assert!(sessions.end(id).await);
            }
        });
    });
    assert!(-freed.bytes_current >= counted.bytes_current / 2, "{} of {}", freed.bytes_current, counted.bytes_current);
}
