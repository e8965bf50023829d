//! Clocks that jump: the one on the wall, and the one that counts.

use std::time::Duration;

use mcp_core::{
    Context, Limits, Principal, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    server::{Arrival, Peer, StateKeys, form},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::modern_meta;

const TTL: Duration = Duration::from_secs(600);

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn asks(context: Context) -> Result<String, ToolError> {
    let answer: Name = context.elicit("who", form("Who are you?")).await?;
    Ok(answer.name)
}

/// A server whose state is good for so long from now: all that a clock that is ahead changes of it.
fn server(ttl: Duration) -> Server {
    let limits = Limits::default().request_state_ttl(ttl);
    let keys = StateKeys::new([7; 32]);
    Server::builder(implementation!()).limits(limits).state_keys(keys).tool(Tool::new("asks", asks)).build()
}

async fn ask(server: &Server, state: Option<&Value>) -> Value {
    let mut meta = modern_meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let mut params = json!({ "name": "asks", "_meta": meta });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    let params = Raw::parse(params.to_string()).unwrap();
    let request = mcp_jsonrpc::Request::new(1u64.into(), "tools/call", Some(params));
    let peer = Peer::new().principal(Some(Principal::new("ada")));
    let exchange = server.accept(request, Arrival::alone().of(&peer)).unwrap();
    serde_json::from_slice(&server.encode(&server.call(exchange).await)).unwrap()
}

/// What was sealed while the clock was ahead would be good until it gets there, in days or years.
#[tokio::test]
async fn state_that_was_sealed_by_a_clock_far_ahead_is_refused_once_the_clock_is_right() {
    let right = server(TTL);
    // Two of those that answer for one another may be a little apart.
    for (ahead, is_good) in [(0, true), (30, true), (90, false), (3600, false), (10 * 365 * 24 * 3600, false)] {
        let first = ask(&server(TTL + Duration::from_secs(ahead)), None).await;
        let answer = ask(&right, Some(&first["result"]["requestState"])).await;
        assert_eq!(answer["result"].is_object(), is_good, "{ahead} s ahead: {answer}");
        assert!(is_good || answer["error"]["code"] == -32602, "{ahead} s ahead: {answer}");
    }
}

/// No limit is often written as the longest time that there is.
#[tokio::test]
async fn state_may_be_good_for_ever() {
    let forever = server(Duration::MAX);
    let first = ask(&forever, None).await;
    let answer = ask(&forever, Some(&first["result"]["requestState"])).await;
    assert!(answer["result"].is_object(), "{answer}");
}
