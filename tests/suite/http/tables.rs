//! What HTTP answers, as tables: each line is a request, and the status, the headers and the body that it gets.

use std::{collections::HashSet, net::SocketAddr, time::Duration};

use mcp_core::{Limits, Revision, Server, origin::Origins};
use mcp_http::Routes;
use serde_json::{Value, json};

use super::{
    Connection, Post,
    raw::{Head, soon},
    session::{Doors, Host, INITIALIZED, Session, brief, builder, call, hello, ping, request},
};
use crate::server::until;

/// What the body of an answer is.
#[derive(Debug, Clone)]
enum Body {
    None,
    /// The result of the request, as JSON.
    Result,
    /// So many events, the result the last of them, and the end.
    Events(usize),
    /// A stream that stays open.
    Open,
    /// An error of JSON-RPC: its code, and the id that it has.
    Error(i64, Value),
}

#[derive(Debug)]
struct Line {
    says: &'static str,
    request: Post,
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Body,
}

fn line(says: &'static str, request: Post, status: u16, body: Body) -> Line {
    let kind = match body {
        Body::None => vec![],
        Body::Result | Body::Error(..) => vec![("content-type", "application/json")],
        Body::Events(_) | Body::Open => vec![("content-type", "text/event-stream"), ("cache-control", "no-cache")],
    };
    Line { says, request, status, headers: kind, body }
}

/// One that is refused before anything is known of a message.
fn refused(says: &'static str, request: Post, status: u16) -> Line {
    line(says, request, status, Body::Error(-32600, Value::Null))
}

fn served(says: &'static str, request: Post) -> Line {
    line(says, request, 200, Body::Result)
}

impl Line {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The id that the error has of the request.
    fn about(mut self, id: u64) -> Self {
        if let Body::Error(_, of) = &mut self.body {
            *of = json!(id);
        }
        self
    }

    async fn check(&self, address: SocketAddr) -> Head {
        let Self { says, request, status, headers, body } = self;
        let mut connection = Connection::open(address).await;
        connection.write_what_goes(&request.bytes(address)).await;
        let head = soon(says, connection.head()).await.unwrap_or_else(|| panic!("{says}: no answer"));
        assert_eq!(head.status, *status, "{says}: {head:?}");
        for (name, value) in headers {
            assert_eq!(head.header(name), Some(*value), "{says}: {head:?}");
        }
        if !matches!(body, Body::Open) {
            let text = String::from_utf8(soon(says, connection.body(&head)).await).unwrap();
            fits(says, body, &text);
        }
        head
    }
}

fn fits(says: &str, body: &Body, text: &str) {
    let parse = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_else(|error| panic!("{says}: {error}")) };
    match body {
        Body::None | Body::Open => assert_eq!(text, "", "{says}"),
        Body::Result => assert!(parse(text)["result"].is_object(), "{says}: {text}"),
        Body::Error(code, id) => {
            let body = parse(text);
            assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), id), "{says}: {text}");
            assert_eq!(body["error"]["code"], *code, "{says}: {text}");
            assert!(body["error"]["message"].as_str().is_some_and(|why| why.len() > 5), "{says}: {text}");
        }
        Body::Events(count) => {
            let events = text.strip_suffix("\n\n").unwrap_or_else(|| panic!("{says}: {text}")).split("\n\n");
            let has_result: Vec<_> = events.map(|event| event.contains("\"result\"")).collect();
            assert_eq!(has_result, [vec![false; count - 1], vec![true]].concat(), "{says}: {text}");
        }
    }
}

/// Checks one line after the other; none of them but `initialize` tells of a session.
async fn check(address: SocketAddr, lines: impl IntoIterator<Item = Line>) {
    for line in lines {
        let head = line.check(address).await;
        assert_eq!(head.header("mcp-session-id"), None, "{}", line.says);
    }
}

