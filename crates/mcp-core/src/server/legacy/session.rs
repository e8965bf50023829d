use std::sync::OnceLock;

use mcp_jsonrpc::Raw;

use crate::Revision;

/// What a legacy client and the server keep between requests: on a shared wire one per connection.
#[derive(Debug, Default)]
pub(crate) struct Session {
    handshake: OnceLock<Handshake>,
}

/// What a legacy client and the server agreed on.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    /// The revision that both speak.
    pub(crate) revision: Revision,
    /// Who the client says it is.
    pub(crate) client_info: Raw,
    /// What the client can do.
    pub(crate) capabilities: Raw,
}

impl Session {
    /// What was agreed on, once `initialize` has been answered.
    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.handshake.get()
    }

    /// Keeps what was agreed on; false if something was before.
    pub(super) fn agree(&self, handshake: Handshake) -> bool {
        self.handshake.set(handshake).is_ok()
    }
}
