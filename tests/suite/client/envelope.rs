//! What a server sends that is hardly a message, or none: it costs what it concerns, and nothing else.

use std::time::Duration;

use mcp_suite::{
    Blame, Client, Error, ErrorKind, Limits, Server, Tool, ToolError,
    client::CallOptions,
    implementation,
    jsonrpc::{Bytes, Raw},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer},
    memory::{raw, wait},
};

#[tokio::test(start_paused = true)]
async fn c005_an_answer_settles_only_the_request_of_its_own_id() {
    // The first request of a connection has the id 0, and the first of its calls 1.
    let strangers =
        ["\"\"", "\" \"", "\"0\"", "-0", "0.0", "00", "false", "[]", "[0]", "null", "\"\\u0000\"", "1", "-1"];
    let stolen = |id: &&str| raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"stolen":true}}}}"#));
    let mut script = vec![expect(json!({ "id": 0, "method": "server/discover" }))];
    script.extend(strangers.iter().map(stolen));
    script.push(send(json!({ "id": 0, "result": discovered() })));
    let strangers = ["\"\"", "\" \"", "\"1\"", "1.0", "1e0", "true", "[1]", "null", "0", "11", "10", "2"];
    script.push(expect(json!({ "id": 1, "method": "tools/call" })));
    script.extend(strangers.iter().map(stolen));
    script.push(send(json!({ "id": 1, "result": text("b") })));
    let peer = ScriptedPeer::new(script);
    let client = Client::builder(implementation!()).connect(peer.clone()).await.unwrap();
    assert_eq!(client.revision().era(), Era::Modern);
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    peer.done().await;
}

/// Progress tokens are compared like ids.
#[tokio::test(start_paused = true)]
async fn c005_progress_reaches_only_the_request_of_its_own_token() {
    for era in ERAS {
        let token = |token: Value| {
            send(json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": 99 } }))
        };
        let mut script = vec![expect(json!({ "method": "tools/call" }))];
        script.extend([json!(""), json!(" "), json!("1"), json!("2"), json!(0), json!(99), json!(null)].map(token));
        script.extend([
            send(json!({ "method": "notifications/progress", "params": { "progressToken": "$id", "progress": 1 } })),
            send(json!({ "id": "$id", "result": text("b") })),
        ]);
        let (client, _) = connected(era, script).await;
        let (options, heard) = listening();
        client.call_with::<String>("a", (), options).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), [1.0], "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c014_an_error_about_nothing_in_particular_leaves_pending_calls_alone() {
    for era in ERAS {
        let (client, peer) = connected(
            era,
            [
                vec![
                    expect(json!({ "method": "tools/call" })),
                    raw(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#),
                    raw(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#),
                    raw(r#"{"jsonrpc":"2.0","id":null,"error":null}"#),
                    send(json!({ "id": "$id", "result": text("b") })),
                ],
                answers("a", "c"),
            ]
            .concat(),
        )
        .await;
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "c");
        peer.done().await;
    }
}

/// Over HTTP it can only be about the request that it answers.
#[tokio::test]
async fn c014_over_http_an_error_without_id_is_the_answer() {
    for (status, id) in [(400, r#""id":null,"#), (200, r#""id":null,"#), (400, ""), (200, "")] {
        let body = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"Parse error"}}}}"#);
        for answer in [
            Answer::new(status, "application/json", body.clone()),
            Answer::events(format!("data: {body}\n\n")).without_end(),
        ] {
            let server = HttpPeer::start(http::modern(move |_| answer.clone())).await;
            let client = soon(over_http(&server.url())).await.unwrap();
            let error = soon(client.call::<String>("a", ())).await.unwrap_err();
            assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
            assert_eq!(error.object().unwrap().code, -32700);
        }
    }
}

const BATCH: &str = r#"[{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}]"#;

