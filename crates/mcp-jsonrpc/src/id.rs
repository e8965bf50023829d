use std::{
    fmt,
    hash::{Hash, Hasher},
};

use bytestring::ByteString;
use serde::{Deserialize, Serialize, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

use crate::Raw;

/// A request's id: a string or an integer of any size, echoed to the letter.
///
/// Ids compare by type and value: `7` is not `"7"`, and `"a"` equals `"\u0061"`. The same rules hold for progress
/// tokens, which share this type.
///
/// Specification: *Overview, Requests*.
#[derive(Clone)]
pub struct RequestId {
    text: ByteString,
    /// The string's content, where escapes make it differ from the text between the quotes.
    decoded: Option<ByteString>,
}

/// Text that is no request id: `null`, a fraction, an exponent, an array, an object, a boolean, or over the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is a string or an integer")]
#[non_exhaustive]
pub struct InvalidId;

impl RequestId {
    /// Reads an id from its JSON text, which may be at most `max` bytes long.
    ///
    /// # Errors
    /// When the text is neither an integer nor a string that can be decoded, or is longer than `max`.
    pub fn parse(text: &str, max: usize) -> Result<Self, InvalidId> {
        Self::from_json(text.into(), max)
    }

    /// Reads an id from a JSON value, sharing its memory.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_shared(value: Raw, max: usize) -> Result<Self, InvalidId> {
        Self::from_json(value.into_text(), max)
    }

    fn from_json(text: ByteString, max: usize) -> Result<Self, InvalidId> {
        if text.len() > max {
            return Err(InvalidId);
        }
        let decoded = match str::as_bytes(&text) {
            [b'"', inner @ .., b'"'] if inner.iter().all(|byte| is_plain(*byte)) => None,
            [b'"', ..] => Some(serde_json::from_str::<String>(&text).map_err(|_| InvalidId)?.into()),
            number if is_integer(number) => None,
            _ => return Err(InvalidId),
        };
        Ok(Self { text, decoded })
    }

    /// The id as the JSON text that came in.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.text
    }

    /// The content, where the id is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.decoded {
            Some(decoded) => Some(decoded),
            None => self.text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')),
        }
    }

    /// The number, where the id is an integer that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.text.parse().ok()
    }

    /// What makes two ids equal: whether it is a string, and its content.
    fn key(&self) -> (bool, &str) {
        match self.as_str() {
            Some(text) => (true, text),
            None => (false, &self.text),
        }
    }
}

/// Whether a byte stands for itself in a JSON string.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

fn is_integer(text: &[u8]) -> bool {
    match text.strip_prefix(b"-").unwrap_or(text) {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {
        $(
            impl From<$integer> for RequestId {
                fn from(number: $integer) -> Self {
                    Self { text: itoa::Buffer::new().format(number).into(), decoded: None }
                }
            }
        )*
    };
}

from_integers!(i32, u32, i64, u64);

impl From<&str> for RequestId {
    fn from(content: &str) -> Self {
        let text = serde_json::Value::from(content).to_string();
        let decoded = (text.len() != content.len() + 2).then(|| content.into());
        Self { text: text.into(), decoded }
    }
}

impl From<String> for RequestId {
    fn from(content: String) -> Self {
        content.as_str().into()
    }
}

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.text).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
        Self::parse(raw.get(), usize::MAX).map_err(D::Error::custom)
    }
}

/// What is an id, and which one, is what `serde_json` reads there. The text has nothing around the value.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(text: &str) {
    use serde_json::Value;

    const MOST: usize = 64;
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let is_integer = value.is_number() && !text.contains(['.', 'e', 'E']);
    let id = RequestId::parse(text, MOST);
    assert_eq!(id.is_ok(), (value.is_string() || is_integer) && text.len() <= MOST, "{text:?}");
    let Ok(id) = id else { return };
    assert_eq!((id.as_json(), id.as_str()), (text, value.as_str()));
    if !value.is_f64() {
        // However it is written, it is the same id.
        assert_eq!(RequestId::parse(&value.to_string(), usize::MAX), Ok(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RequestId {
        RequestId::parse(text, 256).unwrap()
    }

    #[test]
    fn text_survives() {
        for text in
            ["0", "-1", "7", "\"7\"", "\"007\"", "\"\"", "\" \"", "123456789012345678901234567890", r#""\u0061\n""#]
        {
            assert_eq!(id(text).as_json(), text);
        }
    }

    #[test]
    fn what_is_no_id() {
        for text in ["null", "true", "1.0", "1e3", "[]", "{}", "", "-", "01", r#""\ud800""#, "\"", "\"a\"b\""] {
            assert_eq!(RequestId::parse(text, 256), Err(InvalidId), "{text}");
        }
    }

    #[test]
    fn the_cap_counts_the_json_text() {
        let longest = format!("\"{}\"", "x".repeat(254));
        assert!(RequestId::parse(&longest, 256).is_ok());
        assert!(RequestId::parse(&format!("{longest} "), 256).is_err());
    }

    #[test]
    fn ids_compare_by_type_and_value() {
        assert_ne!(id("7"), id("\"7\""));
        assert_ne!(id("0"), id("\"\""));
        assert_ne!(id("\"7\""), id("\"007\""));
        assert_eq!(id(r#""\u0061""#), id("\"a\""));
        assert_eq!(RequestId::from("a\nb"), id(r#""a\nb""#));
        assert_eq!(RequestId::from(7u64), id("7"));
        assert_eq!(id("7").as_i64(), Some(7));
        assert_eq!(id("\"7\"").as_i64(), None);
    }
}
