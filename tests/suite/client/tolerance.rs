//! Nothing valid is lost because something beside it is odd: what no revision has, null where something may be absent,
//! and hints that are none cost at most themselves.
//!
//! Specification: *Overview*; *schema*.

use std::sync::{Arc, Mutex};

use mcp_suite::{
    client::{CallOptions, Changed},
    jsonrpc::Raw,
    types::{
        Annotations, CompleteParams, Completion, Content, CreateMessageParams, CreateMessageResult, ElicitParams,
        ElicitResult, Icon, LogMessage, NotificationFilter, PromptMessage, ResourceBody, Role,
    },
};
use serde_json::json;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer},
    log::Warnings,
    memory::{expect_as, raw},
};

/// A client of a server that answers that one request, in that era, with that result.
async fn answered(era: Era, method: &str, result: &Value) -> Client {
    let result = result.clone();
    let script = [expect(json!({ "method": method })), send(json!({ "id": "$id", "result": result }))];
    connected(era, script).await.0
}

type Entry = fn(&str) -> Value;

/// The four lists: their method, their member, and an entry with nothing but what it must have.
const LISTS: [(&str, &str, Entry); 4] = [
    ("tools/list", "tools", |name| json!({ "name": name, "inputSchema": { "type": "object" } })),
    ("prompts/list", "prompts", |name| json!({ "name": name })),
    ("resources/list", "resources", |name| json!({ "name": name, "uri": "x:y" })),
    ("resources/templates/list", "resourceTemplates", |name| json!({ "name": name, "uriTemplate": "x:{y}" })),
];

/// The names on the only page of that list.
async fn names(client: &Client, method: &str) -> Result<Vec<String>, Error> {
    let (names, next) = match method {
        "tools/list" => {
            let page = client.tools_page(None).await?;
            (page.items.iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>(), page.next_cursor)
        }
        "prompts/list" => {
            let page = client.prompts_page(None).await?;
            (page.items.into_iter().map(|prompt| prompt.name).collect(), page.next_cursor)
        }
        "resources/list" => {
            let page = client.resources_page(None).await?;
            (page.items.into_iter().map(|resource| resource.name).collect(), page.next_cursor)
        }
        _ => {
            let page = client.resource_templates_page(None).await?;
            (page.items.into_iter().map(|template| template.name).collect(), page.next_cursor)
        }
    };
    assert_eq!(next, None, "{method}");
    Ok(names)
}

/// `entry` with `members` besides.
fn with(mut entry: Value, members: &Value) -> Value {
    let members = members.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(members);
    entry
}

/// All that may be absent, of whatever kind of entry.
const OPTIONAL: [&str; 10] = [
    "title",
    "description",
    "icons",
    "outputSchema",
    "annotations",
    "arguments",
    "mimeType",
    "size",
    "execution",
    "_meta",
];

#[tokio::test(start_paused = true)]
async fn c156_null_counts_as_absent_in_every_list() {
    let nulls: Value = OPTIONAL.iter().map(|member| ((*member).to_owned(), Value::Null)).collect();
    for (method, member, entry) in LISTS {
        for era in ERAS {
            let around =
                json!({ "nextCursor": null, "_meta": null, "ttlMs": null, "cacheScope": null, "resultType": null });
            let list = json!({ member: [with(entry("a"), &nulls), entry("b")] });
            let client = answered(era, method, &with(list, &around)).await;
            let warnings = Warnings::listen();
            assert_eq!(names(&client, method).await.unwrap(), ["a", "b"], "{method} {era:?}");
            assert!(warnings.lines().is_empty(), "{:?}", warnings.lines());
        }
    }
}

