//! A server that mounts another one that is slow, wrong, lost, or asks for somebody else.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{FutureExt, TryStreamExt};
use mcp_suite::{
    ClientBuilder, Error, Server,
    client::{CallOptions, Changed},
    types::{ElicitParams, ElicitResult, NotificationFilter},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer},
    memory::serve,
};

fn gateway() -> Server {
    Server::builder(implementation!()).build()
}

/// A server of that era that offers `capabilities`. `rule` gives the result of a request, an error if it gives none, and
/// what else is sent, before the answer.
fn remote(
    era: Era,
    capabilities: &Value,
    rule: impl Fn(&Value) -> (Option<Value>, Vec<Value>) + Send + Sync + 'static,
) -> ScriptedPeer {
    let capabilities = capabilities.clone();
    ScriptedPeer::new([serve(move |message| {
        let result = match message["method"].as_str().unwrap_or_default() {
            "server/discover" if era == Era::Modern => Some(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
            })),
            "initialize" => Some(json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "serverInfo": { "name": "peer", "version": "1" },
            })),
            "server/discover" => None,
            _ => return answered(message, rule(message)),
        };
        answered(message, (result, Vec::new()))
    })])
}

fn answered(message: &Value, (result, mut sent): (Option<Value>, Vec<Value>)) -> Vec<Value> {
    match (result, message.get("method").and(message.get("id"))) {
        (Some(Value::Null), _) | (_, None) => {}
        (Some(mut result), Some(id)) => {
            result.as_object_mut().unwrap().entry("resultType").or_insert("complete".into());
            sent.push(json!({ "id": id, "result": result }));
        }
        (None, Some(id)) => sent.push(json!({ "id": id, "error": { "code": -32601, "message": "no" } })),
    }
    sent
}

fn named(names: &[&str]) -> Value {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() })
}

/// A legacy server on one wire for all. `wait` never ends; `ask`, a ping and a call that is given up make it ask
/// something, and `ask` ends with what it was told.
fn asking() -> ScriptedPeer {
    let (asker, questions) = (Mutex::new(Value::Null), AtomicUsize::new(0));
    remote(Era::Legacy, &json!({ "tools": {} }), move |message| {
        let number = questions.fetch_add(1, Ordering::SeqCst);
        let question = json!({
            "id": format!("q{number}"), "method": "elicitation/create",
            "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } },
        });
        match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("tools/list"), _) => (Some(named(&["wait", "ask"])), vec![]),
            (Some("ping"), _) => (Some(json!({})), vec![question]),
            (Some("notifications/cancelled"), _) => (None, vec![question]),
            (Some("tools/call"), Some("ask")) => {
                *asker.lock().unwrap() = message["id"].clone();
                (Some(Value::Null), vec![question])
            }
            (Some(_), _) => (Some(Value::Null), vec![]),
            (None, _) => {
                let told = if message.get("error").is_some() { "refused" } else { "answered" };
                (None, vec![json!({ "id": *asker.lock().unwrap(), "result": text(told) })])
            }
        }
    })
}

/// Somebody who can be asked, and how often that was so.
fn person() -> (ClientBuilder, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = asked.clone();
    let builder = Client::builder(implementation!()).on_elicit(move |_: ElicitParams| {
        counting.fetch_add(1, Ordering::SeqCst);
        async { ElicitResult::accept(()) }
    });
    (builder, asked)
}

