//! One text for all the ways in which a JSON value may be written.

use mcp_jsonrpc::Raw;

/// What is deeper is compared as it is written, so that no limit on messages has to keep the stack from overflowing.
const DEPTH: usize = 128;

/// The value with its members sorted, without white space, and with no escape that is not needed. Numbers keep their
/// digits: whoever reads them may tell `1` from `1.0`. Members of one name keep their order.
pub(super) fn canonical(value: &Raw) -> String {
    let (mut reader, mut text) = (Reader { rest: value.as_str() }, String::new());
    reader.value(DEPTH, &mut text).map_or_else(|| value.as_str().to_owned(), |()| text)
}

/// Reads text that is known to be JSON; `None` where it is too deep.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize, text: &mut String) -> Option<()> {
        match self.peek()? {
            '{' => self.object(depth.checked_sub(1)?, text),
            '[' => self.array(depth.checked_sub(1)?, text),
            '"' => {
                text.push_str(&self.string()?);
                Some(())
            }
            _ => {
                let end = self.rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(self.rest.len());
                text.push_str(self.take(end)?);
                Some(())
            }
        }
    }

    fn object(&mut self, depth: usize, text: &mut String) -> Option<()> {
        let mut members = Vec::new();
        self.take(1)?;
        while self.peek()? != '}' {
            let (name, mut value) = (self.string()?, String::new());
            self.skip(':');
            self.value(depth, &mut value)?;
            members.push((name, value));
            self.skip(',');
        }
        self.take(1)?;
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        text.push('{');
        for (name, value) in members {
            text.extend([&name, ":", &value, ","]);
        }
        text.push('}');
        Some(())
    }

    fn array(&mut self, depth: usize, text: &mut String) -> Option<()> {
        self.take(1)?;
        text.push('[');
        while self.peek()? != ']' {
            self.value(depth, text)?;
            text.push(',');
            self.skip(',');
        }
        self.take(1)?;
        text.push(']');
        Some(())
    }

    /// One with a lone surrogate stays as it is written.
    fn string(&mut self) -> Option<String> {
        self.peek()?;
        let mut is_escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        let written = self.take(end? + 2)?;
        if !written.contains('\\') {
            return Some(written.to_owned());
        }
        let decoded = serde_json::from_str::<String>(written);
        Some(decoded.and_then(|string| serde_json::to_string(&string)).unwrap_or_else(|_| written.to_owned()))
    }

    /// What comes next that is no white space.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.chars().next()
    }

    fn skip(&mut self, mark: char) {
        if self.peek() == Some(mark) {
            self.rest = &self.rest[1..];
        }
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        canonical(&Raw::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn what_means_the_same_is_written_the_same() {
        let plain = r#"{"a":[1.0,-2e3,true,null,{},[],"é\n\""],"b":{"c":"","d":"x"}}"#;
        let other = "\t{ \"b\" : {\"d\":\"\\u0078\",\"c\":\"\"} ,\r\n \"\\u0061\":[ 1.0 , -2e3,true , null, { },[ ],\"\\u00e9\\u000a\\u0022\" ] } ";
        assert_eq!(of(plain), of(other));
        for value in ["0", " 0 ", r#""x""#, "{}", "[ ]", r#""\\""#, r#"{"\"":"\\\""}"#] {
            assert_eq!(of(value).replace(",}", "}"), value.trim().replace(' ', ""));
        }
    }

    #[test]
    fn what_does_not_is_not() {
        let all = [
            "1",
            "1.0",
            "1e0",
            r#""1""#,
            "true",
            "null",
            "{}",
            "[]",
            "[[]]",
            "[1]",
            "[1,2]",
            "[2,1]",
            "[12]",
            r#"["1,2"]"#,
            r#"{"a":1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a":2,"a":1}"#,
            r#"{"a":2}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
            r#"{"a":"1,\"b\":1"}"#,
            r#"{"a":1,"b":1}"#,
            r#""\ud800""#,
            r#""\\ud800""#,
            r#""\ud801""#,
        ];
        let mut texts: Vec<_> = all.into_iter().map(of).collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), all.len(), "{texts:?}");
    }

    #[test]
    fn what_is_too_deep_stays_as_it_is_written() {
        let nested = |depth: usize| format!("{}{}", "[ ".repeat(depth), "] ".repeat(depth));
        assert_eq!(of(&nested(128)), nested(128).replace(' ', "").replace("]]", "],]").replace("]]", "],]"));
        assert_eq!(of(&nested(129)), nested(129));
    }
}
