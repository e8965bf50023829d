//! Steps over JSON text: tells whether it is JSON, and where its parts stand. It builds nothing and never recurses.

/// The text is no JSON from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

/// A place in a text, and how deep the values nested that were stepped over.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    rest: &'a [u8],
    deepest: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, rest: text.as_bytes(), deepest: 0 }
    }

    /// Whether a text is one JSON value, with white space around it or not.
    pub(crate) fn is_value(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value().is_ok() && scanner.end().is_ok()
    }

    /// How many levels of arrays and objects were open at once, in one of the values so far.
    pub(crate) fn deepest(&self) -> usize {
        self.deepest
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), NotJson> {
        self.space();
        if self.rest.is_empty() { Ok(()) } else { Err(NotJson) }
    }

    /// Steps over white space and one byte, if it is this one.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.space();
        self.take_next(|next| next == byte)
    }

    /// The name of a member, as it is written between its quotes, and whether it says what it means without escapes. The
    /// colon behind it is stepped over.
    pub(crate) fn name(&mut self) -> Result<(&'a [u8], bool), NotJson> {
        self.expect(b'"')?;
        let start = self.rest;
        let is_plain = self.string()?;
        let name = &start[..start.len() - self.rest.len() - 1];
        self.expect(b':').map(|()| (name, is_plain))
    }

    /// The text of a value.
    pub(crate) fn value(&mut self) -> Result<&'a str, NotJson> {
        self.space();
        let start = self.rest.len();
        self.step_over()?;
        let end = self.text.len();
        Ok(&self.text[end - start..end - self.rest.len()])
    }

    fn step_over(&mut self) -> Result<(), NotJson> {
        match self.begin(0)? {
            None => Ok(()),
            Some(first) => self.step_out(first),
        }
    }

    /// Steps over a value that holds no others, or into one that does. `levels` are open around it.
    fn begin(&mut self, levels: usize) -> Result<Option<Holder>, NotJson> {
        match self.next()? {
            b'"' => self.string().map(drop)?,
            b'{' => {
                self.deepest = self.deepest.max(levels + 1);
                if !self.take(b'}') {
                    self.name()?;
                    self.space();
                    return Ok(Some(Holder::Object));
                }
            }
            b'[' => {
                self.deepest = self.deepest.max(levels + 1);
                if !self.take(b']') {
                    return Ok(Some(Holder::Array));
                }
            }
            b't' => self.word(b"rue")?,
            b'f' => self.word(b"alse")?,
            b'n' => self.word(b"ull")?,
            first => self.number(first)?,
        }
        Ok(None)
    }

    /// Steps out of an array or an object, from its first value on.
    fn step_out(&mut self, first: Holder) -> Result<(), NotJson> {
        let mut open = Open::default();
        open.push(first);
        while open.len > 0 {
            match self.begin(open.len)? {
                Some(holder) => open.push(holder),
                None => self.close(&mut open)?,
            }
        }
        Ok(())
    }

    /// Behind a value: steps to the next one within what is open, or out of all.
    fn close(&mut self, open: &mut Open) -> Result<(), NotJson> {
        while open.len > 0 {
            self.space();
            match (self.next()?, open.top()) {
                (b',', Holder::Object) => {
                    self.name()?;
                    self.space();
                    return Ok(());
                }
                (b',', Holder::Array) => {
                    self.space();
                    return Ok(());
                }
                (b'}', Holder::Object) | (b']', Holder::Array) => open.pop(),
                _ => return Err(NotJson),
            }
        }
        Ok(())
    }

    /// Behind the quote that begins a string: whether it has no escapes.
    fn string(&mut self) -> Result<bool, NotJson> {
        let mut is_plain = true;
        loop {
            self.rest = behind_plain(self.rest);
            match self.next()? {
                b'"' => return Ok(is_plain),
                b'\\' => self.escape()?,
                _ => return Err(NotJson),
            }
            is_plain = false;
        }
    }

    /// What an escape stands for is nobody's concern here, nor is half of a surrogate pair.
    fn escape(&mut self) -> Result<(), NotJson> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let (digits, rest) = self.rest.split_first_chunk::<4>().ok_or(NotJson)?;
                self.rest = rest;
                if digits.iter().all(u8::is_ascii_hexdigit) { Ok(()) } else { Err(NotJson) }
            }
            _ => Err(NotJson),
        }
    }

    fn number(&mut self, first: u8) -> Result<(), NotJson> {
        match if first == b'-' { self.next()? } else { first } {
            b'0' => {}
            b'1'..=b'9' => self.digits(),
            _ => return Err(NotJson),
        }
        if self.take_next(|next| next == b'.') {
            self.some_digits()?;
        }
        if self.take_next(|next| matches!(next, b'e' | b'E')) {
            self.take_next(|next| matches!(next, b'+' | b'-'));
            self.some_digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.take_next(|next| next.is_ascii_digit()) {}
    }

    fn some_digits(&mut self) -> Result<(), NotJson> {
        let has_one = self.take_next(|next| next.is_ascii_digit());
        self.digits();
        if has_one { Ok(()) } else { Err(NotJson) }
    }

    fn word(&mut self, rest: &[u8]) -> Result<(), NotJson> {
        self.rest = self.rest.strip_prefix(rest).ok_or(NotJson)?;
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.take(byte) { Ok(()) } else { Err(NotJson) }
    }

    fn space(&mut self) {
        while self.take_next(is_blank) {}
    }

    fn next(&mut self) -> Result<u8, NotJson> {
        let (byte, rest) = self.rest.split_first().ok_or(NotJson)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn take_next(&mut self, is_wanted: impl Fn(u8) -> bool) -> bool {
        match self.rest.split_first() {
            Some((byte, rest)) if is_wanted(*byte) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }
}

/// Whether this is white space of JSON, which has fewer kinds of it than ASCII.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// What holds other values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    Array,
    Object,
}

/// The arrays and objects that are open: a bit each, which says whether it is an object. The innermost are at hand.
#[derive(Debug, Default)]
struct Open {
    innermost: u64,
    others: Vec<u64>,
    len: usize,
}

impl Open {
    fn push(&mut self, holder: Holder) {
        if self.len > 0 && self.len.is_multiple_of(64) {
            self.others.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(holder == Holder::Object);
        self.len += 1;
    }

    fn top(&self) -> Holder {
        if self.innermost & 1 == 1 { Holder::Object } else { Holder::Array }
    }

    fn pop(&mut self) {
        self.innermost >>= 1;
        self.len -= 1;
        if self.len > 0 && self.len.is_multiple_of(64) {
            self.innermost = self.others.pop().unwrap_or_default();
        }
    }
}

/// What follows behind the bytes that can stand in a string as they are.
fn behind_plain(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        match special(u64::from_le_bytes(*word)) {
            0 => rest = behind,
            found => return &rest[found.trailing_zeros() as usize / 8..],
        }
    }
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
    end.map_or(&[], |end| &rest[end..])
}

/// Has the high bit of the first byte that is a quote, a backslash or a control character; the bits above that mean nothing.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let (quote, backslash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * b' ' as u64) & !word;
    (is_zero(quote) | is_zero(backslash) | control) & HIGH
}

