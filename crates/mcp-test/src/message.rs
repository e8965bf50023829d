//! The messages that a client of each era writes.

use mcp_core::{Era, Revision, meta_key};
use serde_json::{Map, Value, json};

/// A request; in the modern era with the members of `_meta` that every request must carry, where it has none itself.
pub(crate) fn request(speaks: Option<Revision>, id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method });
    message["params"] = with_meta(speaks, params);
    message
}

fn with_meta(speaks: Option<Revision>, params: Value) -> Value {
    let mut params = if params.is_null() { json!({}) } else { params };
    if let (Some(revision), Some(members)) =
        (speaks.filter(|revision| revision.era() == Era::Modern), params.as_object_mut())
    {
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            for (name, value) in modern_meta(revision) {
                meta.entry(name).or_insert(value);
            }
        }
    }
    params
}

/// What the modern era wants in `_meta`.
pub(crate) fn modern_meta(revision: Revision) -> Map<String, Value> {
    Map::from_iter([
        (meta_key::PROTOCOL_VERSION.to_owned(), revision.as_str().into()),
        (meta_key::CLIENT_INFO.to_owned(), client_info()),
        (meta_key::CLIENT_CAPABILITIES.to_owned(), json!({})),
    ])
}

/// The parameters of `initialize`.
pub(crate) fn initialize(revision: Revision) -> Value {
    json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client_info() })
}

fn client_info() -> Value {
    json!({ "name": "mcp-test", "version": "1" })
}
