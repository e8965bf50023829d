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
    http::Http,
    implementation,
    jsonrpc::Raw,
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
async fn c146_an_odd_tool_costs_itself_and_a_warning() {
    for era in ERAS {
        let warnings = Warnings::listen();
        let list = json!([
            plain("good"),
            { "name": "odd", "inputSchema": { "anyOf": [{ "type": "object" }] } },
            { "name": "none" },
            null,
            5,
            "text",
            [],
            {},
            { "name": 7, "inputSchema": {} },
            { "name": null, "inputSchema": {} },
            { "inputSchema": { "type": "object" } },
            { "name": "deaf", "inputSchema": { "type": "object" }, "description": { "en": "no text" } },
            plain("last"),
        ]);
        let (client, _peer) = connected(era, [lists(list), answers("good", "b")].concat()).await;
        let tools = client.tools().await.unwrap();
        let names = names(&tools);
        assert!(names.contains(&"good") && names.contains(&"last"), "{names:?}");
        // What has the shape of a tool is kept as it is, whatever its schema says.
        let odd = tools.iter().find(|tool| tool.definition().name == "odd").unwrap();
        assert_eq!(odd.definition().input_schema.as_str(), r#"{"anyOf":[{"type":"object"}]}"#);
        let lines = warnings.lines();
        assert_eq!(lines.len(), 13 - tools.len(), "one warning each: {lines:?}");
        for (name, reason) in [("none", "inputSchema"), ("deaf", "string")] {
            assert!(lines.iter().any(|line| line.contains(name) && line.contains(reason)), "{name}: {lines:?}");
        }
        assert_eq!(client.call::<String>("good", ()).await.unwrap(), "b");
    }
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

/// Hints are hints: one that is none must not cost the tool.
#[tokio::test(start_paused = true)]
async fn c146_odd_hints_do_not_cost_the_tool() {
    let hint =
        |annotations: Value| json!({ "name": "a", "inputSchema": { "type": "object" }, "annotations": annotations });
    for annotations in [json!({ "readOnlyHint": "yes" }), json!({ "title": 5 }), json!("read-only"), json!([])] {
        let (client, _peer) = connected(Era::Modern, lists(json!([hint(annotations.clone()), plain("b")]))).await;
        assert_eq!(names(&client.tools().await.unwrap()), ["a", "b"], "{annotations}");
    }
}

/// What is no list at all is an error of the server's.
#[tokio::test(start_paused = true)]
async fn c146_a_list_that_is_none_is_an_error() {
    for tools in [json!(null), json!({}), json!("a"), json!(5)] {
        let (client, _peer) = connected(Era::Modern, lists(tools.clone())).await;
        let error = client.tools().await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{tools}");
    }
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

#[tokio::test(start_paused = true)]
async fn c148_schemas_pass_through_as_they_are() {
    for era in ERAS {
        let id = if era == Era::Modern { 1 } else { 2 };
        let odd = r#"{"z":1,"a":[ 1.0, 1e2, 123456789012345678901234567890 ],"type":"object","type":"object"}"#;
        let list = [RECURSIVE, DANGLING, odd]
            .map(|schema| format!(r#"{{"name":"t","inputSchema":{schema},"outputSchema":{schema}}}"#))
            .join(",");
        let (client, peer) = connected(era, lists_text(id, &format!("[{list}]"))).await;
        let tools = client.tools().await.unwrap();
        for (tool, schema) in tools.iter().zip([RECURSIVE, DANGLING, odd]) {
            assert_eq!(tool.definition().input_schema.as_str(), schema);
            assert_eq!(tool.definition().output_schema.as_ref().map(Raw::as_str), Some(schema));
        }
        assert_eq!(tools.len(), 3);
        peer.done().await;
    }
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

/// A page: it is asked for with that cursor, or with none, and names the next one, or none.
fn page(asked: Option<&str>, tools: &[&str], next: Value) -> Script {
    let tools: Vec<_> = tools.iter().map(|name| plain(name)).collect();
    let mut result = json!({ "tools": tools, "nextCursor": next });
    if next == "absent" {
        result.as_object_mut().unwrap().remove("nextCursor");
    }
    let asked = asked.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    vec![expect(json!({ "method": "tools/list", "params": asked })), send(json!({ "id": "$id", "result": result }))]
}

#[tokio::test(start_paused = true)]
async fn c159_null_or_nothing_ends_the_walk() {
    for era in ERAS {
        for end in [json!(null), json!("absent")] {
            let pages = [page(None, &["a"], json!("2")), page(Some("2"), &["b", "c"], end)].concat();
            let (client, peer) = connected(era, pages).await;
            assert_eq!(names(&client.tools().await.unwrap()), ["a", "b", "c"]);
            peer.done().await;
            // The first page is asked for without a cursor, and not with null.
            let first = &peer.received()[opening_length(era)];
            assert_eq!(first["params"].get("cursor"), None, "{first}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c159_the_empty_cursor_is_a_cursor() {
    for era in ERAS {
        let pages = [page(None, &["a"], json!("")), page(Some(""), &["b"], json!(null))].concat();
        let (client, peer) = connected(era, pages).await;
        assert_eq!(names(&client.tools().await.unwrap()), ["a", "b"]);
        peer.done().await;
        let pages = [
            page(None, &["a"], json!(" x ")),
            page(Some(" x "), &["b"], json!("")),
            page(Some(""), &["c"], json!("größe\n")),
            page(Some("größe\n"), &["d"], json!("absent")),
        ];
        let (client, _peer) = connected(era, pages.concat()).await;
        assert_eq!(names(&client.tools().await.unwrap()), ["a", "b", "c", "d"]);
    }
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

/// As many pages as the limit allows are walked.
#[tokio::test(start_paused = true)]
async fn c160_the_last_page_may_be_the_last_one_allowed() {
    for (pages, good) in [(3, true), (2, false)] {
        let script =
            [page(None, &["a"], json!("2")), page(Some("2"), &["b"], json!("3")), page(Some("3"), &["c"], json!(null))];
        let peer = ScriptedPeer::new(modern().into_iter().chain(script.concat()));
        let client = Client::builder(implementation!()).limits(Limits::default().max_pages(pages)).connect(peer);
        assert_eq!(client.await.unwrap().tools().await.is_ok(), good, "{pages}");
    }
}

/// A page that fails fails the walk, and no half list is taken for a whole one.
#[tokio::test(start_paused = true)]
async fn c160_a_page_that_fails_fails_the_list() {
    let script = [
        page(None, &["a"], json!("2")),
        vec![
            expect(json!({ "method": "tools/list", "params": { "cursor": "2" } })),
            send(json!({ "id": "$id", "error": { "code": -32602, "message": "Invalid cursor" } })),
        ],
    ];
    let (client, _peer) = connected(Era::Modern, script.concat()).await;
    assert_eq!(client.tools().await.unwrap_err().kind(), ErrorKind::InvalidParams);
}

fn odd_names() -> Vec<String> {
    let mut names =
        ["a/b", "a.b", "a-b_c", "a b", "größe", "", " padded ", "a\nb", "名", "=?base64?QUJD?=", "\"", "\u{0}", "😀"]
            .map(String::from)
            .to_vec();
    names.extend([64, 128, 129, 1000].map(|length| "x".repeat(length)));
    names
}

#[tokio::test(start_paused = true)]
async fn c162_any_name_is_listed_and_called_as_it_is() {
    for era in ERAS {
        let list: Vec<_> = odd_names().iter().map(|name| plain(name)).collect();
        let calls = odd_names().into_iter().flat_map(|name| answers(&name, "b"));
        let (client, peer) = connected(era, lists(json!(list)).into_iter().chain(calls)).await;
        assert_eq!(names(&client.tools().await.unwrap()), odd_names());
        for name in odd_names() {
            assert_eq!(client.call::<String>(&name, ()).await.unwrap(), "b", "{name:?}");
        }
        peer.done().await;
    }
}

#[tokio::test]
async fn c162_over_http_any_name_is_called_as_it_is() {
    let rule = |request: &Request| Answer::result(text(request.body["params"]["name"].as_str().unwrap()));
    for era in ERAS {
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(rule)).await,
            _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
        };
        let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
        for name in odd_names() {
            assert_eq!(soon(client.call::<String>(&name, ())).await.unwrap(), name);
        }
    }
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
