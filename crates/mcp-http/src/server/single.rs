//! Headers that must not stand twice: who routes by the first and who checks the second would see different requests.

use http::{HeaderMap, HeaderName, HeaderValue};

/// A header stands more than once.
#[derive(Debug)]
pub(super) struct Twice;

pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Twice> {
    // Nearly no request has any header twice, which is told by counting.
    if headers.len() != headers.keys_len() && headers.get_all(name).iter().nth(1).is_some() {
        return Err(Twice);
    }
    Ok(headers.get(name).map(HeaderValue::as_bytes))
}

/// The same as text. What stands twice, or is not text, becomes text that no rule accepts and no body matches.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    match single(headers, name) {
        Ok(value) => value.map(|value| std::str::from_utf8(value).unwrap_or("(not text)")),
        Err(Twice) => Some("(more than one)"),
    }
}
