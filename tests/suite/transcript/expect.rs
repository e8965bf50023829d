use serde_json::Value;

/// The first place where `actual` is not what was expected, if there is one.
pub(crate) fn mismatch(expected: &Value, actual: &Value) -> Option<String> {
    at("$", expected, Some(actual))
}

fn at(path: &str, expected: &Value, actual: Option<&Value>) -> Option<String> {
    let wrong = |actual: &dyn std::fmt::Display| Some(format!("at {path}: expected {expected}, got {actual}"));
    if expected == "!absent" {
        return actual.and_then(|actual| wrong(actual));
    }
    let Some(actual) = actual else { return wrong(&"nothing") };
    match (expected, actual) {
        (Value::String(text), _) if text == "!any" => None,
        (Value::String(text), Value::String(actual)) if text.starts_with('~') => {
            if actual.contains(&text[1..]) {
                None
            } else {
                wrong(&Value::from(actual.as_str()))
            }
        }
        (Value::Object(members), Value::Object(actual)) => {
            members.iter().find_map(|(name, member)| at(&format!("{path}.{name}"), member, actual.get(name)))
        }
        (Value::Array(items), Value::Array(actual)) if items.first().is_some_and(|first| first == "!unordered") => {
            unordered(path, &items[1..], actual)
        }
        // However it is written: 1 is 1.0.
        (Value::Number(number), Value::Number(actual)) if number.is_f64() != actual.is_f64() => {
            if number.as_f64() == actual.as_f64() { None } else { wrong(actual) }
        }
        (Value::Array(items), Value::Array(actual)) => {
            if items.len() != actual.len() {
                return Some(format!("at {path}: expected {} items, got {}", items.len(), actual.len()));
            }
            let mut pairs = items.iter().zip(actual).enumerate();
            pairs.find_map(|(index, (item, actual))| at(&format!("{path}[{index}]"), item, Some(actual)))
        }
        _ if expected == actual => None,
        _ => wrong(actual),
    }
}

/// Each expected item fits an item of its own.
fn unordered(path: &str, expected: &[Value], actual: &[Value]) -> Option<String> {
    let mut open: Vec<&Value> = expected.iter().collect();
    for (index, item) in actual.iter().enumerate() {
        let Some(fits) = open.iter().position(|expected| mismatch(expected, item).is_none()) else {
            return Some(format!("at {path}[{index}]: nothing expected is like {item}"));
        };
        open.remove(fits);
    }
    open.first().map(|missing| format!("at {path}: expected {missing} among the items, and it is not there"))
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
        ] {
            assert_eq!(mismatch(&expected, &actual), None, "{expected} {actual}");
        }
    }

    #[test]
    fn a_difference_is_told_with_its_place() {
        for (expected, actual, place) in [
            (json!({"a": 1}), json!({}), "$.a"),
            (json!({"a": 1}), json!({"a": "1"}), "$.a"),
            (json!({"a": 1}), json!({"a": 1.5}), "$.a"),
            (json!({"id": null}), json!({}), "$.id"),
            (json!({"a": "!absent"}), json!({"a": null}), "$.a"),
            (json!({"a": "!any"}), json!({}), "$.a"),
            (json!({"a": ["~x", 1]}), json!({"a": ["y", 1]}), "$.a[0]"),
            (json!({"a": "~x"}), json!({"a": 1}), "$.a"),
            (json!([1]), json!([1, 2]), "$:"),
            (json!([]), json!({}), "$:"),
            (json!("7"), json!(7), "$:"),
            (json!(9007199254740993_u64), json!(9007199254740992_u64), "$:"),
            (json!(["!unordered", 1, 1]), json!([1]), "$:"),
            (json!(["!unordered", 1, 2]), json!([1, 1]), "$[1]"),
            (json!(["!unordered"]), json!([1]), "$[0]"),
        ] {
            let why = mismatch(&expected, &actual).unwrap_or_else(|| panic!("{expected} matched {actual}"));
            assert!(why.starts_with(&format!("at {place}")), "{why}");
        }
    }
}
