use std::borrow::Cow;

use mcp_core::{MirrorPlan, jsonrpc::Raw};

use super::{
    compare::{Invalid, Mismatch, decode_value, matches, matches_argument, matches_plain},
    encode::encode_value,
    *,
};

/// Value and header, as the specification's table has them and beyond.
const ENCODED: &[(&str, &str)] = &[
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("", "=?base64??="),
    (" ", "=?base64?IA==?="),
    ("\t", "=?base64?CQ==?="),
    (" leading", "=?base64?IGxlYWRpbmc=?="),
    ("trailing ", "=?base64?dHJhaWxpbmcg?="),
    ("\ttab", "=?base64?CXRhYg==?="),
    ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
    ("nul\0", "=?base64?bnVsAA==?="),
    ("del\u{7f}", "=?base64?ZGVsfw==?="),
    ("é", "=?base64?w6k=?="),
    ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
];

const PLAIN: &[&str] = &[
    "us-west1",
    "a",
    "!",
    "~",
    "two words",
    "tab\tinside",
    "file:///projects/myapp/config.json",
    "42",
    "-7",
    "true",
    "SGVsbG8=",
    "=?base64?SGVsbG8=",
    "SGVsbG8=?=",
    "=?BASE64?SGVsbG8=?=",
    "=?Base64?SGVsbG8=?=",
    "x=?base64?SGVsbG8=?=",
    "=?base64?SGVsbG8=?= x",
    "=?utf-8?SGVsbG8=?=",
];

#[test]
fn names_are_those_of_the_specification() {
    for (constant, name) in [
        (MCP_SESSION_ID, "Mcp-Session-Id"),
        (MCP_PROTOCOL_VERSION, "MCP-Protocol-Version"),
        (MCP_METHOD, "Mcp-Method"),
        (MCP_NAME, "Mcp-Name"),
        (LAST_EVENT_ID, "Last-Event-ID"),
    ] {
        assert_eq!(constant, name.parse::<HeaderName>().unwrap());
    }
    assert_eq!(MCP_PARAM_PREFIX, "Mcp-Param-".to_lowercase());
}

#[test]
fn a_plain_value_travels_as_it_stands() {
    for value in PLAIN {
        assert!(matches!(encode_value(value), Cow::Borrowed(header) if header == *value), "{value}");
        assert_eq!(decode_value(value.as_bytes()), Ok(Cow::Borrowed(*value)), "{value}");
        assert_eq!(matches(Some(value.as_bytes()), value), Ok(()), "{value}");
    }
}

#[test]
fn any_other_value_is_encoded_and_comes_back() {
    for (value, header) in ENCODED {
        assert_eq!(encode_value(value), *header, "{value:?}");
        assert_eq!(decode_value(header.as_bytes()).as_deref(), Ok(*value), "{value:?}");
        assert_eq!(matches(Some(header.as_bytes()), value), Ok(()), "{value:?}");
    }
}

#[test]
fn every_character_comes_back_in_every_place() {
    for c in (0..=0x2ff).filter_map(char::from_u32).chain(['世', '\u{feff}', '\u{10ffff}']) {
        for value in [format!("{c}"), format!("{c}x"), format!("x{c}"), format!("x{c}x"), format!("x {c} x")] {
            let header = encode_value(&value);
            assert!(http::HeaderValue::from_str(&header).is_ok(), "{value:?}");
            assert!(header.is_ascii(), "{value:?}");
            assert_eq!(decode_value(header.as_bytes()).as_deref(), Ok(value.as_str()), "{value:?}");
        }
    }
}

#[test]
fn a_plain_header_is_decoded_without_allocation() {
    assert!(matches!(decode_value(b"get_weather"), Ok(Cow::Borrowed("get_weather"))));
    assert!(matches!(decode_value(b""), Ok(Cow::Borrowed(""))));
}

#[test]
fn space_around_a_header_is_not_part_of_its_value() {
    assert_eq!(matches(Some(b"  get weather \t"), "get weather"), Ok(()));
    assert_eq!(matches(Some(b" =?base64?w6k=?= "), "é"), Ok(()));
    assert_eq!(matches_plain(Some(b" tools/call "), "tools/call"), Ok(()));
    assert!(matches(Some(b" padded "), " padded ").is_err());
}

#[test]
fn raw_bytes_beyond_ascii_and_control_characters_are_refused() {
    for header in [&b"\xc3\xa9"[..], b"\xe9", b"\xff", b"a\0b", b"a\nb", b"a\rb", b"a\x7f", b"\x1b[2J", b"\x0bx"] {
        assert_eq!(decode_value(header), Err(Invalid::Characters), "{header:?}");
        assert!(matches!(matches_plain(Some(header), "x"), Err(Mismatch::Invalid { .. })), "{header:?}");
    }
    // Equal to the body, and still no header text.
    assert!(matches!(matches(Some("é".as_bytes()), "é"), Err(Mismatch::Invalid { .. })));
}

