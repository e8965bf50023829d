//! Server path 4 of 11 (modern era): the `_meta` fields that every request must carry. Before: `crates/mcp-core/src/server/accept.rs`. After: `crates/mcp-core/src/server/mod.rs` | `crates/mcp-core/src/server/layers.rs`.

mod canonical;
mod discover;
mod listen;
mod once;
#[cfg(all(test, mcp_loom))]
mod orders;
mod replay;
mod state;

pub(super) use discover::discover;
pub(crate) use listen::Subscriptions;
pub(super) use listen::listen;
use mcp_jsonrpc::Raw;
pub(crate) use replay::{Asked, Replay, over};
pub use state::StateKeys;

use crate::{
    Fault,
    head::{Head, meta_key},
    server::Core,
    types::LogLevel,
};

/// Specification: *Overview, Per-request protocol fields*.
pub(super) fn accept(core: &Core, head: &Head) -> Result<Option<LogLevel>, Fault> {
    if !head.meta.has_capabilities {
        return Err(missing(meta_key::CLIENT_CAPABILITIES));
    }
    let log_level = head.meta.log_level.as_ref().map(log_level).transpose()?;
    Ok(log_level.filter(|_| core.logging))
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
