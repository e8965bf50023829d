//! Client path 3 of 5 (modern era): who asks, and in which revision, in every request. Before: `crates/mcp-core/src/client/call.rs`. After: `crates/mcp-core/src/client/duplex.rs` | `crates/mcp-http/src/client/mod.rs`.

pub(crate) mod changes;

use std::{fmt::Write, sync::Arc};

use mcp_jsonrpc::{Raw, RequestId};

use crate::{
    Error, ErrorKind, Revision,
    head::meta_key,
    types::{ClientCapabilities, Implementation, LogLevel},
};

/// What a modern client says in each request, rendered once.
#[derive(Debug, Clone)]
pub(crate) struct Modern {
    revision: Revision,
    meta: Arc<str>,
    capabilities: Raw,
}

impl Modern {
    pub(crate) fn new(
        revision: Revision,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Result<Self, Error> {
        let invalid = |error| Error::caused(ErrorKind::InvalidParams, "the client's capabilities are no JSON", error);
        let meta = format!(
            r#""{}":"{revision}","{}":{}"#,
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_INFO,
            Raw::encode(info).map_err(invalid)?.as_str(),
        );
        let capabilities = Raw::encode(capabilities).map_err(invalid)?;
        Ok(Self { revision, meta: meta.into(), capabilities })
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The members of `_meta`. `capabilities` are those of whoever a call is made for.
    pub(crate) fn meta(
        &self,
        progress_token: Option<&RequestId>,
        log_level: Option<LogLevel>,
        capabilities: Option<&str>,
    ) -> String {
        let capabilities = capabilities.unwrap_or(self.capabilities.as_str());
        let mut meta = format!(r#"{},"{}":{capabilities}"#, self.meta, meta_key::CLIENT_CAPABILITIES);
        // A string takes whatever is written to it.
        let _ = progress_token.map(|token| write!(meta, r#","{}":{token}"#, meta_key::PROGRESS_TOKEN));
        let _ = log_level.map(|level| write!(meta, r#","{}":"{level}""#, meta_key::LOG_LEVEL));
        meta
    }
}
