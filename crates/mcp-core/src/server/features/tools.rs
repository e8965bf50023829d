//! Server path 7 of 11: `tools/list` and `tools/call`. Before: `crates/mcp-core/src/server/dispatch.rs`. After: `crates/mcp-core/src/server/tool.rs`.

use std::{collections::BTreeMap, time::Duration};

use bytes::{BufMut, BytesMut};
use mcp_jsonrpc::{Raw, encode};

use crate::{
    Era, Fault, Revision, ToolError,
    head::meta_key,
    server::{
        Core, Exchange,
        dispatch::{Running, Timeout},
        registry::Entry,
        reply::Body,
        tool::Outcome,
    },
    shown,
    types::{CallToolResult, Content, Written},
};

/// Answers `tools/list`: the rendered definitions one after another, a page at a time.
///
/// Specification: *Tools, Listing Tools*; *Pagination*.
pub(crate) fn list(core: &Core, exchange: &Exchange) -> Result<Body, Fault> {
    let after =
        exchange.head.cursor.as_deref().map(|cursor| read_cursor(cursor, core.limits.cursor_bytes)).transpose()?;
    let (page, more) = core.tools.page(after, core.limits.page_size);
    let definitions = || page.iter().map(|entry| entry.rendered(exchange.revision).as_bytes());
    let mut members = BytesMut::with_capacity(64 + definitions().map(|text| text.len() + 1).sum::<usize>());
    members.put_slice(br#""tools":["#);
    for (index, definition) in definitions().enumerate() {
        if index > 0 {
            members.put_u8(b',');
        }
        members.put_slice(definition);
    }
    members.put_u8(b']');
    if let (true, Some(last)) = (more, page.last()) {
        members.put_slice(format!(r#","nextCursor":"{}""#, write_cursor(last.number())).as_bytes());
    }
    Ok(Body { members, ..Body::default() }.cacheable())
}

/// A cursor names the last entry of a page, so it stays good whatever is added or removed.
fn write_cursor(number: u64) -> String {
    format!("{number:x}")
}

fn read_cursor(cursor: &str, most: usize) -> Result<u64, Fault> {
    let is_ours = !cursor.is_empty() && cursor.len() <= most && cursor.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_ours.then(|| u64::from_str_radix(cursor, 16).ok()).flatten();
    number.ok_or_else(|| Fault::InvalidParams("no such cursor".into()))
}

/// Starts `tools/call`.
///
/// Specification: *Tools, Calling Tools*.
pub(crate) fn call(core: &Core, mut exchange: Exchange) -> Result<Running, Fault> {
    let Some(name) = exchange.name() else {
        return Err(Fault::InvalidParams("`name` is missing".into()));
    };
    let Some(entry) = core.tools.find(name) else {
        return Err(Fault::InvalidParams(format!("Unknown tool: {}", shown(name)).into()));
    };
    check_needs(&entry, &exchange)?;
    let timeout = entry.tool.timeout.or(core.limits.handler_timeout).map(|after| Timeout::new(after, timed_out));
    exchange.checks = entry.tool.checks.clone();
    Ok(Running::start(timeout, || entry.tool.handler.call(exchange)))
}

fn check_needs(entry: &Entry, exchange: &Exchange) -> Result<(), Fault> {
    if entry.tool.needs.is_empty() {
        return Ok(());
    }
    let declared = exchange.client_capabilities();
    let missing: Vec<_> = entry.tool.needs.iter().copied().filter(|need| !need.is_in(&declared)).collect();
    if missing.is_empty() { Ok(()) } else { Err(Fault::MissingCapability(missing)) }
}

/// The result of a call, as `revision` has it. A tool's failure is a result too.
pub(crate) fn finish(outcome: Outcome, revision: Revision) -> Result<Body, Fault> {
    let result = outcome.unwrap_or_else(|ToolError(message)| CallToolResult::error(message));
    let mut members = BytesMut::with_capacity(64 + result.content.iter().map(length).sum::<usize>());
    members.put_slice(br#""content":["#);
    for (index, block) in result.content.iter().enumerate() {
        if index > 0 {
            members.put_u8(b',');
        }
        encode::value(&mut members, &Written(block)).map_err(|_| Fault::Internal)?;
    }
    members.put_u8(b']');
    if let Some(structured) = result.structured_content.filter(|value| may_be_structured(value, revision)) {
        members.put_slice(br#","structuredContent":"#);
        encode::one_line(&mut members, structured.as_bytes());
    }
    if result.is_error {
        members.put_slice(br#","isError":true"#);
    }
    Ok(Body { members, meta: result.meta.map(without_server_info), cacheable: false, is_failure: result.is_error })
}

/// A result that came from another server says which; here it is this server's.
fn without_server_info(meta: Raw) -> Raw {
    if meta.member(meta_key::SERVER_INFO).is_none() {
        return meta;
    }
    let Ok(mut members) = meta.decode::<BTreeMap<String, Raw>>() else { return Raw::empty_object() };
    members.remove(meta_key::SERVER_INFO);
    Raw::encode(&members).unwrap_or(Raw::empty_object())
}

/// Before 2025-06-18 there is no structured content, and before the modern era it is an object.
fn may_be_structured(value: &Raw, revision: Revision) -> bool {
    revision.era() == Era::Modern || (revision >= Revision::V2025_06_18 && value.is_object())
}

/// The result of a call that ran too long.
fn timed_out(after: Duration, revision: Revision) -> Result<Body, Fault> {
    finish(Err(ToolError::new(format!("The tool did not finish within {} ms", after.as_millis()))), revision)
}

fn length(block: &Content) -> usize {
    32 + match block {
        Content::Text(content) => content.text.len() + content.text.len() / 16,
        Content::Other(raw) => raw.as_bytes().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_read_back_and_foreign_ones_are_refused() {
        assert_eq!(read_cursor(&write_cursor(u64::MAX), 1024).unwrap(), u64::MAX);
        for foreign in ["", "xyz", "-1", "+1", " 1", "ffffffffffffffffff"] {
            assert!(read_cursor(foreign, 1024).is_err(), "{foreign}");
        }
        let longest = format!("{:0>1024}", "1");
        assert!(read_cursor(&longest, 1024).is_ok());
        assert!(read_cursor(&format!("0{longest}"), 1024).is_err());
    }

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
