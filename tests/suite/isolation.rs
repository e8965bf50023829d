//! Many clients at once, all with the same ids, progress tokens and keys of questions: whatever one of them hears is its
//! own, by its content.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::middleware::{Next, from_fn};
use futures_util::future::join_all;
use http::{HeaderValue, header::AUTHORIZATION};
use mcp_core::{
    Client, ClientBuilder, Context, Limits, Principal, ResourceTemplate, Revision, Server, Tool, ToolError,
    client::{CallOptions, Changed},
    implementation,
    server::{Peer as At, form, serve_peer},
    types::{
        CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Implementation, LogLevel, SamplingMessage,
    },
    uri_template::Variables,
};
use mcp_http::{Http, Routes};
use mcp_stdio::{Lines, serve_lines};
use mcp_test::HttpServer;
use mcp_ws::{Ws, WsLayer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    duplex::Peer,
    report,
    server::{gauge, modern_meta, property::Random, until},
};

const CLIENTS: usize = 64;
/// Calls that each client makes, so many of them at once.
const CALLS: u64 = 8;

/// How long all of them together may take, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Deserialize, JsonSchema)]
struct Work {
    marker: String,
    seed: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Says whose call it is in every way that there is, with pauses of any length in between.
async fn work(context: Context, Work { marker, seed }: Work) -> Result<String, ToolError> {
    let mut random = Random::new(seed);
    let mut pause = async || tokio::time::sleep(Duration::from_millis(random.below(4))).await;
    let who = context.principal().map_or("nobody", Principal::id).to_owned();
    let head = context.request_head().and_then(|head| head.header("authorization")).unwrap_or_default().to_owned();
    let name = context.client_info().map_or_else(String::new, |client| client.name.into_owned());
    for step in 1..=3_u8 {
        pause().await;
        context.progress(step.into(), None, format!("{marker} {who}")).await;
        context.log(LogLevel::Info, "", format!("{marker} {name}")).await;
    }
    let first: Name = context.elicit("who", form(format!("{marker} asks {name}"))).await?;
    pause().await;
    let second: Name = context.elicit("again", form(format!("{marker} asks {} again", first.name))).await?;
    let model = context.sample("model", CreateMessageParams::new([SamplingMessage::user(&*marker)], 10)).await?;
    context.server().resource_updated(&format!("x:{marker}"));
    Ok(format!("{marker} {who} {head} {name} {} {}", second.name, model.to_text()))
}

fn server() -> Server {
    let read = async |_: Context, variables: Variables| {
        Ok::<_, ToolError>(format!("of {}", variables.get("marker").unwrap_or_default()))
    };
    Server::builder(implementation!())
        .limits(Limits::default().task_poll_interval(Duration::from_millis(50)))
        .logging(true)
        .tool(Tool::new("work", work))
        .tool(Tool::new("work as a task", work).task())
        .template(ResourceTemplate::new("x:{marker}", "x", read))
        .build()
}

/// Everything that one client heard.
#[derive(Clone, Default)]
struct Ears(Arc<Mutex<Vec<String>>>);

impl Ears {
    fn hear(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    /// How many messages there were, and those in which anybody else is named.
    fn judge(&self, marker: &str) -> (usize, Vec<String>) {
        let heard = self.0.lock().unwrap();
        let foreign = heard.iter().filter(|text| markers(text) != BTreeSet::from([marker]));
        (heard.len(), foreign.cloned().collect())
    }
}

fn marker(number: usize) -> String {
    format!("client-{number:02}")
}

fn markers(text: &str) -> BTreeSet<&str> {
    text.match_indices("client-").filter_map(|(at, _)| text.get(at..at + "client-00".len())).collect()
}

fn builder(marker: &str, revision: Revision, ears: &Ears) -> ClientBuilder {
    let (asked, logged, own) = (ears.clone(), ears.clone(), marker.to_owned());
    let (sampled, model) = (ears.clone(), marker.to_owned());
    Client::builder(Implementation::new(marker.to_owned(), "1"))
        .revisions([revision])
        .tasks()
        .on_elicit(move |question: ElicitParams| {
            asked.hear(question.message);
            std::future::ready(ElicitResult::accept(json!({ "name": own })))
        })
        .on_sample(move |params: CreateMessageParams| {
            sampled.hear(params.messages[0].content[0].as_text().unwrap_or_default());
            std::future::ready(Ok(CreateMessageResult::new("model", &*model)))
        })
        .on_log(move |message| logged.hear(message.data.as_str()))
}

/// How a crowd comes, and what it does.
#[derive(Clone, Copy)]
struct Way {
    wire: &'static str,
    revision: Revision,
    tool: &'static str,
    /// What each call hears at least: questions, an answer, and progress where that is told.
    heard_a_call: usize,
    /// Whether it can listen to changes.
    hears_changes: bool,
}

impl Way {
    fn new(wire: &'static str, revision: Revision) -> Self {
        Self { wire, revision, tool: "work", heard_a_call: 5, hears_changes: true }
    }

