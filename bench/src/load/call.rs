//! One call as bytes. A call with number *n* has the id *n*; one that adds, adds [`ADDEND`] to *n*, and one that echoes
//! has a text that begins with *n*, so that an answer to another call is seen to be one. Numbers have nine digits: all
//! calls are equally long, and one is written over another.

use std::fmt::Write;

use anyhow::{Result, ensure};
use memchr::memmem;

/// The number of the first call of a round.
pub const FIRST: u64 = 100_000_000;

/// What each call adds to its number.
pub(crate) const ADDEND: u64 = 5;

const DIGITS: usize = 9;

/// What says, in every request of the modern era, who asks and in which revision.
pub(super) const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":"#
);

/// The length of a text that is echoed.
const ECHOED: usize = 1 << 20;

/// What it is made of: prose in lines, with what JSON escapes.
const PROSE: &str = "He said \\\"mostly harmless\\\", and went on: a towel, a fish, and the number 42.\\n";

/// Whether calls carry `_meta`, or lean on a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two eras")]
pub enum Era {
    /// Each request says what it speaks.
    Modern,
    /// `initialize` has said it.
    Legacy,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the programs of this package name all of them")]
pub enum Work {
    /// A sum.
    Add,
    /// A sum, after a notification of progress.
    Progress,
    /// A sum, after a question: two requests a call.
    Ask,
    /// A text of 1 MiB.
    Echo,
    /// A list of so many tools.
    List(usize),
}

impl Work {
    /// The method of its request.
    pub(crate) fn method(self) -> &'static str {
        if matches!(self, Self::List(_)) { "tools/list" } else { "tools/call" }
    }

    /// The tool that it calls, if it calls one.
    pub(crate) fn tool(self) -> Option<&'static str> {
        match self {
            Self::Add => Some("add"),
            Self::Progress => Some("progress"),
            Self::Ask => Some("ask"),
            Self::Echo => Some("echo"),
            Self::List(_) => None,
        }
    }

    /// Whether the answer comes after a question.
    pub(crate) fn asks(self) -> bool {
        self == Self::Ask
    }

    fn arguments(self) -> String {
        match self {
            Self::Add | Self::Progress | Self::Ask => format!(r#""arguments":{{"a":{FIRST},"b":{ADDEND}}}"#),
            Self::Echo => format!(r#""arguments":{{"text":"{}"}}"#, text()),
            Self::List(_) => String::new(),
        }
    }

    fn meta(self, era: Era) -> String {
        let mut members = Vec::new();
        if era == Era::Modern {
            members.push(format!("{META}{}", if self.asks() { r#"{"elicitation":{"form":{}}}"# } else { "{}" }));
        }
        if self == Self::Progress {
            members.push(format!(r#""progressToken":{FIRST}"#));
        }
        if members.is_empty() { String::new() } else { format!(r#""_meta":{{{}}}"#, members.join(",")) }
    }
}

/// The text that is echoed, as JSON has it between its quotes.
pub(crate) fn text() -> String {
    let mut text = String::with_capacity(ECHOED + PROSE.len());
    // Writing to a string cannot fail.
    let _ = write!(text, "{FIRST} ");
    while text.len() + PROSE.len() <= ECHOED {
        text.push_str(PROSE);
    }
    text
}

/// The bytes of a call, with what the wire puts around it.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    /// Where the number stands.
    places: Vec<usize>,
}

impl Template {
    /// A call on a wire that puts nothing around it.
    #[must_use]
    pub fn new(work: Work, era: Era) -> Self {
        Self::with(work, era, None)
    }

    /// The same with one more member of its parameters.
    pub(crate) fn with(work: Work, era: Era, member: Option<String>) -> Self {
        let name = work.tool().map(|name| format!(r#""name":"{name}""#));
        let members = [name, Some(work.arguments()), member, Some(work.meta(era))];
        let params: Vec<String> = members.into_iter().flatten().filter(|member| !member.is_empty()).collect();
        let (method, params) = (work.method(), params.join(","));
        Self::numbering(format!(r#"{{"jsonrpc":"2.0","id":{FIRST},"method":"{method}","params":{{{params}}}}}"#).into())
    }

    /// An answer to the first call, to be numbered as the calls are.
    ///
    /// # Errors
    /// When the number does not stand in it.
    pub fn of_answer(bytes: Vec<u8>) -> Result<Self> {
        let answer = Self::numbering(bytes);
        ensure!(!answer.places.is_empty(), "an answer without its id");
        Ok(answer)
    }

    fn numbering(bytes: Vec<u8>) -> Self {
        let places = memmem::find_iter(&bytes, FIRST.to_string().as_bytes()).collect();
        Self { bytes, places }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The same call with bytes before and after it.
    pub(crate) fn wrapped(&self, before: &[u8], after: &[u8]) -> Self {
        let places = self.places.iter().map(|place| place + before.len()).collect();
        Self { bytes: [before, &self.bytes, after].concat(), places }
    }

    /// The call with this number.
    pub fn numbered(&mut self, number: u64) -> &[u8] {
        for place in &self.places {
            write_digits(&mut self.bytes[*place..*place + DIGITS], number);
        }
        &self.bytes
    }

    /// The call with the number that was written last; at first, with [`FIRST`].
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Overwrites `digits` with the last digits of `number`.
pub(super) fn write_digits(digits: &mut [u8], number: u64) {
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const NUMBER: u64 = 123_456_789;

    fn call(work: Work, era: Era) -> Value {
        let mut template = Template::new(work, era).wrapped(b" ", b"\n");
        serde_json::from_slice(template.numbered(NUMBER)).unwrap()
    }

    #[test]
    fn a_numbered_call_is_json_with_the_number_wherever_it_belongs() {
        for era in [Era::Modern, Era::Legacy] {
            let call = call(Work::Add, era);
            assert_eq!((&call["id"], &call["params"]["arguments"]["a"]), (&NUMBER.into(), &NUMBER.into()));
            assert_eq!(call["params"].get("_meta").is_some(), era == Era::Modern);
        }
        assert_eq!(call(Work::Progress, Era::Modern)["params"]["_meta"]["progressToken"], NUMBER);
        assert_eq!(call(Work::List(10), Era::Legacy)["id"], NUMBER);
    }

    #[test]
    fn a_text_has_all_but_its_length_and_begins_with_the_number() {
        let call = call(Work::Echo, Era::Modern);
        let text = call["params"]["arguments"]["text"].as_str().unwrap();
        assert!(text.starts_with("123456789 He said \"mostly"), "{:.40}", text);
        assert!((ECHOED - ECHOED / 16..=ECHOED).contains(&text.len()), "{}", text.len());
    }

    #[test]
    fn an_answer_without_the_number_cannot_be_numbered() {
        assert!(Template::of_answer(b"{}".to_vec()).is_err());
        assert_eq!(Template::of_answer(b"<100000000>".to_vec()).unwrap().numbered(NUMBER), b"<123456789>");
    }
}
