//! Server path 3 of 11: decides the era of a request, once, and makes it an exchange. Before: `crates/mcp-jsonrpc/src/decode/mod.rs`. After: `crates/mcp-core/src/server/modern/mod.rs` | `crates/mcp-core/src/server/legacy/mod.rs`.

use std::sync::Arc;

use mcp_jsonrpc::{ByteString, Request};

use crate::{
    Era, Fault, Revision, Revisions,
    head::Head,
    observer::{ConnectionEvent, Observed, Role},
    server::{Core, Exchange, Peer, Reply, Server, legacy, legacy::Session, modern},
    shown,
    types::LogLevel,
};

/// What a wire knows of a request beside its bytes.
#[derive(Debug, Clone)]
pub struct Arrival<'a> {
    pub(crate) version_header: Option<&'a str>,
    pub(crate) http: bool,
    /// It is an exchange of a session that is yet to be found.
    pub(crate) joins: bool,
    /// What observers are told that it came over.
    pub(crate) transport: &'static str,
    pub(crate) session: Option<&'a Arc<Session>>,
    pub(crate) peer: Option<&'a Peer>,
}

impl<'a> Arrival<'a> {
    /// A request that came by itself: no connection, no session, no headers.
    #[must_use]
    pub fn alone() -> Self {
        Self { version_header: None, http: false, joins: false, transport: "none", session: None, peer: None }
    }

    /// A request that came over HTTP, with the value of its `MCP-Protocol-Version` header.
    #[must_use]
    pub fn http(version_header: Option<&'a str>) -> Self {
        Self { version_header, http: true, joins: false, transport: "http", session: None, peer: None }
    }

    /// A request that came over a shared wire.
    pub(crate) fn duplex(session: &'a Arc<Session>, transport: &'static str, peer: &'a Peer) -> Self {
        Self { version_header: None, http: false, joins: false, transport, session: Some(session), peer: Some(peer) }
    }

    /// Says that a legacy request is one of a session, which [`Exchange::join`] names once it is found.
    #[must_use]
    pub fn joining(mut self) -> Self {
        self.joins = true;
        self
    }

    /// Says which session it belongs to.
    #[must_use]
    pub fn within(mut self, session: &'a Arc<Session>) -> Self {
        self.session = Some(session);
        self
    }

    /// Says who it came from.
    #[must_use]
    pub fn of(mut self, peer: &'a Peer) -> Self {
        self.peer = Some(peer);
        self
    }

    pub(crate) fn connection(&self) -> ConnectionEvent {
        ConnectionEvent { role: Role::Server, transport: self.transport }
    }
}

/// Makes a request an exchange, or answers it with what is wrong.
pub(super) fn accept(server: &Server, request: Request, arrival: Arrival<'_>) -> Result<Exchange, Reply> {
    match admit(&server.0.core, &request, &arrival) {
        Ok(admitted) => Ok(Exchange::new(server, request, admitted, &arrival)),
        Err(fault) => {
            // A refused request is answered as the era that its header names would have it.
            let seems = arrival.version_header.and_then(Revision::parse).unwrap_or(Revision::LATEST_LEGACY);
            Err(refused(&server.0.core, request, seems, fault, arrival.connection()))
        }
    }
}

/// Answers a request that is not even looked at.
pub(super) fn refuse(core: &Core, request: Request, fault: Fault, connection: ConnectionEvent) -> Reply {
    refused(core, request, Revision::LATEST_LEGACY, fault, connection)
}

fn refused(core: &Core, request: Request, seems: Revision, fault: Fault, connection: ConnectionEvent) -> Reply {
    let Request { id, method, .. } = request;
    let observed = core.observers.observed(|| Observed::incoming(method, id.clone(), connection));
    let reply = Reply::refusal(Some(id), seems, fault);
    core.observers.answered(observed, || reply.outcome());
    reply
}

/// What is known of a request that is to be served.
pub(super) struct Admitted {
    pub(super) head: Head,
    pub(super) revision: Revision,
    pub(super) log_level: Option<LogLevel>,
}