/// Begins a session, whose id is in the head of the answer.
async fn begin(says: &'static str, address: SocketAddr, hello: Post) -> Session {
    let head = served(says, hello).check(address).await;
    let id = head.header("mcp-session-id").unwrap_or_else(|| panic!("{says}: {head:?}")).to_owned();
    assert!(id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{says}: {id}");
    Session { id, revision: Revision::V2025_11_25, token: None }
}

fn greeting() -> Post {
    Post::new(hello(Revision::V2025_11_25))
}

fn tools(id: u64) -> String {
    request(id, "tools/list", json!({}))
}

fn server(limits: Limits) -> Server {
    builder(&Doors::default(), limits).build()
}

/// A route by itself keeps nothing, and draws one line: what is no request is refused by a status, and what a request comes to
/// is 200, be it an error.
#[tokio::test]
async fn a_route_without_sessions_answers_each_message_by_itself() {
    let served_at = super::Served::start(server(Limits::default())).await;
    let body = |text: &str| Post::new(text);
    let lines = [
        line("malformed JSON is 400", body("{"), 400, Body::Error(-32700, Value::Null)),
        line("nothing at all is 400", body(""), 400, Body::Error(-32700, Value::Null)),
        refused("a number is no message", body("5"), 400),
        refused("an object without a method is none", body(r#"{"jsonrpc":"2.0","id":1}"#), 400).about(1),
        refused("another version of JSON-RPC is none", body(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), 400)
            .about(1),
        refused("a response is no request", body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), 400),
        served("a request is 200", Post::new(tools(1))),
        served("a tool's result is 200", Post::new(call(1, json!({})))),
        line(
            "an unknown method is 200",
            Post::new(request(1, "no/such", json!({}))),
            200,
            Body::Error(-32601, json!(1)),
        ),
        line("bad params are 200", Post::new(request(1, "tools/call", json!({}))), 200, Body::Error(-32602, json!(1))),
        line("a notification is 202", Post::new(INITIALIZED), 202, Body::None),
        line("a stream of one event", Post::new(tools(1)).header("Accept", "text/event-stream"), 200, Body::Events(1)),
        served("initialize mints no id", greeting()),
        served("an id is not read", Post::new(tools(1)).header("Mcp-Session-Id", "anything")),
        line("another path is nobody's", Post::to("POST /other", tools(1)), 404, Body::None),
        refused("GET has nothing to listen to", Post::to("GET /mcp", ""), 405).with("allow", "POST"),
        refused("DELETE has nothing to end", Post::to("DELETE /mcp", ""), 405).with("allow", "POST"),
    ];
    check(served_at.address, lines).await;
    let routes = Routes::new(server(Limits::default())).stateless().streaming(false).path("/tools");
    let json_only = super::Served::with(routes, "127.0.0.1").await;
    let at = |accept: &str| Post::to("POST /tools", tools(1)).header("Accept", accept);
    let lines = [
        served("without streaming it is JSON", at("text/event-stream, application/json;q=0.1")),
        refused("and nothing else", at("text/event-stream"), 406),
        line("the default path is not there then", Post::new(tools(1)), 404, Body::None),
        served("a slash behind it makes no difference", Post::to("POST /tools/", tools(1))),
        line("two do", Post::to("POST /tools//", tools(1)), 404, Body::None),
        line("nor is what only begins like it", Post::to("POST /toolshed", tools(1)), 404, Body::None),
    ];
    check(json_only.address, lines).await;
}

/// What a session makes of the three verbs.
#[tokio::test]
async fn a_session_is_minted_used_and_deleted() {
    let host = Host::start().await;
    let session = begin("initialize mints a session", host.address, greeting()).await;
    let unknown = session.another("0123456789abcdef0123456789abcdef");
    let stale = greeting().header("Mcp-Session-Id", unknown.id.as_str());
    let other = begin("an unknown id on initialize is as none", host.address, stale).await;
    assert!(other.id != session.id && other.id != unknown.id);
    let known = greeting().header("Mcp-Session-Id", session.id.as_str());
    assert_ne!(begin("nor is a known one adopted", host.address, known).await.id, session.id);
    let lines = [
        line("a notification within it", session.post(INITIALIZED), 202, Body::None),
        served("a request within it", session.post(tools(1))),
        line("a body is read once and whole", session.post("{"), 400, Body::Error(-32700, Value::Null)),
        refused("a POST with an unknown id", unknown.post(tools(1)), 404).about(1),
        refused("a POST without one", Post::new(tools(1)), 400).about(1),
        line("a GET within it", session.get(), 200, Body::Open),
        refused("a GET with an unknown id", unknown.get(), 404),
        refused("a GET without one", session.get().never("Mcp-Session-Id"), 400),
        refused("a DELETE with an unknown id", unknown.delete(), 404),
        refused("a DELETE without one", session.delete().never("Mcp-Session-Id"), 400),
        line("another path is not the session's", Post::to("POST /other", tools(1)), 404, Body::None),
        line("a DELETE ends it", session.delete(), 204, Body::None),
        refused("once", session.delete(), 404),
        refused("a POST to what has ended", session.post(tools(1)), 404).about(1),
        refused("a GET of what has ended", session.get(), 404),
    ];
    check(host.address, lines).await;
    let host = Host::within(brief()).await;
    let idle = begin("one that nobody uses", host.address, greeting()).await;
    until("it expires", async || host.sessions.count() == 0).await;
    check(host.address, [refused("has ended", idle.post(tools(1)), 404).about(1)]).await;
}

/// What is pushed is kept within bounds, and repeated behind the event that is named.
#[tokio::test]
async fn c096_what_was_pushed_is_repeated_behind_the_event_that_is_named_and_nothing_else() {
    const NOBODYS: &str = "ffffffffffffffff-1";
    let long = Duration::from_secs(300);
    let lines = [
        ("strictly behind it, in order", Ok(2), long, vec![3, 4, 5]),
        ("as far as it is kept", Ok(1), long, vec![2, 3, 4, 5]),
        ("the oldest have made room", Ok(0), long, vec![2, 3, 4, 5]),
        ("nothing behind the last", Ok(5), long, vec![]),
        ("nothing behind what is unknown", Err(NOBODYS), long, vec![]),
        ("nothing behind what is no id", Err("x"), long, vec![]),
        ("nothing that is too old", Ok(2), Duration::ZERO, vec![]),
    ];
    for (says, last, age, missed) in lines {
        let host = Host::within(Limits::default().session_events(4).session_event_age(age)).await;
        let session = host.open().await;
        let mut stream = host.listen(&session).await;
        let mut ids = Vec::new();
        for number in 0..6 {
            assert!(host.push(&session, number).await);
            ids.push(stream.hear().await.unwrap().id);
        }
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 6, "{says}");
        drop(stream);
        let mut again = host.resume(&session, last.map_or_else(|id| id, |index| &ids[index])).await;
        assert!(again.is_stream(), "{says}: {:?}", again.head);
        assert_eq!(again.numbers(missed.len()).await, missed, "{says}");
        // Behind what was missed comes what is new, on a stream that stays open.
        assert!(host.push(&session, 6).await);
        assert_eq!(again.numbers(1).await, [6], "{says}");
        again.is_quiet().await;
    }
    let host = Host::start().await;
    let session = host.open().await;
    let unknown = session.another("0123456789abcdef0123456789abcdef").get();
    let lines = [
        refused("a session that there is not has no stream", unknown.header("Last-Event-ID", NOBODYS), 404),
        refused("nor has none", session.get().never("Mcp-Session-Id").header("Last-Event-ID", NOBODYS), 400),
    ];
    check(host.address, lines).await;
}

/// Who may use a session, in which revision, and for how long.
#[tokio::test]
async fn a_session_is_its_owners_in_its_revision_and_for_its_time() {
    let host = Host::with_principals().await;
    let ada = |post: Post| post.header("Authorization", "Bearer ada.1");
    let owned = begin("initialize alone issues an id", host.address, ada(greeting())).await.as_of(Some("ada.2"));
    let failed = request(1, "initialize", json!({ "protocolVersion": 5 }));
    let version = |version: &str| owned.post(tools(1)).header("MCP-Protocol-Version", version);
    let lines = [
        line("not one that fails", ada(Post::new(failed)), 200, Body::Error(-32602, json!(1))),
        served("every other request carries it", owned.post(tools(1))),
        refused("without it 400", ada(Post::new(tools(1))), 400).about(1),
        refused("malformed", owned.another("4F0C").post(tools(1)), 404).about(1),
        refused("in capitals it is malformed", owned.another(&owned.id.to_uppercase()).post(tools(1)), 404).about(1),
        refused("unknown", owned.another(&"0".repeat(32)).post(tools(1)), 404).about(1),
        refused("another principal's", owned.as_of(Some("bob.1")).post(tools(1)), 404).about(1),
        refused("nobody's", owned.as_of(None).post(tools(1)), 404).about(1),
        served("the same principal's with another token", owned.as_of(Some("ada.3")).post(tools(1))),
        served("the revision that was agreed on", version("2025-11-25")),
        refused("another one", version("2025-06-18"), 400).about(1),
        line("no revision at all", version("1"), 400, Body::Error(-32022, json!(1))),
        served("without the header it is clear", owned.post(tools(1)).never("MCP-Protocol-Version")),
        line("ended", owned.delete(), 204, Body::None),
        refused("is gone", owned.post(tools(1)), 404).about(1),
    ];
    check(host.address, lines).await;
    let brief = Duration::from_secs(1);
    for (says, limits, is_used, lives) in [
        ("an idle session expires", Limits::default().session_idle(brief).session_streams(0), true, false),
        ("a provisional one sooner", Limits::default().session_provisional(brief).session_streams(0), false, false),
        ("a used one does not", Limits::default().session_provisional(brief).session_streams(0), true, true),
        ("with streams it lives for a lease", Limits::default().session_idle(brief), true, true),
    ] {
        let host = Host::within(limits).await;
        let session = begin(says, host.address, greeting()).await;
        if is_used {
            check(host.address, [line(says, session.post(INITIALIZED), 202, Body::None)]).await;
        }
        if lives {
            tokio::time::sleep(brief * 2).await;
            check(host.address, [served(says, session.post(tools(1)))]).await;
        } else {
            until(says, async || host.sessions.count() == 0).await;
            check(host.address, [refused(says, session.post(tools(1)), 404).about(1)]).await;
        }
    }
    let host = Host::within(Limits::default().sessions(1)).await;
    let first = begin("there is room for one", host.address, greeting()).await;
    let lines =
        [refused("and no more", greeting(), 503).about(0), line("until it ends", first.delete(), 204, Body::None)];
    check(host.address, lines).await;
    begin("there is room again", host.address, greeting()).await;
}

/// The form of an answer is what the client prefers.
#[tokio::test]
async fn an_answer_has_the_form_that_the_client_accepts() {
    let host = Host::within(Limits::default().message_bytes(1000)).await;
    let session = begin("a session", host.address, greeting()).await;
    let accepts = |accept: &str| session.post(tools(1)).header("Accept", accept);
    let lines = [
        served("JSON", accepts("application/json")),
        served("anything", accepts("*/*")),
        served("nothing said", session.post(tools(1)).never("Accept")),
        // The stream begins with an event to come back to.
        line("events", accepts("text/event-stream"), 200, Body::Events(2)),
        line("events rather", accepts("application/json;q=0.5, text/event-stream"), 200, Body::Events(2)),
        served("JSON rather", accepts("application/json, text/event-stream;q=0.5")),
        served("both alike", accepts("application/json, text/event-stream")),
        served("both alike, the other first", accepts("text/event-stream, application/json")),
        refused("neither", accepts("text/html"), 406),
        refused("neither, by zeros", accepts("application/json;q=0, text/event-stream;q=0"), 406),
        line("a notification has no answer", session.post(INITIALIZED), 202, Body::None),
        refused("a body that is no JSON by its type", session.post(tools(1)).header("Content-Type", "text/plain"), 415),
        refused("a body of no type", session.post(tools(1)).never("Content-Type"), 415),
        refused("a body that is too long", session.post("x".repeat(1001)), 413),
        line("one that just fits", session.post("x".repeat(1000)), 400, Body::Error(-32700, Value::Null)),
        served("HTTP/1.0 has JSON", session.post(tools(1)).version("HTTP/1.0")),
        refused("HTTP/1.0 has no stream", accepts("text/event-stream").version("HTTP/1.0"), 406),
    ];
    check(host.address, lines).await;
}

/// The stream that a client listens to: one at a time, or none at all.
#[tokio::test]
async fn c066_a_session_has_so_many_streams_and_where_there_are_none_a_get_says_so() {
    let host = Host::start().await;
    let (session, other) = (host.open().await, host.open().await);
    let mut stream = host.listen(&session).await;
    let lines = [
        refused("one more is a conflict", session.get(), 409),
        line("another session has its own", other.get(), 200, Body::Open),
        refused("it needs a session", session.get().never("Mcp-Session-Id"), 400),
        refused("it is a stream or nothing", session.get().header("Accept", "application/json"), 406),
        refused("HTTP/1.0 holds none open", session.get().version("HTTP/1.0"), 505),
        line("it ends with its session", session.delete(), 204, Body::None),
    ];
    check(host.address, lines).await;
    assert!(stream.rest().await.is_empty());
    let session = host.open().await;
    drop(host.listen(&session).await);
    check(host.address, [line("one that was cut frees its place", session.get(), 200, Body::Open)]).await;
    let host = Host::within(Limits::default().session_streams(0)).await;
    let session = begin("a session without streams", host.address, greeting()).await;
    let lines = [
        refused("GET is not among the methods", session.get(), 405).with("allow", "POST, DELETE"),
        served("POST is", session.post(tools(1))),
    ];
    check(host.address, lines).await;
}

/// Every refusal is an error of JSON-RPC that names the reason.
#[tokio::test]
async fn each_refusal_has_its_status_and_an_error_for_a_body() {
    let doors = Doors::default();
    let server = builder(&doors, Limits::default().message_bytes(1000)).build();
    let origins = Origins::list(["https://app.example.com"]).unwrap();
    let host = Host::serve(Routes::new(server.clone()).origins(origins), server, doors).await;
    let session = begin("a session", host.address, greeting()).await;
    let own = format!("http://{}", host.address);
    let from = |origin: &str| session.post(tools(1)).header("Origin", origin);
    let to = |method: &str| Post::to(&format!("{method} /mcp"), "").header("Mcp-Session-Id", session.id.as_str());
    let allowed = "GET, POST, DELETE";
    let lines = [
        refused("400, no session id", Post::new(tools(1)), 400).about(1),
        refused("400, another revision", session.post(tools(1)).header("MCP-Protocol-Version", "2025-03-26"), 400)
            .about(1),
        served("an origin in the list", from("https://app.example.com")),
        served("no origin", session.post(ping(1))),
        refused("403, another origin", from("https://evil.example.com"), 403),
        refused("403, an origin that is none", from("null"), 403),
        refused("403, our own address, which is not in the list", from(&own), 403),
        refused("403, on DELETE too", session.delete().header("Origin", "null"), 403),
        refused("403, on GET too", session.get().header("Origin", "null"), 403),
        refused("404, a malformed session", session.another("x").post(tools(1)), 404).about(1),
        refused("404, an unknown session", session.another(&"0".repeat(32)).post(tools(1)), 404).about(1),
        refused("405, PUT", to("PUT"), 405).with("allow", allowed),
        refused("405, PATCH", to("PATCH"), 405).with("allow", allowed),
        refused("406, neither form", session.post(tools(1)).header("Accept", "text/html"), 406),
        refused("406, a GET of no stream", session.get().header("Accept", "application/json"), 406),
        refused(
            "406, a stream in HTTP/1.0",
            session.post(tools(1)).header("Accept", "text/event-stream").version("HTTP/1.0"),
            406,
        ),
        refused("413, too long", session.post("x".repeat(1001)), 413),
        refused("415, no JSON", session.post(tools(1)).header("Content-Type", "text/plain"), 415),
        refused("505, a stream in HTTP/1.0", session.get().version("HTTP/1.0"), 505),
        served("the session lives on", session.post(tools(1))),
    ];
    check(host.address, lines).await;
    let _stream = host.listen(&session).await;
    check(host.address, [refused("409, one stream more", session.get(), 409)]).await;
    let full = Host::within(Limits::default().sessions(0)).await;
    check(full.address, [refused("503, no room for a session", greeting(), 503).about(0)]).await;
}

/// What only a router can tell apart is served as a router serves it.
#[tokio::test]
async fn a_path_may_have_a_pattern_in_it() {
    let routes = Routes::new(server(Limits::default())).stateless().path("/{tenant}/mcp");
    let host = super::Served::with(routes, "127.0.0.1").await;
    let lines = [
        served("one tenant", Post::to("POST /a/mcp", tools(1))),
        served("another, with a slash", Post::to("POST /b/mcp/", tools(1))),
        line("none", Post::new(tools(1)), 404, Body::None),
    ];
    check(host.address, lines).await;
}

/// Only a tunnel that was granted makes a connection another protocol's.
#[tokio::test]
async fn a_tunnel_that_was_refused_leaves_a_connection_that_may_be_given_up() {
    let limits = Limits::default().stall_timeout(std::time::Duration::from_millis(300));
    let host = super::Served::with(Routes::new(server(limits)).stateless(), "127.0.0.1").await;
    let mut connection = host.connect().await;
    connection.write(b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(connection.head().await.unwrap().status, 404);
    assert!(super::soon("its end", connection.is_closed()).await);
}
