//! Server path 10 of 11: writes messages as JSON text on one line, without intermediate values. Before: `crates/mcp-core/src/server/reply.rs`. After: `crates/mcp-http/src/server/respond.rs` | `crates/mcp-core/src/wire.rs`.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;

use crate::{ErrorObject, Raw, RequestId};

/// A request.
#[must_use]
pub fn request(id: &RequestId, method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = with_room(id.as_json().len() + method.len() + params.map_or(0, |params| params.as_bytes().len()));
    out.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.put_slice(id.as_json().as_bytes());
    out.put_slice(br#","method":"#);
    call(out, method, params)
}

/// A notification.
#[must_use]
pub fn notification(method: &str, params: Option<&Raw>) -> Bytes {
    let mut out = with_room(method.len() + params.map_or(0, |params| params.as_bytes().len()));
    out.put_slice(br#"{"jsonrpc":"2.0","method":"#);
    call(out, method, params)
}

fn call(mut out: BytesMut, method: &str, params: Option<&Raw>) -> Bytes {
    string(&mut out, method);
    if let Some(params) = params {
        out.put_slice(br#","params":"#);
        one_line(&mut out, params.as_bytes());
    }
    out.put_u8(b'}');
    out.freeze()
}

/// A response with a result; `result` is the JSON text of one value.
#[must_use]
pub fn result(id: &RequestId, result: &[u8]) -> Bytes {
    let mut out = open_result(id, result.len());
    one_line(&mut out, result);
    close_result(out)
}

/// The start of a response, up to where the text of its result stands; `len` is that text's length, so that one
/// allocation does. The text must not hold a line feed.
#[must_use]
pub fn open_result(id: &RequestId, len: usize) -> BytesMut {
    let mut out = with_room(id.as_json().len() + len);
    out.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.put_slice(id.as_json().as_bytes());
    out.put_slice(br#","result":"#);
    out
}

/// The end of what [`open_result`] began.
#[must_use]
pub fn close_result(mut out: BytesMut) -> Bytes {
    out.put_u8(b'}');
    out.freeze()
}

/// A response with an error; without an id it is about a request whose id could not be read, and says `null`.
#[must_use]
pub fn error(id: Option<&RequestId>, error: &ErrorObject) -> Bytes {
    let mut out = with_room(error.message.len() + error.data.as_ref().map_or(0, |data| data.as_bytes().len()));
    out.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.put_slice(id.map_or("null", RequestId::as_json).as_bytes());
    out.put_slice(br#","error":{"code":"#);
    out.put_slice(itoa::Buffer::new().format(error.code).as_bytes());
    out.put_slice(br#","message":"#);
    string(&mut out, &error.message);
    if let Some(data) = &error.data {
        out.put_slice(br#","data":"#);
        one_line(&mut out, data.as_bytes());
    }
    out.put_slice(b"}}");
    out.freeze()
}

/// Several responses as one batch.
#[must_use]
pub fn batch(responses: &[Bytes]) -> Bytes {
    let mut out = with_room(responses.iter().map(|response| response.len() + 1).sum());
    out.put_u8(b'[');
    for (index, response) in responses.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        out.put_slice(response);
    }
    out.put_u8(b']');
    out.freeze()
}

/// A JSON string.
pub fn string(out: &mut BytesMut, text: &str) {
    let written = value(out, text);
    debug_assert!(written.is_ok(), "a string can always be written");
}

/// The JSON text of `value`, on one line whatever is in it.
///
/// # Errors
/// When `value` cannot be written as JSON; what was written so far is taken back.
pub fn value<T: Serialize + ?Sized>(out: &mut BytesMut, value: &T) -> Result<(), serde_json::Error> {
    let start = out.len();
    let written = serde_json::to_writer(out.writer(), value);
    match &written {
        Err(_) => out.truncate(start),
        // A `Raw` inside brings its own white space along.
        Ok(()) => blank_line_ends(&mut out[start..]),
    }
    written
}

/// Appends JSON text, its line feeds and carriage returns, which can only stand between tokens, made blanks: a frame is
/// one line whatever its author wrote.
pub fn one_line(out: &mut BytesMut, json: &[u8]) {
    let start = out.len();
    out.put_slice(json);
    blank_line_ends(&mut out[start..]);
}

fn blank_line_ends(json: &mut [u8]) {
    let mut rest = json;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
}

/// The members around the variable parts fit into this.
const FIXED: usize = 96;

fn with_room(variable: usize) -> BytesMut {
    BytesMut::with_capacity(FIXED + variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeLimits, Inbound, Message, code, decode};

    fn round_trip(frame: &Bytes) -> Message {
        assert!(!frame.contains(&b'\n'), "a frame is one line");
        match decode(frame.clone(), &DecodeLimits::default()) {
            Inbound::One(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_written_reads_back_and_writes_the_same() {
        let params = Raw::parse("{\"text\":\"a\\nb\u{2028}\"}").unwrap();
        let error = ErrorObject::new(code::INVALID_PARAMS, "\"quoted\"\n").with_data(Raw::parse("[1]").unwrap());
        for frame in [
            request(&"a\"b".into(), "tools/call", Some(&params)),
            request(&7u64.into(), "ping", None),
            notification("notifications/initialized", None),
            notification("odd \"name\"", Some(&params)),
            result(&0u64.into(), b"{}"),
            super::error(Some(&"x".into()), &error),
            super::error(None, &error),
        ] {
            assert_eq!(round_trip(&frame).encode(), frame);
        }
    }

    #[test]
    fn pretty_printed_values_leave_on_one_line() {
        let pretty = Raw::parse("{\n  \"a\": [\r\n 1 ]\n}").unwrap();
        for frame in [
            request(&1u64.into(), "m", Some(&pretty)),
            notification("m", Some(&pretty)),
            result(&1u64.into(), pretty.as_bytes()),
            super::error(None, &ErrorObject::new(1, "m").with_data(pretty.clone())),
        ] {
            round_trip(&frame);
        }
    }

    #[test]
    fn a_batch_is_an_array() {
        let one = result(&1u64.into(), b"{}");
        let text = batch(&[one.clone(), one]);
        assert_eq!(text, r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#);
    }
}
