use mcp_core::{Revision, meta_key};
use serde_json::{Value, json};

use super::{Script, expect, send};

/// Answers the probe as a modern server.
#[must_use]
pub fn modern() -> Script {
    vec![expect(json!({ "method": "server/discover" })), send(json!({ "id": "$id", "result": discovered() }))]
}

/// Refuses the probe, as most servers of the legacy era do, and shakes hands.
#[must_use]
pub fn legacy() -> Script {
    let mut script = vec![
        expect(json!({ "method": "server/discover" })),
        send(json!({ "id": "$id", "error": { "code": -32601, "message": "Method not found" } })),
    ];
    script.extend(handshake());
    script
}

/// Shakes hands in the newest revision of the legacy era: what a client does that speaks no other era.
#[must_use]
pub fn handshake() -> Script {
    let revision = Revision::LATEST_LEGACY;
    vec![
        expect(json!({ "method": "initialize", "params": { "protocolVersion": revision.as_str() } })),
        send(json!({ "id": "$id", "result": initialized(revision.as_str()) })),
        expect(json!({ "method": "notifications/initialized" })),
    ]
}

/// What a modern server says of itself: the result of `server/discover`.
#[must_use]
pub fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": [Revision::LATEST.as_str()], "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS, "_meta": { meta_key::SERVER_INFO: server_info() },
    })
}

/// What a legacy server answers to `initialize`.
#[must_use]
pub fn initialized(revision: &str) -> Value {
    json!({
        "protocolVersion": revision, "capabilities": { "tools": {} }, "instructions": INSTRUCTIONS,
        "serverInfo": server_info(),
    })
}

const INSTRUCTIONS: &str = "A scripted server.";

fn server_info() -> Value {
    json!({ "name": "scripted", "version": "1" })
}
