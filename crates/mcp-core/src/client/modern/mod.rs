//! Client path 3 of 5 (modern era): who asks, and in which revision, in every request. Before: `crates/mcp-core/src/client/call.rs`. After: `crates/mcp-core/src/client/duplex.rs` | `crates/mcp-http/src/client/mod.rs`.

use std::sync::Arc;

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
}

impl Modern {
    pub(crate) fn new(
        revision: Revision,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Result<Self, Error> {
        let invalid = |error| Error::caused(ErrorKind::InvalidParams, "the client's capabilities are no JSON", error);
        let meta = format!(
            r#""{}":"{revision}","{}":{},"{}":{}"#,
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_INFO,
            Raw::encode(info).map_err(invalid)?.as_str(),
            meta_key::CLIENT_CAPABILITIES,
            Raw::encode(capabilities).map_err(invalid)?.as_str(),
        );
        Ok(Self { revision, meta: meta.into() })
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The members of `_meta`.
    pub(crate) fn meta(&self, progress_token: Option<&RequestId>, log_level: Option<LogLevel>) -> String {
        let token = progress_token.map(|token| format!(r#","{}":{token}"#, meta_key::PROGRESS_TOKEN));
        let level = log_level.map(|level| format!(r#","{}":"{level}""#, meta_key::LOG_LEVEL));
        [&*self.meta, &token.unwrap_or_default(), &level.unwrap_or_default()].concat()
    }
}
