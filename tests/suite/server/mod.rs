//! What the server does that no transcript can say: races, bounds on memory and time, processes.

#![allow(clippy::unwrap_used, reason = "tests, and what only they call")]

mod asking;
mod blocking;
mod callers;
mod cancel;
mod changes;
mod extensions;
mod hidden;
mod in_flight;
mod keys;
mod layers;
mod limits;
mod listeners;
mod methods;
mod once;
mod process;
pub(crate) mod property;
mod questions;
mod quiet;
mod registry;
mod rounds;
mod shutdown;
mod streams;
mod tasks;

use std::time::Duration;

use mcp_core::Server;
use serde_json::{Value, json};

/// What the modern era wants in `_meta`.
pub(crate) fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A call in the modern era.
pub(crate) fn call(id: impl Into<Value>, name: &str, arguments: Value) -> String {
    let id: Value = id.into();
    let params = json!({ "name": name, "arguments": arguments, "_meta": modern_meta() });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// A call in the modern era that asks to be told of progress.
fn call_with_token(id: impl Into<Value>, name: &str, arguments: Value, token: &str) -> String {
    let mut call: Value = serde_json::from_str(&call(id, name, arguments)).unwrap();
    call["params"]["_meta"]["progressToken"] = token.into();
    call.to_string()
}

fn cancel(id: impl Into<Value>) -> String {
    let id: Value = id.into();
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string()
}

pub(crate) fn ping(id: impl Into<Value>) -> String {
    let id: Value = id.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()
}

/// The text that a tool answered.
pub(crate) fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}

/// How many handlers of the everything server run, and how many were dropped before they were done. Asked beside all
/// connections, so that no bound of theirs stands in the way.
pub(crate) async fn gauge(server: &Server) -> (u64, u64) {
    let answer = server.handle(call(1, "inflight", json!({}))).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let counts = &answer["result"]["structuredContent"];
    (counts["running"].as_u64().unwrap(), counts["cancelled"].as_u64().unwrap())
}

/// Waits, in real time, for what must come about.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..3000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come about that {what}");
}
