//! The header `Authorization`.
//!
//! Specification: *RFC 9110, Credentials*; *RFC 6750, Authorization Request Header Field*.

use http::{HeaderMap, header};

use super::refusal::Refusal;

/// Credentials as they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent<'a> {
    Bearer(&'a str),
    Dpop(&'a str),
    Basic(&'a str),
}

/// The credentials of a request; none where there are none of a scheme that is known. They are looked for nowhere else: what
/// stands in a URL ends up in logs.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<Sent<'_>>, Refusal> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Refusal::Malformed("the Authorization header stands more than once"));
    }
    parse(line.as_bytes())
}

fn parse(line: &[u8]) -> Result<Option<Sent<'_>>, Refusal> {
    const NO_TEXT: Refusal = Refusal::Malformed("the Authorization header holds what no credentials have");
    let line = std::str::from_utf8(line).map_err(|_| NO_TEXT)?;
    let (scheme, rest) = line.split_once(' ').unwrap_or((line, ""));
    let credentials = rest.trim_matches(' ');
    let sent = match scheme {
        scheme if scheme.eq_ignore_ascii_case("bearer") => Sent::Bearer(credentials),
        scheme if scheme.eq_ignore_ascii_case("dpop") => Sent::Dpop(credentials),
        scheme if scheme.eq_ignore_ascii_case("basic") => Sent::Basic(credentials),
        _ => return Ok(None),
    };
    let body = credentials.trim_end_matches('=');
    let is_token68 =
        !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte));
    if is_token68 { Ok(Some(sent)) } else { Err(NO_TEXT) }
}

#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    if let Ok(Some(Sent::Bearer(text) | Sent::Dpop(text) | Sent::Basic(text))) = parse(data) {
        assert!(!text.is_empty() && text.is_ascii() && !text.contains([' ', '"', ',']));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_one_word_behind_a_scheme_in_any_case() {
        for (line, expected) in [
            ("Bearer abc.d-e_f~+/==", Some(Sent::Bearer("abc.d-e_f~+/=="))),
            ("bEARER  x ", Some(Sent::Bearer("x"))),
            ("dpop x", Some(Sent::Dpop("x"))),
            ("BASIC YTpi", Some(Sent::Basic("YTpi"))),
            ("Negotiate abc", None),
            ("", None),
        ] {
            assert_eq!(parse(line.as_bytes()).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_no_credentials_have_is_malformed() {
        for line in [
            "Bearer",
            "Bearer ",
            "Bearer a b",
            "Bearer a,b",
            "Bearer \"a\"",
            "Bearer =",
            "Bearer a\tb",
            "Bearer \u{e9}",
            "Basic a:b",
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(parse(b"Bearer \xff").is_err());
    }
}
