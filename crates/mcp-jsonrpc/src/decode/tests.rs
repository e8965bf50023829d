use super::*;

fn read(text: impl AsRef<[u8]>) -> Inbound {
    decode(Bytes::copy_from_slice(text.as_ref()), &DecodeLimits::default())
}

fn one(text: impl AsRef<[u8]>) -> Message {
    match read(&text) {
        Inbound::One(message) => message,
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(text.as_ref())),
    }
}

/// The code and the id of the answer that `text` deserves.
fn refused(text: impl AsRef<[u8]>) -> (i64, String) {
    match read(&text) {
        Inbound::Malformed(Malformed { id, error, .. }) => (error.code, id.map_or("null".into(), |id| id.to_string())),
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(text.as_ref())),
    }
}

#[test]
fn the_three_kinds() {
    let request = one(r#" {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"a":1}} "#);
    let Message::Request(request) = request else { panic!() };
    assert_eq!((&*request.method, request.id.as_str()), ("tools/call", Some("a")));
    assert_eq!(request.params.unwrap().as_str(), r#"{"a":1}"#);

    let notification = one(r#"{"jsonrpc":"2.0","method":"notifications/initialized","params":null}"#);
    let Message::Notification(notification) = notification else { panic!() };
    assert_eq!(notification.params, None);

    let response = one(r#"{"jsonrpc":"2.0","id":0,"result":{"x":[]}}"#);
    assert_eq!(response.as_response().unwrap().outcome.as_ref().unwrap().as_str(), r#"{"x":[]}"#);
}

#[test]
fn errors_about_unreadable_requests_have_no_id() {
    for id in [r#""id":null,"#, ""] {
        let message = one(format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"no"}}}}"#));
        let response = message.as_response().unwrap();
        assert_eq!(response.id, None);
        assert_eq!(response.outcome.as_ref().unwrap_err().code, -32700);
    }
}

#[test]
fn not_json_is_a_parse_error() {
    for text in
        ["", " ", "garbage", "{", r#"{"jsonrpc":"2.0","id":0,"meth"#, "[1,", "{} {}", "Content-Length: 40", "nul"]
    {
        assert_eq!(refused(text), (code::PARSE_ERROR, "null".into()), "{text}");
    }
    let bad_utf8 = [br#"{"jsonrpc":"2.0","id":9,"method":"m","x":""#.as_slice(), &[0xc4, 0xe3], br#""}"#].concat();
    assert_eq!(refused(bad_utf8), (code::PARSE_ERROR, "null".into()));
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    for text in ["42", "\"x\"", "true", "null", "{}", "[]", r#"{"greeting":"hi"}"#, r#"{"method":"ping","id":null}"#] {
        assert_eq!(refused(text), (code::INVALID_REQUEST, "null".into()), "{text}");
    }
}

#[test]
fn the_id_is_told_whatever_else_is_wrong() {
    for (text, id) in [
        (r#"{"id":11,"method":"m"}"#, "11"),
        (r#"{"jsonrpc":2.0,"id":11,"method":"m"}"#, "11"),
        (r#"{"jsonrpc":"1.0","id":"x","method":"m"}"#, "\"x\""),
        (r#"{"jsonrpc":"2.0","id":11,"method":123}"#, "11"),
        (r#"{"jsonrpc":"2.0","id":11}"#, "11"),
        (r#"{"jsonrpc":"2.0","id":11,"method":"m","result":1}"#, "11"),
        (r#"{"jsonrpc":"2.0","id":11,"result":1,"error":{}}"#, "11"),
        (r#"{"jsonrpc":"2.0","id":11,"method":"a","method":"b"}"#, "11"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":1e2,"method":"a"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":"\ud800","method":"a"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "null"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "null"),
    ] {
        assert_eq!(refused(text), (code::INVALID_REQUEST, id.into()), "{text}");
    }
}

#[test]
fn null_beside_an_outcome_is_none() {
    for (text, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":7,"message":"no"}}"#, Some(7)),
        (r#"{"jsonrpc":"2.0","id":null,"result":null,"error":{"code":7,"message":"no"}}"#, Some(7)),
    ] {
        let Message::Response(response) = one(text) else { panic!("{text}") };
        assert_eq!(response.outcome.err().map(|error| error.code), code, "{text}");
    }
    for text in [r#"{"jsonrpc":"2.0","id":1,"error":null}"#, r#"{"jsonrpc":"2.0","id":1,"result":0,"error":{}}"#] {
        assert_eq!(refused(text), (code::INVALID_REQUEST, "1".into()), "{text}");
    }
}

#[test]
fn names_are_compared_exactly() {
    let message = one(r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","Id":2,"extra":{"method":1}}"#);
    assert_eq!(message.as_request().unwrap().method, "ping");
    let escaped = one(r#"{"jsonrpc":"2.0","\u0069d":1,"method":"p\u0069ng"}"#);
    assert_eq!(escaped.as_request().unwrap().method, "ping");
}

/// Far beyond any bound; Miri takes a second for what is a millisecond elsewhere.
const FAR: usize = if cfg!(miri) { 5_000 } else { 100_000 };

#[test]
fn depth_at_its_edge_and_far_beyond() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"x":{open}{close}}}}}"#)
    };
    one(nested(126));
    assert_eq!(refused(nested(127)), (code::INVALID_REQUEST, "5".into()));
    assert_eq!(refused(nested(FAR)), (code::INVALID_REQUEST, "5".into()));
    assert_eq!(refused("[".repeat(FAR)).0, code::PARSE_ERROR);
    // Brackets in strings are text.
    one(format!(r#"{{"jsonrpc":"2.0","id":5,"method":"m","params":{{"x":"\"{}"}}}}"#, "[".repeat(1000)));
}

#[test]
fn the_id_cap_at_its_edge() {
    let with = |len: usize| format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(len));
    one(with(254));
    assert_eq!(refused(with(255)), (code::INVALID_REQUEST, "null".into()));
}

#[test]
fn batches() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let Inbound::Batch(items) = read(format!("[{ping}, 1, [], {ping}]")) else { panic!() };
    assert_eq!(items.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, true]);
    let many = |count: usize| format!("[{}]", vec![ping; count].join(","));
    assert!(matches!(read(many(64)), Inbound::Batch(items) if items.len() == 64));
    assert_eq!(refused(many(65)).0, code::INVALID_REQUEST);
    assert_eq!(refused("[]").0, code::INVALID_REQUEST);
    assert_eq!(refused(format!("[{ping},]")).0, code::PARSE_ERROR);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    one("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
}

#[test]
fn what_json_does_not_take_for_white_space_is_none() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    one(format!(" \t\r\n{ping}\n"));
    for blank in ["\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{2028}", "\u{3000}"] {
        assert_eq!(refused(format!("{blank}{ping}")).0, code::PARSE_ERROR, "{blank:?} in front");
        assert_eq!(refused(format!("{ping}{blank}")).0, code::PARSE_ERROR, "{blank:?} behind");
    }
}

#[test]
fn nothing_is_copied() {
    let frame = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#);
    let range = frame.as_ptr_range();
    let Inbound::One(Message::Request(request)) = decode(frame.clone(), &DecodeLimits::default()) else { panic!() };
    assert!(range.contains(&request.params.unwrap().as_str().as_ptr()));
    assert!(range.contains(&request.method.as_ptr()));
    assert!(range.contains(&request.id.as_json().as_ptr()));
}

#[test]
fn fuzz_seeds() {
    for seed in [
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":\"\\n\",\"method\":\"\\u0000\",\"params\":{\"a\":\n1}}",
        r#"[{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":[ ]}},{"jsonrpc":"2.0","error":7}]"#,
        "{",
    ] {
        fuzz(seed.as_bytes());
    }
}

#[test]
fn the_id_of_what_is_too_long_is_told_where_it_stands_in_front() {
    let limits = DecodeLimits::default();
    let id = |start: &str| Malformed::too_long(start.as_bytes(), 9, &limits).id.map(|id| id.to_string());
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":"xx"#).as_deref(), Some("5"));
    assert_eq!(id(r#"{"jsonrpc":"2.0","method":"m","params":{"id":5,"a":"xx"#), None);
    assert_eq!(id(&format!(r#"{{"jsonrpc":"2.0","method":"{}","id":5,"#, "m".repeat(2000))), None);
    assert_eq!(id(&format!(r#"{{"id":5,"x":"{}"#, "\u{e9}".repeat(600))).as_deref(), Some("5"));
    assert_eq!(Malformed::too_long(b"", 9, &limits).error.code, code::PARSE_ERROR);
}

#[test]
fn a_small_part_of_a_large_frame_does_not_keep_it() {
    let frame = |unused: usize, params: usize| {
        let (unused, params) = ("u".repeat(unused), "p".repeat(params));
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","unused":"{unused}","params":"{params}"}}"#))
    };
    for (unused, params, shares) in [(100_000, 10, false), (100, 100_000, true), (10, 10, true)] {
        let frame = frame(unused, params);
        let within = frame.as_ptr_range();
        let Inbound::One(Message::Request(request)) = decode(frame.clone(), &DecodeLimits::default()) else { panic!() };
        assert_eq!(within.contains(&request.params.unwrap().as_bytes().as_ptr()), shares, "{unused} {params}");
    }
}
