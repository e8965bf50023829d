use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Some members of an object, picked by name in one shallow scan.
///
/// Names are compared exactly, after their escapes are decoded; members that were not asked for are passed over.
#[derive(Debug)]
pub struct Members<'a, const N: usize> {
    found: [Option<&'a RawValue>; N],
    begun: [bool; N],
    duplicate: Option<usize>,
}

impl<'a, const N: usize> Members<'a, N> {
    /// Scans `json` for the members `names`, without recursion.
    ///
    /// # Errors
    /// When `json` is not exactly one JSON object.
    pub fn scan(json: &'a str, names: &[&str; N]) -> Result<Self, serde_json::Error> {
        let mut members = Self { found: [None; N], begun: [false; N], duplicate: None };
        let mut reader = serde_json::Deserializer::from_str(json);
        reader.deserialize_map(MembersVisitor { names, members: &mut members })?;
        reader.end()?;
        Ok(members)
    }

    /// The members that stand whole at the beginning of an object whose rest is missing.
    #[must_use]
    pub fn scan_start(start: &'a str, names: &[&str; N]) -> Self {
        let mut members = Self { found: [None; N], begun: [false; N], duplicate: None };
        let mut reader = serde_json::Deserializer::from_str(start);
        // It ends in an error wherever the rest is missing; what was found before stays.
        let _ = reader.deserialize_map(MembersVisitor { names, members: &mut members });
        // A number that touches the end may lack digits.
        let end = start.as_ptr() as usize + start.len();
        let is_whole = |raw: &&RawValue| raw.get().as_ptr() as usize + raw.get().len() < end;
        members.found = members.found.map(|raw| raw.filter(is_whole));
        members
    }

    /// The text of the member whose name stands at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a RawValue> {
        self.found[index]
    }

    /// Whether the member's name stands there, be its value whole or not.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.begun[index]
    }

    /// The text of the member, with `null` counting as absent.
    #[must_use]
    pub fn get_some(&self, index: usize) -> Option<&'a RawValue> {
        self.found[index].filter(|raw| raw.get() != "null")
    }

    /// The index of a name that stood there more than once.
    #[must_use]
    pub fn duplicate(&self) -> Option<usize> {
        self.duplicate
    }
}

struct MembersVisitor<'n, 'de, const N: usize> {
    names: &'n [&'n str; N],
    members: &'n mut Members<'de, N>,
}

impl<'de, const N: usize> Visitor<'de> for MembersVisitor<'_, 'de, N> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let members = self.members;
        while let Some(index) = map.next_key_seed(IndexOf(self.names))? {
            match index {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(index) => {
                    members.begun[index] = true;
                    if members.found[index].replace(map.next_value()?).is_some() {
                        members.duplicate.get_or_insert(index);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads a member's name as its place among the names asked for, without keeping it.
struct IndexOf<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for IndexOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IndexOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|known| *known == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_by_exact_name_and_tells_duplicates() {
        let json = r#"{"b":1,"A":2,"a":null,"x":{"a":9},"\u0062":3}"#;
        let members = Members::scan(json, &["a", "b", "c"]).unwrap();
        assert_eq!(members.get(0).unwrap().get(), "null");
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
            assert_eq!(members.get(0).map(RawValue::get), id, "{start}");
        }
    }

    #[test]
    fn only_an_object_has_members() {
        for json in ["[]", "1", "{", "{} {}", ""] {
            assert!(Members::scan(json, &["a"]).is_err(), "{json}");
        }
    }
}
