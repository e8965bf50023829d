//! Server path 7 of 11: `tools/call`; `list.rs` beside this file answers `tools/list`. Before: `crates/mcp-core/src/server/dispatch.rs`. After: `crates/mcp-core/src/server/tool.rs`.

use std::{sync::Arc, time::Duration};

use bytes::{BufMut, BytesMut};
use mcp_jsonrpc::{Raw, encode};

use crate::{
    Era, Fault, Revision, Tool, ToolError,
    server::{
        Core, Exchange,
        dispatch::{Running, Timeout},
        registry::Entry,
        reply::Body,
        task,
        tool::Outcome,
    },
    types::{CallToolResult, Content, Written},
};

/// Starts `tools/call`.
///
/// Specification: *Tools, Calling Tools*.
pub(crate) fn call(core: &Core, mut exchange: Exchange) -> Result<Running, Fault> {
    let Some(name) = exchange.name() else {
        return Err(Fault::InvalidParams("`name` is missing".into()));
    };
    let Some(entry) = core.tools.find_for(&exchange, name) else {
        return Err(Fault::unknown_tool(name));
    };
    check_headers(&entry, &exchange)?;
    check_needs(&entry, &exchange)?;
    let timeout = entry.item.timeout.or(core.limits.handler_timeout).map(|after| Timeout::new(after, timed_out));
    exchange.checks = entry.item.checks.clone();
    if entry.item.handler.asks() {
        exchange.may_ask()?;
    }
    let runs = runs(&entry, &exchange)?;
    if runs != Runs::Here {
        exchange.task = Some(Arc::default());
    }
    let of_call = (exchange.replay.is_some() || exchange.task.is_some()).then(|| exchange.clone());
    let running = Running::new(timeout, entry.item.handler.call(exchange)).of_call(of_call);
    Ok(if runs == Runs::AsTask { running.into_task() } else { running })
}

/// Where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    /// In the call.
    Here,
    /// In the call, until it wants to go on as a task.
    AtFirstHere,
    AsTask,
}

/// Specification: *Tasks extension, Capability Negotiation*.
fn runs(entry: &Entry<Tool>, exchange: &Exchange) -> Result<Runs, Fault> {
    let Some(tasks) = entry.item.tasks else { return Ok(Runs::Here) };
    match task::require(exchange) {
        Ok(()) if tasks.is_told => Ok(Runs::AtFirstHere),
        Ok(()) => Ok(Runs::AsTask),
        Err(missing) if tasks.is_all => Err(missing),
        Err(_) => Ok(Runs::Here),
    }
}

/// Only modern requests mirror anything.
///
/// Specification: *Streamable HTTP, Custom Headers*.
fn check_headers(entry: &Entry<Tool>, exchange: &Exchange) -> Result<(), Fault> {
    match exchange.request_head() {
        Some(head) if exchange.revision.era() == Era::Modern && !entry.item.mirror.is_empty() => {
            head.mirrors(&entry.item.mirror, exchange.arguments())
        }
        _ => Ok(()),
    }
}

fn check_needs(entry: &Entry<Tool>, exchange: &Exchange) -> Result<(), Fault> {
    if entry.item.needs.is_empty() {
        return Ok(());
    }
    let declared = exchange.client_capabilities();
    let missing: Vec<_> = entry.item.needs.iter().copied().filter(|need| !need.is_in(&declared)).collect();
    if missing.is_empty() { Ok(()) } else { Err(Fault::MissingCapability(missing)) }
}

/// The result of a call, as `revision` has it. A tool's failure is a result too.
pub(crate) fn finish(outcome: Outcome, revision: Revision) -> Result<Body, Fault> {
    let result = match outcome {
        Err(error) if error.fault().is_some() => return Err(error.fault().cloned().unwrap_or(Fault::Internal)),
        Err(error) => CallToolResult::error(error.into_message()),
        Ok(result) => result,
    };
    let mut members = BytesMut::with_capacity(64 + result.content.iter().map(Content::size).sum::<usize>());
    members.put_slice(br#""content":["#);
    for (index, block) in result.content.iter().enumerate() {
        if index > 0 {
            members.put_u8(b',');
        }
        encode::value(&mut members, &Written(block, revision)).map_err(|_| Fault::Internal)?;
    }
    members.put_u8(b']');
    if let Some(structured) = result.structured_content.filter(|value| may_be_structured(value, revision)) {
        members.put_slice(br#","structuredContent":"#);
        encode::one_line(&mut members, structured.as_bytes());
    }
    if result.is_error {
        members.put_slice(br#","isError":true"#);
    }
    Ok(Body { members, meta: result.meta, is_failure: result.is_error, ..Body::default() })
}

/// Before 2025-06-18 there is no structured content, and before the modern era it is an object.
fn may_be_structured(value: &Raw, revision: Revision) -> bool {
    revision.era() == Era::Modern || (revision >= Revision::V2025_06_18 && value.is_object())
}

/// The result of a call that ran too long.
fn timed_out(after: Duration, revision: Revision) -> Result<Body, Fault> {
    finish(Err(ToolError::new(format!("The tool did not finish within {} ms", after.as_millis()))), revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_content_is_left_out_where_a_revision_has_none() {
        let written = |value: &str, revision| {
            let result = CallToolResult::default().structured(Raw::parse(value).unwrap());
            String::from_utf8(finish(Ok(result), revision).unwrap().members.to_vec()).unwrap()
        };
        assert_eq!(written("{}", Revision::V2025_03_26), r#""content":[]"#);
        assert_eq!(written("{}", Revision::V2025_06_18), r#""content":[],"structuredContent":{}"#);
        assert_eq!(written("[1]", Revision::V2025_11_25), r#""content":[]"#);
        assert_eq!(written("[\n1]", Revision::V2026_07_28), r#""content":[],"structuredContent":[ 1]"#);
    }
}
