use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;

use super::{encode_value, matches, matches_plain};

/// Any text comes back from a header; any header agrees with what it says and with nothing else.
///
/// The header ends at the first NUL, and the text is behind it.
pub(crate) fn fuzz(data: &[u8]) {
    let (header, text) = data.split_at(data.iter().position(|byte| *byte == 0).unwrap_or(data.len()));
    let text = String::from_utf8_lossy(text);
    let encoded = encode_value(&text);
    assert!(encoded.is_ascii() && HeaderValue::from_str(&encoded).is_ok());
    assert_eq!(matches(Some(encoded.as_bytes()), &text), Ok(()));

    let said = model(header);
    for body in [text.as_ref(), "", "a"].into_iter().chain(said.as_deref()) {
        assert_eq!(matches(Some(header), body).is_ok(), said.as_deref() == Some(body), "{body:?}");
    }
    let plain = str::from_utf8(header).ok().filter(|_| is_field(header)).map(|header| header.trim_matches([' ', '\t']));
    assert_eq!(matches_plain(Some(header), &text).is_ok(), plain == Some(&*text));
}

/// What a header says, by the letter of the specification.
fn model(header: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(header).ok().filter(|_| is_field(header))?.trim_matches([' ', '\t']);
    if !text.starts_with("=?base64?") || !text.ends_with("?=") {
        return Some(text.to_owned());
    }
    let inner = text.get("=?base64?".len()..text.len() - "?=".len())?;
    String::from_utf8(STANDARD.decode(inner).ok()?).ok()
}

fn is_field(header: &[u8]) -> bool {
    header.iter().all(|byte| *byte == b'\t' || (0x20..0x7f).contains(byte))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fuzzer_holds_for_what_is_known() {
        for input in ["", "a\0b", "=?base64?YQ==?=\0a", "=?base64?=\0", "=?base64?!?=\0!", " a \0a", "\u{e9}\0é"] {
            super::fuzz(input.as_bytes());
        }
    }
}
