//! Calls that a server refuses for their headers: asked for the list once, made once more, and then told as they are.
//!
//! Specification: *Streamable HTTP, Custom Headers from Tool Parameters*.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use mcp_suite::{
    Blame, ErrorKind,
    client::{CallOptions, ResponseCache},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

const MISMATCH: i64 = -32020;

/// A tool whose argument `where` stands in that header; in none, where it has no name.
fn tool(name: &str, header: &str) -> Value {
    let mut place = json!({ "type": "string" });
    if !header.is_empty() {
        place["x-mcp-header"] = header.into();
    }
    json!({ "name": name, "inputSchema": { "type": "object", "properties": { "where": place } } })
}

/// A modern server that wants `where` of tool `a` in the header of that name, and lists it so. The name may change.
async fn wanting(header: &Arc<Mutex<String>>) -> HttpPeer {
    let header = header.clone();
    HttpPeer::start(http::modern(move |request| {
        let wanted = header.lock().unwrap().clone();
        match request.method() {
            "tools/list" => Answer::result(json!({ "tools": [tool("a", &wanted)], "ttlMs": 600_000 })),
            _ => {
                let place = request.body["params"]["arguments"]["where"].as_str();
                let mirrored = request.header(&format!("mcp-param-{wanted}"));
                if mirrored == place { Answer::result(text("b")) } else { Answer::error(400, MISMATCH, "mismatch") }
            }
        }
    }))
    .await
}

fn named(header: &str) -> Arc<Mutex<String>> {
    Arc::new(Mutex::new(header.to_owned()))
}

async fn call(client: &Client) -> Result<String, Error> {
    soon(client.call::<String>("a", json!({ "where": "here" }))).await
}

/// The methods that came after the first, and the headers of the calls among them.
fn told(server: &HttpPeer) -> Vec<(String, Vec<String>)> {
    let params = |request: &Request| {
        let headers = request.headers.iter().filter(|(name, _)| name.starts_with("mcp-param-"));
        headers.map(|(name, value)| format!("{name}: {value}")).collect()
    };
    server.requests()[1..].iter().map(|request| (request.method().to_owned(), params(request))).collect()
}

fn bare(method: &str) -> (String, Vec<String>) {
    (method.to_owned(), Vec::new())
}

fn with_header(name: &str) -> (String, Vec<String>) {
    ("tools/call".to_owned(), vec![format!("mcp-param-{name}: here")])
}

#[tokio::test]
async fn an_unknown_tool_is_called_bare_and_once_more_with_its_headers() {
    let server = wanting(&named("region")).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "b");
    assert_eq!(told(&server), [bare("tools/call"), bare("tools/list"), with_header("region")]);
    // From now on it is known.
    assert_eq!(call(&client).await.unwrap(), "b");
    assert_eq!(told(&server)[3..], [with_header("region")]);
    // What differs between the two is the header alone, and the id.
    let calls: Vec<_> = server.requests().into_iter().filter(|request| request.method() == "tools/call").collect();
    assert_eq!(calls[0].body["params"]["arguments"], calls[1].body["params"]["arguments"]);
    assert_ne!(calls[0].body["id"], calls[1].body["id"]);
}

/// What was known of a tool may have changed meanwhile.
#[tokio::test]
async fn a_tool_that_has_changed_is_listed_once_more() {
    let header = named("region");
    let server = wanting(&header).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    soon(client.tools()).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "b");
    *header.lock().unwrap() = "zone".into();
    assert_eq!(call(&client).await.unwrap(), "b");
    assert_eq!(
        told(&server),
        [bare("tools/list"), with_header("region"), with_header("region"), bare("tools/list"), with_header("zone")]
    );
}

/// A server that always refuses, and lists the tool so, or not at all.
async fn refusing(code: i64, list: Value, status: u16) -> HttpPeer {
    HttpPeer::start(http::modern(move |request| match request.method() {
        "tools/list" => Answer::result(json!({ "tools": list })),
        _ => Answer::error(status, code, "mismatch"),
    }))
    .await
}

#[tokio::test]
async fn a_second_refusal_is_told_to_the_caller() {
    for status in [400, 200] {
        let server = refusing(MISMATCH, json!([tool("a", "Region")]), status).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        let error = call(&client).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
        assert_eq!(error.object().unwrap().code, MISMATCH);
        assert_eq!(told(&server), [bare("tools/call"), bare("tools/list"), with_header("region")]);
    }
}