#[tokio::test]
async fn c018_an_array_for_an_answer_is_an_error_of_that_call() {
    for body in [BATCH, "[]", "[1]", "[[]]", "\"text\"", "1", "null", "{}"] {
        for answer in [Answer::new(200, "application/json", body), Answer::events(format!("data: {body}\n\n"))] {
            for era in ERAS {
                let answer = answer.clone();
                let rule = move |request: &http::Request| match request.body["params"]["name"].as_str() {
                    Some("good") => Answer::result(text("b")),
                    _ => answer.clone(),
                };
                let server = match era {
                    Era::Modern => HttpPeer::start(http::modern(rule)).await,
                    _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
                };
                let client = soon(over_http(&server.url())).await.unwrap();
                let error = soon(client.call::<String>("bad", ())).await.unwrap_err();
                assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{body}: {error}");
                assert_eq!(soon(client.call::<String>("good", ())).await.unwrap(), "b");
            }
        }
    }
}

/// On a shared wire an array is at worst noise.
#[tokio::test(start_paused = true)]
async fn c018_an_array_on_a_shared_wire_does_no_harm() {
    for era in ERAS {
        let (client, peer) = connected(
            era,
            [
                vec![
                    expect(json!({ "method": "tools/call" })),
                    raw("[]"),
                    raw("[1,2]"),
                    raw(r#"[{"jsonrpc":"2.0","id":99,"result":{}},{"jsonrpc":"2.0","method":"x"},null]"#),
                    raw(format!("[{}]", "1,".repeat(5000) + "1")),
                    send(json!({ "id": "$id", "result": text("b") })),
                ],
                answers("a", "c"),
            ]
            .concat(),
        )
        .await;
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "c");
        peer.done().await;
    }
}

/// Under 2025-03-26, and only there, whoever reads must take batches.
///
/// Specification: *2025-03-26, Overview, Batching*; *Transports, Sending Messages to the Server*.
#[tokio::test]
async fn c018_batches_are_read_in_2025_03_26() {
    let batch = r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},
        {"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"b"}]}}]"#;
    let on_one_line = batch.replace('\n', " ");
    let frame = on_one_line.replace("$id", "1");
    let peer = ScriptedPeer::new([
        expect(json!({ "method": "initialize" })),
        send(json!({ "id": "$id", "result": initialized("2025-03-26") })),
        expect(json!({ "method": "notifications/initialized" })),
        expect(json!({ "id": 1, "method": "tools/call" })),
        raw(frame),
    ]);
    let client = connect_in(Era::Legacy, peer).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");

    let answer = Answer::events(format!("data: {on_one_line}\n\n"));
    let server = HttpPeer::start(http::legacy("2025-03-26", move |_| answer.clone())).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_03_26);
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test(start_paused = true)]
async fn c022_a_deeply_nested_answer_fails_its_call_and_no_more() {
    for era in ERAS {
        let id = if era == Era::Modern { 1 } else { 2 };
        let mut script = Script::new();
        for (offset, frame) in [
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"structuredContent":{}}}}}"#, nested(100_000)),
            |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{}}}}}"#, nested(200)),
            |id| {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"","data":{}}}}}"#, nested(100_000))
            },
            |id| {
                format!(
                    r#"{{"jsonrpc":"2.0","result":{},"id":{id}}}"#,
                    r#"{"a":"#.repeat(50_000) + "1" + &"}".repeat(50_000)
                )
            },
        ]
        .into_iter()
        .enumerate()
        {
            script.push(expect(json!({ "id": id + offset, "method": "tools/call" })));
            // Not about a call, and as deep.
            script.push(raw(nested(100_000)));
            script.push(raw("[".repeat(100_000)));
            script.push(raw(format!(r#"{{"jsonrpc":"2.0","method":"x","params":{}}}"#, nested(100_000))));
            script.push(raw(frame(id + offset)));
        }
        script.extend(answers("a", "b"));
        let (client, peer) = connected(era, script).await;
        for _ in 0..4 {
            let start = Instant::now();
            let error = client.call::<Value>("deep", ()).await.unwrap_err();
            assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{error}");
            assert_eq!(start.elapsed(), Duration::ZERO, "it fails at once");
        }
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        peer.done().await;
    }
}

#[tokio::test]
async fn c022_over_http_a_deeply_nested_answer_fails_its_call_and_no_more() {
    let body = format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{{"structuredContent":{}}}}}"#, nested(100_000));
    for answer in [Answer::new(200, "application/json", body.clone()), Answer::events(format!("data: {body}\n\n"))] {
        let server = HttpPeer::start(http::modern(move |_| answer.clone())).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        let error = soon(client.call::<Value>("a", ())).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{error}");
    }
}