fn admit(core: &Core, request: &Request, arrival: &Arrival<'_>) -> Result<Admitted, Fault> {
    let (mut head, version) = Head::scan(request.params.as_ref(), core.limits.id_bytes);
    let spoken = spoken(core.revisions, version.as_deref(), arrival);
    // The era comes first; but that a version cannot be read says more than that it is missing.
    if let Some(fault) = head.meta.fault.take_if(|_| spoken.is_ok() || version.is_none()) {
        return Err(fault);
    }
    let (revision, log_level) = match spoken? {
        Spoken::Modern(revision) => (revision, modern::accept(core, &head)?),
        Spoken::Legacy(header) => (legacy::accept(core.revisions, &request.method, header, arrival)?, None),
    };
    Ok(Admitted { head, revision, log_level })
}

/// What a request speaks, as far as it says so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Modern(Revision),
    /// A legacy revision, named by the header of an HTTP request or not at all.
    Legacy(Option<Revision>),
}

/// The era: modern if `_meta` or the version header says so, before any session is looked at.
///
/// Specification: *Versioning and Compatibility*; *Streamable HTTP, Protocol Version Header*.
fn spoken(accepted: Revisions, meta: Option<&str>, arrival: &Arrival<'_>) -> Result<Spoken, Fault> {
    let header = arrival.version_header;
    let Some(meta) = meta else { return without_meta(accepted, header) };
    if arrival.http && header != Some(meta) {
        return Err(header_mismatch(header, meta));
    }
    match accepted.find(meta) {
        Some(revision) if revision.era() == Era::Modern => Ok(Spoken::Modern(revision)),
        _ => Err(unsupported(meta.into(), accepted)),
    }
}

fn without_meta(accepted: Revisions, header: Option<&str>) -> Result<Spoken, Fault> {
    let Some(header) = header else { return Ok(Spoken::Legacy(None)) };
    match Revision::parse(header) {
        Some(revision) if revision.era() == Era::Modern => Err(modern::missing_version()),
        Some(revision) => Ok(Spoken::Legacy(Some(revision))),
        None => Err(unsupported(header.into(), accepted)),
    }
}

fn unsupported(requested: ByteString, supported: Revisions) -> Fault {
    Fault::UnsupportedVersion { requested, supported }
}

fn header_mismatch(header: Option<&str>, meta: &str) -> Fault {
    Fault::HeaderMismatch(match header {
        None => "the MCP-Protocol-Version header is missing".into(),
        Some(header) => {
            format!("MCP-Protocol-Version header value '{}' does not match body value '{}'", shown(header), shown(meta))
                .into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(meta: Option<&str>, arrival: Arrival<'_>) -> Result<Spoken, i64> {
        spoken(Revisions::default(), meta, &arrival).map_err(|fault| fault.to_error(Revision::LATEST).code)
    }

    #[test]
    fn the_era_of_a_request() {
        let (modern, legacy) = (Some("2026-07-28"), Some("2025-06-18"));
        for (meta, arrival, expected) in [
            (modern, Arrival::alone(), Ok(Spoken::Modern(Revision::V2026_07_28))),
            (modern, Arrival::http(modern), Ok(Spoken::Modern(Revision::V2026_07_28))),
            (modern, Arrival::http(None), Err(-32020)),
            (modern, Arrival::http(legacy), Err(-32020)),
            (modern, Arrival::http(Some("2026-07-28 ")), Err(-32020)),
            (legacy, Arrival::alone(), Err(-32022)),
            (Some("v999"), Arrival::alone(), Err(-32022)),
            (Some("v999"), Arrival::http(Some("v999")), Err(-32022)),
            (Some("v999"), Arrival::http(modern), Err(-32020)),
            (None, Arrival::http(modern), Err(-32602)),
            (None, Arrival::http(Some("1999-01-01")), Err(-32022)),
            (None, Arrival::http(legacy), Ok(Spoken::Legacy(Some(Revision::V2025_06_18)))),
            (None, Arrival::http(None), Ok(Spoken::Legacy(None))),
            (None, Arrival::alone(), Ok(Spoken::Legacy(None))),
        ] {
            assert_eq!(judged(meta, arrival.clone()), expected, "{meta:?} {arrival:?}");
        }
    }
}
