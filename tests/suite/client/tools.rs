//! Lists of tools: odd ones, many pages, odd names.
//!
//! Specification: *Tools, Listing Tools*; *Pagination*.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_suite::{
    Blame, Client, ErrorKind, Limits, Server, Tool, ToolError,
    client::CallOptions,
    implementation,
    types::{CallToolResult, Implementation},
};
use serde_json::json;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer, Request},
    log::Warnings,
    memory::{raw, serve},
};

/// The list comes on one page.
fn lists(tools: Value) -> Script {
    vec![expect(json!({ "method": "tools/list" })), send(json!({ "id": "$id", "result": { "tools": tools } }))]
}

fn names(tools: &[Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.definition().name.as_str()).collect()
}

fn plain(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

#[tokio::test(start_paused = true)]
async fn c146_a_bad_header_annotation_costs_the_tool_and_a_warning() {
    let annotated =
        |name: &str, property: Value| json!({ "name": name, "inputSchema": { "properties": { "p": property } } });
    let warnings = Warnings::listen();
    let list = json!([
        annotated("good", json!({ "type": "string", "x-mcp-header": "Region" })),
        annotated("empty", json!({ "type": "string", "x-mcp-header": "" })),
        annotated("object", json!({ "type": "object", "x-mcp-header": "Region" })),
        annotated("list", json!({ "items": { "type": "string", "x-mcp-header": "Region" } })),
    ]);
    let (client, _peer) = connected(Era::Modern, lists(list)).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["good"]);
    let lines = warnings.lines();
    for (line, name) in lines.iter().zip(["empty", "object", "list"]) {
        assert!(line.contains(name) && line.contains("`p"), "{line}");
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
}

/// Members that no revision has are nobody's concern, and null is absent.
#[tokio::test(start_paused = true)]
async fn c146_a_tool_of_the_future_is_a_tool() {
    let warnings = Warnings::listen();
    let list = json!([
        { "name": "a", "inputSchema": { "type": "object" }, "hologram": { "x": 1 }, "execution": { "taskSupport": "?" } },
        { "name": "b", "inputSchema": { "type": "object" }, "title": null, "description": null, "icons": null,
          "outputSchema": null, "annotations": null, "_meta": null },
        { "name": "c", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": null, "unknownHint": 5 } },
        { "name": "d", "inputSchema": true },
    ]);
    let (client, _peer) = connected(Era::Modern, lists(list)).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["a", "b", "c", "d"]);
    assert!(warnings.lines().is_empty(), "{:?}", warnings.lines());
}

const RECURSIVE: &str = r##"{"$defs":{"N":{"type":"object","properties":{"kid":{"$ref":"#/$defs/N"}}}},"type":"object","properties":{"n":{"$ref":"#/$defs/N"}}}"##;
const DANGLING: &str = r##"{"type":"object","properties":{"n":{"$ref":"#/$defs/Nowhere"}}}"##;

/// The list as it stands on the wire, for what JSON in between would alter.
fn lists_text(id: u64, tools: &str) -> Script {
    vec![
        expect(json!({ "id": id, "method": "tools/list" })),
        raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":{tools}}}}}"#)),
    ]
}

/// A server in between tells them on as they are, and a call goes through.
#[tokio::test(start_paused = true)]
async fn c148_schemas_pass_through_a_server_in_between() {
    let list = format!(
        r#"[{{"name":"r","inputSchema":{RECURSIVE},"outputSchema":{RECURSIVE}}},{{"name":"d","inputSchema":{DANGLING}}}]"#
    );
    let answer = [
        expect(
            json!({ "method": "tools/call", "params": { "name": "r", "arguments": { "n": { "kid": { "kid": {} } } } } }),
        ),
        send(json!({ "id": "$id", "result": { "content": [], "structuredContent": { "n": {} } } })),
    ];
    let (client, peer) = connected(Era::Modern, lists_text(1, &list).into_iter().chain(answer)).await;
    let between = Server::builder(implementation!()).build();
    between.tools().add(client.tools().await.unwrap()).unwrap();
    let listed = between.handle(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#).await.unwrap();
    let listed = String::from_utf8(listed.to_vec()).unwrap();
    assert!(listed.contains(RECURSIVE) && listed.contains(DANGLING), "{listed}");
    let outer = Client::connect(between).await.unwrap();
    let result = outer.call_raw("r", json!({ "n": { "kid": { "kid": {} } } })).await.unwrap();
    assert_eq!(result.structured_content.unwrap().as_str(), r#"{"n":{}}"#);
    peer.done().await;
}

/// A schema may name addresses; nobody goes there.
#[tokio::test]
async fn c149_references_to_elsewhere_are_not_followed() {
    let trap = HttpPeer::start(|_| Answer::json(200, &json!({ "type": "string" }))).await;
    let schema = json!({
        "$schema": format!("{}/dialect", trap.origin()), "$id": format!("{}/id", trap.origin()), "type": "object",
        "properties": {
            "a": { "$ref": format!("{}/x", trap.origin()) },
            "b": { "$ref": "file:///etc/hostname" },
            "c": { "$dynamicRef": format!("{}/y#z", trap.origin()) },
        },
    });
    let tool = json!({ "name": "a", "inputSchema": schema, "outputSchema": schema, "icons": [{ "src": trap.url() }] });
    let rule = http::modern(move |request: &Request| match request.method() {
        "tools/list" => Answer::result(json!({ "tools": [tool] })),
        _ => Answer::result(json!({ "content": [], "structuredContent": { "a": "x", "b": 5 } })),
    });
    let server = HttpPeer::start(rule).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let tools = soon(client.tools()).await.unwrap();
    assert_eq!(tools[0].definition().input_schema.decode::<Value>().unwrap(), schema);
    soon(client.call_raw("a", json!({ "a": "x", "b": 5 }))).await.unwrap();
    // Nor does a server in between follow them, which lists and calls the same tool.
    let between = Server::builder(implementation!()).build();
    between.tools().add(tools).unwrap();
    for era in ERAS {
        let outer = connect_in(era, between.clone()).await.unwrap();
        assert_eq!(outer.tools().await.unwrap().len(), 1);
        outer.call_raw("a", json!({ "a": "x", "b": 5 })).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(trap.requests().len(), 0);
}

/// A server that answers each page with the same one, or goes round in circles, or never comes to an end.
async fn endless(limits: Limits, next: impl Fn(usize) -> Value + Send + Sync + 'static) -> (Error, usize) {
    let asked = Arc::new(Mutex::new(0));
    let counted = asked.clone();
    let peer = ScriptedPeer::new([serve(move |message| match message["method"].as_str() {
        Some("server/discover") => vec![json!({ "id": message["id"], "result": discovered() })],
        _ => {
            let mut asked = counted.lock().unwrap();
            *asked += 1;
            let tools: Vec<_> = (0..8).map(|n| plain(&format!("t{n}"))).collect();
            vec![json!({ "id": message["id"], "result": { "tools": tools, "nextCursor": next(*asked) } })]
        }
    })]);
    let client = Client::builder(implementation!()).limits(limits).connect(peer).await.unwrap();
    let error = client.tools().await.unwrap_err();
    let asked = *asked.lock().unwrap();
    (error, asked)
}

#[tokio::test(start_paused = true)]
async fn c160_a_list_that_does_not_end_is_an_error_that_says_why() {
    for (next, most) in [
        (Box::new(|_| json!("8")) as Box<dyn Fn(usize) -> Value + Send + Sync>, 2),
        // C159: servers of old mean the end by it.
        (Box::new(|_| json!("")), 2),
        (Box::new(|asked| json!(["a", "b", "c"][asked % 3])), 4),
    ] {
        let (error, asked) = endless(Limits::default(), next).await;
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
        assert!(error.to_string().contains("page"), "{error}");
        assert!(asked <= most, "{asked} pages were asked for");
    }
    let (error, asked) = endless(Limits::default().max_pages(10), |asked| json!(asked.to_string())).await;
    assert_eq!((error.kind(), asked), (ErrorKind::ProtocolInvalid, 10));
    let (error, asked) = endless(Limits::default(), |asked| json!(asked.to_string())).await;
    assert_eq!((error.kind(), asked), (ErrorKind::ProtocolInvalid, Limits::default().max_pages));
}

fn odd_names() -> Vec<String> {
    let mut names =
        ["a/b", "a.b", "a-b_c", "a b", "größe", "", " padded ", "a\nb", "名", "=?base64?QUJD?=", "\"", "\u{0}", "😀"]
            .map(String::from)
            .to_vec();
    names.extend([64, 128, 129, 1000].map(|length| "x".repeat(length)));
    names
}

/// Our own server and our own client: each name that the one registers, the other calls.
#[tokio::test(start_paused = true)]
async fn c162_any_name_but_the_empty_one_can_be_registered_and_called() {
    let server = Server::builder(implementation!()).build();
    for name in odd_names().into_iter().filter(|name| !name.is_empty()) {
        let answer = name.clone();
        let tool = move || {
            let answer = answer.clone();
            async move { Ok::<_, ToolError>(answer) }
        };
        server.tools().add(Tool::new(name, tool)).unwrap();
    }
    for era in ERAS {
        let client = connect_in(era, server.clone()).await.unwrap();
        for name in odd_names().into_iter().filter(|name| !name.is_empty()) {
            assert_eq!(client.call::<String>(&name, ()).await.unwrap(), name);
        }
        assert_eq!(client.tools().await.unwrap().len(), odd_names().len() - 1);
    }
}

/// A tool of another server is called with the options that a client has by default, and answers with all that it got.
#[tokio::test(start_paused = true)]
async fn a_tool_of_another_server_answers_with_all_that_it_got() {
    let result = json!({
        "content": [{ "type": "text", "text": "a" }, { "type": "hologram", "x": 1 }],
        "structuredContent": { "t": 21 }, "isError": true,
    });
    let call = [expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "result": result }))];
    let (client, _peer) = connected(Era::Modern, lists(json!([plain("a")])).into_iter().chain(call)).await;
    let between = Server::builder(implementation!()).build();
    between.tools().add(client.tools().await.unwrap()).unwrap();
    let outer = Client::connect(between).await.unwrap();
    let seen: CallToolResult = outer.call_raw_with("a", (), CallOptions::new()).await.unwrap();
    assert!(seen.is_error);
    assert_eq!((seen.content.len(), seen.content[1].kind().to_string()), (2, "hologram".into()));
    assert_eq!(seen.structured_content.unwrap().as_str(), r#"{"t":21}"#);
}

/// A tool that lives elsewhere answers in the name of the server that offers it.
#[tokio::test]
async fn a_mounted_tools_result_names_the_outer_server_once() {
    async fn far() -> Result<&'static str, ToolError> {
        Ok("far")
    }
    let inner = Server::builder(Implementation::new("inner", "1")).tool(Tool::new("far", far)).build();
    let outer = Server::builder(Implementation::new("outer", "1")).build();
    let client = Client::connect(inner).await.unwrap();
    outer.tools().add(client.tools().await.unwrap()).unwrap();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    for (meta, named) in [(format!(",{meta}"), 1), (String::new(), 0)] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"far"{meta}}}}}"#);
        let answer = outer.handle(call).await.unwrap();
        let answer = std::str::from_utf8(&answer).unwrap();
        assert!(answer.contains(r#""text":"far""#) && !answer.contains("inner"), "{answer}");
        assert_eq!(answer.matches("serverInfo").count(), named, "{answer}");
    }
}

/// A failure without words names at least the tool.
#[tokio::test(start_paused = true)]
async fn a_failure_without_words_names_the_tool() {
    let script = vec![
        expect(json!({ "method": "tools/call" })),
        send(json!({ "id": "$id", "result": { "content": [], "isError": true } })),
    ];
    let (client, _peer) = connected(Era::Modern, script).await;
    let error = client.call::<String>("mute", ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HandlerFailed);
    assert!(error.to_string().contains("`mute`"), "{error}");
}
