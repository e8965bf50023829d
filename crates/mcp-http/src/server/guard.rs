//! Whether a request comes from where it may: against web pages that reach for servers on this machine.
//!
//! Specification: *Streamable HTTP, Security & Endpoint*.

use http::{header, request::Parts};

use crate::server::{
    endpoint::Endpoint,
    refusal::{Refusal, check_single},
    single,
};

pub(super) fn check(endpoint: &Endpoint, parts: &Parts) -> Result<(), Refusal> {
    check_single(&parts.headers)?;
    // HTTP/2 has the host in the target instead of a header.
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    endpoint.hosts.check(single::text(&parts.headers, &header::HOST).or(authority))?;
    Ok(endpoint.origins.check(single::text(&parts.headers, &header::ORIGIN))?)
}
