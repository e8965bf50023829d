use serde_json::{Value, json};

use super::*;

fn compile(schema: &Value) -> Result<MirrorPlan, Error> {
    MirrorPlan::compile(&Raw::encode(schema).unwrap())
}

fn of(properties: &Value) -> Result<MirrorPlan, Error> {
    compile(&json!({ "type": "object", "properties": properties }))
}

fn pairs(plan: &MirrorPlan, arguments: &str) -> Vec<String> {
    let arguments = Raw::parse(arguments).unwrap();
    plan.extract(&arguments).map(|(name, value)| format!("{name}: {}", value.as_str())).collect()
}

#[test]
fn values_are_read_at_the_exact_path() {
    let plan = of(&json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "deep": { "type": "object", "properties": {
            "n": { "type": "integer", "x-mcp-header": "N" },
            "region": { "type": ["string", "null"], "x-mcp-header": "Deep-Region" },
        }},
        "dry": { "type": "boolean", "x-mcp-header": "Dry" },
        "query": { "type": "string" },
    }))
    .unwrap();
    for (arguments, expected) in [
        (r#"{"region":"us","query":"q"}"#, vec!["Region: us"]),
        (r#"{"deep":{"n":7,"region":"x"},"dry":false}"#, vec!["Deep-Region: x", "Dry: false", "N: 7"]),
        (r#"{"region":null,"deep":null,"dry":null}"#, vec![]),
        (r#"{"n":7,"deep":[{"n":7}]}"#, vec![]),
        (r#"{"region":{"a":1},"dry":[true],"deep":{"n":"text"}}"#, vec!["N: text"]),
        ("{}", vec![]),
    ] {
        let mut found = pairs(&plan, arguments);
        found.sort();
        assert_eq!(found, expected, "{arguments}");
    }
    assert_eq!(plan.each(None).filter(|(_, value)| value.is_none()).count(), 4);
}

#[test]
fn values_become_text() {
    let plan = of(&json!({ "v": { "type": "string", "x-mcp-header": "V" } })).unwrap();
    for (value, text) in [
        (r#""""#, ""),
        (r#"" a ""#, " a "),
        (r#""\u4e16\n""#, "世\n"),
        ("-7", "-7"),
        ("42.0", "42"),
        ("4.2e1", "42"),
        ("-0", "0"),
        ("3.5", "3.5"),
        ("9007199254740991", "9007199254740991"),
        ("9007199254740993", "9007199254740993"),
        ("true", "true"),
    ] {
        assert_eq!(pairs(&plan, &format!(r#"{{"v": {value} }}"#)), [format!("V: {text}")], "{value}");
    }
    assert_eq!(pairs(&plan, r#"{"v":"\ud800"}"#), [""; 0]);
}

#[test]
fn numbers_are_compared_as_numbers_and_text_as_text() {
    let value = |text: &str| MirroredValue::of(&Raw::parse(text.to_owned()).unwrap()).unwrap();
    for (body, header, same) in [
        ("42", "42", true),
        ("42", "42.0", true),
        ("42.0", "42", true),
        ("42", "4.2e1", true),
        ("42", "+42", false),
        ("42", "042", false),
        ("42", " 42", false),
        ("42", "43", false),
        ("42", "", false),
        ("42", "NaN", false),
        ("9007199254740993", "9007199254740992", false),
        ("\"42\"", "42.0", false),
        ("\"42\"", "42", true),
        ("true", "True", false),
        ("true", "true", true),
    ] {
        assert_eq!(value(body).is(header), same, "{body} {header}");
    }
    for (body, is_unsafe) in [
        ("9007199254740991", false),
        ("-9007199254740991", false),
        ("9007199254740992", true),
        ("1e300", true),
        ("1.5", false),
        ("\"9007199254740992\"", false),
    ] {
        assert_eq!(value(body).is_unsafe_integer(), is_unsafe, "{body}");
    }
}

#[test]
fn a_bad_annotation_names_its_property() {
    let header = |name: Value| json!({ "type": "string", "x-mcp-header": name });
    for (properties, property, why) in [
        (json!({ "a": header(json!("")) }), "`a`", "name"),
        (json!({ "a": header(json!("My Region")) }), "`a`", "name"),
        (json!({ "a": header(json!("Region:Primary")) }), "`a`", "name"),
        (json!({ "a": header(json!("Région")) }), "`a`", "name"),
        (json!({ "a": header(json!("Region\t1")) }), "`a`", "name"),
        (json!({ "a": header(json!("a\r\nX")) }), "`a`", "name"),
        (json!({ "a": header(json!(7)) }), "`a`", "string"),
        (json!({ "a": header(json!(null)) }), "`a`", "string"),
        (json!({ "a": header(json!("F")), "b": header(json!("f")) }), "`b`", "same"),
        (json!({ "a": { "type": "number", "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "type": "object", "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "type": "array", "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "type": "null", "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "type": ["null"], "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "type": ["string", "number"], "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "$ref": "#/$defs/s", "x-mcp-header": "A" } }), "`a`", "type"),
        (json!({ "a": { "type": "array", "items": header(json!("A")) } }), "`a.items`", "reached"),
        (json!({ "a": { "anyOf": [header(json!("A"))] } }), "`a.anyOf`", "reached"),
        (json!({ "a": { "not": { "properties": { "b": header(json!("A")) } } } }), "`a.not.properties.b`", "reached"),
        (json!({ "o": { "properties": { "b": header(json!("")) } } }), "`o.b`", "name"),
    ] {
        let message = of(&properties).unwrap_err().to_string();
        assert!(message.contains(property) && message.contains(why), "{properties}: {message}");
    }
    for (schema, property) in [
        (json!({ "type": "string", "x-mcp-header": "A" }), "(root)"),
        (json!({ "$defs": { "s": header(json!("A")) } }), "`$defs.s`"),
        (json!({ "if": { "properties": { "a": header(json!("A")) } } }), "`if.properties.a`"),
        (json!({ "patternProperties": { "^a": header(json!("A")) } }), "`patternProperties.^a`"),
        (json!({ "additionalProperties": header(json!("A")) }), "`additionalProperties`"),
    ] {
        let message = compile(&schema).unwrap_err().to_string();
        assert!(message.contains(property), "{schema}: {message}");
    }
}

#[test]
fn what_only_looks_like_an_annotation_is_none() {
    for schema in [
        json!({ "type": "object" }),
        json!({ "properties": { "x-mcp-header": { "type": "string" } } }),
        json!({ "properties": { "a": { "type": "object", "default": { "x-mcp-header": "A" } } } }),
        json!({ "properties": { "a": { "enum": [{ "x-mcp-header": "" }] } } }),
        json!({ "description": "x-mcp-header" }),
        json!(true),
        json!([]),
    ] {
        assert!(compile(&schema).unwrap().is_empty(), "{schema}");
    }
    let escaped = Raw::parse(r#"{"properties":{"a":{"type":"string","\u0078-mcp-header":"A"}}}"#).unwrap();
    assert!(!MirrorPlan::compile(&escaped).unwrap().is_empty());
}

#[test]
fn an_error_is_bounded_and_depth_too() {
    let long = of(&json!({ "a\u{1b}".repeat(1000): { "x-mcp-header": "A" } })).unwrap_err().to_string();
    assert!(long.len() < 2500 && !long.contains('\u{1b}'), "{}", long.len());
    let deep = format!("{}\"x-mcp-header\"{}", "[".repeat(5000), "]".repeat(5000));
    assert!(MirrorPlan::compile(&Raw::parse(deep).unwrap()).is_err());
}
