use axum::{body::Body, response::Response};
use http::{StatusCode, request::Parts};
use mcp_core::observer::CloseReason;

use super::{Sessions, post};
use crate::server::{peer, refusal::Refusal};

/// Answers a DELETE: the session ends at once, with all that belongs to it.
///
/// Specification: *2025-11-25, Transports, Session Management*.
pub(crate) async fn delete(sessions: &Sessions, parts: Parts) -> Response {
    let (peer, head) = peer::of(parts);
    let live = match post::within(sessions, &head.0.headers, &peer).await {
        Ok(live) => live,
        Err(refusal) => return refusal.answer(None),
    };
    if !sessions.close(&live, CloseReason::Peer).await {
        return Refusal::Gone.answer(None);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