/// Members that nobody knows, and hints that are none.
#[tokio::test(start_paused = true)]
async fn c154_what_is_odd_beside_an_entry_does_not_cost_it() {
    for odd in [
        json!({ "hologram": { "x": [1] }, "Name": "another", "NAME": null }),
        json!({ "annotations": { "audience": ["system", "user"], "priority": 1.5, "lastModified": "not a date", "new": {} } }),
        json!({ "annotations": { "audience": "user", "priority": "high", "lastModified": 5, "title": 5 } }),
        json!({ "annotations": [] }),
        json!({ "annotations": "none" }),
        json!({ "icons": [{ "src": "x:i", "theme": "sepia", "sizes": "any" }, null, 5] }),
        json!({ "icons": {} }),
        json!({ "_meta": [], "execution": "?" }),
        json!({ "size": -1 }),
        json!({ "size": 1.5 }),
        json!({ "size": "big" }),
        json!({ "size": 1e300 }),
    ] {
        for (method, member, entry) in LISTS {
            for era in ERAS {
                let list = json!({ member: [with(entry("a"), &odd), entry("b")], "hologram": 5, "ttlMs": "long" });
                let client = answered(era, method, &list).await;
                assert_eq!(names(&client, method).await.unwrap(), ["a", "b"], "{method} {era:?} {odd}");
            }
        }
    }
}

/// JSON has one kind of number: `1e3` is the same size as `1000`.
#[tokio::test(start_paused = true)]
async fn c154_a_whole_number_may_be_written_as_any_number() {
    for (size, read) in
        [("0", Some(0)), ("1000", Some(1000)), ("1e3", Some(1000)), ("1000.0", Some(1000)), ("-1", None), ("0.5", None)]
    {
        let id = 1;
        let list = format!(r#"{{"resources":[{{"uri":"x:y","name":"y","size":{size}}}]}}"#);
        let frame = raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{list}}}"#));
        let (client, _peer) = connected(Era::Modern, [expect(json!({ "id": id })), frame]).await;
        assert_eq!(client.resources().await.unwrap()[0].size, read, "{size}");
    }
}

/// One hint that is none does not take the others with it.
#[tokio::test(start_paused = true)]
async fn c154_a_tool_keeps_the_hints_that_are_some() {
    let hints =
        |title: Value, read_only: Value| json!({ "title": title, "readOnlyHint": read_only, "idempotentHint": true });
    for (annotations, title, read_only) in [
        (hints(json!("T"), json!(true)), Some("T"), Some(true)),
        (hints(json!(5), json!(true)), None, Some(true)),
        (hints(json!("T"), json!("yes")), Some("T"), None),
        (hints(json!(null), json!(null)), None, None),
        (hints(json!({}), json!([])), None, None),
    ] {
        for era in ERAS {
            let tool = with(LISTS[0].2("a"), &json!({ "annotations": annotations }));
            let client = answered(era, "tools/list", &json!({ "tools": [tool] })).await;
            let tools = client.tools().await.unwrap();
            let read = tools[0].definition().annotations.clone().unwrap();
            assert_eq!((read.title.as_deref(), read.read_only_hint), (title, read_only), "{annotations}");
            assert_eq!(read.idempotent_hint, Some(true), "{annotations}");
        }
    }
}

