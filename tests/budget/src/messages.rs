//! The messages that are measured, and whether they are answered rightly.

use std::fmt::Display;

use bytes::Bytes;
use mcp_jsonrpc::{DecodeLimits, Inbound, Message, Request, decode};

/// What says, in every request of the modern era, who asks and in which revision; open at its end, for more members.
const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"budget","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#
);

const ADD: &str = r#""name":"add","arguments":{"a":2,"b":5}"#;

/// A call of `add` in the modern era.
pub(crate) fn modern_call() -> Bytes {
    numbered_call(1)
}

/// The same with another id, for calls that are in flight together.
pub(crate) fn numbered_call(id: u64) -> Bytes {
    request(id, "tools/call", format_args!("{ADD},{META}}}"))
}

/// A call of `add` in the legacy era.
pub(crate) fn legacy_call() -> Bytes {
    request(1, "tools/call", ADD)
}

/// A call of a tool that tells of progress, to whoever asks for it.
pub(crate) fn progressing_call() -> Bytes {
    request(1, "tools/call", format_args!(r#""name":"progressing",{META},"progressToken":1}}"#))
}

/// A call with many records as arguments, 175 KB.
pub(crate) fn large_call() -> Bytes {
    const RECORD: &str = r#"{"path":"src/a/file.rs","text":"a line with \"quotes\" in it","score":0.25,"seen":true}"#;
    let records = vec![RECORD; 175_000 / RECORD.len()].join(",");
    request(1, "tools/call", format_args!(r#""name":"load","arguments":{{"records":[{records}]}},{META}}}"#))
}

/// The request for a list of tools.
pub(crate) fn list() -> Bytes {
    request(1, "tools/list", format_args!("{META}}}"))
}

/// A legacy client's first message.
pub(crate) fn initialize() -> Bytes {
    let params = r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"budget","version":"1"}"#;
    request(1, "initialize", params)
}

/// Its second one.
pub(crate) fn initialized() -> Bytes {
    Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

/// A request as it comes over a wire: in memory that is shared, so that another handle to it allocates nothing.
fn request(id: u64, method: &str, params: impl Display) -> Bytes {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#);
    let bytes = Bytes::from(text);
    drop(bytes.clone());
    bytes
}

/// The request that these bytes are.
pub(crate) fn decoded(frame: Bytes) -> Request {
    match decode(frame, &DecodeLimits::default()) {
        Inbound::One(Message::Request(request)) => request,
        other => panic!("no request: {other:?}"),
    }
}

/// Fails unless this is the answer to a call of `add`.
pub(crate) fn expect_sum(answer: impl AsRef<[u8]>) {
    expect(r#""text":"7""#, answer);
}

/// Fails unless the answer says so.
pub(crate) fn expect(text: &str, answer: impl AsRef<[u8]>) {
    let answer = String::from_utf8_lossy(answer.as_ref());
    assert!(answer.contains(text), "{answer}");
}
