//! Servers that flood, lie, or go away in the middle, and users' code that panics: the client stays whole.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::FutureExt;
use mcp_suite::{
    ErrorKind, Limits,
    client::{Changed, ListenEnd},
    types::{ElicitResult, NotificationFilter},
};
use tokio::time::sleep;

use super::*;
use crate::peer::memory::{close, flood, rest, serve, wait};

/// `subscriptions/listen` comes, and is acknowledged like that.
fn acknowledged(filter: &Value) -> Script {
    let params = json!({ "notifications": filter, "_meta": { "io.modelcontextprotocol/subscriptionId": "$id" } });
    vec![
        expect(json!({ "method": "subscriptions/listen" })),
        send(json!({ "method": "notifications/subscriptions/acknowledged", "params": params })),
    ]
}

/// Whatever tool is called, it says `b`.
fn answering() -> Step {
    serve(|message| match message["method"].as_str() {
        Some("tools/call") => vec![json!({ "id": message["id"], "result": text("b") })],
        _ => vec![],
    })
}

fn form(id: &str, message: &str) -> Value {
    let params = json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } });
    json!({ "id": id, "method": "elicitation/create", "params": params })
}

/// Specification: *Cancellation*: so a server tears a subscription down on a shared wire.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_the_server_cancels_ends() {
    let cancel = send(json!({ "method": "notifications/cancelled", "params": { "requestId": "$id" } }));
    let script = [acknowledged(&json!({ "toolsListChanged": true })), vec![cancel.clone(), answering()]].concat();
    let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
    let mut changes = client.listen(NotificationFilter::new().tools()).await.unwrap();
    assert_eq!(soon(changes.next()).await, None);
    assert!(matches!(changes.ended(), Some(ListenEnd::Graceful)), "{:?}", changes.ended());
    // It may do so before it agrees to anything, and cannot do so to a call.
    let first = vec![expect(json!({ "method": "subscriptions/listen" })), cancel.clone()];
    let script = [first, vec![expect(json!({ "method": "tools/call" })), cancel], answers_now("b")].concat();
    let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
    let mut changes = soon(client.listen(NotificationFilter::new().tools())).await.unwrap();
    assert_eq!(soon(changes.next()).await, None);
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

fn answers_now(with: &str) -> Script {
    vec![send(json!({ "id": "$id", "result": text(with) })), rest()]
}

/// What comes about a call waits for nobody, and so nobody else for it.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_awaited_holds_up_no_other() {
    let note = |_| {
        let meta = r#"{"io.modelcontextprotocol/subscriptionId":1}"#;
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"x:a","_meta":{meta}}}}}"#
        )
        .into()
    };
    let script = vec![expect(json!({ "method": "tools/call" })), flood(600, note), answering()];
    let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
    let mut unpolled = Box::pin(client.call::<String>("a", ()));
    assert!(unpolled.as_mut().now_or_never().is_none());
    assert_eq!(soon(client.call::<String>("b", ())).await.unwrap(), "b");
}

/// At whatever moment a subscription is dropped, the connection goes on.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_dropped_in_a_burst() {
    let note = |_| {
        let meta = r#"{"io.modelcontextprotocol/subscriptionId":1}"#;
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{meta}}}}}"#).into()
    };
    for turns in 0..60 {
        let script =
            [acknowledged(&json!({ "toolsListChanged": true })), vec![flood(3000, note), answering()]].concat();
        let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
        let changes = client.listen(NotificationFilter::new().tools()).await.unwrap();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        drop(changes);
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b", "after {turns} turns");
    }
}

