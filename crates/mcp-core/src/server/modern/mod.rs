//! Server path 4 of 11 (modern era): the `_meta` fields that every request must carry. Before: `crates/mcp-core/src/server/accept.rs`. After: `crates/mcp-core/src/server/mod.rs` | `crates/mcp-core/src/server/layers.rs`.

mod discover;

pub(super) use discover::discover;
use mcp_jsonrpc::Request;

use crate::{
    Fault, Revision,
    head::{Head, meta_key},
    server::Exchange,
};

/// Specification: *Overview, Per-request protocol fields*.
pub(super) fn accept(request: Request, head: Head, revision: Revision) -> Result<Exchange, Fault> {
    if head.meta.client_capabilities.is_none() {
        return Err(missing(meta_key::CLIENT_CAPABILITIES));
    }
    Ok(Exchange::new(request, head, revision))
}

/// The fault of a request that a header calls modern while its body does not.
pub(super) fn missing_version() -> Fault {
    missing(meta_key::PROTOCOL_VERSION)
}

fn missing(key: &str) -> Fault {
    Fault::InvalidMeta(format!("`_meta` lacks the required member `{key}`").into())
}
