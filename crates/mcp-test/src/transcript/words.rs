use mcp_core::{Era, Revision};
use serde_json::Value;

use crate::{Failure, message::modern_meta, transcript::Variant};

/// What the `$(…)` of a case stand for.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    variant: &'a Variant,
    /// Further words, the newest last.
    further: Vec<(String, String)>,
}

impl<'a> Words<'a> {
    /// What they stand for in that run.
    #[must_use]
    pub fn new(variant: &'a Variant) -> Self {
        Self { variant, further: Vec::new() }
    }

    /// A further word, which stands for `text`; of two of one name the later counts.
    #[must_use]
    pub fn with(mut self, word: impl Into<String>, text: impl Into<String>) -> Self {
        self.further.push((word.into(), text.into()));
        self
    }

    /// The text with everything that stands for other text replaced.
    ///
    /// # Errors
    /// When something stands for nothing.
    pub fn expand(&self, text: &str) -> Result<String, Failure> {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, after)) = rest.split_once("$(") {
            let (word, after) = after.split_once(')').ok_or("`$(` without its `)`")?;
            out.push_str(before);
            out.push_str(&self.word(word)?);
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn further(&self, word: &str) -> Option<&str> {
        self.further.iter().rev().find(|(known, _)| known == word).map(|(_, text)| text.as_str())
    }

    fn word(&self, word: &str) -> Result<String, Failure> {
        if let Some((count, text)) = word.split_once(' ') {
            let count: usize = count.parse().map_err(|_| format!("`$({word})` repeats nothing"))?;
            return Ok(text.repeat(count));
        }
        if let Some(text) = self.further(word) {
            return Ok(text.to_owned());
        }
        let is_modern = self.variant.speaks.is_some_and(|revision| revision.era() == Era::Modern);
        Ok(match word {
            "modern" => format!(r#""_meta":{{{}}}"#, modern()),
            "in_modern" => format!(",{}", modern()),
            "meta" if is_modern => format!(r#""_meta":{{{}}}"#, modern()),
            "meta" => r#""_meta":{}"#.to_owned(),
            "in_meta" if is_modern => format!(",{}", modern()),
            "in_meta" => String::new(),
            "revision" => self.variant.speaks.map(Revision::as_str).ok_or("no revision is spoken")?.to_owned(),
            number => {
                let place = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let cell = place.and_then(|place| self.variant.cells.get(place));
                // Within a cell, cells mean nothing.
                let variant = Variant { cells: Vec::new(), speaks: self.variant.speaks };
                let words = Words { variant: &variant, further: self.further.clone() };
                words.expand(cell.ok_or_else(|| format!("`$({number})` stands for nothing"))?)?
            }
        })
    }
}

/// The members that the modern era wants in `_meta`.
fn modern() -> String {
    let object = Value::Object(modern_meta(Revision::LATEST)).to_string();
    object[1..object.len() - 1].to_owned()
}

/// Bytes as a case writes them: `\xEF`, `\n`, `\r`, `\\`.
///
/// # Errors
/// When a backslash begins nothing.
pub fn unescape(text: &str) -> Result<Vec<u8>, Failure> {
    let (mut out, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        out.extend_from_slice(before.as_bytes());
        let (byte, used) = match after.as_bytes() {
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', ..] => {
                let hex = after.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
                (hex.ok_or_else(|| format!("`\\{after}` is no byte"))?, 3)
            }
            _ => return Err(format!("`\\{after}` is no byte").into()),
        };
        out.push(byte);
        rest = &after[used..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_other_text() {
        let variant = Variant { cells: vec!["x".into()], speaks: Some(Revision::LATEST_LEGACY) };
        let words = Words::new(&variant).with("port", "8").with("port", "9");
        assert_eq!(words.expand("a$(3 [)$(1)$(port){$(meta)}$(in_meta)").unwrap(), "a[[[x9{\"_meta\":{}}");
        assert!(words.expand("{$(modern)}").unwrap().contains("2026-07-28"));
        let nested = Variant { cells: vec!["$(2 x)".into(), "$(1)".into()], speaks: None };
        let words_of_cells = Words::new(&nested);
        assert_eq!(words_of_cells.expand("$(1)").unwrap(), "xx");
        assert!(words_of_cells.expand("$(2)").is_err());
        for wrong in ["$(2)", "$(0)", "$(x)", "$(x y)", "$(1"] {
            assert!(words.expand(wrong).is_err(), "{wrong}");
        }
        let modern = Variant { cells: Vec::new(), speaks: Some(Revision::LATEST) };
        let words = Words::new(&modern);
        assert!(words.expand("$(meta)").unwrap().starts_with("\"_meta\":{\"io."));
        assert!(words.expand("$(port)").is_err());
    }

    #[test]
    fn bytes_can_be_written() {
        assert_eq!(unescape(r"a\xEF\n\r\\b").unwrap(), b"a\xef\n\r\\b");
        for wrong in [r"\x", r"\xG0", r"\q", r"\"] {
            assert!(unescape(wrong).is_err(), "{wrong}");
        }
    }
}
