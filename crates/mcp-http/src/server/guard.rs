//! Whether a request comes from where it may: against web pages that reach for servers on this machine.
//!
//! Specification: *Streamable HTTP, Security & Endpoint*.

use http::{HeaderMap, HeaderName, header, request::Parts};
use mcp_core::origin::Refused;

use crate::server::routes::Endpoint;

pub(super) fn check(endpoint: &Endpoint, parts: &Parts) -> Result<(), Refused> {
    // HTTP/2 has the host in the target instead of a header.
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    endpoint.hosts.check(only(&parts.headers, header::HOST).or(authority))?;
    endpoint.origins.check(only(&parts.headers, header::ORIGIN))
}

/// The header's value. One that stands twice, or is not text, becomes a value that no rule accepts.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => None,
        (Some(value), None) => Some(value.to_str().unwrap_or("(not text)")),
        (Some(_), Some(_)) => Some("(more than one)"),
    }
}
