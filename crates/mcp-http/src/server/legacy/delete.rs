use axum::{body::Body, response::Response};
use http::{HeaderMap, StatusCode, request::Parts};
use mcp_core::{observer::CloseReason, server::Peer};

use super::{Sessions, post};
use crate::server::{peer, refusal::Refusal};

/// Answers a DELETE: the session ends at once, with all that belongs to it.
///
/// Specification: *2025-11-25, Transports, Session Management*.
pub(crate) async fn delete(sessions: &Sessions, parts: Parts) -> Response {
    let (peer, head) = peer::of(parts);
    match end(sessions, &head.0.headers, &peer).await {
        Ok(()) => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Err(refusal) => refusal.answer(None),
    }
}

/// Of many that end a session, one succeeds, which is for the store to say. If it does not, the client may try again.
async fn end(sessions: &Sessions, headers: &HeaderMap, peer: &Peer) -> Result<(), Refusal> {
    let live = sessions.find(headers, peer).await?;
    post::check_version(headers, &live)?;
    match sessions.close(&live, CloseReason::Peer).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refusal::Gone),
        Err(_) => Err(Refusal::Unavailable),
    }
}
