use std::{borrow::Cow, collections::BTreeMap};

use serde::de::{Error as _, IgnoredAny};

use crate::scan::{NotJson, Scanner};

/// Some members of an object, picked by name in one shallow scan.
///
/// Names are compared exactly, after their escapes are decoded; members that were not asked for are passed over.
#[derive(Debug)]
pub struct Members<'a, const N: usize> {
    found: [Option<&'a str>; N],
    begun: [bool; N],
    duplicate: Option<usize>,
    deepest: usize,
}

impl<'a, const N: usize> Members<'a, N> {
    const NONE: Self = Self { found: [None; N], begun: [false; N], duplicate: None, deepest: 0 };

    /// Scans `json` for the members `names`, without recursion.
    ///
    /// # Errors
    /// When `json` is not exactly one JSON object.
    pub fn scan(json: &'a str, names: &[&str; N]) -> Result<Self, serde_json::Error> {
        let mut members = Self::NONE;
        let mut scanner = Scanner::new(json);
        let scanned = members.read(&mut scanner, names).and_then(|()| scanner.end());
        scanned.map(|()| members).map_err(|NotJson| why(json))
    }

    /// The members that stand whole at the beginning of an object whose rest is missing.
    #[must_use]
    pub fn scan_start(start: &'a str, names: &[&str; N]) -> Self {
        let mut members = Self::NONE;
        // It ends in an error wherever the rest is missing; what was found before stays.
        let _ = members.read(&mut Scanner::new(start), names);
        // A number that touches the end may lack digits.
        let end = start.as_ptr() as usize + start.len();
        let is_whole = |text: &&str| text.as_ptr() as usize + text.len() < end;
        members.found = members.found.map(|text| text.filter(is_whole));
        members
    }

    fn read(&mut self, scanner: &mut Scanner<'a>, names: &[&str; N]) -> Result<(), NotJson> {
        if !scanner.take(b'{') {
            return Err(NotJson);
        }
        if scanner.take(b'}') {
            return Ok(());
        }
        loop {
            let (name, is_plain) = scanner.name()?;
            let index = index_of(names, name, is_plain)?;
            if let Some(index) = index {
                self.begun[index] = true;
            }
            let value = scanner.value()?;
            self.deepest = scanner.deepest();
            if let Some(index) = index
                && self.found[index].replace(value).is_some()
            {
                self.duplicate.get_or_insert(index);
            }
            if !scanner.take(b',') {
                return if scanner.take(b'}') { Ok(()) } else { Err(NotJson) };
            }
        }
    }

    /// The text of the member whose name stands at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a str> {
        self.found[index]
    }

    /// Whether the member's name stands there, be its value whole or not.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.begun[index]
    }

    /// The text of the member, with `null` counting as absent.
    #[must_use]
    pub fn get_some(&self, index: usize) -> Option<&'a str> {
        self.found[index].filter(|text| *text != "null")
    }

    /// The member as a string, its escapes decoded; `null` counts as absent.
    ///
    /// # Errors
    /// When it is no string, or one that cannot be decoded.
    #[must_use]
    pub fn get_string(&self, index: usize) -> Option<Result<Cow<'a, str>, serde_json::Error>> {
        self.get_some(index).map(string)
    }

    /// How many levels of arrays and objects are open at once in the object, itself among them.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.deepest + 1
    }

    /// The index of a name that stood there more than once.
    #[must_use]
    pub fn duplicate(&self) -> Option<usize> {
        self.duplicate
    }
}

/// What the text of a string means.
pub(crate) fn string(text: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(content) if !content.contains('\\') => Ok(Cow::Borrowed(content)),
        _ => serde_json::from_str::<String>(text).map(Cow::Owned),
    }
}

/// Which of the names a member has.
fn index_of(names: &[&str], written: &[u8], is_plain: bool) -> Result<Option<usize>, NotJson> {
    let position = |name: &[u8]| names.iter().position(|known| known.as_bytes() == name);
    if is_plain {
        return Ok(position(written));
    }
    let quoted = [b"\"", written, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).map(|name| position(name.as_bytes())).map_err(|_| NotJson)
}

/// Why a text is no object, in the words of `serde_json`.
#[cold]
fn why(json: &str) -> serde_json::Error {
    match serde_json::from_str::<BTreeMap<String, IgnoredAny>>(json) {
        Err(error) => error,
        Ok(_) => serde_json::Error::custom("not an object"),
    }
}

/// What is picked of an object, and what a string says, is what `serde_json` reads there.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(text: &str) {
    use serde_json::Value;

    const NAMES: [&str; 3] = ["id", "method", "a"];
    // It knows no number that is no double, and no lone surrogate.
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    assert_eq!(string(text).ok().as_deref(), value.as_str(), "{text:?}");
    let members = Members::scan(text, &NAMES);
    assert_eq!(members.is_ok(), value.is_object(), "{text:?}");
    let Ok(members) = members else { return };
    for (index, name) in NAMES.iter().enumerate() {
        let read = members.get(index).map(|member| serde_json::from_str::<Value>(member).ok());
        assert_eq!(read, value.get(name).cloned().map(Some), "{name} in {text:?}");
        let said = members.get_string(index).map(|said| said.ok().map(Cow::into_owned));
        let meant = value.get(name).filter(|member| !member.is_null());
        assert_eq!(said, meant.map(|member| member.as_str().map(str::to_owned)), "{name} in {text:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_by_exact_name_and_tells_duplicates() {
        let json = r#"{"b":1,"A":2,"a":null,"x":{"a":9},"\u0062":3}"#;
        let members = Members::scan(json, &["a", "b", "c"]).unwrap();
        assert_eq!(members.get(0).unwrap(), "null");
        assert!(members.get_some(0).is_none());
        assert!(members.get(2).is_none());
        assert_eq!(members.duplicate(), Some(1));
    }

    #[test]
    fn the_start_of_an_object_tells_only_what_stands_there_whole() {
        for (start, id) in [
            (r#"{"id":12,"params":{"a":[1,2"#, Some("12")),
            (r#"{"id":12"#, None),
            (r#"{"id":12,"#, Some("12")),
            (r#"{"id":"a","#, Some("\"a\"")),
            (r#"{"id":"a"#, None),
            (r#"{"params":{"id":7},"x":"#, None),
            ("[1", None),
            ("", None),
        ] {
            let members = Members::scan_start(start, &["id"]);
            assert_eq!(members.get(0), id, "{start}");
        }
    }

    #[test]
    fn what_the_fuzzer_compares_is_the_same_for_what_is_known() {
        for text in [
            r#"{"id":1,"\u0069d":"x","a":null,"method":"\ud83d\ude00\n"}"#,
            r#" { "a" : [1e3, {"a":2}] , "a": "" } "#,
            " \"\\u00e9\\\"\" ",
            "\"\"",
            "[]",
            "-0",
            "\"\\ud800\"",
        ] {
            fuzz(text);
        }
    }

    #[test]
    fn only_an_object_has_members() {
        for json in ["[]", "1", "{", "{} {}", ""] {
            assert!(Members::scan(json, &["a"]).is_err(), "{json}");
        }
    }
}
