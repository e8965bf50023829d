//! How a value is marked that is carried in Base64.

pub(super) const START: &str = "=?base64?";
pub(super) const END: &str = "?=";

/// Whether a value has both marks.
pub(super) fn is_sentinel(text: &str) -> bool {
    text.starts_with(START) && text.ends_with(END)
}

/// Whether a header's value may hold the byte.
pub(super) fn is_field_byte(byte: &u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}