/// A call that would be the same is not made again.
#[tokio::test]
async fn where_the_list_says_nothing_new_the_refusal_stands() {
    for list in [json!([]), json!([tool("a", "")]), json!([tool("other", "Region")]), json!(5)] {
        let server = refusing(MISMATCH, list.clone(), 400).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        let error = call(&client).await.unwrap_err();
        assert_eq!(error.object().map(|object| object.code), Some(MISMATCH), "{list}: {error}");
        assert_eq!(told(&server), [bare("tools/call"), bare("tools/list")], "{list}");
    }
}

/// Only that one refusal is about headers, and only where there are some.
#[tokio::test]
async fn no_other_refusal_leads_to_a_second_call() {
    for (code, status) in [(-32602, 200), (-32021, 400), (-32600, 400), (-32603, 200), (-32601, 404), (0, 400)] {
        let server = refusing(code, json!([tool("a", "Region")]), status).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        let error = call(&client).await.unwrap_err();
        assert_eq!(error.object().map(|object| object.code), Some(code), "{error}");
        assert_eq!(told(&server), [bare("tools/call")], "{code}");
    }
    let refusal = json!({ "code": MISMATCH, "message": "mismatch" });
    let script = [expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "error": refusal }))];
    let (client, peer) = connected(Era::Modern, script).await;
    assert_eq!(call(&client).await.unwrap_err().object().unwrap().code, MISMATCH);
    peer.done().await;
}

/// Calls at once each make up for themselves: none lists twice, and none is made a third time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_once_are_each_made_once_more_at_most() {
    const CALLS: usize = 32;
    let server = wanting(&named("region")).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        let client = client.clone();
        calls.spawn(async move { assert_eq!(call(&client).await.unwrap(), "b") });
    }
    soon(calls.join_all()).await;
    let told = told(&server);
    let count = |like: &(String, Vec<String>)| told.iter().filter(|told| *told == like).count();
    let (first, lists, again) = (count(&bare("tools/call")), count(&bare("tools/list")), count(&with_header("region")));
    assert_eq!(again, CALLS, "each was answered once");
    assert!(lists == first && first <= CALLS, "{first} were refused, and {lists} lists asked for");
    assert_eq!(told.len(), first + lists + again);
}

/// Progress is heard of the call that is made again, and the options hold for both.
#[tokio::test]
async fn the_options_of_a_call_hold_for_both() {
    let rule = http::modern(|request| match (request.method(), request.header("mcp-param-region")) {
        ("tools/list", _) => Answer::result(json!({ "tools": [tool("a", "Region")] })),
        (_, None) => Answer::error(400, MISMATCH, "mismatch"),
        _ => {
            let token = &request.body["params"]["_meta"]["progressToken"];
            Answer::stream([
                json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } }),
                json!({ "id": "$id", "result": text("b") }),
            ])
        }
    });
    let server = HttpPeer::start(rule).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let heard = Arc::<Mutex<Vec<f64>>>::default();
    let ear = heard.clone();
    let options = CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress));
    let options = options.meta("example.com/k", 5).unwrap();
    let called = client.call_with::<String>("a", json!({ "where": "here" }), options);
    assert_eq!(soon(called).await.unwrap(), "b");
    assert_eq!(*heard.lock().unwrap(), [1.0]);
    let calls = server.requests().into_iter().filter(|request| request.method() == "tools/call");
    assert!(calls.into_iter().all(|call| call.body["params"]["_meta"]["example.com/k"] == 5));
}

/// A list that was kept cannot say what has changed since.
#[tokio::test]
async fn a_kept_list_does_not_stand_in_the_way_of_a_call_refused_for_its_headers() {
    let lists = AtomicUsize::new(0);
    let server =
        HttpPeer::start(http::modern(move |request| match (request.method(), request.header("mcp-param-zone")) {
            ("tools/list", _) => {
                let header = if lists.fetch_add(1, Ordering::SeqCst) == 0 { "Region" } else { "Zone" };
                let property = json!({ "type": "string", "x-mcp-header": header });
                let schema = json!({ "type": "object", "properties": { "where": property } });
                Answer::result(json!({ "tools": [{ "name": "a", "inputSchema": schema }], "ttlMs": 600_000 }))
            }
            (_, Some("here")) => Answer::result(text("b")),
            _ => Answer::error(400, -32020, "mismatch"),
        }))
        .await;
    let client = Client::builder(implementation!()).cache(&ResponseCache::new(), "ada");
    let client = soon(client.connect(Http::new(server.url()))).await.unwrap();
    soon(client.tools()).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", json!({ "where": "here" }))).await.unwrap(), "b");
}