/// What was not asked for is neither agreed to nor heard, however much of it there is.
#[tokio::test(start_paused = true)]
async fn what_is_acknowledged_counts_as_far_as_it_was_asked_for() {
    let many: Vec<_> = (0..40_000).map(|number| format!("x:{number}")).chain(["x:a".into()]).collect();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": "$id" });
    let changed =
        |uri: &str| json!({ "method": "notifications/resources/updated", "params": { "uri": uri, "_meta": meta } });
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": many });
    let changes = vec![send(changed("x:1")), send(changed("x:a")), rest()];
    let client = Client::connect(ScriptedPeer::modern([acknowledged(&filter), changes].concat())).await.unwrap();
    let mut heard = soon(client.subscribe("x:a")).await.unwrap();
    assert_eq!(*heard.acknowledged(), NotificationFilter::new().resource("x:a"));
    assert_eq!(soon(heard.next()).await, Some(Changed::Resource("x:a".into())));
    let other = acknowledged(&json!({ "resourceSubscriptions": ["x:other"] }));
    let client = Client::connect(ScriptedPeer::modern([other, vec![rest()]].concat())).await.unwrap();
    assert_eq!(soon(client.subscribe("x:a")).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Whatever the user's code does, the server is answered, and read.
#[tokio::test(start_paused = true)]
async fn what_panics_while_it_hears_ends_nothing() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let visit = json!({ "mode": "url", "message": "?", "url": "https://x", "elicitationId": "e" });
    let script = [
        vec![
            flood(1, |_| log.into()),
            send(json!({ "id": "q", "method": "elicitation/create", "params": visit })),
            expect(json!({ "id": "q", "result": { "action": "accept" } })),
            send(json!({ "method": "notifications/elicitation/complete", "params": { "elicitationId": "e" } })),
            send(json!({ "id": "p", "method": "ping" })),
            expect(json!({ "id": "p", "result": {} })),
        ],
        answers("a", "b"),
    ];
    let peer = ScriptedPeer::of(Era::Legacy, script.concat());
    let client = Client::builder(implementation!())
        .on_log(|_| panic!("on_log"))
        .on_elicit_url(|_| async { Ok(ElicitResult::agree()) })
        .on_elicitation_complete(|_| panic!("on_elicitation_complete"))
        .connect(peer.clone())
        .await
        .unwrap();
    peer.heard(opening_length(Era::Legacy) + 2).await;
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

/// Specification: *2025-11-25, Elicitation, Completion Notifications*.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_visit_is_told_once_and_of_none_that_was_not_made() {
    let complete =
        |id: &str| send(json!({ "method": "notifications/elicitation/complete", "params": { "elicitationId": id } }));
    let visit = |id: &str| {
        let params = json!({ "mode": "url", "message": id, "url": "https://x", "elicitationId": id });
        send(json!({ "id": id, "method": "elicitation/create", "params": params }))
    };
    let answered = |id: &str, action: &str| expect(json!({ "id": id, "result": { "action": action } }));
    let script = vec![
        complete("yes"),
        visit("yes"),
        answered("yes", "accept"),
        visit("no"),
        answered("no", "decline"),
        complete("no"),
        complete("never"),
        complete("yes"),
        complete("yes"),
        rest(),
    ];
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let ear = heard.clone();
    let client = Client::builder(implementation!())
        .on_elicit_url(|asked| async move {
            Ok(if asked.message == "yes" { ElicitResult::agree() } else { ElicitResult::decline() })
        })
        .on_elicitation_complete(move |id| ear.lock().unwrap().push(id))
        .connect(ScriptedPeer::of(Era::Legacy, script))
        .await
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(*heard.lock().unwrap(), ["yes"]);
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn questions_end_with_the_connection_that_they_came_on() {
    let dropped = Arc::<AtomicUsize>::default();
    let in_handler = dropped.clone();
    let script = vec![send(form("q", "?")), wait(Duration::from_secs(1)), close()];
    let client = Client::builder(implementation!())
        .on_elicit(move |_| {
            let guard = OnDrop(in_handler.clone());
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        })
        .connect(ScriptedPeer::of(Era::Legacy, script))
        .await
        .unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    drop(client);
}

/// Questions that wait for their turn are bounded by number and by bytes; one too many is refused at once.
#[tokio::test(start_paused = true)]
async fn questions_that_wait_are_bounded() {
    let size = form("q1", &"x".repeat(600))["params"].to_string().len();
    for (limits, size) in [
        (Limits::default().in_flight(1).waiting(1), 0),
        (Limits::default().in_flight(1).queue_bytes(size), size),
        (Limits::default().in_flight(1).queue_bytes(2 * size - 1), size),
    ] {
        let message = "x".repeat(if size == 0 { 1 } else { 600 });
        let script = vec![
            send(form("q1", &message)),
            send(form("q2", &message)),
            send(form("q3", &message)),
            expect(json!({ "id": "q3", "error": { "code": -32603, "message": "too many requests" } })),
            rest(),
        ];
        let peer = ScriptedPeer::of(Era::Legacy, script);
        let asked = Arc::<AtomicUsize>::default();
        let counted = asked.clone();
        let client = Client::builder(implementation!())
            .limits(limits)
            .on_elicit(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                std::future::pending()
            })
            .connect(peer.clone())
            .await
            .unwrap();
        peer.heard(4).await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        drop(client);
    }
}

/// A peer's words are shown, and forge nothing; all of them are in the error's object.
#[tokio::test(start_paused = true)]
async fn an_error_shows_as_much_of_a_peers_words_as_a_line_holds() {
    let words = format!("a\u{1b}[31m\n{}", "x".repeat(1 << 20));
    let error = json!({ "id": "$id", "error": { "code": -1, "message": words } });
    let script = vec![expect(json!({ "method": "tools/call" })), send(error), rest()];
    let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
    let error = soon(client.call::<()>("a", ())).await.unwrap_err();
    let shown = error.to_string();
    assert!(shown.len() < 1100 && !shown.contains(['\u{1b}', '\n']) && shown.contains("a\\u{1b}[31m\\n"), "{shown}");
    assert_eq!(error.object().unwrap().message, words);
}

/// Pages that hold ever more are given up, at the edge.
#[tokio::test(start_paused = true)]
async fn a_list_has_an_end_in_bytes() {
    let entry = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
    let page = move |message: &Value| match message["method"].as_str() {
        Some("tools/list") => {
            let number: usize = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let tools: Vec<Value> = vec![serde_json::from_str(entry).unwrap(); 2];
            let mut result = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools });
            if number < 2 {
                result["nextCursor"] = (number + 1).to_string().into();
            }
            vec![json!({ "id": message["id"], "result": result })]
        }
        _ => vec![],
    };
    // Three pages of two tools, and two cursors of one character.
    let all = 6 * serde_json::from_str::<Value>(entry).unwrap().to_string().len() + 2;
    for (most, is_enough) in [(all, true), (all - 1, false)] {
        let peer = ScriptedPeer::modern([serve(page)]);
        let limits = Limits::default().list_bytes(most);
        let client = Client::builder(implementation!()).limits(limits).connect(peer).await.unwrap();
        let listed = soon(client.tools()).await;
        assert_eq!(listed.as_ref().map(Vec::len).ok(), is_enough.then_some(6), "{most} {listed:?}");
        if let Err(error) = listed {
            assert_eq!(error.kind(), ErrorKind::ProtocolInvalid);
        }
    }
}

