//! Whether an answer is the right one.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;
use serde_json::Value;

use super::call::{ADDEND, FIRST, write_digits};

/// How many answers there are for each one that is read wholly.
const WHOLE_EVERY: u64 = 1000;

/// Checks each answer for its id and sum as bytes, and reads the first and every thousandth as JSON.
pub(super) struct Checker {
    checked: u64,
    id: Vec<u8>,
    sum: Vec<u8>,
}

impl Checker {
    pub(super) fn new() -> Self {
        Self {
            checked: 0,
            id: format!(r#""id":{FIRST}"#).into_bytes(),
            sum: format!(r#""text":"{FIRST}""#).into_bytes(),
        }
    }

    /// Fails unless `answer` is the one to the call with this number.
    pub(super) fn check(&mut self, answer: &[u8], number: u64) -> Result<()> {
        let whole = self.checked.is_multiple_of(WHOLE_EVERY);
        self.checked += 1;
        // Another server may write the same JSON otherwise: what is not found at a glance is read.
        if whole || !self.glance(answer, number) {
            read(answer, number)
                .with_context(|| format!("a wrong answer to the call {number}: {}", String::from_utf8_lossy(answer)))?;
        }
        Ok(())
    }

    fn glance(&mut self, answer: &[u8], number: u64) -> bool {
        write_digits(&mut self.id[5..], number);
        write_digits(&mut self.sum[8..17], number + ADDEND);
        memmem::find(answer, &self.id).is_some() && memmem::find(answer, &self.sum).is_some()
    }
}

fn read(answer: &[u8], number: u64) -> Result<()> {
    let answer: Value = serde_json::from_slice(answer)?;
    ensure!(answer["jsonrpc"] == "2.0", "no JSON-RPC 2.0");
    ensure!(answer["id"] == number, "another id");
    let result = &answer["result"];
    ensure!(result["isError"].as_bool() != Some(true), "a failure");
    ensure!(result["content"][0]["type"] == "text", "no text");
    let sum = (number + ADDEND).to_string();
    ensure!(result["content"][0]["text"] == sum.as_str(), "another sum");
    Ok(())
}

/// The number of the call that an answer belongs to.
pub(super) fn number_of(answer: &[u8]) -> Result<u64> {
    const KEY: &[u8] = br#""id":"#;
    let Some(start) = memmem::find(answer, KEY) else {
        bail!("an answer without an id: {}", String::from_utf8_lossy(answer));
    };
    let digits = answer[start + KEY.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    Ok(digits.fold(0, |number: u64, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &[u8] =
        br#"{"jsonrpc":"2.0","id":100000001,"result":{"content":[{"type":"text","text":"100000006"}]}}"#;

    #[test]
    fn the_right_answer_passes_at_a_glance_and_wholly() {
        let mut checker = Checker::new();
        assert!(checker.glance(RIGHT, FIRST + 1));
        checker.check(RIGHT, FIRST + 1).unwrap();
        checker.check(RIGHT, FIRST + 1).unwrap();
        assert_eq!(number_of(RIGHT).unwrap(), FIRST + 1);
    }

    #[test]
    fn the_same_json_written_otherwise_passes() {
        let spaced =
            br#"{"id": 100000001, "result": {"content": [{"text": "100000006", "type": "text"}]}, "jsonrpc": "2.0"}"#;
        let mut checker = Checker::new();
        checker.check(RIGHT, FIRST + 1).unwrap();
        checker.check(spaced, FIRST + 1).unwrap();
    }

    #[test]
    fn wrong_answers_fail_even_where_none_is_read_wholly() {
        let text = std::str::from_utf8(RIGHT).unwrap();
        let wrong = [
            text.replace("100000006", "100000007"),
            text.replace("100000001", "100000002"),
            r#"{"jsonrpc":"2.0","id":100000001,"error":{"code":-32603,"message":"busy"}}"#.to_owned(),
            "no JSON".to_owned(),
        ];
        let mut checker = Checker::new();
        checker.check(RIGHT, FIRST + 1).unwrap();
        for answer in wrong {
            assert!(checker.check(answer.as_bytes(), FIRST + 1).is_err(), "{answer}");
        }
    }
}
