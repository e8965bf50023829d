use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::sentinel::{self, is_field_byte, is_sentinel};

/// The value as a header carries it: as it stands where it is plain ASCII, else as `=?base64?…?=`.
///
/// The empty string is encoded too. The specification leaves it open; but proxies drop empty headers, and the server
/// would then refuse the request because a header is missing.
pub(crate) fn encode_value(value: &str) -> Cow<'_, str> {
    if is_plain(value) {
        return Cow::Borrowed(value);
    }
    let mut encoded = String::from(sentinel::START);
    STANDARD.encode_string(value, &mut encoded);
    encoded.push_str(sentinel::END);
    Cow::Owned(encoded)
}

/// Whether the value travels as it stands, and comes back as the same.
fn is_plain(value: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_graphic);
    let bytes = value.as_bytes();
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(is_field_byte) && !is_sentinel(value)
}