/// A call of `wait` by a client that goes through the gateway, and is under way.
async fn waiting(client: &Client, peer: &ScriptedPeer, token: &CancellationToken) {
    let (client, options) = (client.clone(), CallOptions::new().cancel_with(token.clone()));
    let count = peer.frames().len();
    tokio::spawn(async move { client.call_raw_with("wait", (), options).await });
    peer.heard(count + 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_call_of_who_cannot_be_asked_is_asked_of_nobody_else() {
    let (peer, gateway) = (asking(), gateway());
    let to_peer = Client::builder(implementation!()).pass_questions().connect(peer.clone()).await.unwrap();
    gateway.mount("", to_peer).await.unwrap();
    let (bystander, asked) = person();
    let bystander = bystander.connect(gateway.clone()).await.unwrap();
    let mute = Client::connect(gateway.clone()).await.unwrap();
    assert_eq!(mute.call::<String>("ask", ()).await.unwrap(), "refused");
    waiting(&bystander, &peer, &CancellationToken::new()).await;
    assert_eq!(mute.call::<String>("ask", ()).await.unwrap(), "refused");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_question_about_the_clients_own_call_is_not_asked_of_its_guests() {
    let (peer, gateway) = (asking(), gateway());
    let (host, host_asked) = person();
    let host = host.pass_questions().connect(peer.clone()).await.unwrap();
    gateway.mount("", host.clone()).await.unwrap();
    let (guest, guest_asked) = person();
    let guest = guest.connect(gateway.clone()).await.unwrap();
    // Its own calls are all its own, however many there are.
    waiting(&host, &peer, &CancellationToken::new()).await;
    assert_eq!(host.call::<String>("ask", ()).await.unwrap(), "answered");
    waiting(&guest, &peer, &CancellationToken::new()).await;
    assert_eq!(host.call::<String>("ask", ()).await.unwrap(), "refused");
    assert_eq!(guest.call::<String>("ask", ()).await.unwrap(), "refused");
    assert_eq!((host_asked.load(Ordering::SeqCst), guest_asked.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_call_that_was_given_up_is_not_asked_of_the_next_caller() {
    let (peer, gateway) = (asking(), gateway());
    let to_peer = Client::builder(implementation!()).pass_questions().connect(peer.clone()).await.unwrap();
    gateway.mount("", to_peer.clone()).await.unwrap();
    let [(one, one_asked), (two, two_asked)] = [person(), person()];
    let (one, two) = (one.connect(gateway.clone()).await.unwrap(), two.connect(gateway.clone()).await.unwrap());
    let given_up = [CancellationToken::new(), CancellationToken::new()];
    waiting(&one, &peer, &given_up[0]).await;
    waiting(&two, &peer, &given_up[1]).await;
    for token in given_up {
        let count = peer.frames().len();
        token.cancel();
        // The server is told, and asks; and is answered.
        peer.heard(count + 2).await;
    }
    let patience = to_peer.limits().request_timeout;
    tokio::time::sleep(patience - Duration::from_secs(1)).await;
    waiting(&two, &peer, &CancellationToken::new()).await;
    asked_with_a_ping(&to_peer, &peer).await;
    assert_eq!((one_asked.load(Ordering::SeqCst), two_asked.load(Ordering::SeqCst)), (0, 0));
    // It has stopped by now, and asks about the other one.
    tokio::time::sleep(Duration::from_secs(2)).await;
    asked_with_a_ping(&to_peer, &peer).await;
    assert_eq!((one_asked.load(Ordering::SeqCst), two_asked.load(Ordering::SeqCst)), (0, 1));
}

/// The server is pinged, asks, and is answered.
async fn asked_with_a_ping(client: &Client, peer: &ScriptedPeer) {
    let count = peer.frames().len();
    client.ping().await.unwrap();
    peer.heard(count + 2).await;
}

/// A server whose tool wants its argument in the header of that name, which changes once it was listed so often.
async fn mirroring(changes_after: usize) -> HttpPeer {
    let lists = AtomicUsize::new(0);
    HttpPeer::start(http::modern(move |request| {
        let listed = lists.load(Ordering::SeqCst);
        match request.method() {
            "tools/list" => {
                let header = if lists.fetch_add(1, Ordering::SeqCst) < changes_after { "Old" } else { "New" };
                let properties = json!({ "a": { "type": "string", "x-mcp-header": header } });
                let schema = json!({ "type": "object", "properties": properties });
                let tools = [json!({ "name": "t", "inputSchema": schema })];
                Answer::result(json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" }))
            }
            "tools/call" => {
                let header = if listed <= changes_after { "mcp-param-old" } else { "mcp-param-new" };
                let is_there = request.header(header) == Some("x");
                let content = text(if is_there { "ok" } else { "?" })["content"].clone();
                let fits = Answer::result(json!({ "resultType": "complete", "content": content }));
                if is_there { fits } else { Answer::error(400, -32020, "header mismatch") }
            }
            _ => Answer::status(500),
        }
    }))
    .await
}

#[tokio::test]
async fn tools_of_a_page_or_a_stream_mirror_their_arguments() {
    let server = mirroring(9).await;
    let client = over_http(&server.url()).await.unwrap();
    let page = client.tools_page(None).await.unwrap().items;
    let stream: Vec<_> = client.tools_stream().try_collect().await.unwrap();
    for tools in [page, stream] {
        let gateway = gateway();
        gateway.tools().add(tools).unwrap();
        let caller = Client::connect(gateway).await.unwrap();
        assert_eq!(soon(caller.call::<String>("t", json!({ "a": "x" }))).await.unwrap(), "ok");
    }
    let lists = server.methods().iter().filter(|method| *method == "tools/list").count();
    assert_eq!(lists, 2, "nothing was listed again");
}

#[tokio::test]
async fn a_forwarded_call_whose_headers_are_out_of_date_is_made_again_after_a_list() {
    let server = mirroring(1).await;
    let client = over_http(&server.url()).await.unwrap();
    let gateway = gateway();
    gateway.tools().add(client.tools().await.unwrap()).unwrap();
    let caller = Client::connect(gateway).await.unwrap();
    assert_eq!(soon(caller.call::<String>("t", json!({ "a": "x" }))).await.unwrap(), "ok");
    // The server changes its mind.
    client.tools_page(None).await.unwrap();
    assert_eq!(soon(caller.call::<String>("t", json!({ "a": "x" }))).await.unwrap(), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_mount_that_is_given_up_leaves_nothing_behind() {
    let peer = remote(Era::Legacy, &json!({ "tools": {}, "prompts": {} }), |message| match &message["method"] {
        method if method == "tools/list" => (Some(named(&["x"])), vec![]),
        _ => (Some(Value::Null), vec![]),
    });
    let (client, gateway) = (Client::connect(peer.clone()).await.unwrap(), gateway());
    let mut mounting = Box::pin(gateway.mount("r", client));
    while !peer.methods().contains(&"prompts/list".to_owned()) {
        assert!(mounting.as_mut().now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    drop(mounting);
    assert_eq!(gateway.tools().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_could_not_be_read_is_read_again() {
    let lists = AtomicUsize::new(0);
    let capabilities = json!({ "tools": { "listChanged": true } });
    let peer = remote(Era::Legacy, &capabilities, move |message| match message["method"].as_str() {
        Some("tools/list") => match lists.fetch_add(1, Ordering::SeqCst) {
            0 => (Some(named(&["old"])), vec![]),
            1..4 => (None, vec![]),
            _ => (Some(named(&["new"])), vec![]),
        },
        Some("ping") => (Some(json!({})), vec![json!({ "method": "notifications/tools/list_changed" })]),
        _ => (None, vec![]),
    });
    let (client, gateway) = (Client::connect(peer).await.unwrap(), gateway());
    gateway.mount("r", client.clone()).await.unwrap();
    client.ping().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(gateway.tools().get("r_new").is_some() && gateway.tools().get("r_old").is_none());
}

/// The server agrees to whatever somebody wants to hear.
fn agreed(message: &Value) -> Vec<Value> {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
    let params = json!({ "notifications": message["params"]["notifications"], "_meta": meta });
    vec![json!({ "method": "notifications/subscriptions/acknowledged", "params": params })]
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_stream_is_asked_ever_more_seldom() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counting = lists.clone();
    let capabilities = json!({ "tools": { "listChanged": true } });
    let peer = remote(Era::Modern, &capabilities, move |message| match message["method"].as_str() {
        Some("tools/list") => {
            counting.fetch_add(1, Ordering::SeqCst);
            (Some(named(&["x"])), vec![])
        }
        Some("subscriptions/listen") => (Some(json!({})), agreed(message)),
        _ => (None, vec![]),
    });
    let (client, gateway) = (Client::connect(peer).await.unwrap(), gateway());
    gateway.mount("r", client).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let lists = lists.load(Ordering::SeqCst);
    assert!((10..100).contains(&lists), "{lists} lists in an hour");
}

#[tokio::test(start_paused = true)]
async fn resources_are_heard_of_again_however_often_that_failed() {
    let listens = AtomicUsize::new(0);
    let capabilities = json!({ "resources": { "subscribe": true } });
    let peer = remote(Era::Modern, &capabilities, move |message| match message["method"].as_str() {
        Some("resources/list") => (Some(json!({ "resources": [{ "uri": "x:a", "name": "a" }] })), vec![]),
        Some("resources/templates/list") => (Some(json!({ "resourceTemplates": [] })), vec![]),
        Some("subscriptions/listen") if message["params"]["notifications"]["resourceSubscriptions"].is_null() => {
            (Some(Value::Null), agreed(message))
        }
        Some("subscriptions/listen") => match listens.fetch_add(1, Ordering::SeqCst) {
            // It refuses; it ends at once; and then it fails for a while.
            0 | 2..5 => (None, vec![]),
            1 => (Some(json!({})), agreed(message)),
            _ => (Some(Value::Null), agreed(message)),
        },
        _ => (None, vec![]),
    });
    let (client, gateway) = (Client::connect(peer.clone()).await.unwrap(), gateway());
    gateway.mount("", client).await.unwrap();
    let caller = Client::connect(gateway).await.unwrap();
    let mut changes = caller.listen(NotificationFilter::new().resource("x:a")).await.unwrap();
    // What happened while nothing was heard may be anything.
    let change = tokio::time::timeout(Duration::from_secs(3600), changes.next()).await;
    assert_eq!(change.unwrap(), Some(Changed::Resource("x:a".into())));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let resources = |message: &Value| !message["params"]["notifications"]["resourceSubscriptions"].is_null();
    assert_eq!(peer.received().iter().filter(|message| resources(message)).count(), 6);
}

#[tokio::test]
async fn a_mount_ends_with_the_server_that_it_is_part_of() {
    let held = Arc::new(());
    let (far, alive) = (gateway(), Arc::downgrade(&held));
    let client = Client::builder(implementation!()).on_log(move |_| drop(held.clone())).connect(far).await.unwrap();
    let gateway = gateway();
    let mount = gateway.mount("r", client).await.unwrap();
    drop(gateway);
    let gone = async {
        while alive.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(gone).await;
    drop(mount);
}

#[expect(dead_code, reason = "it is enough that it compiles")]
fn a_mount_can_be_spawned(gateway: &Server, client: Client) -> impl Future<Output = Result<(), Error>> + Send {
    gateway.mount("", client).map(|mount| mount.map(drop))
}
