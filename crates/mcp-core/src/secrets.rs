//! What this side sent that is nobody else's to read, masked where a peer's words repeat it.

use std::{borrow::Cow, fmt, ops::Range};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use crate::percent;

/// Secrets that a peer was sent and may repeat, as a server does that writes the request it refuses into its answer.
///
/// They are found whatever their case, as they are, percent-encoded, as JSON writes them, and within Base64 of either
/// alphabet, also where the text breaks off within one. What has fewer than four characters is no secret: it would be found
/// in anything.
///
/// ```
/// let mut secrets = mcp_core::Secrets::default();
/// secrets.add_header("Bearer abc/123=");
/// secrets.add_url("https://host/mcp?key=a%2Bb%2Bc");
/// assert_eq!(secrets.mask("no good: abc%2F123%3D, a+b+c"), "no good: [redacted], [redacted]");
/// ```
///
/// `Debug` says how many there are.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

/// The fewest characters of a secret, and of the beginning of one at the end of a text.
const FEWEST: usize = 4;

const MASK: &str = "[redacted]";

impl Secrets {
    /// Adds a secret.
    pub fn add(&mut self, secret: &str) {
        if secret.chars().count() >= FEWEST && !self.0.iter().any(|known| known == secret) {
            self.0.push(secret.to_owned());
        }
    }

    /// Adds the value of a header: the whole, what follows its first word, which may name a scheme as `Bearer`, and the values
    /// of what it lists, as `Cookie` and `Digest` do.
    pub fn add_header(&mut self, value: &str) {
        match value.split_once(' ') {
            Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => self.add(rest.trim()),
            _ => self.add(value),
        }
        for (_, value) in value.split([';', ',']).filter_map(|pair| pair.split_once('=')) {
            self.add(value.trim_matches(['"', ' ']));
        }
    }

    /// Adds what of a URL is nobody's to read: the user, the password, and the values of the query.
    pub fn add_url(&mut self, url: &str) {
        let url = url.split_once('#').map_or(url, |(url, _)| url);
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let authority = place.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
        if let Some((user_info, _)) = authority.rsplit_once('@') {
            self.add_encoded(user_info);
            // It is sent as `Authorization: Basic`.
            self.add(&STANDARD.encode(percent::decode(user_info.as_bytes()).unwrap_or_default()));
            user_info.split(':').for_each(|half| self.add_encoded(half));
        }
        for pair in query.split('&') {
            self.add_encoded(pair.split_once('=').map_or(pair, |(_, value)| value));
        }
    }

    fn add_encoded(&mut self, text: &str) {
        self.add(text);
        let spaced = text.replace('+', " ");
        for decoded in [text, &spaced].into_iter().filter_map(|text| percent::decode(text.as_bytes())) {
            self.add(&decoded);
        }
    }