/// What is within the limit is read, to its last level.
#[tokio::test(start_paused = true)]
async fn c022_nesting_within_the_limit_is_read() {
    // The envelope, the result and the content are three levels more.
    for (depth, good) in [(100, true), (Limits::default().nesting - 2, true), (Limits::default().nesting - 1, false)] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"structuredContent":{}}}}}"#, nested(depth));
        let (client, _) = connected(Era::Modern, vec![expect(json!({ "id": 1 })), raw(frame)]).await;
        let result = client.call_raw("a", ()).await;
        assert_eq!(result.is_ok(), good, "{depth}");
        if let Ok(result) = result {
            assert_eq!(result.structured_content.unwrap().as_str(), nested(depth));
        }
    }
}

const NUMBERS: &str = r#"{"id":9007199254740993,"big":18446744073709551615,"low":-9223372036854775808,"huge":123456789012345678901234567890,"d":0.1}"#;

#[derive(Debug, Deserialize, PartialEq)]
struct Numbers {
    id: i64,
    big: u64,
    low: i64,
    d: f64,
}

#[tokio::test(start_paused = true)]
async fn c026_numbers_keep_their_digits() {
    for era in ERAS {
        let id = if era == Era::Modern { 1 } else { 2 };
        let frame = |id: u64| {
            raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{NUMBERS}}}}}"#))
        };
        let call = |id: u64| [expect(json!({ "id": id, "method": "tools/call" })), frame(id)];
        let (client, peer) = connected(era, (id..id + 3).flat_map(call)).await;

        #[derive(Serialize)]
        struct Arguments {
            n: i64,
            u: u64,
        }
        let arguments = Arguments { n: 9_007_199_254_740_993, u: u64::MAX };
        let numbers: Numbers = client.call("a", arguments).await.unwrap();
        let expected = Numbers { id: 9_007_199_254_740_993, big: u64::MAX, low: i64::MIN, d: 0.1 };
        assert_eq!(numbers, expected);
        assert!(peer.received().last().unwrap()["params"]["arguments"]["n"] == json!(9_007_199_254_740_993_i64));
        let frame = String::from_utf8(peer.frames().last().unwrap().to_vec()).unwrap();
        assert!(frame.contains(r#""arguments":{"n":9007199254740993,"u":18446744073709551615}"#), "{frame}");

        // What does not fit the type asked for is an error, and no other number.
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "it must not be read at all")]
        struct Huge {
            huge: i64,
        }
        let error = client.call::<Huge>("a", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProtocolInvalid);
        assert!(error.to_string().contains("Huge") && !error.to_string().contains("9007"), "{error}");

        // Passed on, they are the same text; and so are arguments that were given as text.
        let given = Raw::parse(NUMBERS).unwrap();
        let result = client.call_raw("a", &given).await.unwrap();
        assert_eq!(result.structured_content.unwrap().as_str(), NUMBERS);
        let frame = String::from_utf8(peer.frames().last().unwrap().to_vec()).unwrap();
        assert!(frame.contains(&format!(r#""arguments":{NUMBERS}"#)), "{frame}");
    }
}

/// A server that offers another server's tools stands between: what goes through keeps its digits both ways.
#[tokio::test(start_paused = true)]
async fn c026_a_server_in_between_keeps_digits_both_ways() {
    let listed = json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] });
    let (client, peer) = connected(
        Era::Modern,
        [
            expect(json!({ "method": "tools/list" })),
            send(json!({ "id": "$id", "result": listed })),
            expect(json!({ "id": 2, "method": "tools/call" })),
            raw(format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[],"structuredContent":{NUMBERS}}}}}"#)),
        ],
    )
    .await;
    let between = Server::builder(implementation!()).build();
    between.tools().add(client.tools().await.unwrap()).unwrap();
    let call =
        format!(r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"a","arguments":{NUMBERS}}}}}"#);
    let reply = between.handle(Bytes::from(call)).await.unwrap();
    let reply = String::from_utf8(reply.to_vec()).unwrap();
    assert!(reply.contains(&format!(r#""structuredContent":{NUMBERS}"#)), "{reply}");
    let forwarded = String::from_utf8(peer.frames().last().unwrap().to_vec()).unwrap();
    assert!(forwarded.contains(&format!(r#""arguments":{NUMBERS}"#)), "{forwarded}");
}

/// A server's ids are its own: what it asks, however badly, is no answer to a call that has the same number.
#[tokio::test(start_paused = true)]
async fn a_malformed_request_of_the_server_is_no_answer() {
    let long = "x".repeat(Limits::default().message_bytes);
    for bad in [
        r#"{"id":1,"method":"ping"}"#.into(),
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#.into(),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#.into(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{}}}}}"#, nested(1000)),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{long}"}}}}"#),
    ] {
        let (client, _) = connected(
            Era::Modern,
            [
                expect(json!({ "id": 1, "method": "tools/call" })),
                raw(bad.clone()),
                wait(Duration::from_secs(1)),
                send(json!({ "id": 1, "result": text("b") })),
            ],
        )
        .await;
        let outcome: Result<String, Error> = client.call("a", ()).await;
        assert_eq!(outcome.unwrap_or_else(|error| panic!("{:.80}: {error}", bad)), "b");
    }
}

/// An answer that is hardly one fails its call at once; waiting for a better one would be waiting in vain.
#[tokio::test(start_paused = true)]
async fn a_malformed_answer_fails_its_call_at_once() {
    for bad in [
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":7}}"#,
    ] {
        let script = [vec![expect(json!({ "id": 1, "method": "tools/call" })), raw(bad)], answers("a", "b")].concat();
        let (client, _) = connected(Era::Modern, script).await;
        let start = Instant::now();
        let error = client.call::<String>("a", ()).await.expect_err(bad);
        assert_eq!((start.elapsed(), error.blame()), (Duration::ZERO, Blame::Peer), "{bad}: {error}");
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    }
}

/// A second answer to the same request is an answer to none.
#[tokio::test(start_paused = true)]
async fn a_second_answer_is_dropped() {
    for era in ERAS {
        let mut script = answers("a", "b");
        script.push(script[1].clone());
        script.push(send(json!({ "id": "$id", "error": { "code": -32603, "message": "" } })));
        script.extend(answers("a", "c"));
        let (client, _) = connected(era, script).await;
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "c");
    }
}

/// What a handler of the user's own is called with, in the types that it asks for.
#[tokio::test(start_paused = true)]
async fn c026_our_own_server_reads_exact_numbers_from_our_own_client() {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Exact {
        n: i64,
        u: u64,
    }
    async fn exact(Exact { n, u }: Exact) -> Result<String, ToolError> {
        Ok(format!("{n} {u}"))
    }
    for era in ERAS {
        let server = Server::builder(implementation!()).tool(Tool::new("exact", exact)).build();
        let client = connect_in(era, server).await.unwrap();
        let told: String = client.call("exact", json!({ "n": i64::MIN, "u": u64::MAX })).await.unwrap();
        assert_eq!(told, format!("{} {}", i64::MIN, u64::MAX));
    }
}

fn listening() -> (CallOptions, std::sync::Arc<std::sync::Mutex<Vec<f64>>>) {
    let heard = std::sync::Arc::<std::sync::Mutex<Vec<f64>>>::default();
    let ear = heard.clone();
    (CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress)), heard)
}