#[test]
fn base64_is_strict() {
    for header in [
        "=?base64?SGVsbG8?=",
        "=?base64?SGVsbG8==?=",
        "=?base64?SGVsbG9=?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?base64?SGVs bG8=?=",
        "=?base64? SGVsbG8=?=",
        "=?base64?SGVsbG8=\t?=",
        "=?base64?_-8=?=",
        "=?base64?=?=",
        "=?base64?====?=",
        "=?base64?S?=",
        "=?base64?SGVsbG8=?==?base64?SGVsbG8=?=",
        "=?base64?literal?=",
        "=?base64?=",
    ] {
        assert_eq!(decode_value(header.as_bytes()), Err(Invalid::Base64), "{header}");
    }
    assert_eq!(decode_value(b"=?base64?//4=?="), Err(Invalid::Utf8));
    assert_eq!(decode_value(b"=?base64?7aCA?="), Err(Invalid::Utf8));
}

#[test]
fn a_sentinel_is_decoded_once_and_compared_whole() {
    // A client that forgot to encode a value with the sentinel's look means another value.
    assert!(matches(Some(b"=?base64?SGVsbG8=?="), "=?base64?SGVsbG8=?=").is_err());
    assert_eq!(matches(Some(b"=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?="), "=?base64?SGVsbG8=?="), Ok(()));
    for header in ["hello", "Hello ", "Hell", "Hello2"] {
        let differs = matches(Some(encode_value(header).as_bytes()), "Hello");
        assert!(matches!(differs, Err(Mismatch::Differs { .. })), "{header}");
    }
}

#[test]
fn an_empty_value_is_taken_in_either_form() {
    assert_eq!(matches(Some(b""), ""), Ok(()));
    assert_eq!(matches(Some(b"=?base64??="), ""), Ok(()));
    assert_eq!(matches(None, ""), Err(Mismatch::Missing));
}

#[test]
fn a_method_is_never_decoded() {
    assert_eq!(matches_plain(Some(b"tools/call"), "tools/call"), Ok(()));
    assert!(matches_plain(Some(encode_value("é").as_bytes()), "é").is_err());
    assert!(matches_plain(Some(b"=?base64?dG9vbHMvY2FsbA==?="), "tools/call").is_err());
    assert!(matches_plain(Some(b"Tools/Call"), "tools/call").is_err());
    assert_eq!(matches_plain(None, "tools/call"), Err(Mismatch::Missing));
}

#[test]
fn a_mismatch_reads_as_in_the_specification() {
    let message = |header: Option<&[u8]>, body| matches(header, body).unwrap_err().message("Mcp-Name");
    assert_eq!(message(Some(b"foo"), "bar"), "Mcp-Name header value 'foo' does not match body value 'bar'");
    assert_eq!(
        message(Some(b"=?base64?w6kK?="), "a'\u{1b}"),
        "Mcp-Name header value 'é\\n' does not match body value 'a\\'\\u{1b}'"
    );
    assert_eq!(message(None, "bar"), "Mcp-Name header is missing");
    assert_eq!(
        message(Some(b"\xe9\r\n"), "bar"),
        "Mcp-Name header value '\\xe9\\r\\n' is invalid: \
         it has characters other than visible ASCII, spaces and tabs"
    );
    assert_eq!(
        message(Some(b"=?base64?SGVsbG8?="), "Hello"),
        "Mcp-Name header value '=?base64?SGVsbG8?=' is invalid: it is not Base64"
    );
}

#[test]
fn a_mismatch_is_bounded() {
    let long = "é".repeat(1_000_000);
    let cut = format!("{}…", "é".repeat(200));
    let differs = matches(Some(encode_value(&long).as_bytes()), &format!("{long}x"));
    assert_eq!(differs, Err(Mismatch::Differs { header: cut.clone(), body: cut }));

    let invalid = matches(Some(long.as_bytes()), "x").unwrap_err().to_string();
    assert!(invalid.len() < 600, "{invalid}");
}

#[test]
fn an_argument_is_compared_as_what_it_is() {
    let schema = r#"{"properties":{"v":{"type":["string","integer","boolean"],"x-mcp-header":"V"}}}"#;
    let plan = MirrorPlan::compile(&Raw::parse(schema).unwrap()).unwrap();
    let judged = |header: Option<&str>, body: &str| {
        let arguments = Raw::parse(format!(r#"{{"v":{body}}}"#)).unwrap();
        let value = plan.each(Some(&arguments)).next().unwrap().1;
        matches_argument(header.map(str::as_bytes), value.as_ref()).map_err(|mismatch| mismatch.to_string())
    };
    for (header, body) in [
        (Some("us-west1"), r#""us-west1""#),
        (Some("=?base64?w6k=?="), r#""é""#),
        (Some(""), r#""""#),
        (Some("42.0"), "42"),
        (Some("=?base64?NDI=?="), "42"),
        (Some("true"), "true"),
        (Some("1.5"), "1.5"),
        (None, "null"),
        (None, "[1]"),
    ] {
        assert_eq!(judged(header, body), Ok(()), "{header:?} {body}");
    }
    for (header, body, why) in [
        (None, r#""a""#, "missing"),
        (Some("a"), "null", "no value"),
        (Some("a"), r#""b""#, "does not match"),
        (Some("True"), "true", "does not match"),
        (Some("42"), r#""42.0""#, "does not match"),
        (Some("=?base64?SGVsbG8?="), r#""Hello""#, "Base64"),
        (Some("9007199254740993"), "9007199254740993", "double"),
    ] {
        let message = judged(header, body).unwrap_err();
        assert!(message.contains(why), "{header:?} {body}: {message}");
    }
}