/// Whoever reads the hints of a block or the pictures of a tool gets those that are some.
#[test]
fn c154_annotations_and_icons_keep_what_is_known() {
    let read = |text: &str| Raw::parse(text.to_owned()).unwrap().decode::<Annotations>().unwrap();
    let odd = read(
        r#"{"audience":["system","user",5,null,"assistant"],"priority":1.5,"lastModified":"not a date","new":{}}"#,
    );
    assert_eq!(odd.audience, [Role::User, Role::Assistant]);
    assert_eq!((odd.priority, odd.last_modified.as_deref()), (Some(1.5), Some("not a date")));
    let odd = read(r#"{"audience":"user","priority":"high","lastModified":"2026-07-28"}"#);
    assert!(odd.audience.is_empty() && odd.priority.is_none());
    assert_eq!(odd.last_modified.as_deref(), Some("2026-07-28"));
    assert_eq!(read(r#"{"audience":null,"priority":null,"lastModified":null}"#), Annotations::default());

    let read = |text: &str| Raw::parse(text.to_owned()).unwrap().decode::<Icon>().unwrap();
    for odd in [
        r#"{"src":"x:i","theme":"sepia","sizes":["any"],"mimeType":"image/png","new":5}"#,
        r#"{"src":"x:i","theme":5,"sizes":[48,"any",null],"mimeType":"image/png"}"#,
        r#"{"src":"x:i","theme":null,"sizes":["any"],"mimeType":"image/png"}"#,
    ] {
        let icon = read(odd);
        assert_eq!((&*icon.src, icon.theme, icon.mime_type.as_deref()), ("x:i", None, Some("image/png")), "{odd}");
        assert_eq!(icon.sizes, ["any"], "{odd}");
    }
    assert!(read(r#"{"src":"x:i","sizes":"any","mimeType":null}"#).sizes.is_empty());
}

/// A prompt's messages, as role and text.
fn spoken(messages: &[PromptMessage]) -> Vec<(Role, Option<&str>)> {
    messages.iter().map(|message| (message.role, message.content.as_text())).collect()
}

#[tokio::test(start_paused = true)]
async fn c155_what_is_odd_in_a_prompt_does_not_cost_the_rest() {
    let said = |role: Value, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
    let hologram = json!({ "role": "user", "content": { "type": "hologram", "x": 1 } });
    let user = |text| (Role::User, Some(text));
    for (result, messages) in [
        (json!({ "messages": [said(json!("user"), "a")], "description": null, "_meta": null }), vec![user("a")]),
        (json!({ "messages": [said(json!("user"), "a")], "description": 5, "new": {} }), vec![user("a")]),
        (json!({ "messages": null }), vec![]),
        (json!({}), vec![]),
        // Who speaks with no known authority has the least.
        (
            json!({ "messages": [said(json!("system"), "a"), said(json!("assistant"), "b"), said(json!("USER"), "c")] }),
            vec![user("a"), (Role::Assistant, Some("b")), user("c")],
        ),
        (json!({ "messages": [hologram, said(json!("user"), "b")] }), vec![(Role::User, None), user("b")]),
        (
            json!({ "messages": [with(said(json!("user"), "a"), &json!({ "name": "Ada", "_meta": null, "annotations": 5 }))] }),
            vec![user("a")],
        ),
    ] {
        for era in ERAS {
            let client = answered(era, "prompts/get", &result).await;
            let prompt = client.get_prompt("p", ()).await.unwrap_or_else(|error| panic!("{result}: {error:?}"));
            assert_eq!(spoken(&prompt.messages), messages, "{result}");
            assert_eq!(prompt.description, None);
        }
    }
}

/// What holds a resource is read whatever stands beside it, and its URI is a text like any other.
#[tokio::test(start_paused = true)]
async fn c169_resources_are_read_whatever_their_uri_and_their_hints_are() {
    for uri in ["report-1.pdf", "C:\\reports\\1.pdf", "/etc/hosts", "::bad::", "größe 1", "", "x:y"] {
        for odd in [
            json!({}),
            json!({ "mimeType": null, "_meta": null }),
            json!({ "mimeType": 5, "_meta": 5, "size": "big", "annotations": [], "new": {} }),
        ] {
            let blob = with(json!({ "uri": uri, "blob": "AP8=", "text": null }), &odd);
            let text = with(json!({ "uri": uri, "text": "t", "blob": null }), &odd);
            for era in ERAS {
                let client = answered(era, "resources/read", &json!({ "contents": [blob, text], "_meta": null })).await;
                let read = client.read_resource(uri).await.unwrap_or_else(|error| panic!("{uri} {odd}: {error:?}"));
                assert_eq!(read.contents.len(), 2);
                assert!(read.contents.iter().all(|contents| contents.uri == uri && contents.mime_type.is_none()));
                assert_eq!(read.contents[0].body, ResourceBody::Blob(vec![0, 255]));
                assert_eq!(read.contents[1].as_text(), Some("t"));

                let embedded = json!({ "type": "resource", "resource": blob });
                let link = with(json!({ "type": "resource_link", "uri": uri, "name": "n" }), &json!({ "size": null }));
                let client = answered(era, "tools/call", &json!({ "content": [embedded, link] })).await;
                let result = client.call_raw("a", ()).await.unwrap();
                let [Content::Resource(embedded), Content::ResourceLink(link)] = &result.content[..] else {
                    panic!("{uri} {odd}: {:?}", result.content)
                };
                assert_eq!((&*embedded.resource.uri, &*link.resource.uri), (uri, uri));
                assert_eq!(embedded.resource.body, ResourceBody::Blob(vec![0, 255]));

                let list = json!({ "resources": [{ "uri": uri, "name": "n" }] });
                let client = answered(era, "resources/list", &list).await;
                assert_eq!(client.resources().await.unwrap()[0].uri, uri);
            }
        }
    }
    for era in ERAS {
        for nothing in [json!({}), json!({ "contents": null }), json!({ "contents": [] })] {
            let client = answered(era, "resources/read", &nothing).await;
            assert!(client.read_resource("x:y").await.unwrap().contents.is_empty(), "{nothing}");
        }
    }
}

/// What encodes bytes is not always exact about the end of them, nor about two letters of the alphabet.
#[tokio::test(start_paused = true)]
async fn c169_bytes_are_read_in_each_spelling_of_base64() {
    for (blob, bytes) in [
        ("+/8=", Some(&[0xfb, 0xff][..])),
        ("+/8", Some(&[0xfb, 0xff])),
        ("-_8=", Some(&[0xfb, 0xff])),
        ("-_8", Some(&[0xfb, 0xff])),
        ("", Some(&[])),
        ("!", None),
        ("+_8=", None),
    ] {
        let contents = json!({ "contents": [{ "uri": "x:y", "blob": blob }] });
        let client = answered(Era::Modern, "resources/read", &contents).await;
        let read = client.read_resource("x:y").await.ok().map(|read| read.contents[0].body.clone());
        assert_eq!(read, bytes.map(|bytes| ResourceBody::Blob(bytes.to_vec())), "{blob}");
        let image = json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": blob }] });
        let client = answered(Era::Modern, "tools/call", &image).await;
        let result = client.call_raw("a", ()).await.unwrap();
        let Content::Image(image) = &result.content[0] else { panic!("{:?}", result.content) };
        assert_eq!(image.decode().ok().as_deref(), bytes, "{blob}");
    }
}

#[tokio::test(start_paused = true)]
async fn c156_a_completion_is_its_values() {
    for (beside, total, has_more) in [
        (json!({}), None, false),
        (json!({ "total": null, "hasMore": null, "_meta": null }), None, false),
        (json!({ "total": 3, "hasMore": true, "new": 5 }), Some(3), true),
        (json!({ "total": 3.0, "hasMore": "yes" }), Some(3), false),
        (json!({ "total": -1, "hasMore": 1 }), None, false),
        (json!({ "total": "many", "hasMore": [] }), None, false),
    ] {
        for era in ERAS {
            let completion = with(json!({ "values": ["v"] }), &beside);
            let client =
                answered(era, "completion/complete", &json!({ "completion": completion, "_meta": null })).await;
            let read: Completion = client.complete(CompleteParams::prompt("p", "a", "")).await.unwrap();
            assert_eq!((read.values, read.total, read.has_more), (vec!["v".to_owned()], total, has_more), "{beside}");
        }
    }
}

/// What a server says of itself is for people and logs; none of it is worth a connection.
#[tokio::test(start_paused = true)]
async fn c156_what_a_server_says_of_itself_does_not_cost_the_connection() {
    let info = |member: &str, value: Value| ("serverInfo", with(json!({ "name": "n" }), &json!({ member: value })));
    for (member, odd) in [
        ("instructions", json!(5)),
        ("instructions", json!(["a"])),
        ("_meta", json!(5)),
        ("hologram", json!({ "x": 1 })),
        ("capabilities", json!([])),
        ("capabilities", json!({ "tools": 5, "prompts": "yes", "extensions": [], "experimental": 5 })),
        info("version", json!(2)),
        info("version", json!(null)),
        info("title", json!(5)),
        info("description", json!({})),
        info("websiteUrl", json!([])),
        info("icons", json!("x:i")),
        info("hologram", json!(5)),
    ] {
        let mut result = initialized("2025-11-25");
        result[member] = odd.clone();
        let peer = ScriptedPeer::new(
            [
                vec![
                    expect(json!({ "method": "initialize" })),
                    send(json!({ "id": "$id", "result": result })),
                    expect(json!({ "method": "notifications/initialized" })),
                ],
                answers("a", "b"),
            ]
            .concat(),
        );
        let client = connect_in(Era::Legacy, peer).await.unwrap_or_else(|error| panic!("{member} {odd}: {error:?}"));
        let name = client.server_info().unwrap().name.as_ref();
        assert_eq!(name, if member == "serverInfo" { "n" } else { "scripted" });
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");

        let mut result = discovered();
        if member == "serverInfo" {
            result["_meta"]["io.modelcontextprotocol/serverInfo"] = odd.clone();
        } else {
            result[member] = odd.clone();
        }
        let probe =
            vec![expect(json!({ "method": "server/discover" })), send(json!({ "id": "$id", "result": result }))];
        let peer = ScriptedPeer::new([probe, answers("a", "b")].concat());
        let client = Client::connect(peer).await.unwrap_or_else(|error| panic!("{member} {odd}: {error:?}"));
        assert_eq!(client.revision().era(), Era::Modern, "{member} {odd}");
        if member == "serverInfo" {
            assert_eq!(client.server_info().unwrap().name.as_ref(), "n", "{odd}");
        }
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    }
}

/// A server that does not say who it is, or says it badly, is as good as another.
#[tokio::test(start_paused = true)]
async fn c156_a_server_without_a_name_is_a_server() {
    for info in [None, Some(json!(null)), Some(json!({})), Some(json!("me")), Some(json!({ "name": null }))] {
        let mut result = initialized("2025-11-25");
        match &info {
            Some(info) => result["serverInfo"] = info.clone(),
            None => drop(result.as_object_mut().unwrap().remove("serverInfo")),
        }
        let peer = ScriptedPeer::new([
            expect(json!({ "method": "initialize" })),
            send(json!({ "id": "$id", "result": result })),
            expect(json!({ "method": "notifications/initialized" })),
        ]);
        let client = connect_in(Era::Legacy, peer).await.unwrap_or_else(|error| panic!("{info:?}: {error:?}"));
        assert!(client.server_info().is_none_or(|info| info.name.is_empty()), "{:?}", client.server_info());
        assert_eq!(client.instructions(), Some("A scripted server."));

        let mut result = discovered();
        match &info {
            Some(info) => result["_meta"]["io.modelcontextprotocol/serverInfo"] = info.clone(),
            None => drop(result.as_object_mut().unwrap().remove("_meta")),
        }
        let peer = ScriptedPeer::new([expect(json!({})), send(json!({ "id": "$id", "result": result }))]);
        let client = connect_in(Era::Modern, peer).await.unwrap_or_else(|error| panic!("{info:?}: {error:?}"));
        assert!(client.server_info().is_none_or(|info| info.name.is_empty()), "{:?}", client.server_info());
    }
}

/// Versions that are none stand beside those that are.
#[tokio::test(start_paused = true)]
async fn c128_an_odd_version_in_a_list_does_not_cost_the_others() {
    for versions in
        [json!([null, "2026-07-28"]), json!([5, {}, "2026-07-28", "2025-11-25"]), json!(["", "2026-07-28", []])]
    {
        let mut result = discovered();
        result["supportedVersions"] = versions.clone();
        let peer = ScriptedPeer::new([expect(json!({})), send(json!({ "id": "$id", "result": result }))]);
        let client = Client::connect(peer).await.unwrap_or_else(|error| panic!("{versions}: {error:?}"));
        assert_eq!(client.revision(), Revision::V2026_07_28, "{versions}");
    }
}

/// Log messages are heard in their order, whatever is odd about them.
#[tokio::test(start_paused = true)]
async fn odd_log_messages_are_heard_all_the_same() {
    let params = [
        json!({ "level": "info", "data": 0 }),
        json!({ "level": "verbose", "data": 1, "logger": null, "_meta": null }),
        json!({ "level": 5, "data": 2, "logger": 5 }),
        json!({ "level": null, "data": 3, "logger": {}, "new": [] }),
        json!({ "level": "error", "data": null }),
        json!({ "level": "error" }),
        json!({ "data": 6 }),
    ];
    for era in ERAS {
        let odd = params.iter().map(|params| send(json!({ "method": "notifications/message", "params": params })));
        let script = [opening(era), odd.collect(), answers("a", "b")].concat();
        let heard = Arc::<Mutex<Vec<LogMessage>>>::default();
        let ear = heard.clone();
        let (told, mut is_told) = tokio::sync::mpsc::unbounded_channel();
        let client = Client::builder(implementation!()).on_log(move |message| {
            ear.lock().unwrap().push(message);
            let _ = told.send(());
        });
        let client = client.connect(ScriptedPeer::new(script)).await.unwrap();
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        for _ in &params {
            soon(is_told.recv()).await.unwrap();
        }
        let heard = heard.lock().unwrap();
        let data: Vec<_> = heard.iter().map(|message| message.data.as_str().to_owned()).collect();
        assert_eq!(data, ["0", "1", "2", "3", "null", "null", "6"], "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn odd_progress_is_heard_by_its_number() {
    for era in ERAS {
        let step = |progress: u32, beside: Value| {
            let params = with(json!({ "progressToken": "$id", "progress": progress }), &beside);
            send(json!({ "method": "notifications/progress", "params": params }))
        };
        let script = [
            expect(json!({ "method": "tools/call" })),
            step(1, json!({ "total": null, "message": null, "_meta": null })),
            step(2, json!({ "total": "many", "message": 5, "new": {} })),
            step(3, json!({ "total": 4, "message": "m" })),
            send(json!({ "id": "$id", "result": text("b") })),
        ];
        let (client, _peer) = connected(era, script).await;
        let heard = Arc::<Mutex<Vec<_>>>::default();
        let ear = heard.clone();
        let options = CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress));
        assert_eq!(client.call_with::<String>("a", (), options).await.unwrap(), "b");
        let heard = heard.lock().unwrap();
        let facts: Vec<_> = heard.iter().map(|p| (p.progress, p.total, p.message.as_deref())).collect();
        assert_eq!(facts, [(1.0, None, None), (2.0, None, None), (3.0, Some(4.0), Some("m"))], "{era:?}");
    }
}

/// What a server may say between a call and its answer, that is about neither.
fn noise() -> Vec<String> {
    let told = |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#);
    let params = ["", r#","params":null"#, r#","params":{}"#, r#","params":[]"#, r#","params":{"_meta":null,"x":5}"#];
    let methods = [
        "notifications/hologram",
        "no/slash/of/ours",
        "",
        "notifications/message",
        "notifications/progress",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/tools/list_changed",
        "notifications/resources/updated",
        "notifications/elicitation/complete",
        "notifications/subscriptions/acknowledged",
        "notifications/tasks/status",
        "notifications/roots/list_changed",
    ];
    let notifications = methods.iter().flat_map(|method| params.map(|params| told(method, params)));
    let others = [
        // Answers that are nobody's.
        r#"{"jsonrpc":"2.0","id":999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"999","result":null}"#,
        r#"{"jsonrpc":"2.0","id":-1,"error":{"code":-32603,"message":"whose?"}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"late"}]}}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"stolen"}]}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{},"id2":5,"extra":{"id":1}}"#,
    ];
    notifications.chain(others.map(ToOwned::to_owned)).collect()
}

/// Errors about no request in particular; over HTTP they are about the one they answer.
const UNADDRESSED: [&str; 4] = [
    r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"?","data":null}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":"no"}"#,
    r#"{"jsonrpc":"2.0","error":null}"#,
];

/// An answer with members that no envelope has.
const ANSWER: &str =
    r#"{"result":{"content":[{"type":"text","text":"b"}],"new":5},"trace":{"id":9},"Id":7,"jsonrpc":"2.0","id":$id}"#;

#[tokio::test(start_paused = true)]
async fn what_is_about_something_else_does_not_cost_an_answer() {
    for era in ERAS {
        let first = if era == Era::Modern { 1 } else { 2 };
        let unaddressed = UNADDRESSED.map(ToOwned::to_owned);
        let mut script = Script::new();
        let noise: Vec<_> = noise().into_iter().chain(unaddressed).collect();
        for (number, frame) in noise.iter().enumerate() {
            let id = first + number;
            script.push(expect(json!({ "id": id, "method": "tools/call" })));
            script.push(raw(frame.clone()));
            script.push(raw(ANSWER.replace("$id", &id.to_string())));
        }
        let (client, peer) = connected(era, script).await;
        for frame in &noise {
            let answer = client.call::<String>("a", ()).await;
            assert_eq!(answer.unwrap_or_else(|error| panic!("{era:?} {frame}: {error:?}")), "b");
        }
        peer.done().await;
        assert_eq!(peer.connections(), 1);
    }
}

#[tokio::test]
async fn over_http_what_is_about_something_else_does_not_cost_an_answer() {
    for era in ERAS {
        let events: String = noise().iter().map(|frame| format!("data: {frame}\n\n")).collect();
        let stream = Answer::events(format!("{events}data: {ANSWER}\n\n"));
        let rule = move |request: &http::Request| match request.method() {
            "tools/call" => stream.clone(),
            _ => Answer::status(202),
        };
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(rule)).await,
            _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
        };
        let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
        for _ in 0..2 {
            assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b", "{era:?}");
        }
    }
}

/// Each finds its own, in whatever order they come; and what comes too late finds nobody.
#[tokio::test(start_paused = true)]
async fn answers_in_any_order_find_their_calls() {
    for era in ERAS {
        let called = |name: &'static str| expect_as(name, json!({ "method": "tools/call" }));
        let answer = |name: &str| send(json!({ "id": name, "result": { "structuredContent": name } }));
        // Each is answered with its own id.
        let names = ["$0", "$1", "$2", "$3"];
        for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let mut script: Script = names.map(called).to_vec();
            script.extend(order.map(|place| answer(names[place])));
            // Each once more, when it is nobody's.
            script.extend(order.map(|place| answer(names[place])));
            script.extend(answers("a", "b"));
            let (client, peer) = connected(era, script).await;
            let call = || client.call::<u64>("a", ());
            let answered = tokio::join!(call(), call(), call(), call());
            let first = if era == Era::Modern { 1 } else { 2 };
            let ids = [answered.0, answered.1, answered.2, answered.3].map(Result::unwrap);
            assert_eq!(ids, [first, first + 1, first + 2, first + 3], "{era:?} {order:?}");
            assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
            peer.done().await;
        }
    }
}

/// A question with all that may be absent null, with what nobody knows, and with a role that no revision has.
fn odd_sampling() -> Value {
    json!({
        "messages": [
            { "role": "system", "content": { "type": "text", "text": "a", "annotations": 5, "_meta": null }, "new": 5 },
            { "role": "user", "content": { "type": "hologram", "x": 1 } },
            { "role": "assistant", "content": [{ "type": "text", "text": "b" }, { "type": "hologram" }] },
        ],
        "maxTokens": 10.0, "systemPrompt": null, "temperature": null, "stopSequences": null, "modelPreferences": null,
        "tools": null, "toolChoice": null, "metadata": null, "includeContext": "everything", "task": null, "_meta": null,
    })
}

fn odd_elicitation() -> Value {
    json!({
        "message": "?", "mode": null, "url": null, "elicitationId": null, "task": null, "_meta": null, "new": {},
        "requestedSchema": { "type": "object", "properties": {} },
    })
}

/// Whoever answers hears all of it.
fn answering() -> mcp_suite::ClientBuilder {
    Client::builder(implementation!())
        .on_sample(|asked: CreateMessageParams| async move {
            let roles: Vec<_> = asked.messages.iter().map(|message| message.role).collect();
            let blocks: Vec<_> = asked.messages.iter().map(|message| message.content.len()).collect();
            assert_eq!((roles, blocks), (vec![Role::User, Role::User, Role::Assistant], vec![1, 1, 2]));
            assert_eq!((asked.max_tokens, asked.system_prompt, asked.tools), (10, None, None));
            Ok(CreateMessageResult::new("m", "said"))
        })
        .on_elicit(|asked: ElicitParams| async move {
            assert_eq!((asked.mode, asked.url, asked.elicitation_id), (None, None, None));
            ElicitResult::accept(json!({}))
        })
        .on_roots(|| async { Ok(Vec::new()) })
}

#[tokio::test(start_paused = true)]
async fn odd_questions_are_answered() {
    let script = vec![
        send(json!({ "id": "s", "method": "sampling/createMessage", "params": odd_sampling(), "new": 5 })),
        expect(json!({ "id": "s", "result": { "role": "assistant", "content": { "text": "said" } } })),
        send(json!({ "id": "e", "method": "elicitation/create", "params": odd_elicitation() })),
        expect(json!({ "id": "e", "result": { "action": "accept" } })),
        send(json!({ "id": "r", "method": "roots/list", "params": null })),
        expect(json!({ "id": "r", "result": { "roots": [] } })),
        send(json!({ "id": "p", "method": "ping", "params": { "_meta": null, "new": [] } })),
        expect(json!({ "id": "p", "result": {} })),
    ];
    let server = ScriptedPeer::of(Era::Legacy, script);
    let _client = answering().connect(server.clone()).await.unwrap();
    server.done().await;

    let asked = json!({
        "resultType": "input_required", "requestState": null, "_meta": null, "new": 5,
        "inputRequests": {
            "s": { "method": "sampling/createMessage", "params": odd_sampling(), "new": 5 },
            "e": { "method": "elicitation/create", "params": odd_elicitation() },
            "r": { "method": "roots/list", "params": null },
        },
    });
    let script = [
        vec![expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "result": asked }))],
        vec![
            expect(json!({ "method": "tools/call", "params": { "inputResponses": {
                "s": { "content": { "text": "said" } }, "e": { "action": "accept" }, "r": { "roots": [] },
            } } })),
            send(json!({ "id": "$id", "result": text("b") })),
        ],
    ];
    let server = ScriptedPeer::of(Era::Modern, script.concat());
    let client = answering().connect(server.clone()).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    server.done().await;
}

