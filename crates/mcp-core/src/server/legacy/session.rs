use std::sync::OnceLock;

use mcp_jsonrpc::Raw;

use crate::Revision;

/// What a legacy client and the server keep between requests: on a shared wire one per connection.
#[derive(Debug, Default)]
pub struct Session {
    handshake: OnceLock<Handshake>,
}

/// What a legacy client and the server agreed on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Handshake {
    /// The revision that both speak.
    pub revision: Revision,
    /// Who the client says it is.
    pub client_info: Raw,
    /// What the client can do.
    pub capabilities: Raw,
}

impl Session {
    /// What was agreed on, once `initialize` has been answered.
    #[must_use]
    pub fn handshake(&self) -> Option<&Handshake> {
        self.handshake.get()
    }

    /// Keeps what was agreed on; false if something was before.
    pub(super) fn agree(&self, handshake: Handshake) -> bool {
        self.handshake.set(handshake).is_ok()
    }
}
