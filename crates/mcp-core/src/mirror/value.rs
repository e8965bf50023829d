use mcp_jsonrpc::{ByteString, Raw};

/// The greatest integer below which no double is two of them.
const SAFE: i64 = (1 << 53) - 1;

/// A value that a header carries, before it is encoded.
///
/// Specification: *Streamable HTTP, Value Encoding*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredValue {
    text: ByteString,
    is_number: bool,
}

impl MirroredValue {
    /// `None` for what has no value (`null`), and for what cannot be a header's: arrays, objects and strings that are no
    /// text. Arguments like those do not fit the schema, which the tool says better.
    pub(super) fn of(value: &Raw) -> Option<Self> {
        let trimmed = value.as_str().trim_ascii();
        match trimmed.as_bytes().first()? {
            b'"' => Some(Self { text: value.to_string_value().ok()?, is_number: false }),
            b't' | b'f' => Some(Self { text: trimmed.into(), is_number: false }),
            b'-' | b'0'..=b'9' => Some(Self { text: decimal(trimmed), is_number: true }),
            _ => None,
        }
    }

    /// The value as text: an integer in decimal digits, whatever way the arguments write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a header that carries `text`, decoded, says the same. Numbers are compared as numbers: `42.0` is `42`.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.text == text || (self.is_number && is_number(text) && decimal(text) == self.text)
    }

    /// Whether it is an integer beyond ±(2^53 − 1), which the specification keeps out of headers: two sides that read it
    /// as a double could each see another number.
    #[must_use]
    pub fn is_unsafe_integer(&self) -> bool {
        let is_whole = || self.text.parse::<f64>().is_ok_and(|float| float.fract() == 0.0);
        self.is_number && safe_integer(&self.text).is_none() && is_whole()
    }

    pub(super) fn into_text(self) -> ByteString {
        self.text
    }
}

/// Only JSON's own numbers, so that neither `+1`, `NaN` nor `0x1` is one.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

fn decimal(number: &str) -> ByteString {
    safe_integer(number).map_or_else(|| number.into(), |integer| integer.to_string().into())
}

/// The number as an integer, if it is one that a double holds exactly; `42.0` and `4.2e1` are 42.
fn safe_integer(number: &str) -> Option<i64> {
    let integer = match number.parse::<i64>() {
        Ok(integer) => integer,
        Err(_) => whole(number.parse::<f64>().ok()?)?,
    };
    (-SAFE..=SAFE).contains(&integer).then_some(integer)
}

fn whole(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= SAFE as f64).then_some(float as i64)
}
