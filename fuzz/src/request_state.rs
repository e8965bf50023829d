//! What a client hands back instead of the `requestState` that it was given.

use std::sync::LazyLock;

use mcp_core::{Server, server::StateKeys};
use serde_json::{Value, json};

use crate::{
    choices::Choices,
    run,
    server::{builder, server},
};

/// Only the state itself, with the very same call, goes on; anything else is refused, and nothing of it runs.
pub fn request_state(data: &[u8]) {
    static STRANGER: LazyLock<Server> = LazyLock::new(|| builder().state_keys(StateKeys::new([7; 32])).build());
    run(async {
        let mut choices = Choices::new(data);
        let server = server();
        let first = call(&server, "ask", Value::Null, Value::Null).await;
        let state = first["result"]["requestState"].as_str().unwrap_or_else(|| panic!("no state: {first}")).to_owned();
        let accepted = json!({ "first": { "action": "accept", "content": { "name": "n" } } });
        let mangled = mangled(&state, &mut choices);
        let answer = call(&server, "ask", json!(mangled), accepted.clone()).await;
        if mangled == state {
            assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        } else {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        let answer = call(&STRANGER, "ask", json!(state), accepted).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    });
}

/// The state with some of it changed, cut off or put in front of; or any text.
fn mangled(state: &str, choices: &mut Choices<'_>) -> String {
    let mut bytes = state.as_bytes().to_vec();
    let place = choices.below(256) % bytes.len();
    match choices.below(6) {
        0 => bytes[place] = choices.byte(),
        1 => bytes.truncate(place),
        2 => bytes.insert(place, choices.byte()),
        3 => drop(bytes.splice(place.., choices.bytes().iter().copied())),
        4 => bytes = choices.bytes().to_vec(),
        _ => bytes.extend_from_slice(choices.bytes()),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn call(server: &Server, tool: &str, state: Value, responses: Value) -> Value {
    let mut params = json!({
        "name": tool,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        },
    });
    if !state.is_null() {
        params["requestState"] = state;
        params["inputResponses"] = responses;
    }
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let answer = server.handle(request).await.expect("an answer");
    serde_json::from_slice(&answer).expect("JSON")
}
