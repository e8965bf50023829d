//! Server path 4 of 11 (legacy era): the revision that the handshake agreed on. Before: `crates/mcp-core/src/server/accept.rs`. After: `crates/mcp-core/src/server/mod.rs` | `crates/mcp-core/src/server/layers.rs`.

mod handshake;
#[cfg(all(test, mcp_loom))]
mod orders;
mod peer;
mod session;
mod set_level;
mod subscribe;

use std::sync::Arc;

pub(super) use handshake::initialize;
pub use peer::Aside;
pub(crate) use session::Handshake;
pub use session::{Change, Session};
pub(super) use set_level::set_level;
pub(super) use subscribe::{subscribe, unsubscribe};

use crate::{
    Era, Fault, Revision, Revisions,
    method::{Initialize, Method, Ping},
    server::{Arrival, Exchange},
};

impl Exchange {
    /// Makes it one of a session, in whose revision it is served. For transports that find the session once they know
    /// that there must be one.
    pub fn join(&mut self, session: &Arc<Session>) {
        self.revision = session.revision().unwrap_or(self.revision);
        self.log_level = Some(session.log_level()).filter(|_| self.server.0.core.logging);
        self.session = Some(session.clone());
    }
}

/// What a method needs that changes the session: where there is none, there is no such method.
fn session(exchange: &Exchange) -> Result<&Arc<Session>, Fault> {
    exchange.session.as_ref().ok_or_else(|| Fault::MethodNotFound(exchange.method.clone()))
}

/// What a request speaks that does not say so itself.
pub(super) fn accept(
    accepted: Revisions,
    method: &str,
    header: Option<Revision>,
    arrival: &Arrival<'_>,
) -> Result<Revision, Fault> {
    let Some(latest) = accepted.newest(Era::Legacy) else { return Err(only_modern(accepted, header, arrival.http)) };
    if let Some(handshake) = arrival.session.and_then(|session| session.handshake()) {
        return Ok(handshake.revision);
    }
    match (method, arrival.session) {
        // It negotiates, so no header can bind it.
        (Initialize::NAME | Ping::NAME, _) => Ok(latest),
        (_, Some(_)) => Err(outside_any_handshake()),
        // Once its session is found, that one's revision counts.
        (_, None) if arrival.joins => Ok(header.and_then(|header| accepted.find(header.as_str())).unwrap_or(latest)),
        (_, None) if arrival.http => accepted_or_refused(accepted, header.unwrap_or(Revision::WITHOUT_HEADER)),
        (_, None) => Ok(latest),
    }
}

fn accepted_or_refused(accepted: Revisions, revision: Revision) -> Result<Revision, Fault> {
    let requested = revision.as_str().into();
    accepted.find(revision.as_str()).ok_or(Fault::UnsupportedVersion { requested, supported: accepted })
}

/// On a shared wire a request belongs to the handshake before it, or says itself what it speaks.
fn outside_any_handshake() -> Fault {
    Fault::InvalidParams(
        "this connection has no handshake yet: send `initialize` first, or put \
         `io.modelcontextprotocol/protocolVersion` and `io.modelcontextprotocol/clientCapabilities` into `_meta`"
            .into(),
    )
}

/// Names the versions, since this may be all that a legacy client's user gets to see.
fn only_modern(accepted: Revisions, header: Option<Revision>, http: bool) -> Fault {
    let versions: Vec<_> = accepted.iter().map(Revision::as_str).collect();
    let advice =
        format!("this server takes no handshake; it speaks {} with `_meta` in each request", versions.join(", "));
    match header {
        Some(header) => Fault::UnsupportedVersion { requested: header.as_str().into(), supported: accepted },
        None if http => Fault::HeaderMismatch(format!("the MCP-Protocol-Version header is missing; {advice}").into()),
        None => Fault::InvalidParams(advice.into()),
    }
}
