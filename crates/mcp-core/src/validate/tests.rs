use schemars::JsonSchema;
use serde_json::{Value, json};

use super::*;
use crate::Tool;

fn raw(value: &Value) -> Raw {
    Raw::encode(value).unwrap()
}

fn misfits(schema: &Value, value: &Value) -> Option<String> {
    Schema::compile(&raw(schema)).unwrap().unwrap().misfits(&value.to_string())
}

#[test]
fn what_does_not_fit_is_named_and_its_value_is_not() {
    let schema = json!({
        "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": {
            "a": { "type": "object", "properties": { "b": { "type": "integer", "minimum": 3 } } },
            "list": { "items": { "type": "string" } },
            "kind": { "enum": ["x", "y"] },
            "code": { "pattern": "^[A-Z]+$" },
        },
    });
    for (value, words) in [
        (json!({ "a": { "b": "secret" } }), "`a.b`: it is not of type `integer`"),
        (json!({ "a": { "b": 2 } }), "`a.b`: it is less than the minimum of 3"),
        (json!({ "a": {}, "list": ["s", 3] }), "`list[1]`: it is not of type `string`"),
        (json!({ "a": {}, "kind": "z" }), "`kind`: it is not one of"),
        (json!({ "a": {}, "code": "secret" }), "`code`: it does not match"),
        (json!({ "a": {}, "more": 1 }), "`more`"),
        (json!({}), "arguments: `a` is a required property"),
    ] {
        let told = misfits(&schema, &value).unwrap();
        assert!(told.contains(words) && !told.contains("secret"), "{value}: {told}");
    }
    assert_eq!(misfits(&schema, &json!({ "a": { "b": 3 }, "list": [], "kind": "x", "code": "A" })), None);
}

#[test]
fn what_is_told_is_bounded() {
    let schema = json!({ "items": { "type": "string" } });
    let told = misfits(&schema, &json!(vec![1; 1000])).unwrap();
    assert_eq!((told.matches("string").count(), told.ends_with("; and more")), (10, true), "{told}");
    let name = "n\u{1b}".repeat(10_000);
    let told = misfits(&json!({ "additionalProperties": { "type": "string" } }), &json!({ name: 1 })).unwrap();
    assert!(told.len() < 3000 && !told.contains('\u{1b}'), "{}", told.len());
    let told = misfits(&schema, &json!(vec![1; 40_000])).unwrap();
    assert!(told.contains("too long"), "{told}");
}

