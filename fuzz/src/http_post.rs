//! Any requests to the HTTP endpoint, sessions included, without a socket.

use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{HeaderName, HeaderValue, Request, StatusCode, Version};
use http_body_util::BodyExt as _;
use mcp_http::{Routes, RoutesService};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{choices::Choices, ends, run, server::server};

/// No panic, and no failure of the server's own; every request is answered; what says that it is JSON is a message.
pub fn http_post(data: &[u8]) {
    run(async {
        let mut choices = Choices::new(data);
        let service = Routes::new(server()).into_service();
        let mut session: Option<HeaderValue> = None;
        for _ in 0..16 {
            if !choices.are_left() {
                break;
            }
            let request = request(&mut choices, session.as_ref());
            session = exchange(&service, request).await.or(session);
        }
    });
}

/// Asks, and judges the answer; what is returned is the session that it begins.
async fn exchange(service: &RoutesService, request: Request<Body>) -> Option<HeaderValue> {
    let (is_post, shown) = (request.method() == "POST", format!("{request:?}"));
    let response = ends("a request", service.clone().oneshot(request)).await.expect("infallible");
    let status = response.status();
    let is_own_failure = status.is_server_error() && ![503, 505].contains(&status.as_u16());
    assert!(!is_own_failure, "{status} for {shown}");
    let session = response.headers().get("mcp-session-id").cloned();
    let is_json = response.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    // A stream that somebody listens to has no end.
    let body = tokio::time::timeout(Duration::from_secs(3600), response.into_body().collect()).await;
    let Ok(body) = body else { return session };
    let body = body.expect("a body").to_bytes();
    if is_json {
        let message: Value = serde_json::from_slice(&body).expect("JSON");
        let is_message = |message: &Value| message["jsonrpc"] == "2.0";
        assert!(message.as_array().map_or_else(|| is_message(&message), |all| all.iter().all(is_message)), "{message}");
    } else if is_post && status == StatusCode::OK {
        let text = std::str::from_utf8(&body).expect("UTF-8");
        assert!(text.is_empty() || text.ends_with("\n\n"), "{text}");
    }
    session
}

const NAMES: [&str; 10] = [
    "accept",
    "content-type",
    "mcp-protocol-version",
    "mcp-session-id",
    "mcp-method",
    "mcp-name",
    "host",
    "origin",
    "last-event-id",
    "content-encoding",
];

const VALUES: [&str; 14] = [
    "application/json, text/event-stream",
    "application/json",
    "text/event-stream",
    "*/*",
    "application/json;charset=utf-8",
    "2026-07-28",
    "2025-11-25",
    "2025-03-26",
    "tools/call",
    "add",
    "=?base64?YWRk?=",
    "localhost",
    "http://localhost:1",
    "null",
];

fn request(choices: &mut Choices<'_>, session: Option<&HeaderValue>) -> Request<Body> {
    let method = choices.one_of(&["POST", "POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"]);
    let path = choices.one_of(&["/mcp", "/mcp", "/mcp", "/mcp/", "/", "/mcp?x=1"]);
    let mut request = Request::builder().method(method).uri(path).version(version(choices));
    let headers = request.headers_mut().expect("headers");
    headers.insert("host", HeaderValue::from_static("localhost"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("accept", HeaderValue::from_static(VALUES[choices.below(4)]));
    if let Some(session) = session.filter(|_| choices.byte() < 200) {
        headers.insert("mcp-session-id", session.clone());
    }
    for _ in 0..choices.below(4) {
        let name = HeaderName::from_static(choices.one_of(&NAMES));
        let value = match choices.below(3) {
            0 => HeaderValue::from_bytes(choices.bytes()).ok(),
            _ => Some(HeaderValue::from_static(choices.one_of(&VALUES))),
        };
        if let Some(value) = value {
            let _ = if choices.byte() % 4 == 0 {
                headers.append(name, value)
            } else {
                headers.insert(name, value).is_some()
            };
        }
    }
    request.body(body(choices)).expect("a request")
}

fn version(choices: &mut Choices<'_>) -> Version {
    if choices.byte() > 240 { Version::HTTP_10 } else { Version::HTTP_11 }
}

fn body(choices: &mut Choices<'_>) -> Body {
    let id = choices.below(4);
    let message = match choices.below(12) {
        0 => json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
            "protocolVersion": choices.one_of(&["2025-11-25", "2025-03-26", "x"]), "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "f", "version": "0" } } }),
        1 => json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        2 => {
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "ask", "_meta": meta(choices) } })
        }
        3 => {
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "count", "arguments": { "n": choices.byte() }, "_meta": meta(choices) } })
        }
        4 => {
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "add", "arguments": { "a": 1, "b": 2 }, "_meta": meta(choices) } })
        }
        5 => json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "_meta": meta(choices) } }),
        6 => {
            json!([{ "jsonrpc": "2.0", "id": id, "method": "ping" }, { "jsonrpc": "2.0", "id": 9, "method": "tools/list" }])
        }
        7 => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        8 => json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        9 => json!({ "jsonrpc": "2.0", "id": id, "method": choices.text() }),
        10 => return Body::from(Bytes::copy_from_slice(choices.bytes())),
        _ => return Body::empty(),
    };
    Body::from(message.to_string())
}

fn meta(choices: &mut Choices<'_>) -> Value {
    match choices.below(3) {
        0 => json!({ "progressToken": choices.byte() }),
        1 => json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            "progressToken": "p", "io.modelcontextprotocol/logLevel": "debug",
        }),
        _ => json!({}),
    }
}
