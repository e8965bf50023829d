use mcp_jsonrpc::Raw;
use serde_json::{Map, Value};

/// Keywords that say no more than the type that a schema was made of, or assert nothing.
const OF_TYPES: [&str; 22] = [
    "$comment",
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "format",
    "items",
    "maximum",
    "minimum",
    "prefixItems",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "writeOnly",
];

/// Whether a schema that was made of a type asserts what decoding into that type may not.
///
/// Structs, maps, lists, options and numbers come with keywords that decoding enforces by itself. Any other keyword may
/// come from an attribute (`pattern`, `minLength`, a narrower `minimum`, …), and so may an `enum`, which cannot be told
/// from a Rust enum's. When in doubt the answer is yes, which costs time and nothing else. Not seen is an attribute that
/// names another type, or makes an optional field required.
pub(super) fn asserts_more(schema: &Raw) -> bool {
    schema.decode::<Value>().map_or(true, |schema| asserts(&schema))
}

/// Whether a schema asserts no more than that arguments are an object, which they always are. They are not read then, so
/// that what a double or a `String` cannot hold reaches a handler that takes raw text.
pub(super) fn asserts_nothing(schema: &Raw) -> bool {
    let is_told_only = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "type" => value == "object",
        "$comment" | "description" | "title" => value.is_string(),
        _ => false,
    };
    schema.decode::<Map<String, Value>>().is_ok_and(|schema| schema.iter().all(is_told_only))
}

/// It recurses no deeper than what `serde_json` reads, 128 levels.
fn asserts(schema: &Value) -> bool {
    match schema {
        // `false`, as of `deny_unknown_fields`, can be an attribute's too.
        Value::Bool(all) => !all,
        Value::Object(schema) => {
            has_bounds_of_its_own(schema) || schema.iter().any(|(keyword, value)| keyword_asserts(keyword, value))
        }
        _ => false,
    }
}

fn keyword_asserts(keyword: &str, value: &Value) -> bool {
    match (keyword, value) {
        ("$defs" | "definitions" | "properties", Value::Object(schemas)) => schemas.values().any(asserts),
        ("anyOf" | "prefixItems", Value::Array(schemas)) => schemas.iter().any(asserts),
        ("items" | "additionalProperties", schema) => asserts(schema),
        _ => !OF_TYPES.contains(&keyword) && !keyword.starts_with("x-"),
    }
}

/// Whether bounds are others than those of the integer type that `format` names.
fn has_bounds_of_its_own(schema: &Map<String, Value>) -> bool {
    let (minimum, maximum) = (schema.get("minimum"), schema.get("maximum"));
    let (least, most) = schema.get("format").and_then(Value::as_str).map_or((None, None), bounds);
    let differs = |bound: Option<&Value>, own: Option<i64>| bound.is_some_and(|bound| bound.as_i64() != own);
    differs(minimum, least) || differs(maximum, most)
}

/// The bounds that schemas of Rust's integers carry.
fn bounds(format: &str) -> (Option<i64>, Option<i64>) {
    match format {
        "uint8" => (Some(0), Some(u8::MAX.into())),
        "uint16" => (Some(0), Some(u16::MAX.into())),
        "uint32" | "uint64" | "uint128" | "uint" => (Some(0), None),
        "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        _ => (None, None),
    }
}
