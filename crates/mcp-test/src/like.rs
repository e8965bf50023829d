//! JSON that is expected, and JSON that came.

use std::{error::Error, fmt};

use serde_json::Value;

/// Where a value is not what was expected, and what is there: `result.content[0].text: expected "a", got "b"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    path: String,
    what: String,
}

impl Mismatch {
    fn new(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), what: what.into() }
    }

    /// The place, as `result.content[0].text`; `$` for the whole value.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

impl Error for Mismatch {}

/// The first place where `actual` is not what was expected, if there is one.
///
/// Objects may have more members than the expected one, arrays are equal in length, numbers are equal however they are
/// written. Some strings stand for other things:
///
/// | expected | fits |
/// |---|---|
/// | `"~text"` | a string that contains the text |
/// | `"!any"` | any value |
/// | `"!absent"` | a member that is not there |
/// | `["!unordered", …]` | an array of the items that follow, in any order |
///
/// ```
/// use mcp_test::mismatch;
/// use serde_json::json;
///
/// let came = json!({ "id": 1, "result": { "content": [{ "type": "text", "text": "seven" }] } });
/// assert_eq!(mismatch(&json!({ "result": { "content": [{ "text": "~eve" }] } }), &came), None);
///
/// let why = mismatch(&json!({ "result": { "content": [{ "text": "8" }] } }), &came).unwrap();
/// assert_eq!(why.to_string(), r#"result.content[0].text: expected "8", got "seven""#);
/// ```
#[must_use]
pub fn mismatch(expected: &Value, actual: &Value) -> Option<Mismatch> {
    at("", expected, Some(actual))
}

/// That `actual` is like `expected`, by the rules of [`mismatch`].
///
/// # Panics
/// When it is not, with the place and both values.
#[track_caller]
pub fn assert_like(expected: &Value, actual: &Value) {
    if let Some(why) = mismatch(expected, actual) {
        panic!("{}", difference(&why, expected, actual));
    }
}

/// A mismatch with what it is about.
pub(crate) fn difference(why: &Mismatch, expected: &Value, actual: &Value) -> String {
    format!("{why}\n  expected {expected}\n  got      {actual}")
}

fn at(path: &str, expected: &Value, actual: Option<&Value>) -> Option<Mismatch> {
    let shown = if path.is_empty() { "$" } else { path };
    let wrong = |actual: &dyn fmt::Display| Some(Mismatch::new(shown, format!("expected {expected}, got {actual}")));
    if expected == "!absent" {
        return actual.and_then(|actual| wrong(actual));
    }
    let Some(actual) = actual else { return wrong(&"nothing") };
    match (expected, actual) {
        (Value::String(text), _) if text == "!any" => None,
        (Value::String(text), Value::String(whole)) if text.starts_with('~') => {
            if whole.contains(&text[1..]) {
                None
            } else {
                wrong(actual)
            }
        }
        (Value::Object(members), Value::Object(actual)) => {
            members.iter().find_map(|(name, member)| at(&member_of(path, name), member, actual.get(name)))
        }
        (Value::Array(items), Value::Array(actual)) if items.first().is_some_and(|first| first == "!unordered") => {
            unordered(shown, &items[1..], actual)
        }
        // However it is written: 1 is 1.0.
        (Value::Number(number), Value::Number(other)) if number.is_f64() != other.is_f64() => {
            if number.as_f64() == other.as_f64() { None } else { wrong(actual) }
        }
        (Value::Array(items), Value::Array(actual)) => {
            if items.len() != actual.len() {
                let what = format!("expected {} items, got {}", items.len(), actual.len());
                return Some(Mismatch::new(shown, what));
            }
            let mut pairs = items.iter().zip(actual).enumerate();
            pairs.find_map(|(index, (item, actual))| at(&format!("{path}[{index}]"), item, Some(actual)))
        }
        _ if expected == actual => None,
        _ => wrong(actual),
    }
}

fn member_of(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Each expected item fits an item of its own.
fn unordered(path: &str, expected: &[Value], actual: &[Value]) -> Option<Mismatch> {
    let mut open: Vec<&Value> = expected.iter().collect();
    for (index, item) in actual.iter().enumerate() {
        let Some(fits) = open.iter().position(|expected| mismatch(expected, item).is_none()) else {
            let place = if path == "$" { "" } else { path };
            return Some(Mismatch::new(&format!("{place}[{index}]"), format!("nothing expected is like {item}")));
        };
        open.remove(fits);
    }
    let missing = open.first()?;
    Some(Mismatch::new(path, format!("expected {missing} among the items, and it is not there")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_subset_matches() {
        for (expected, actual) in [
            (json!({}), json!({"a": 1})),
            (json!({"a": {"b": "~ell"}}), json!({"a": {"b": "hello", "c": 1}})),
            (json!([1, "!any"]), json!([1, {"x": null}])),
            (json!({"a": "!absent"}), json!({"b": 1})),
            (json!(null), json!(null)),
            (json!(1), json!(1.0)),
            (json!(["!unordered", 1, {"a": 1}]), json!([{"a": 1, "b": 1}, 1])),
            (json!(["!unordered"]), json!([])),
            (
                json!({ "params": { "list": [{ "y": 2 }] } }),
                json!({ "id": 1, "params": { "list": [{ "x": 1, "y": 2 }] } }),
            ),
        ] {
            assert_eq!(mismatch(&expected, &actual), None, "{expected} {actual}");
        }
    }

    #[test]
    fn a_difference_is_told_with_its_place() {
        for (expected, actual, place) in [
            (json!({"a": 1}), json!({}), "a"),
            (json!({"a": 1}), json!({"a": "1"}), "a"),
            (json!({"a": 1}), json!({"a": 1.5}), "a"),
            (json!({"id": null}), json!({}), "id"),
            (json!({"a": "!absent"}), json!({"a": null}), "a"),
            (json!({"a": "!any"}), json!({}), "a"),
            (json!({"a": ["~x", 1]}), json!({"a": ["y", 1]}), "a[0]"),
            (json!({"a": "~x"}), json!({"a": 1}), "a"),
            (json!([1]), json!([1, 2]), "$"),
            (json!([]), json!({}), "$"),
            (json!("7"), json!(7), "$"),
            (json!(9007199254740993_u64), json!(9007199254740992_u64), "$"),
            (json!(["!unordered", 1, 1]), json!([1]), "$"),
            (json!(["!unordered", 1, 2]), json!([1, 1]), "[1]"),
            (json!(["!unordered"]), json!([1]), "[0]"),
            (json!({"a": [{"b": 1}]}), json!({"a": [{"b": 2}]}), "a[0].b"),
            (json!({"method": null}), json!({}), "method"),
        ] {
            let why = mismatch(&expected, &actual).unwrap_or_else(|| panic!("{expected} matched {actual}"));
            assert_eq!(why.path(), place, "{why}");
        }
    }

    #[test]
    #[should_panic(expected = "result.content[0].text: expected \"8\", got \"7\"")]
    fn an_assertion_names_the_place() {
        let came = json!({ "result": { "content": [{ "text": "7" }] } });
        assert_like(&json!({ "result": { "content": [{ "text": "8" }] } }), &came);
    }
}
