//! Server path 4 of 11 (modern era): the `_meta` fields that every request must carry. Before: `crates/mcp-core/src/server/accept.rs`. After: `crates/mcp-core/src/server/mod.rs` | `crates/mcp-core/src/server/layers.rs`.

mod canonical;
mod discover;
mod listen;
mod once;
mod replay;
mod state;

pub(super) use discover::discover;
pub(crate) use listen::Subscriptions;
pub(super) use listen::listen;
use mcp_jsonrpc::{Raw, Request};
pub(crate) use replay::{Asked, Replay, over};
pub use state::StateKeys;

use crate::{
    Fault, Revision,
    head::{Head, meta_key},
    server::{Exchange, Server},
    types::LogLevel,
};

/// Specification: *Overview, Per-request protocol fields*.
pub(super) fn accept(server: &Server, request: Request, head: Head, revision: Revision) -> Result<Exchange, Fault> {
    if head.meta.client_capabilities.is_none() {
        return Err(missing(meta_key::CLIENT_CAPABILITIES));
    }
    let log_level = head.meta.log_level.as_ref().map(log_level).transpose()?;
    let mut exchange = Exchange::new(server, request, head, revision);
    exchange.log_level = log_level.filter(|_| server.0.core.logging);
    Ok(exchange)
}

/// Specification: *Logging, Error Handling*.
fn log_level(raw: &Raw) -> Result<LogLevel, Fault> {
    raw.decode().map_err(|_| Fault::InvalidMeta(format!("`{}` is no log level", meta_key::LOG_LEVEL).into()))
}

/// The fault of a request that a header calls modern while its body does not.
pub(super) fn missing_version() -> Fault {
    missing(meta_key::PROTOCOL_VERSION)
}

fn missing(key: &str) -> Fault {
    Fault::InvalidMeta(format!("`_meta` lacks the required member `{key}`").into())
}
