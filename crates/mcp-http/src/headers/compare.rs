use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use mcp_core::{MirroredValue, shown};

use super::sentinel::{self, is_field_byte, is_sentinel};

/// The value that a header carries. Spaces and tabs around it are not part of it (RFC 9110, 5.5).
pub(crate) fn decode_value(header: &[u8]) -> Result<Cow<'_, str>, Invalid> {
    let text = text(header)?;
    let Some(encoded) = text.strip_prefix(sentinel::START).filter(|_| is_sentinel(text)) else {
        return Ok(Cow::Borrowed(text));
    };
    // `=?base64?=` has both markers, but they share a character: there is nothing in it to decode.
    let encoded = encoded.strip_suffix(sentinel::END).ok_or(Invalid::Base64)?;
    let bytes = STANDARD.decode(encoded).map_err(|_| Invalid::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Invalid::Utf8)
}

/// Compares a header that may be encoded (`Mcp-Name`, `Mcp-Param-*`) with the value of the body.
///
/// Nothing is allocated if the header is plain and equal.
///
/// Specification: *Streamable HTTP, Server Validation*.
pub(crate) fn matches(header: Option<&[u8]>, body: &str) -> Result<(), Mismatch> {
    compare(header, body, decode_value, |value| value == body)
}

/// Compares a header that is never encoded (`Mcp-Method`, `MCP-Protocol-Version`) with the value of the body.
///
/// A proxy that routes on such a header does not decode it. Decoding it here would let a request pass as one method
/// at the proxy and as another at the server.
///
/// Specification: *Streamable HTTP, Server Validation*.
pub(crate) fn matches_plain(header: Option<&[u8]>, body: &str) -> Result<(), Mismatch> {
    compare(header, body, |header| text(header).map(Cow::Borrowed), |value| value == body)
}

/// Compares a header that mirrors an argument (`Mcp-Param-*`) with its value in the body, if it has one there.
///
/// Specification: *Streamable HTTP, Server Behavior for Custom Headers*.
pub(crate) fn matches_argument(header: Option<&[u8]>, body: Option<&MirroredValue>) -> Result<(), Mismatch> {
    match (header, body) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(Mismatch::Unexpected),
        (_, Some(body)) if body.is_unsafe_integer() => Err(Mismatch::Unsafe { body: shown(body.as_str()) }),
        (header, Some(body)) => compare(header, body.as_str(), decode_value, |value| body.is(value)),
    }
}

fn compare<'a>(
    header: Option<&'a [u8]>,
    body: &str,
    decode: impl FnOnce(&'a [u8]) -> Result<Cow<'a, str>, Invalid>,
    is_same: impl FnOnce(&str) -> bool,
) -> Result<(), Mismatch> {
    let header = header.ok_or(Mismatch::Missing)?;
    match decode(header) {
        Ok(value) if is_same(&value) => Ok(()),
        Ok(value) => Err(Mismatch::Differs { header: shown(&value), body: shown(body) }),
        Err(reason) => Err(Mismatch::Invalid { header: shown_bytes(header), reason }),
    }
}

/// Why a header's value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("it has characters other than visible ASCII, spaces and tabs")]
    Characters,
    #[error("it is not Base64")]
    Base64,
    #[error("its Base64 is not UTF-8 text")]
    Utf8,
}

/// Why a header does not agree with the body. [`Mismatch::message`] makes it the text of the JSON-RPC error -32020.
///
/// Values are bounded, and their control characters are escaped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("header is missing")]
    Missing,
    #[error("header has no value in the body to mirror")]
    Unexpected,
    #[error("header cannot mirror body value '{body}': a double does not hold it exactly")]
    Unsafe { body: String },
    #[error("header value '{header}' is invalid: {reason}")]
    Invalid { header: String, reason: Invalid },
    #[error("header value '{header}' does not match body value '{body}'")]
    Differs { header: String, body: String },
}

impl Mismatch {
    /// The whole sentence, with the header's name as it should be read, such as `Mcp-Name`.
    pub(crate) fn message(&self, name: &str) -> String {
        format!("{name} {self}")
    }
}

fn text(header: &[u8]) -> Result<&str, Invalid> {
    let text = str::from_utf8(header).map_err(|_| Invalid::Characters)?;
    if text.bytes().all(|b| is_field_byte(&b)) { Ok(text.trim_ascii()) } else { Err(Invalid::Characters) }
}

/// Bytes that are no header text are escaped one by one: they show what came, whatever it was meant to be.
fn shown_bytes(value: &[u8]) -> String {
    const SHOWN: usize = 100;
    match value.get(..SHOWN) {
        Some(start) => format!("{}…", start.escape_ascii()),
        None => value.escape_ascii().to_string(),
    }
}