    /// The text with `[redacted]` in the place of each secret.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut hidden = self.found_in(text);
        if hidden.is_empty() {
            return Cow::Borrowed(text);
        }
        hidden.sort_unstable_by_key(|range| range.start);
        let (mut masked, mut end) = (String::new(), 0);
        for range in hidden {
            if range.start >= end {
                masked.push_str(&text[end..range.start]);
                masked.push_str(MASK);
            }
            end = end.max(range.end);
        }
        masked.push_str(&text[end..]);
        Cow::Owned(masked)
    }

    fn found_in(&self, text: &str) -> Vec<Range<usize>> {
        // It changes no length, so that the places are those of the text.
        let lower = text.to_ascii_lowercase();
        // It may have been cut before, within a character, or where that is shown.
        let whole = lower.trim_end_matches(['\u{fffd}', '…']);
        let mut found = Vec::new();
        for spelling in self.0.iter().flat_map(|secret| spellings(secret)) {
            let spelling = spelling.to_ascii_lowercase();
            found.extend(lower.match_indices(&spelling).map(|(at, found)| at..at + found.len()));
            let least = spelling.char_indices().nth(FEWEST).map_or(spelling.len(), |(at, _)| at);
            let mut beginnings = (least..spelling.len()).rev().filter_map(|end| spelling.get(..end));
            let cut = beginnings.find(|beginning| whole.ends_with(beginning));
            found.extend(cut.map(|cut| whole.len() - cut.len()..whole.len()));
        }
        found
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// How a secret may be written.
fn spellings(secret: &str) -> Vec<String> {
    let json = serde_json::Value::from(secret).to_string();
    let json = json[1..json.len() - 1].to_owned();
    // Some writers escape it.
    let slashes = json.replace('/', "\\/");
    let mut percent = String::new();
    percent::encode(secret, &mut percent);
    let mut all = vec![secret.to_owned(), percent, json, slashes];
    for shift in 0..3 {
        all.extend(within_base64(secret, shift));
    }
    all.retain(|spelling| spelling.len() >= FEWEST);
    all.sort_unstable();
    all.dedup();
    all
}

/// What Base64 of either alphabet has in it for a secret that begins `shift` bytes after a group of three: without the
/// characters that what is around it has a part in.
fn within_base64(secret: &str, shift: usize) -> [String; 2] {
    let bytes = [&[0; 2][..shift], secret.as_bytes()].concat();
    let (begin, end) = ((shift * 4).div_ceil(3), bytes.len() * 4 / 3);
    let within = |encoded: String| encoded.get(begin..end).unwrap_or_default().to_owned();
    [within(STANDARD_NO_PAD.encode(&bytes)), within(URL_SAFE_NO_PAD.encode(&bytes))]
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::URL_SAFE;

    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add_header("Bearer to/k?en>~~==");
        secrets.add_header("a=cookie; b=\"biscuit\"");
        secrets.add_header("plain\u{e9}");
        secrets.add_url("https://ada:pass%20word@host/mcp?key=qu%2Fery&v=1&just+this#frag");
        secrets
    }

    #[test]
    fn every_spelling_of_a_secret_is_masked_and_the_rest_stays() {
        let secrets = secrets();
        for (text, masked) in [
            ("Authorization: Bearer to/k?en>~~==.", "Authorization: Bearer [redacted]."),
            ("TO/K?EN>~~==", "[redacted]"),
            (r#"{"t":"to\/k?en>~~=="}"#, r#"{"t":"[redacted]"}"#),
            ("to%2fk%3fen%3E~~%3D%3D", "[redacted]"),
            ("cookie and biscuit", "[redacted] and [redacted]"),
            ("plain\u{e9}\u{e9}", "[redacted]\u{e9}"),
            ("ada, pass word, pass%20word", "ada, [redacted], [redacted]"),
            ("Basic YWRhOnBhc3Mgd29yZA==", "Basic [redacted]"),
            ("?key=qu%2Fery&v=1&just+this", "?key=[redacted]&v=1&[redacted]"),
            ("just this", "[redacted]"),
            ("qu/eryqu/ery", "[redacted][redacted]"),
            ("the host says v=1", "the host says v=1"),
            ("", ""),
        ] {
            assert_eq!(secrets.mask(text), masked);
        }
    }

    #[test]
    fn a_secret_is_masked_within_base64_wherever_it_begins() {
        let mut secrets = Secrets::default();
        secrets.add("s3cr3t~?>");
        for before in ["", "u", "us", "usr"] {
            for after in ["", "x", "xy", "xyz"] {
                let text = format!("{before}s3cr3t~?>{after}");
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    let masked = secrets.mask(&encoded).into_owned();
                    assert!(masked.contains(MASK) && masked.len() <= MASK.len() + 12, "{text}: {encoded}: {masked}");
                }
            }
        }
    }

    #[test]
    fn a_text_that_breaks_off_within_a_secret_ends_before_it() {
        let mut secrets = Secrets::default();
        secrets.add("t\u{f6}kenize");
        for (text, masked) in [
            ("x t\u{f6}kenize", "x [redacted]"),
            ("x t\u{f6}keniz", "x [redacted]"),
            ("x t\u{f6}ke", "x [redacted]"),
            ("x t\u{f6}ke\u{fffd}", "x [redacted]\u{fffd}"),
            ("x t\u{f6}ken…", "x [redacted]…"),
            ("x t\u{f6}k", "x t\u{f6}k"),
            ("t\u{f6}keniz x", "t\u{f6}keniz x"),
        ] {
            assert_eq!(secrets.mask(text), masked);
        }
    }

    #[test]
    fn what_a_header_lists_is_secret_part_by_part() {
        let mut secrets = Secrets::default();
        secrets.add_header("Digest username=\"adalove\", response=\"6629fae4\"");
        assert_eq!(secrets.mask("adalove: 6629fae4 is wrong"), "[redacted]: [redacted] is wrong");
    }

    #[test]
    fn what_is_too_short_is_no_secret() {
        let mut secrets = Secrets::default();
        for text in ["", "abc", "\u{e9}\u{e9}\u{e9}"] {
            secrets.add(text);
        }
        assert_eq!((format!("{secrets:?}"), &*secrets.mask("abc")), ("Secrets(0)".to_owned(), "abc"));
        secrets.add("abcd");
        secrets.add("abcd");
        assert_eq!((format!("{secrets:?}"), &*secrets.mask("abcd")), ("Secrets(1)".to_owned(), MASK));
    }
}