/// What a server agrees to tell may have nulls in it and more; changes that are about nothing change nothing.
#[tokio::test(start_paused = true)]
async fn odd_changes_do_not_cost_the_others() {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": "$id" });
    let changed = |method: &str, params: Value| {
        send(json!({ "method": format!("notifications/{method}"), "params": with(params, &json!({ "_meta": meta })) }))
    };
    let agreed = json!({
        "toolsListChanged": true, "promptsListChanged": null, "resourcesListChanged": null,
        "resourceSubscriptions": null, "hologramsListChanged": true,
    });
    let script = vec![
        expect(json!({ "method": "subscriptions/listen" })),
        changed("hologram", json!({})),
        changed("subscriptions/acknowledged", json!({ "notifications": agreed, "new": 5 })),
        changed("hologram", json!({})),
        changed("resources/updated", json!({})),
        changed("resources/updated", json!({ "uri": null })),
        changed("resources/updated", json!({ "uri": 5 })),
        changed("tools/list_changed", json!({ "new": 5 })),
    ];
    let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
    let mut changes = client.listen(NotificationFilter::new().tools().resource("x:a")).await.unwrap();
    let acknowledged = changes.acknowledged();
    assert!(acknowledged.tools_list_changed && acknowledged.resource_subscriptions.is_empty());
    assert_eq!(soon(changes.next()).await, Some(Changed::Tools));
}