    /// The same where nothing but answers comes.
    fn without_progress(self) -> Self {
        Self { heard_a_call: 4, ..self }
    }
}

/// What one client does.
async fn visit(client: Client, way: Way, marker: &str, seed: u64, ears: &Ears) {
    client.set_log_level(LogLevel::Info).await.unwrap();
    let uri = format!("x:{marker}");
    let mut changes = None;
    if way.hears_changes {
        changes = Some(client.subscribe(&uri).await.unwrap());
    }
    let call = async |number: u64| {
        let ear = ears.clone();
        let options = CallOptions::new().on_progress(move |progress| ear.hear(progress.message.unwrap_or_default()));
        let arguments = json!({ "marker": marker, "seed": seed * CALLS + number });
        ears.hear(client.call_with::<String>(way.tool, arguments, options).await.unwrap());
    };
    join_all((0..CALLS).map(call)).await;
    let read = client.read_resource(&uri).await.unwrap();
    ears.hear(read.contents[0].as_text().unwrap());
    if let Some(mut changes) = changes {
        match changes.next().await {
            Some(Changed::Resource(uri)) => ears.hear(uri),
            other => panic!("{other:?}"),
        }
    }
    client.disconnect().await;
}

/// All clients at once, each over what `connect` gives it.
async fn crowd(way: Way, connect: impl AsyncFn(ClientBuilder, &str) -> Client) {
    let Way { wire, revision, heard_a_call, hears_changes, .. } = way;
    let one = async |number: usize| {
        let (marker, ears) = (marker(number), Ears::default());
        let client = connect(builder(&marker, revision, &ears), &marker).await;
        visit(client, way, &marker, number as u64, &ears).await;
        ears.judge(&marker)
    };
    let all = tokio::time::timeout(PATIENCE, join_all((0..CLIENTS).map(one))).await.expect("they come to an end");
    let heard: usize = all.iter().map(|(heard, _)| heard).sum();
    let crossed: Vec<&String> = all.iter().flat_map(|(_, foreign)| foreign).collect();
    // And what was read, and has changed.
    assert!(
        heard >= CLIENTS * (CALLS as usize * heard_a_call + 1 + usize::from(hears_changes)),
        "{wire}: only {heard} messages"
    );
    let cells = [
        ("wire", format!("{wire}, {revision}")),
        ("clients", CLIENTS.to_string()),
        ("messages checked", heard.to_string()),
        ("crossed", crossed.len().to_string()),
    ];
    report::row("Isolation", cells);
    assert!(crossed.is_empty(), "{wire} in {revision}: {crossed:?}");
}

/// Whoever a bearer token names.
async fn authenticate(mut request: axum::extract::Request, next: Next) -> axum::response::Response {
    let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if let Some(who) = token.and_then(|token| token.strip_prefix("Bearer ")) {
        let who = Principal::new(who);
        request.extensions_mut().insert(who);
    }
    next.run(request).await
}

fn bearer(marker: &str) -> HeaderValue {
    HeaderValue::try_from(format!("Bearer {marker}")).unwrap()
}

const BOTH: [Revision; 2] = [Revision::LATEST, Revision::LATEST_LEGACY];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_over_http() {
    for revision in BOTH {
        let router = Routes::new(server()).into_router().layer(from_fn(authenticate));
        let served = HttpServer::start_router(router).await;
        crowd(Way::new("HTTP", revision), async |client, marker| {
            client.connect(Http::new(served.url()).header(AUTHORIZATION, bearer(marker))).await.unwrap()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_over_websocket() {
    for revision in BOTH {
        let router = axum::Router::new().layer(WsLayer::new(server())).layer(from_fn(authenticate));
        let served = HttpServer::start_router(router).await;
        let url = served.url().replace("http://", "ws://");
        crowd(Way::new("WebSocket", revision), async |client, marker| {
            client.connect(Ws::new(&url).header(AUTHORIZATION, bearer(marker))).await.unwrap()
        })
        .await;
    }
}

#[tokio::test]
async fn nothing_crosses_in_memory() {
    for revision in BOTH {
        let server = server();
        crowd(Way::new("memory", revision), async |client, marker| {
            let (here, there) = mcp_core::memory();
            let peer = At::new().principal(Some(Principal::new(marker)));
            tokio::spawn(serve_peer(server.clone(), there, peer));
            client.connect(here).await.unwrap()
        })
        .await;
    }
}

#[tokio::test]
async fn nothing_crosses_over_streams_of_lines() {
    for revision in BOTH {
        let server = server();
        crowd(Way::new("lines", revision), async |client, _| {
            let (here, there) = tokio::io::duplex(4 << 10);
            let (reader, writer) = tokio::io::split(there);
            tokio::spawn(serve_lines(server.clone(), reader, writer));
            let (reader, writer) = tokio::io::split(here);
            client.connect(Lines::new(reader, writer, Limits::default().message_bytes)).await.unwrap()
        })
        .await;
    }
}

/// Where every answer is JSON, nothing else is told, and legacy questions come on the stream for what belongs to no call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_over_http_in_json_alone() {
    for revision in BOTH {
        let router = Routes::new(server()).streaming(false).into_router().layer(from_fn(authenticate));
        let served = HttpServer::start_router(router).await;
        let mut way = Way::new("HTTP, JSON alone", revision).without_progress();
        // In the modern era that is a stream.
        way.hears_changes = revision == Revision::LATEST_LEGACY;
        crowd(way, async |client, marker| {
            client.connect(Http::new(served.url()).header(AUTHORIZATION, bearer(marker))).await.unwrap()
        })
        .await;
    }
}

/// What a task asks, and comes to, is its client's alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_where_calls_go_on_as_tasks() {
    let router = Routes::new(server()).into_router().layer(from_fn(authenticate));
    let served = HttpServer::start_router(router).await;
    let way = Way { tool: "work as a task", ..Way::new("HTTP, tasks", Revision::LATEST) };
    crowd(way.without_progress(), async |client, marker| {
        client.connect(Http::new(served.url()).header(AUTHORIZATION, bearer(marker))).await.unwrap()
    })
    .await;
}

/// All of them are one principal, as they are one user.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_over_unix_sockets() {
    for revision in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.sock");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let _serving = AbortOnDropHandle::new(tokio::spawn(mcp_stdio::serve_listener(server(), listener)));
        crowd(Way::new("Unix socket", revision), async |client, _| {
            let (reader, writer) = tokio::net::UnixStream::connect(&path).await.unwrap().into_split();
            client.connect(Lines::new(reader, writer, Limits::default().message_bytes)).await.unwrap()
        })
        .await;
    }
}

/// A cancellation is about the calls of its own connection, whatever ids others use.
#[tokio::test]
async fn a_cancellation_that_names_another_connections_call_does_nothing() {
    let server = everything_server::server();
    let mut cancelled = 0;
    for revision in BOTH {
        let mut peers = [Peer::memory(server.clone()), Peer::lines(server.clone()), Peer::ws(server.clone()).await];
        for peer in &mut peers {
            peer.open(revision).await.unwrap();
        }
        let meta = if revision == Revision::LATEST { modern_meta() } else { json!({}) };
        for calling in 0..peers.len() {
            let cancel = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
            });
            let ping = json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" });
            let params = json!({ "name": "sleep", "arguments": { "ms": 3_600_000 }, "_meta": meta });
            let sleep = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
            peers[calling].say(&sleep).await;
            until("it runs", async || gauge(&server).await == (1, cancelled)).await;
            for other in (0..peers.len()).filter(|other| *other != calling) {
                peers[other].say(&cancel).await;
                peers[other].say(&ping).await;
                assert_eq!(peers[other].hear().await["id"], 8);
            }
            assert_eq!(gauge(&server).await, (1, cancelled), "it runs on");
            peers[calling].say(&cancel).await;
            cancelled += 1;
            until("its own connection cancels it", async || gauge(&server).await == (0, cancelled)).await;
        }
    }
}

#[test]
fn a_foreign_name_is_seen_and_so_is_none() {
    let ears = Ears::default();
    ears.hear("client-07 and client-07");
    assert_eq!(ears.judge("client-07"), (1, Vec::new()));
    for foreign in ["client-07 and client-08", "", "client-0"] {
        ears.hear(foreign);
    }
    assert_eq!(ears.judge("client-07").1.len(), 3);
}
