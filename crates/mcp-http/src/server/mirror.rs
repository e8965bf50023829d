//! Whether the headers that mirror the body say what the body says.
//!
//! Specification: *Streamable HTTP, Request Metadata, Server Validation*.

use http::{HeaderMap, HeaderName};
use mcp_core::{
    Era, Exchange, Fault,
    method::{CallTool, Method},
};

use crate::{
    headers::{self, MCP_METHOD, MCP_NAME, Mismatch},
    server::single::single,
};

/// Only modern requests mirror anything.
pub(super) fn check(headers: &HeaderMap, exchange: &Exchange) -> Result<(), Fault> {
    if exchange.revision().era() != Era::Modern {
        return Ok(());
    }
    let method = only(headers, &MCP_METHOD)?;
    headers::matches_plain(method, exchange.method()).map_err(|mismatch| fault("Mcp-Method", &mismatch))?;
    match name(exchange) {
        Some(name) => {
            headers::matches(only(headers, &MCP_NAME)?, name).map_err(|mismatch| fault("Mcp-Name", &mismatch))
        }
        None => Ok(()),
    }
}

/// What `Mcp-Name` mirrors. A body without it is for the method to refuse.
fn name(exchange: &Exchange) -> Option<&str> {
    match exchange.method() {
        CallTool::NAME | "prompts/get" => exchange.name(),
        "resources/read" => exchange.uri(),
        _ => None,
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Fault> {
    let twice = |_| Fault::HeaderMismatch(format!("more than one `{name}` header").into());
    single(headers, name).map_err(twice)
}

fn fault(name: &str, mismatch: &Mismatch) -> Fault {
    Fault::HeaderMismatch(mismatch.message(name).into())
}
