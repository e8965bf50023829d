//! What an upgrade is refused with: a status, and a JSON-RPC error that says why.

use axum::{body::Body, response::Response};
use http::{HeaderValue, StatusCode, header};
use mcp_jsonrpc::{ErrorObject, code, encode};

pub(super) fn answer(status: StatusCode, why: impl Into<String>) -> Response {
    let error = ErrorObject::new(code::INVALID_REQUEST, why.into());
    let mut response = Response::new(Body::from(encode::error(None, &error)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
