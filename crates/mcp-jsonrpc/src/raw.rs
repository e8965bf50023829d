use std::{borrow::Cow, fmt};

use bytestring::ByteString;
use serde::{Deserialize, Serialize, de::Error as _, ser::Error as _};
use serde_json::value::RawValue;

use crate::{Members, members, scan::Scanner};

/// Valid JSON text of one value, shared by reference count.
///
/// Cloning is cheap and the text is never altered: numbers keep their digits, objects their order, duplicates and
/// white space. `Debug` shows the length alone, so that a value cannot leak into a log.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(ByteString);

impl Raw {
    /// Checks that `text` is one JSON value and keeps it.
    ///
    /// # Errors
    /// When `text` is not exactly one JSON value.
    pub fn parse(text: impl Into<ByteString>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        if !Scanner::is_value(&text) {
            serde_json::from_str::<&RawValue>(&text)?;
        }
        Ok(Self(text))
    }

    /// Keeps text that the caller knows to be one JSON value; only debug builds check it.
    #[must_use]
    pub fn assume_valid(text: ByteString) -> Self {
        debug_assert!(Scanner::is_value(&text), "not one JSON value");
        Self(text)
    }

    /// The JSON text of `value`.
    ///
    /// # Errors
    /// When `value` cannot be written as JSON, as a map whose keys are no strings.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// The object without members.
    #[must_use]
    pub const fn empty_object() -> Self {
        Self(ByteString::from_static("{}"))
    }

    /// Reads the value into a type.
    ///
    /// # Errors
    /// When the value does not fit `T`.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The part of this value that `part` borrows, sharing the same memory; a copy of what it does not. `part` must be the text
    /// of one JSON value, as [`Members`] tells it: like [`assume_valid`](Self::assume_valid), this does not look.
    #[must_use]
    pub fn slice(&self, part: &str) -> Self {
        Self::assume_valid(share(&self.0, part))
    }

    /// The member of that name, sharing the same memory; `None` where there is none, or the value is no object.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Self> {
        Members::scan(&self.0, &[name]).ok()?.get(0).map(|member| self.slice(member))
    }

    /// The content of a string, shared with this value unless escapes have to be decoded.
    ///
    /// # Errors
    /// When the value is no string, or has a lone surrogate.
    pub fn to_string_value(&self) -> Result<ByteString, serde_json::Error> {
        match members::string(&self.0)? {
            Cow::Borrowed(content) => Ok(share(&self.0, content)),
            Cow::Owned(content) => Ok(content.into()),
        }
    }

    /// The JSON text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The JSON text as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The JSON text, without a copy.
    #[must_use]
    pub fn into_text(self) -> ByteString {
        self.0
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.starts_with(b'{')
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.starts_with(b'n')
    }

    /// Whether the value is a string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.starts_with(b'"')
    }

    fn starts_with(&self, byte: u8) -> bool {
        self.as_bytes().trim_ascii_start().first() == Some(&byte)
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.0.len())
    }
}

impl Serialize for Raw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer).map_err(D::Error::custom)?;
        Ok(Self(String::from(Box::<str>::from(raw)).into()))
    }
}

/// `part` as a share of `whole` where it lies inside it, else as a copy.
pub(crate) fn share(whole: &ByteString, part: &str) -> ByteString {
    let (start, from) = (whole.as_ptr() as usize, part.as_ptr() as usize);
    let inside = from >= start && from + part.len() <= start + whole.len();
    if inside && !part.is_empty() { whole.slice_ref(part) } else { part.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_shares_the_memory_and_a_stranger_is_copied() {
        let raw = Raw::parse(r#"{"a": [1, 2]}"#).unwrap();
        let map: std::collections::BTreeMap<&str, &RawValue> = raw.decode().unwrap();
        let part = raw.slice(map["a"].get());
        assert_eq!(part.as_str(), "[1, 2]");
        assert_eq!(part.as_str().as_ptr(), map["a"].get().as_ptr());
        assert_eq!(raw.slice("7").as_str(), "7");
    }

    #[test]
    fn a_member_of_an_object() {
        let raw = Raw::parse(r#"{"a":{"b":[1]}}"#).unwrap();
        assert_eq!(raw.member("a").and_then(|a| a.member("b")).unwrap().as_str(), "[1]");
        assert!(raw.member("b").is_none() && Raw::parse("[1]").unwrap().member("a").is_none());
    }

    #[test]
    fn text_is_kept_to_the_letter() {
        let text = r#"{"n":123456789012345678901234567890,"d":1.0e2,"b":[ ]}"#;
        let raw = Raw::parse(text).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
        assert_eq!(serde_json::from_str::<Raw>(text).unwrap().as_str(), text);
    }

    #[test]
    fn the_content_of_a_string() {
        for (text, content) in
            [(r#""""#, ""), (r#""a""#, "a"), (r#""\u0061\"""#, "a\""), (r#""\ud83d\ude00""#, "\u{1f600}")]
        {
            assert_eq!(Raw::parse(text).unwrap().to_string_value().unwrap(), content);
        }
        for text in ["1", "null", r#""\ud800""#] {
            assert!(Raw::parse(text).unwrap().to_string_value().is_err());
        }
    }

    #[test]
    fn only_one_value_is_a_value() {
        for bad in ["", "{", "{} {}", "nul", "'a'", "[1,]"] {
            assert!(Raw::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_shows_no_content() {
        let raw = Raw::parse(r#""secret""#).unwrap();
        assert_eq!(format!("{raw:?}"), "Raw(8 bytes)");
    }
}
