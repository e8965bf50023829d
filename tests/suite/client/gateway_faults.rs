//! A server that mounts another one that is slow, wrong, lost, or asks for somebody else.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{FutureExt, TryStreamExt};
use mcp_suite::{
    ClientBuilder, Error, Server,
    client::CallOptions,
    types::{ElicitParams, ElicitResult},
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

#[expect(dead_code, reason = "it is enough that it compiles")]
fn a_mount_can_be_spawned(gateway: &Server, client: Client) -> impl Future<Output = Result<(), Error>> + Send {
    gateway.mount("", client).map(|mount| mount.map(drop))
}
