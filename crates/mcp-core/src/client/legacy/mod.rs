//! Client path 3 of 5 (legacy era): the handshake, and requests that lean on it. Before: `crates/mcp-core/src/client/call.rs`. After: `crates/mcp-core/src/client/duplex.rs` | `crates/mcp-http/src/client/mod.rs`.

use mcp_jsonrpc::{Raw, RequestId};
use tokio::time::timeout;

use crate::{
    Era, Error, ErrorKind, Revision, Revisions,
    client::{
        Outgoing,
        call::{Caller, Speech},
    },
    head::meta_key,
    method::{Initialize, notification},
    observer::Direction,
    types::{ClientCapabilities, Implementation, InitializeParams, InitializeResult},
};

/// The members of `_meta`.
pub(crate) fn meta(progress_token: Option<&RequestId>) -> String {
    progress_token.map(|token| format!(r#""{}":{token}"#, meta_key::PROGRESS_TOKEN)).unwrap_or_default()
}

/// Shakes hands: what the server said, and the revision that both speak now.
///
/// Specification: *2025-11-25, Lifecycle, Initialization*.
pub(crate) async fn shake_hands(
    caller: &Caller,
    offered: Revision,
    ours: Revisions,
    info: &Implementation,
    capabilities: &ClientCapabilities,
) -> Result<(Revision, InitializeResult), Error> {
    let invalid = |error| Error::caused(ErrorKind::InvalidParams, "the client's capabilities are no JSON", error);
    let params = InitializeParams {
        protocol_version: offered.to_string(),
        capabilities: Raw::encode(capabilities).map_err(invalid)?,
        client_info: Raw::encode(info).map_err(invalid)?,
    };
    let result = caller.call::<Initialize>(&Speech::Handshake, &params).await?;
    let revision = agreed(&result.protocol_version, ours)?;
    // The first request follows only when the server has taken this, so that it cannot overtake it.
    let initialized = Outgoing::notification(notification::INITIALIZED, None, Some(revision));
    caller.observers.notification(caller.connection(), Direction::Outgoing, notification::INITIALIZED);
    let taken = timeout(caller.limits.request_timeout, caller.transport.send(initialized));
    taken.await.map_err(|_| Error::new(ErrorKind::Timeout, "the server did not take the end of the handshake"))??;
    Ok((revision, result))
}

/// A server may answer with another revision than was offered; one that this client does not speak ends it.
fn agreed(theirs: &str, ours: Revisions) -> Result<Revision, Error> {
    ours.find(theirs).filter(|revision| revision.era() == Era::Legacy).ok_or_else(|| {
        let theirs = crate::shown(theirs);
        Error::new(
            ErrorKind::ProtocolVersionMismatch,
            format!("the server wants to speak {theirs:?}, which this client does not"),
        )
    })
}