/// What a subscription wanted is taken back, wherever its closing is given up.
#[tokio::test(start_paused = true)]
async fn a_close_that_is_given_up_leaves_nothing_subscribed() {
    let unsubscribed = Arc::<AtomicUsize>::default();
    let counted = unsubscribed.clone();
    let peer = ScriptedPeer::new([serve(move |message| {
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => {
                return vec![json!({ "id": message["id"], "error": { "code": -32601, "message": "no" } })];
            }
            "initialize" => {
                let mut result = initialized("2025-11-25");
                result["capabilities"] = json!({ "resources": { "subscribe": true } });
                result
            }
            "resources/unsubscribe" => {
                counted.fetch_add(1, Ordering::SeqCst);
                json!({})
            }
            _ => json!({}),
        };
        vec![json!({ "id": message["id"], "result": result })]
    })]);
    let client = Client::connect(peer).await.unwrap();
    for polls in 0..20 {
        let filter = NotificationFilter::new().resource("x:a").resource("x:b").resource("x:c");
        let mut changes = client.listen(filter).await.unwrap();
        let mut closing = Box::pin(changes.close());
        for _ in 0..polls {
            if closing.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(closing);
        drop(changes);
        sleep(Duration::from_secs(5)).await;
        assert_eq!(unsubscribed.swap(0, Ordering::SeqCst), 3, "after {polls} polls");
    }
}
