//! The HTTP+SSE transport of 2024-11-05, which is there where it is asked for.

use std::time::Duration;

use axum::middleware::{Next, from_fn};
use mcp_core::{Limits, Principal};
use mcp_http::Routes;
use mcp_test::HttpServer;
use serde_json::{Value, json};

use super::{Connection, Post, Served, raw::soon};
use crate::server::until;

fn routes() -> Routes {
    Routes::new(everything_server::server()).http_sse("/sse", "/messages")
}

pub(super) fn listen() -> Post {
    Post::to("GET /sse", "").header("Accept", "text/event-stream")
}

/// A client: the stream that it listens to, and where it posts to.
pub(super) struct Old {
    stream: Connection,
    messages: String,
    heard: String,
}

impl Old {
    pub(super) async fn connect(address: std::net::SocketAddr, listen: &Post) -> Self {
        let mut stream = Connection::open(address).await;
        stream.write(&listen.bytes(address)).await;
        let head = soon("the head", stream.head()).await.unwrap();
        assert_eq!(head.status, 200);
        let mut old = Self { stream, messages: String::new(), heard: String::new() };
        let first = old.event().await;
        let messages = first.strip_prefix("event: endpoint\ndata: ").unwrap_or_else(|| panic!("{first}"));
        assert!(messages.contains("/messages?sessionId="), "{messages}");
        old.messages = messages.to_owned();
        old
    }

    /// The next event, without its empty line; `None` where the stream ends.
    pub(super) async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.heard.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.heard = rest;
                return Some(event);
            }
            let chunk = soon("an event", self.stream.chunk()).await?;
            self.heard.push_str(&String::from_utf8(chunk).unwrap());
        }
    }

    async fn event(&mut self) -> String {
        self.next().await.expect("the stream goes on")
    }

    pub(super) async fn hear(&mut self) -> Value {
        let event = self.event().await;
        let data = event.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{event}"));
        serde_json::from_str(data).unwrap()
    }

    pub(super) fn post(&self, message: &Value) -> Post {
        Post::to(&format!("POST {}", self.messages), message.to_string())
    }
}

pub(super) async fn send(address: std::net::SocketAddr, post: &Post) -> u16 {
    let mut connection = Connection::open(address).await;
    connection.write(&post.bytes(address)).await;
    connection.response_to(post).await.unwrap().status()
}

pub(super) fn hello() -> Value {
    let client = json!({ "name": "old", "version": "0" });
    let params = json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

#[tokio::test]
async fn what_is_posted_is_answered_on_the_stream_in_order() {
    let served = Served::with(routes(), "127.0.0.1").await;
    let mut old = Old::connect(served.address, &listen()).await;
    assert!(old.messages.starts_with("/messages?sessionId="), "{}", old.messages);
    assert_eq!(send(served.address, &old.post(&hello())).await, 202);
    assert_eq!(old.hear().await["result"]["protocolVersion"], "2024-11-05");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(served.address, &old.post(&initialized)).await, 202);
    for id in 1..=20 {
        let params = json!({ "name": "add", "arguments": { "a": id, "b": 1 } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        assert_eq!(send(served.address, &old.post(&call)).await, 202);
    }
    for id in 1..=20 {
        let answer = old.hear().await;
        assert_eq!((answer["id"].clone(), crate::server::text(&answer)), (json!(id), &*(id + 1).to_string()));
    }
    let malformed = Post::to(&format!("POST {}", old.messages), "{");
    assert_eq!(send(served.address, &malformed).await, 202);
    assert_eq!(old.hear().await["error"]["code"], -32700);
}

#[tokio::test]
async fn it_ends_with_its_stream_and_nobody_else_can_post_to_it() {
    let router = routes().into_router().layer(from_fn(authenticate));
    let served = HttpServer::start_router(router).await;
    let old = Old::connect(served.address(), &listen().header("Authorization", "ada")).await;
    let post = old.post(&hello());
    for (post, status) in [
        (post.clone(), 404),
        (post.clone().header("Authorization", "bob"), 404),
        (post.clone().header("Authorization", "ada"), 202),
        (Post::to("POST /messages", "{}"), 404),
        (Post::to("POST /messages?sessionId=x", "{}"), 404),
        (post.clone().header("Authorization", "ada").header("Origin", "https://evil.example"), 403),
        (post.clone().header("Authorization", "ada").header("Content-Type", "text/plain"), 415),
    ] {
        assert_eq!(send(served.address(), &post).await, status, "{post:?}");
    }
    drop(old);
    let again = post.header("Authorization", "ada");
    until("the connection is forgotten", async || send(served.address(), &again).await == 404).await;
}

/// Where to post to is told as the client sees it, whatever the routes are nested in.
#[tokio::test]
async fn nested_routes_are_posted_to_where_they_are_nested() {
    let nested = axum::Router::new().nest("/api/{tenant}", routes().into_router());
    let served = HttpServer::start_router(nested).await;
    let listen = Post::to("GET /api/acme/sse?x=1", "").header("Accept", "text/event-stream");
    let mut old = Old::connect(served.address(), &listen).await;
    assert!(old.messages.starts_with("/api/acme/messages?sessionId="), "{}", old.messages);
    assert_eq!(send(served.address(), &old.post(&hello())).await, 202);
    assert_eq!(old.hear().await["id"], 0);
}

/// Whoever posts and does not read fills no memory: what waits to be looked at is bounded in bytes.
#[tokio::test]
async fn messages_that_wait_for_a_client_to_read_are_bounded_in_bytes() {
    const BYTES: usize = 60 << 10;
    let limits = Limits::default().queue_bytes(64 << 10);
    let routes = Routes::new(everything_server::server_with(limits)).http_sse("/sse", "/messages");
    let served = Served::with(routes, "127.0.0.1").await;
    let mut old = Old::connect(served.address, &listen()).await;
    assert_eq!(send(served.address, &old.post(&hello())).await, 202);
    assert_eq!(old.hear().await["id"], 0);
    // First more than the system buffers, then answers that wait behind it: nothing more is read from here on.
    for id in 1..=8 {
        let big = json!({ "name": "big", "arguments": { "bytes": if id == 1 { 32 << 20 } else { 128 << 10 } } });
        let big = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": big });
        assert_eq!(send(served.address, &old.post(&big)).await, 202);
        if id == 1 {
            old.stream.segment().await;
        }
    }
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": "x".repeat(BYTES) } });
    let post = old.post(&notification);
    let taken = async {
        for count in 0..40 {
            let taken = tokio::time::timeout(Duration::from_millis(500), send(served.address, &post)).await;
            if taken.is_err() {
                return count;
            }
        }
        40
    };
    let taken = taken.await;
    assert!(taken < 10, "{taken} of 40 were taken");
}

async fn authenticate(mut request: axum::extract::Request, next: Next) -> axum::response::Response {
    let who = request.headers().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(who) = who {
        request.extensions_mut().insert(Principal::new(who));
    }
    next.run(request).await
}

#[tokio::test]
async fn it_is_not_there_unless_it_is_asked_for() {
    let served = Served::with(Routes::new(everything_server::server()), "127.0.0.1").await;
    assert_eq!(send(served.address, &listen()).await, 404);
    let served = Served::with(routes(), "127.0.0.1").await;
    assert_eq!(send(served.address, &listen().header("Accept", "application/json")).await, 406);
    assert_eq!(send(served.address, &listen().header("Origin", "https://evil.example")).await, 403);
}