/// Any text is JSON, or is not, for us as for `serde_json`, and means the same.
#[cfg(any(fuzzing, test))]
pub fn fuzz(data: &[u8]) {
    use serde::{Deserializer, de::IgnoredAny};

    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut reader = serde_json::Deserializer::from_str(text);
    let theirs = reader.deserialize_ignored_any(IgnoredAny).and_then(|_| reader.end());
    assert_eq!(Scanner::is_value(text), theirs.is_ok(), "{text:?}: {theirs:?}");
    crate::members::fuzz(text);
    crate::id::fuzz(text.trim_matches([' ', '\t', '\r', '\n']));
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &[&str] = &[
        "null",
        "true",
        "false",
        "0",
        "-0",
        "10",
        "-1.5e+10",
        "1E9",
        "1e-0",
        "0.5",
        r#""""#,
        r#""\u00e9\"\\\/\b\f\n\r\t""#,
        "[]",
        "{}",
        "[ ]",
        "{ }",
        "[1,[2,{}],[]]",
        r#"{"a":{"b":[]},"":1}"#,
        " \n\t\r1 ",
        r#""\ud800""#,
        "\"\u{7f}é\u{1f600}\"",
    ];

    const OTHERS: &[&str] = &[
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\u{1f}\"",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "{]",
        "[}",
        "{}}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{,}"#,
        "{1:1}",
        r#"{"a" 1}"#,
        r#"{"a":1 "b":2}"#,
        "\u{feff}1",
        "NaN",
    ];

    #[test]
    fn what_is_json_and_what_is_not() {
        for (texts, is_json) in [(VALUES, true), (OTHERS, false)] {
            for text in texts {
                assert_eq!(Scanner::is_value(text), is_json, "{text:?}");
                fuzz(text.as_bytes());
            }
        }
    }

    #[test]
    fn json_that_is_cut_off_or_has_another_byte_is_judged_as_by_serde_json() {
        let long =
            format!(r#"{{"name":"a{}\u0041{}","n":[-1.25e3,{{"x":null}},true]}}"#, "b".repeat(20), "c".repeat(9));
        // Miri takes a second for what is a millisecond elsewhere.
        let (places, bytes) = if cfg!(miri) { (7, 43) } else { (1, 1) };
        for text in VALUES.iter().copied().chain([long.as_str()]) {
            for at in (0..text.len()).step_by(places) {
                fuzz(&text.as_bytes()[..at]);
                for byte in (0..=u8::MAX).step_by(bytes) {
                    let mut other = text.as_bytes().to_vec();
                    other[at] = byte;
                    fuzz(&other);
                }
            }
        }
    }

    #[test]
    fn what_ends_a_string_is_found_at_every_place() {
        for length in 0..40 {
            for special in [b'"', b'\\', 0, 0x1f] {
                let text = [vec![b'\xff'; length], vec![special], vec![b'"'; 9]].concat();
                assert_eq!(behind_plain(&text), &text[length..], "{special}");
            }
            assert!(behind_plain(&vec![b' '; length]).is_empty());
        }
    }

    #[test]
    fn levels_are_counted_and_remembered_however_many_there_are() {
        for levels in [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000] {
            let text = "[{\"a\":".repeat(levels) + "[{}]" + &"}]".repeat(levels);
            let mut scanner = Scanner::new(&text);
            assert_eq!(scanner.value(), Ok(text.as_str()));
            assert_eq!(scanner.deepest(), 2 * levels + 2);
            let crossed = "[{\"a\":".repeat(levels) + &"]}".repeat(levels);
            assert!(!Scanner::is_value(&crossed));
        }
    }
}
