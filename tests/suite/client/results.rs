//! What a result is read as: leniently where nothing is lost by it, and never as something else.
//!
//! Specification: *Tools, Tool Result*; *Overview, ResultType*.

use mcp_suite::{Blame, ErrorKind, Server, Tool, ToolError, implementation, types::CallToolResult};
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer},
    memory::raw,
};

/// A call comes and is answered with that result, to the letter.
async fn result_in(era: Era, result: &str) -> Result<CallToolResult, Error> {
    let id = if era == Era::Modern { 1 } else { 2 };
    let frame = raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    let (client, _peer) = connected(era, [expect(json!({ "id": id, "method": "tools/call" })), frame]).await;
    client.call_raw("a", ()).await
}

/// The same over HTTP.
async fn result_over_http(result: &str) -> Result<CallToolResult, Error> {
    let body = format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#);
    let server = HttpPeer::start(http::modern(move |_| Answer::new(200, "application/json", body.clone()))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    soon(client.call_raw("a", ())).await
}

#[tokio::test]
async fn c155_a_block_without_a_type_costs_its_result_and_no_more() {
    for block in [r#"{"text":"a"}"#, "null", "5", r#"{"type":5}"#, r#"{"type":null}"#, "[]", r#"{"type":"text"}"#] {
        let id = 1;
        let bad = raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{block}]}}}}"#));
        let script = [vec![expect(json!({ "id": id })), bad], answers("a", "b")].concat();
        let (client, _peer) = connected(Era::Modern, script).await;
        let error = client.call_raw("a", ()).await.expect_err(block);
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
        let words = error.to_string();
        let (what, why) = words.split_once("does not have its shape: ").expect(&words);
        assert!(what.contains("tools/call") && !why.is_empty(), "{words}");
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    }
}

/// The same in everything else that a server tells of itself.
#[tokio::test(start_paused = true)]
async fn c156_null_counts_as_absent_in_a_handshake() {
    let mut modern = discovered();
    let mut legacy = initialized("2025-11-25");
    for member in ["instructions", "_meta"] {
        modern[member] = Value::Null;
        legacy[member] = Value::Null;
    }
    let capabilities = json!({ "tools": { "listChanged": null }, "resources": null, "prompts": null, "logging": null });
    (modern["capabilities"], legacy["capabilities"]) = (capabilities.clone(), capabilities);
    for member in ["title", "description", "websiteUrl", "icons"] {
        legacy["serverInfo"][member] = Value::Null;
    }
    let peer = ScriptedPeer::new([expect(json!({})), send(json!({ "id": "$id", "result": modern }))]);
    let client = Client::connect(peer).await.unwrap();
    assert_eq!((client.revision().era(), client.instructions()), (Era::Modern, None));
    assert!(client.server_capabilities().tools.is_some() && client.server_capabilities().resources.is_none());
    let peer = ScriptedPeer::new([expect(json!({})), send(json!({ "id": "$id", "result": legacy }))]);
    let client = connect_in(Era::Legacy, peer).await.unwrap();
    assert_eq!((client.instructions(), client.server_info().unwrap().name.as_ref()), (None, "scripted"));
}

/// What this side writes has no nulls in it.
#[tokio::test(start_paused = true)]
async fn c156_nothing_is_written_as_null() {
    for era in ERAS {
        let listed =
            [expect(json!({ "method": "tools/list" })), send(json!({ "id": "$id", "result": { "tools": [] } }))];
        let (client, peer) = connected(era, listed.into_iter().chain(answers("a", "b"))).await;
        client.tools().await.unwrap();
        client.call::<String>("a", None::<()>).await.unwrap();
        for frame in peer.frames() {
            let frame = String::from_utf8(frame.to_vec()).unwrap();
            assert!(!frame.contains("null"), "{frame}");
        }
    }
}

/// A result without blocks, with these blocks of text.
fn texts(blocks: &[&str]) -> String {
    let blocks: Vec<_> = blocks.iter().map(|text| json!({ "type": "text", "text": text })).collect();
    json!({ "content": blocks }).to_string()
}

/// What a call reads from that result.
async fn value<T: serde::de::DeserializeOwned + 'static>(result: &str) -> Result<T, Error> {
    let frame = raw(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    let (client, _peer) = connected(Era::Modern, [expect(json!({ "id": 1 })), frame]).await;
    client.call("a", ()).await
}