#[test]
fn a_pattern_that_never_ends_is_ended() {
    let schema = json!({ "pattern": "^(?=a)(a+)+\\1$" });
    let start = std::time::Instant::now();
    assert!(misfits(&schema, &json!(format!("{}b", "a".repeat(5000)))).is_some());
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_schema_that_is_no_good_is_refused() {
    for (schema, why) in [
        (json!({ "$ref": "https://example.com/a.json" }), "example.com"),
        (json!({ "properties": { "a": { "$ref": "file:///etc/hostname" } } }), "hostname"),
        (json!({ "$ref": "#/$defs/none" }), "none"),
        (json!({ "type": "objekt" }), "objekt"),
        (json!({ "pattern": "(" }), "pattern"),
        (json!({ "properties": [] }), "properties"),
        (json!({ "description": "a".repeat(300 << 10) }), "bytes"),
    ] {
        let error = Schema::compile(&raw(&schema)).unwrap_err().to_string();
        assert!(error.len() < 1000, "{error}");
        assert!(error.contains(why) || why == "objekt" && error.contains("type"), "{why}: {error}");
    }
    let deep = format!("{}{}", r#"{"not":"#.repeat(200), "{}".to_owned() + &"}".repeat(200));
    assert!(Schema::compile(&Raw::parse(deep).unwrap()).is_err());
}

#[test]
fn schemas_of_types_are_taken_at_their_word_and_others_are_not() {
    fn of<T: JsonSchema>() -> bool {
        asserts_more(&Raw::encode(&schemars::schema_for!(T)).unwrap())
    }
    /// Told of, and not checked.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Plain {
        small: u8,
        signed: Option<i16>,
        big: u64,
        float: f64,
        text: String,
        more: Vec<Inner>,
        maybe: Option<Inner>,
        map: std::collections::BTreeMap<String, bool>,
        any: Value,
    }
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        kid: Option<Box<Inner>>,
    }
    assert!(!of::<Plain>());
    macro_rules! with {
        ($($attribute:meta),*: $type:ty) => {{
            #[derive(JsonSchema)]
            #[expect(dead_code, reason = "only its schema is looked at")]
            struct Bounded {
                $(#[$attribute])*
                field: $type,
            }
            of::<Bounded>()
        }};
    }
    assert!(with!(schemars(length(min = 1)): String));
    assert!(with!(schemars(regex(pattern = "^a")): String));
    assert!(with!(schemars(range(min = 1)): u8));
    assert!(with!(schemars(range(max = 10)): i64));
    assert!(with!(schemars(extend("enum" = ["a"])): String));
    assert!(with!(schemars(inner(length(max = 3))): Vec<String>));
    assert!(!with!(schemars(description = "a"): String));
}

fn definition(schema: &str) -> ToolDefinition {
    async fn none(_: crate::Context, _: Raw) -> Result<CallToolResult, ToolError> {
        Ok(CallToolResult::default())
    }
    Tool::with_schema("t", Raw::parse(schema.to_owned()).unwrap(), none).definition
}

#[test]
fn who_wrote_a_schema_decides_when_it_is_asked() {
    let checks = |schema, author| Checks::of(&definition(schema), author, false, false).unwrap();
    let (plain, bounded) =
        (r#"{"properties":{"a":{"type":"string"}}}"#, r#"{"properties":{"a":{"type":"string","minLength":2}}}"#);
    let bad = r#"{"a":1}"#;
    assert!(checks(bounded, Author::Remote).is_none());
    let typed = checks(plain, Author::Type).unwrap();
    assert!(typed.arguments(bad).is_ok());
    assert_eq!(typed.explain(bad).unwrap().message(), "Invalid arguments: `a`: it is not of type `string`");
    assert!(typed.explain(r#"{"a":"b"}"#).is_none());
    // The decoder has better words for these.
    assert!(typed.explain(r#"{"a":"\ud800"}"#).is_none());
    assert!(typed.explain(&format!(r#"{{"a":1,"b":"{}"}}"#, "b".repeat(70_000))).is_none());
    assert!(checks(bounded, Author::Type).unwrap().arguments(r#"{"a":"b"}"#).is_err());
    assert!(checks(plain, Author::Hand).unwrap().arguments(bad).is_err());
    assert!(checks(r#"{"type":"object","description":"d"}"#, Author::Hand).is_none());
    assert!(checks(r#"{"additionalProperties":false}"#, Author::Hand).unwrap().arguments(bad).is_err());
    let error = Checks::of(&definition(r#"{"type":"objekt"}"#), Author::Hand, false, false).unwrap_err();
    assert!(error.to_string().starts_with("the input schema: "), "{error}");
    // What decodes by itself needs no schema that compiles.
    assert!(checks(r##"{"$ref":"#/$defs/none"}"##, Author::Type).unwrap().explain(bad).is_none());
}

#[test]
fn a_result_is_held_to_what_was_declared() {
    let mut definition = definition(r#"{"type":"object"}"#);
    definition.output_schema = Some(Raw::parse(r#"{"type":"object","required":["n"]}"#).unwrap());
    let checks = Checks::of(&definition, Author::Remote, true, false).unwrap().unwrap();
    let structured = |text: &str| CallToolResult::text("t").structured(Raw::parse(text.to_owned()).unwrap());
    let result = |result| checks.result(result, Revision::LATEST);
    assert_eq!(result(structured(r#"{"n":1}"#)), Ok(structured(r#"{"n":1}"#)));
    assert_eq!(result(CallToolResult::error("e")), Ok(CallToolResult::error("e")));
    assert_eq!(result(CallToolResult::text("t")), Err(Fault::Internal), "nothing structured at all");
    let before = checks.result(CallToolResult::text("t"), Revision::V2025_03_26);
    assert_eq!(before, Ok(CallToolResult::text("t")), "the revision was told of no schema");
    for misfit in [structured("{}"), structured("[1]")] {
        let told = result(misfit).unwrap();
        assert!(told.is_error && told.structured_content.is_none() && told.to_text().contains("declared shape"));
    }
}
