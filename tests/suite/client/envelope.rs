//! What a server sends that is hardly a message, or none: it costs what it concerns, and nothing else.

use std::time::Duration;

use mcp_suite::{
    Blame, Error, ErrorKind, Limits, Server, Tool, ToolError, implementation,
    jsonrpc::{Bytes, Raw},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::peer::memory::{raw, wait};

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
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