#[derive(Debug, Deserialize, PartialEq)]
struct Point {
    x: i64,
    y: Option<i64>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mood {
    Good,
    Bad,
}

#[tokio::test(start_paused = true)]
async fn text_is_json_where_it_parses_and_else_itself() {
    assert_eq!(value::<i64>(&texts(&["7"])).await.unwrap(), 7);
    assert_eq!(value::<f64>(&texts(&["0.5"])).await.unwrap(), 0.5);
    assert!(value::<bool>(&texts(&["true"])).await.unwrap());
    assert_eq!(value::<Vec<u8>>(&texts(&["[1, 2]"])).await.unwrap(), [1, 2]);
    assert_eq!(value::<Point>(&texts(&[r#"{"x":1}"#])).await.unwrap(), Point { x: 1, y: None });
    assert_eq!(value::<Value>(&texts(&[r#"{"x":[null]}"#])).await.unwrap(), json!({ "x": [null] }));
    assert_eq!(value::<Value>(&texts(&["plain text"])).await.unwrap(), "plain text");
    assert_eq!(value::<Mood>(&texts(&["good"])).await.unwrap(), Mood::Good);
    assert_eq!(value::<Mood>(&texts(&["\"bad\""])).await.unwrap(), Mood::Bad);
    assert_eq!(value::<char>(&texts(&["😀"])).await.unwrap(), '😀');
    // Blocks are one text.
    assert_eq!(value::<i64>(&texts(&["1", "2"])).await.unwrap(), 12);
    assert_eq!(value::<String>(&texts(&["a", "", "b\n"])).await.unwrap(), "ab\n");
}

/// Whoever asks for text gets the text, be it JSON or not.
#[tokio::test(start_paused = true)]
async fn text_for_a_string_is_not_read_as_json() {
    for text in ["7", "null", "true", "\"quoted\"", "{\"x\":1}", " padded ", "", "[", "\u{feff}x"] {
        assert_eq!(value::<String>(&texts(&[text])).await.unwrap(), text);
    }
    assert_eq!(value::<String>(r#"{"content":[]}"#).await.unwrap(), "");
}

/// A type that holds a string is as good as one.
#[tokio::test(start_paused = true)]
async fn text_for_what_holds_a_string_is_its_text() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Name(String);
    assert_eq!(value::<Name>(&texts(&["plain"])).await.unwrap(), Name("plain".into()));
    assert_eq!(value::<Box<str>>(&texts(&["plain"])).await.unwrap(), "plain".into());
    assert_eq!(value::<Option<String>>(&texts(&["plain"])).await.unwrap(), Some("plain".into()));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_unit() {
    for nothing in [r#"{"content":[]}"#, "{}", &texts(&[]), &texts(&[""]), &texts(&["null"])] {
        value::<()>(nothing).await.unwrap_or_else(|error| panic!("{nothing}: {error}"));
        assert_eq!(value::<Option<i64>>(nothing).await.unwrap(), None, "{nothing}");
        assert_eq!(value::<i64>(nothing).await.unwrap_err().kind(), ErrorKind::ProtocolInvalid, "{nothing}");
    }
    assert_eq!(value::<Value>("{}").await.unwrap(), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn structured_content_comes_first_where_it_fits() {
    let both = r#"{"content":[{"type":"text","text":"{\"x\":9}"}],"structuredContent":{"x":1,"y":2}}"#;
    assert_eq!(value::<Point>(both).await.unwrap(), Point { x: 1, y: Some(2) });
    assert_eq!(value::<Value>(both).await.unwrap(), json!({ "x": 1, "y": 2 }));
    // Text is what was asked for, and there is some.
    assert_eq!(value::<String>(both).await.unwrap(), r#"{"x":9}"#);
    let other = r#"{"content":[{"type":"text","text":"7"}],"structuredContent":{"result":7}}"#;
    assert_eq!(value::<i64>(other).await.unwrap(), 7);
    assert_eq!(value::<i64>(r#"{"structuredContent":7}"#).await.unwrap(), 7);
    assert_eq!(value::<Value>(r#"{"structuredContent":{"x":1},"content":null}"#).await.unwrap(), json!({ "x": 1 }));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_an_error_that_says_what_was_wanted_and_shows_nothing_of_it() {
    let long = "seven".repeat(1000);
    for result in [texts(&["seven"]), texts(&[&long]), r#"{"structuredContent":{"seven":7}}"#.into()] {
        let error = value::<i64>(&result).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
        let words = error.to_string();
        assert!(words.len() < 500 && words.contains("`i64`") && !words.contains("seven"), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_a_result_and_for_a_typed_call_an_error() {
    let failure = r#"{"content":[{"type":"text","text":"no "},{"type":"text","text":"luck"}],"isError":true}"#;
    let error = value::<String>(failure).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.blame(), error.to_string().as_str()),
        (ErrorKind::HandlerFailed, Blame::Peer, "no luck")
    );
    for era in ERAS {
        let read = result_in(era, failure).await.unwrap();
        assert!(read.is_error);
        assert_eq!(read.to_text(), "no luck");
    }
    // A failure of few words is one too.
    for mute in [r#"{"isError":true}"#, r#"{"content":[],"isError":true}"#] {
        assert_eq!(value::<()>(mute).await.unwrap_err().kind(), ErrorKind::HandlerFailed);
    }
}

/// What a handler returns is what a caller of our own gets, whatever lies between.
#[tokio::test(start_paused = true)]
async fn what_a_handler_returns_is_what_a_call_reads() {
    async fn nothing() -> Result<(), ToolError> {
        Ok(())
    }
    async fn words() -> Result<&'static str, ToolError> {
        Ok("7")
    }
    async fn list() -> Result<Vec<Option<u64>>, ToolError> {
        Ok(vec![Some(u64::MAX), None])
    }
    let server = Server::builder(implementation!())
        .tool(Tool::new("nothing", nothing))
        .tool(Tool::new("words", words))
        .tool(Tool::new("list", list))
        .build();
    for era in ERAS {
        let client = connect_in(era, server.clone()).await.unwrap();
        client.call::<()>("nothing", ()).await.unwrap();
        assert_eq!(client.call::<String>("words", ()).await.unwrap(), "7");
        assert_eq!(client.call::<u8>("words", ()).await.unwrap(), 7);
        assert_eq!(client.call::<Vec<Option<u64>>>("list", ()).await.unwrap(), [Some(u64::MAX), None]);
    }
}

#[tokio::test]
async fn a_result_type_is_complete_or_an_error_in_the_modern_era() {
    for (kind, good) in [
        (r#""resultType":"complete","#, true),
        ("", true),
        (r#""resultType":"input_required","#, false),
        (r#""resultType":"task","#, false),
        (r#""resultType":"hologram","#, false),
        (r#""resultType":"Complete","#, false),
        (r#""resultType":"","#, false),
        (r#""resultType":5,"#, false),
        (r#""resultType":{},"#, false),
        (r#""resultType":"complete","x":{"resultType":"hologram"},"#, true),
    ] {
        let result = format!(r#"{{{kind}"content":[{{"type":"text","text":"b"}}]}}"#);
        for outcome in [result_in(Era::Modern, &result).await, result_over_http(&result).await] {
            match outcome {
                Ok(read) => assert!(good && read.to_text() == "b", "{result}"),
                Err(error) => {
                    assert!(!good, "{result}: {error}");
                    assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
                }
            }
        }
        // No legacy revision knows it, so that it means nothing there.
        assert_eq!(result_in(Era::Legacy, &result).await.unwrap().to_text(), "b", "{result}");
    }
}

/// The same for lists and for what a server says of itself.
#[tokio::test(start_paused = true)]
async fn a_result_type_counts_for_every_result() {
    let (client, _peer) = connected(
        Era::Modern,
        [
            expect(json!({ "method": "tools/list" })),
            send(json!({ "id": "$id", "result": { "resultType": "hologram", "tools": [] } })),
        ],
    )
    .await;
    assert_eq!(client.tools().await.unwrap_err().kind(), ErrorKind::ProtocolInvalid);
}

/// A server that breaks its promise of structured content has answered all the same.
#[tokio::test(start_paused = true)]
async fn c151_a_promise_that_is_not_kept_leaves_the_result_within_reach() {
    let schema = json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "integer" } } });
    let tool = json!({ "name": "a", "inputSchema": { "type": "object" }, "outputSchema": schema });
    for result in [
        json!({ "content": [{ "type": "text", "text": "plain" }] }),
        json!({ "content": [{ "type": "text", "text": "plain" }], "structuredContent": null }),
        json!({ "content": [{ "type": "text", "text": "plain" }], "structuredContent": { "x": "no number" } }),
    ] {
        for era in ERAS {
            let called =
                [expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "result": result.clone() }))];
            let listed = [
                expect(json!({ "method": "tools/list" })),
                send(json!({ "id": "$id", "result": { "tools": [tool] } })),
            ];
            let script = [listed.to_vec(), called.to_vec(), called.to_vec(), called.to_vec(), answers("a", "b")];
            let (client, _peer) = connected(era, script.concat()).await;
            client.tools().await.unwrap();
            assert_eq!(client.call_raw("a", ()).await.unwrap().to_text(), "plain", "{result}");
            assert_eq!(client.call::<String>("a", ()).await.unwrap(), "plain", "{result}");
            let error = client.call::<Point>("a", ()).await.unwrap_err();
            assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{result}");
            assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        }
    }
}
