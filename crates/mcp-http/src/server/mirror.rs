//! Whether the headers that mirror the body say what the body says.
//!
//! Specification: *Streamable HTTP, Request Metadata, Server Validation*.

use http::{HeaderMap, HeaderName};
use mcp_core::{
    Era, Exchange, Fault, MirrorPlan,
    jsonrpc::Raw,
    method::{CallTool, CancelTask, GetPrompt, GetTask, Method, ReadResource, UpdateTask},
};

use crate::{
    headers::{self, MCP_METHOD, MCP_NAME, MCP_PARAM_PREFIX, Mismatch},
    server::single::single,
};

/// Only modern requests mirror anything. What mirrors arguments is looked at once the tool is found; see [`arguments`].
pub(super) fn check(headers: &HeaderMap, exchange: &Exchange) -> Result<(), Fault> {
    if exchange.revision().era() != Era::Modern {
        return Ok(());
    }
    let method = only(headers, &MCP_METHOD)?;
    headers::matches_plain(method, exchange.method()).map_err(|mismatch| fault("Mcp-Method", &mismatch))?;
    if let Some(name) = name(exchange) {
        headers::matches(only(headers, &MCP_NAME)?, name).map_err(|mismatch| fault("Mcp-Name", &mismatch))?;
    }
    Ok(())
}

/// Headers that the tool does not know are for somebody else.
pub(super) fn arguments(headers: &HeaderMap, plan: &MirrorPlan, arguments: Option<&Raw>) -> Result<(), Fault> {
    for (suffix, value) in plan.each(arguments) {
        let refused = |mismatch| fault(&format!("Mcp-Param-{suffix}"), &mismatch);
        // A name that the HTTP library has no room for can stand in no request.
        let name = HeaderName::from_bytes(format!("{MCP_PARAM_PREFIX}{suffix}").as_bytes()).ok();
        let header = name.map_or(Ok(None), |name| only(headers, &name))?;
        headers::matches_argument(header, value.as_ref()).map_err(refused)?;
    }
    Ok(())
}

/// What `Mcp-Name` mirrors. A body without it is for the method to refuse.
fn name(exchange: &Exchange) -> Option<&str> {
    match exchange.method() {
        CallTool::NAME | GetPrompt::NAME => exchange.name(),
        ReadResource::NAME => exchange.uri(),
        GetTask::NAME | UpdateTask::NAME | CancelTask::NAME => exchange.task_id(),
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
