//! Replies as JSON with the status that they have.

use axum::{body::Body, response::Response};
use http::{StatusCode, header};
use mcp_core::{Era, Fault, Reply, Server};
use mcp_jsonrpc::Bytes;

/// The status that a reply has, by what went wrong.
///
/// Specification: *Streamable HTTP, Protocol Version Header, Server Validation*.
pub(super) fn status(reply: &Reply) -> StatusCode {
    let is_modern = reply.revision().era() == Era::Modern;
    match reply.fault() {
        Some(Fault::Malformed(_) | Fault::HeaderMismatch(_) | Fault::UnsupportedVersion { .. }) => {
            StatusCode::BAD_REQUEST
        }
        Some(Fault::InvalidMeta(_) | Fault::MissingCapability(_)) if is_modern => StatusCode::BAD_REQUEST,
        Some(Fault::MethodNotFound(_)) if is_modern => StatusCode::NOT_FOUND,
        Some(Fault::InsufficientScope(_)) => StatusCode::FORBIDDEN,
        _ => StatusCode::OK,
    }
}

pub(super) fn reply(server: &Server, reply: &Reply) -> Response {
    json(status(reply), server.encode(reply))
}

pub(super) fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
