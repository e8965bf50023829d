//! Whether an answer is the right one.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use serde_json::Value;

use super::{
    call::{ADDEND, FIRST, Template, Work, text, write_digits},
    wire::Reply,
};

/// How many answers there are for each one that is read wholly.
const WHOLE_EVERY: u64 = 1000;

/// Checks each answer as bytes, and reads the first and every thousandth as JSON.
pub(super) struct Checker {
    work: Work,
    checked: u64,
    id: Vec<u8>,
    expected: Expected,
}

/// What an answer is looked at for, beside its id.
enum Expected {
    /// A text, which begins with a number.
    Text { bytes: Vec<u8>, addend: u64 },
    /// The same as the answer that was read first, but for the id.
    Same(Option<Template>),
}

impl Checker {
    pub(super) fn new(work: Work) -> Self {
        let expected = match work {
            Work::Add | Work::Progress | Work::Ask => {
                Expected::Text { bytes: format!(r#""text":"{FIRST}""#).into_bytes(), addend: ADDEND }
            }
            Work::Echo => Expected::Text { bytes: format!(r#""text":"{}""#, text()).into_bytes(), addend: 0 },
            Work::List(_) => Expected::Same(None),
        };
        Self { work, checked: 0, id: format!(r#""id":{FIRST}"#).into_bytes(), expected }
    }

    /// Fails unless `reply` is the one to the call with this number, with what comes before it.
    pub(super) fn check(&mut self, reply: &Reply<'_>, number: u64) -> Result<()> {
        let whole = self.checked.is_multiple_of(WHOLE_EVERY);
        self.checked += 1;
        if self.work == Work::Progress {
            ensure!(told_of_progress(&reply.before, number), "no progress before the answer to the call {number}");
        }
        // Another server may write the same JSON otherwise: what is not found at a glance is read.
        if whole || !self.glance(&reply.message, number) {
            self.read(&reply.message, number)
                .with_context(|| format!("a wrong answer to the call {number}: {:.2000}", lossy(&reply.message)))?;
        }
        Ok(())
    }

    fn glance(&mut self, answer: &[u8], number: u64) -> bool {
        match &mut self.expected {
            Expected::Text { bytes, addend } => {
                write_digits(&mut self.id[5..], number);
                write_digits(&mut bytes[8..17], number + *addend);
                memmem::find(answer, &self.id).is_some() && contains(answer, bytes)
            }
            Expected::Same(first) => first.as_mut().is_some_and(|first| first.numbered(number) == answer),
        }
    }

    fn read(&mut self, answer: &[u8], number: u64) -> Result<()> {
        let json: Value = serde_json::from_slice(answer)?;
        ensure!(json["jsonrpc"] == "2.0", "no JSON-RPC 2.0");
        ensure!(json["id"] == number, "another id");
        let result = &json["result"];
        ensure!(result["isError"].as_bool() != Some(true), "a failure");
        match &mut self.expected {
            Expected::Text { bytes, .. } => {
                // Where nothing was glanced at, no number was written.
                let addend = if self.work == Work::Echo { 0 } else { ADDEND };
                write_digits(&mut bytes[8..17], number + addend);
                let expected: String = serde_json::from_slice(&bytes[7..])?;
                ensure!(result["content"][0]["type"] == "text", "no text");
                ensure!(result["content"][0]["text"] == expected.as_str(), "another text");
            }
            Expected::Same(first) => {
                let names =
                    result["tools"].as_array().context("no list")?.iter().filter(|tool| tool["name"].is_string());
                let Work::List(tools) = self.work else { bail!("a list of something else") };
                ensure!(names.count() == tools, "not {tools} tools");
                let text = std::str::from_utf8(answer)?.replacen(&number.to_string(), &FIRST.to_string(), 1);
                *first = Some(Template::of_answer(text.into_bytes())?);
            }
        }
        Ok(())
    }
}

/// Whether `text`, a member and its value, stands in `answer`. Long texts are not searched for, but compared where their
/// beginning stands.
fn contains(answer: &[u8], text: &[u8]) -> bool {
    let (start, rest) = text.split_at(17);
    memmem::find(answer, start).is_some_and(|found| answer[found + start.len()..].starts_with(rest))
}

/// Whether there is one notification, and of the progress of this call.
fn told_of_progress(before: &[Vec<u8>], number: u64) -> bool {
    let [notification] = before else { return false };
    let Ok(notification) = serde_json::from_slice::<Value>(notification) else { return false };
    notification["method"] == "notifications/progress" && notification["params"]["progressToken"] == number
}

/// The number of the call that an answer belongs to.
///
/// # Errors
/// When it has no id.
pub fn number_of(answer: &[u8]) -> Result<u64> {
    const KEY: &[u8] = br#""id":"#;
    let Some(start) = memmem::find(answer, KEY) else { bail!("an answer without an id: {:.2000}", lossy(answer)) };
    let digits = answer[start + KEY.len()..].trim_ascii_start().iter().take_while(|byte| byte.is_ascii_digit());
    Ok(digits.fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))))
}

/// What is not sure to be text, as text.
pub(crate) fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = r#"{"jsonrpc":"2.0","id":100000001,"result":{"content":[{"type":"text","text":"100000006"}]}}"#;

    const TOLD: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":100000001}}"#;

    fn reply<'a>(message: &'a str, before: &[&str]) -> Reply<'a> {
        let before = before.iter().map(|message| message.as_bytes().to_vec()).collect();
        Reply { before, message: message.as_bytes().into(), length: 0 }
    }

