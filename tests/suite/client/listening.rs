//! Hearing of changes, on every wire and in both eras; answers that are kept until they change.
//!
//! Specification: *Subscriptions; Caching*; *2025-11-25, Resources, Subscriptions*.

use std::time::Duration;

use mcp_suite::{
    ErrorKind, Limits, Resource, Server, Tool, ToolError,
    client::{Changed, ListenEnd, ResponseCache, Subscription},
    types::{CacheHint, CacheHints, NotificationFilter},
    ws::Ws,
};

use mcp_http::Routes;

use super::*;
use crate::{
    http::Served,
    peer::memory::{close, flood, rest, wait},
    ws::Served as WsServed,
};

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

async fn text_of(_: mcp_suite::Context) -> Result<String, ToolError> {
    Ok("text".into())
}

fn server() -> Server {
    Server::builder(implementation!())
        .tool(Tool::new("one", nothing))
        .resource(Resource::new("x:a", "a", text_of))
        .resource(Resource::new("x:b", "b", text_of))
        .build()
}

fn filter() -> NotificationFilter {
    NotificationFilter::new().tools().prompts().resource("x:a").resource("x:none")
}

async fn next(changes: &mut Subscription) -> Option<Changed> {
    soon(changes.next()).await
}

/// Two that listen hear the same, each of what it asked for.
async fn hears(server: &Server, client: Client) {
    let revision = client.revision();
    let mut changes = soon(client.listen(filter())).await.unwrap();
    let mut others = soon(client.subscribe("x:a")).await.unwrap();
    let agreed = changes.acknowledged();
    assert_eq!(agreed.resource_subscriptions, ["x:a"], "{revision}");
    assert!(agreed.tools_list_changed && !agreed.prompts_list_changed, "{revision}");
    server.tools().replace(Tool::new("one", nothing)).unwrap();
    assert_eq!(next(&mut changes).await, Some(Changed::Tools), "{revision}");
    assert!(server.resource_updated("x:a"), "{revision}");
    assert_eq!(next(&mut changes).await, Some(Changed::Resource("x:a".into())), "{revision}");
    assert_eq!(next(&mut others).await, Some(Changed::Resource("x:a".into())), "{revision}");
    assert_eq!(soon(client.subscribe("x:none")).await.unwrap_err().kind(), ErrorKind::NotFound, "{revision}");
    // Who listens no more takes nothing from the other.
    others.close().await;
    assert_eq!((next(&mut others).await, matches!(others.ended(), Some(ListenEnd::Local))), (None, true));
    server.resource_updated("x:a");
    assert_eq!(next(&mut changes).await, Some(Changed::Resource("x:a".into())), "{revision}");
    drop(changes);
    let forgotten = async {
        while server.resource_updated("x:a") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(forgotten).await;
    let mut last = soon(client.listen(filter())).await.unwrap();
    client.disconnect().await;
    assert_eq!(next(&mut last).await, None, "{revision}");
    assert!(matches!(last.ended(), Some(ListenEnd::Local)), "{revision} {:?}", last.ended());
}

#[tokio::test]
async fn changes_are_heard_alike_on_every_revision_and_shared_wire() {
    for revision in Revision::ALL.iter().copied() {
        let builder = || Client::builder(implementation!()).revisions([revision]);
        let one = server();
        hears(&one, builder().connect(one.clone()).await.unwrap()).await;
        let other = server();
        let ws = WsServed::start(other.clone()).await;
        hears(&other, builder().connect(Ws::new(ws.url())).await.unwrap()).await;
    }
}

#[tokio::test]
async fn changes_are_heard_alike_on_every_revision_over_http() {
    for revision in Revision::ALL {
        let server = server();
        let served = Served::with(Routes::new(server.clone()), "127.0.0.1").await;
        let http = Http::new(format!("http://{}/mcp", served.address));
        let client = Client::builder(implementation!()).revisions([*revision]).connect(http);
        hears(&server, soon(client).await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_a_subscription_in_good_order() {
    let server = server();
    let client = Client::connect(server.clone()).await.unwrap();
    let mut changes = client.listen(filter()).await.unwrap();
    server.tools().replace(Tool::new("one", nothing)).unwrap();
    server.end_subscriptions();
    // What was heard before the end is told still, if it was.
    while next(&mut changes).await.is_some() {}
    assert!(matches!(changes.ended(), Some(ListenEnd::Graceful)), "{:?}", changes.ended());
}

fn acknowledged(filter: &Value) -> Vec<Step> {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": "$id" });
    vec![
        expect(json!({ "method": "subscriptions/listen" })),
        send(
            json!({ "method": "notifications/subscriptions/acknowledged", "params": { "notifications": filter, "_meta": meta } }),
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_told_from_a_good_end() {
    let offers = json!({ "capabilities": { "tools": { "listChanged": true } } });
    for era in ERAS {
        let script = match era {
            Era::Modern => [acknowledged(&json!({ "toolsListChanged": true })), vec![close()]].concat(),
            _ => vec![wait(Duration::from_secs(1)), close()],
        };
        let peer = match era {
            Era::Modern => ScriptedPeer::modern(script),
            _ => {
                let mut opening = mcp_test::script::legacy();
                let mut result = initialized(Revision::LATEST_LEGACY.as_str());
                result["capabilities"] = offers["capabilities"].clone();
                opening[3] = send(json!({ "id": "$id", "result": result }));
                ScriptedPeer::new([opening, script].concat())
            }
        };
        let client = Client::connect(peer).await.unwrap();
        let mut changes = client.listen(NotificationFilter::new().tools()).await.unwrap();
        assert!(changes.acknowledged().tools_list_changed, "{era:?}");
        assert_eq!(next(&mut changes).await, None, "{era:?}");
        assert!(matches!(changes.ended(), Some(ListenEnd::Lost(_))), "{era:?} {:?}", changes.ended());
    }
}

/// Whoever listens and does not read costs neither memory nor anybody's time, and is told once of what changed often.
#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_is_one_change_and_delays_no_call() {
    let updated = |number: usize| {
        let uri = if number.is_multiple_of(2) { "x:a" } else { "x:a/below" };
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}","_meta":{{"io.modelcontextprotocol/subscriptionId":1}}}}}}"#
        )
    };
    let script = [
        acknowledged(&json!({ "resourceSubscriptions": ["x:a"] })),
        vec![flood(20_000, move |number| updated(number).into())],
        answers("a", "b"),
    ];
    let client = Client::connect(ScriptedPeer::modern(script.concat())).await.unwrap();
    let mut changes = client.subscribe("x:a").await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    assert_eq!(changes.next().await, Some(Changed::Resource("x:a".into())));
    let silence = tokio::time::timeout(Duration::from_secs(5), changes.next()).await;
    assert!(silence.is_err(), "{silence:?}");
}

/// Whoever lists anew at each change lists at most twice for a burst: while it lists, any number of changes are one.
#[tokio::test(start_paused = true)]
async fn c142_a_burst_of_changes_leads_to_two_lists_at_most() {
    const BURST: usize = 200;
    let offers = json!({ "tools": { "listChanged": true } });
    for era in ERAS {
        let note = move |_: usize| {
            let meta = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}"#;
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{meta}}}"#).into()
        };
        let listed = [
            expect(json!({ "method": "tools/list" })),
            // Half of them come before the first list is answered, and half with it.
            flood(BURST / 2, note),
            send(json!({ "id": "$id", "result": { "tools": [] } })),
        ];
        let again =
            [expect(json!({ "method": "tools/list" })), send(json!({ "id": "$id", "result": { "tools": [] } }))];
        let mut opening = match era {
            Era::Modern => [mcp_test::script::modern(), acknowledged(&json!({ "toolsListChanged": true }))].concat(),
            _ => {
                let mut result = initialized(Revision::LATEST_LEGACY.as_str());
                result["capabilities"] = offers.clone();
                let mut opening = mcp_test::script::legacy();
                opening[3] = send(json!({ "id": "$id", "result": result }));
                opening
            }
        };
        opening.push(flood(BURST / 2, note));
        let script = [opening, listed.to_vec(), again.to_vec(), vec![rest()]].concat();
        let peer = ScriptedPeer::new(script);
        let client = Client::connect(peer.clone()).await.unwrap();
        let mut changes = client.listen(NotificationFilter::new().tools()).await.unwrap();
        while let Ok(changed) = tokio::time::timeout(Duration::from_secs(60), changes.next()).await {
            assert_eq!(changed, Some(Changed::Tools), "{era:?}");
            client.tools().await.unwrap();
        }
        let lists = peer.methods().iter().filter(|method| *method == "tools/list").count();
        assert!((1..=2).contains(&lists), "{lists} lists for {BURST} changes in {era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_agrees_or_refuses_fails_the_listening() {
    let silent = ScriptedPeer::modern([expect(json!({ "method": "subscriptions/listen" })), rest()]);
    let client = Client::connect(silent.clone()).await.unwrap();
    let error = client.subscribe("x:a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    silent.heard(3).await;
    assert_eq!(silent.methods()[2], "notifications/cancelled");
    let refusal = json!({ "id": "$id", "error": { "code": -32601, "message": "Method not found" } });
    let client = Client::connect(ScriptedPeer::modern([expect(json!({})), send(refusal)])).await.unwrap();
    assert_eq!(client.subscribe("x:a").await.unwrap_err().kind(), ErrorKind::MethodNotFound);
}

#[tokio::test]
async fn answers_are_kept_until_they_change() {
    let hints = CacheHints::default().tools(CacheHint::private(Duration::from_secs(600)));
    let server = Server::builder(implementation!()).cache_hints(hints).tool(Tool::new("one", nothing)).build();
    let cache = ResponseCache::new();
    let builder = |name: &str| Client::builder(implementation!()).cache(&cache, name);
    let ada = builder("ada").connect(server.clone()).await.unwrap();
    let mut changes = ada.listen(NotificationFilter::new().tools()).await.unwrap();
    assert_eq!(ada.tools().await.unwrap().len(), 1);
    server.tools().add(Tool::new("two", nothing)).unwrap();
    let bob = builder("bob").connect(server.clone()).await.unwrap();
    assert_eq!(bob.tools().await.unwrap().len(), 2);
    assert_eq!(soon(changes.next()).await, Some(Changed::Tools));
    assert_eq!(ada.tools().await.unwrap().len(), 2);
    // Nobody tells Bob.
    server.tools().remove("one");
    assert_eq!(bob.tools().await.unwrap().len(), 2);
    let plain = Client::connect(server.clone()).await.unwrap();
    assert_eq!(plain.tools().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_page_and_a_stream_are_what_the_whole_list_is() {
    let tools = (0..25).map(|number| Tool::new(format!("tool-{number}"), nothing));
    let server = Server::builder(implementation!()).limits(Limits::default().page_size(10)).build();
    server.tools().add(tools).unwrap();
    for era in ERAS {
        let client = connect_in(era, server.clone()).await.unwrap();
        let names = |tools: &[Tool]| tools.iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>();
        let all = names(&client.tools().await.unwrap());
        let streamed: Vec<Tool> = futures_util::TryStreamExt::try_collect(client.tools_stream()).await.unwrap();
        let (mut paged, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = client.tools_page(cursor.as_deref()).await.unwrap();
            assert!(page.items.len() <= 10);
            paged.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!((all.len(), names(&streamed), names(&paged)), (25, all.clone(), all), "{era:?}");
    }
}

/// Whoever listens to the whole hears of its parts, whoever else listens to these.
#[tokio::test(start_paused = true)]
async fn a_part_that_changes_is_told_as_itself_and_as_the_whole() {
    let changed = |uri: &str| json!({ "method": "notifications/resources/updated", "params": { "uri": uri } });
    let peer = ScriptedPeer::new([crate::peer::memory::serve(move |message| {
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => {
                return vec![json!({ "id": message["id"], "error": { "code": -32601, "message": "" } })];
            }
            "initialize" => {
                let mut result = initialized("2025-11-25");
                result["capabilities"] = json!({ "tools": {}, "resources": { "subscribe": true } });
                result
            }
            "tools/call" => {
                let uri = message["params"]["name"].as_str().unwrap_or_default();
                return vec![changed(uri), json!({ "id": message["id"], "result": text("") })];
            }
            _ => json!({}),
        };
        vec![json!({ "id": message["id"], "result": result })]
    })]);
    let client = Client::connect(peer).await.unwrap();
    let mut whole = client.subscribe("x:a").await.unwrap();
    let mut part = client.subscribe("x:a/b").await.unwrap();
    client.call_raw("x:a/b", ()).await.unwrap();
    assert_eq!(next(&mut whole).await, Some(Changed::Resource("x:a".into())));
    assert_eq!(next(&mut part).await, Some(Changed::Resource("x:a/b".into())));
    // What only begins alike is something else.
    for (uri, is_heard) in [("x:ab", false), ("x:a#b", true), ("x:a?b", true), ("x:b/x:a", false), ("x:a", true)] {
        client.call_raw(uri, ()).await.unwrap();
        let heard = tokio::time::timeout(Duration::from_secs(1), whole.next()).await;
        assert_eq!(heard.is_ok(), is_heard, "{uri}");
    }
}
