//! Percent-encoding, as RFC 3986 has it.

/// Whether a byte means itself anywhere in a URI.
pub(crate) const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a byte can delimit the parts of a URI.
const fn is_reserved(byte: u8) -> bool {
    matches!(byte, b':' | b'/' | b'?' | b'#' | b'[' | b']' | b'@')
        || matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=')
}

/// Whether a URI can hold the byte without an escape, or as the beginning of one.
pub(crate) const fn is_legal(byte: u8) -> bool {
    is_unreserved(byte) || is_reserved(byte) || byte == b'%'
}

/// The byte that the escape at this place stands for.
pub(crate) fn escape(text: &[u8], at: usize) -> Option<u8> {
    let &[b'%', high, low] = text.get(at..at + 3)? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Everything but unreserved characters becomes an escape.
pub(crate) fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        push(byte, is_unreserved(byte), out);
    }
}

/// Reserved characters and whole escapes stay.
pub(crate) fn encode_illegal(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let stays = if byte == b'%' { escape(bytes, at).is_some() } else { is_legal(byte) };
        push(byte, stays, out);
    }
}

fn push(byte: u8, stays: bool, out: &mut String) {
    if stays {
        out.push(char::from(byte));
    } else {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        out.push('%');
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

/// Escapes become what they stand for, once. `None` when one is broken or the result is no UTF-8.
pub(crate) fn decode(text: &[u8]) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let escaped = byte == b'%';
        decoded.push(if escaped { escape(text, at)? } else { byte });
        at += if escaped { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}