    /// A checker that has read one answer wholly.
    fn checker(work: Work, right: &str) -> Checker {
        let mut checker = Checker::new(work);
        let before: &[&str] = if work == Work::Progress { &[TOLD] } else { &[] };
        checker.check(&reply(right, before), FIRST + 1).unwrap();
        checker
    }

    #[test]
    fn the_right_answer_passes_at_a_glance_and_wholly() {
        let mut checker = checker(Work::Add, RIGHT);
        assert!(checker.glance(RIGHT.as_bytes(), FIRST + 1));
        checker.check(&reply(RIGHT, &[]), FIRST + 1).unwrap();
        assert_eq!(number_of(RIGHT.as_bytes()).unwrap(), FIRST + 1);
    }

    #[test]
    fn the_same_json_written_otherwise_passes() {
        let spaced =
            r#"{"id": 100000001, "result": {"content": [{"text": "100000006", "type": "text"}]}, "jsonrpc": "2.0"}"#;
        checker(Work::Add, RIGHT).check(&reply(spaced, &[]), FIRST + 1).unwrap();
        assert_eq!(number_of(spaced.as_bytes()).unwrap(), FIRST + 1);
    }

    #[test]
    fn wrong_answers_fail_even_where_none_is_read_wholly() {
        let wrong = [
            RIGHT.replace("100000006", "100000007"),
            RIGHT.replace("100000001", "100000002"),
            r#"{"jsonrpc":"2.0","id":100000001,"error":{"code":-32603,"message":"busy"}}"#.to_owned(),
            "no JSON".to_owned(),
        ];
        for answer in wrong {
            assert!(checker(Work::Add, RIGHT).check(&reply(&answer, &[]), FIRST + 1).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_text_that_is_cut_short_is_not_the_text() {
        let echoed = |text: &str| RIGHT.replace("100000006", text);
        let right = echoed(&text().replace("100000000", "100000001"));
        let mut checker = checker(Work::Echo, &right);
        checker.check(&reply(&right, &[]), FIRST + 1).unwrap();
        assert!(checker.check(&reply(&right.replace("fish", "dish"), &[]), FIRST + 1).is_err());
        assert!(checker.check(&reply(&echoed("100000001"), &[]), FIRST + 1).is_err());
    }

    #[test]
    fn progress_is_told_before_the_answer_and_of_the_same_call() {
        let mut checker = checker(Work::Progress, RIGHT);
        checker.check(&reply(RIGHT, &[TOLD]), FIRST + 1).unwrap();
        let other = TOLD.replace("100000001", "100000002");
        for before in [&[][..], &[other.as_str()], &[TOLD, TOLD]] {
            assert!(checker.check(&reply(RIGHT, before), FIRST + 1).is_err(), "{before:?}");
        }
    }

    #[test]
    fn a_list_has_its_tools_and_stays_the_same() {
        let list = r#"{"jsonrpc":"2.0","id":100000001,"result":{"tools":[{"name":"a"},{"name":"b"}]}}"#;
        let mut checker = checker(Work::List(2), list);
        assert!(checker.glance(list.replace("100000001", "100000002").as_bytes(), FIRST + 2));
        let shorter = list.replace(r#",{"name":"b"}"#, "");
        assert!(checker.check(&reply(&shorter, &[]), FIRST + 1).is_err());
    }
}
