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
    server::{Peer, form, serve_peer},
    types::{ElicitParams, ElicitResult, Implementation, LogLevel},
    uri_template::Variables,
};
use mcp_http::{Http, Routes};
use mcp_stdio::{Lines, serve_lines};
use mcp_test::HttpServer;
use mcp_ws::{Ws, WsLayer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{report, server::property::Random};

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
    context.server().resource_updated(&format!("x:{marker}"));
    Ok(format!("{marker} {who} {head} {name} {}", second.name))
}

fn server() -> Server {
    let read = async |_: Context, variables: Variables| {
        Ok::<_, ToolError>(format!("of {}", variables.get("marker").unwrap_or_default()))
    };
    Server::builder(implementation!())
        .logging(true)
        .tool(Tool::new("work", work))
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
    Client::builder(Implementation::new(marker.to_owned(), "1"))
        .revisions([revision])
        .on_elicit(move |question: ElicitParams| {
            asked.hear(question.message);
            std::future::ready(ElicitResult::accept(json!({ "name": own })))
        })
        .on_log(move |message| logged.hear(message.data.as_str()))
}

/// What one client does.
async fn visit(client: Client, marker: &str, seed: u64, ears: &Ears) {
    client.set_log_level(LogLevel::Info).await.unwrap();
    let mut changes = client.subscribe(&format!("x:{marker}")).await.unwrap();
    let call = async |number: u64| {
        let ear = ears.clone();
        let options = CallOptions::new().on_progress(move |progress| ear.hear(progress.message.unwrap_or_default()));
        let arguments = json!({ "marker": marker, "seed": seed * CALLS + number });
        ears.hear(client.call_with::<String>("work", arguments, options).await.unwrap());
    };
    join_all((0..CALLS).map(call)).await;
    let read = client.read_resource(&format!("x:{marker}")).await.unwrap();
    ears.hear(read.contents[0].as_text().unwrap());
    match changes.next().await {
        Some(Changed::Resource(uri)) => ears.hear(uri),
        other => panic!("{other:?}"),
    }
    client.disconnect().await;
}

/// All clients at once, each over what `connect` gives it.
async fn crowd(wire: &str, revision: Revision, connect: impl AsyncFn(ClientBuilder, &str) -> Client) {
    let one = async |number: usize| {
        let (marker, ears) = (marker(number), Ears::default());
        let client = connect(builder(&marker, revision, &ears), &marker).await;
        visit(client, &marker, number as u64, &ears).await;
        ears.judge(&marker)
    };
    let all = tokio::time::timeout(PATIENCE, join_all((0..CLIENTS).map(one))).await.expect("they come to an end");
    let heard: usize = all.iter().map(|(heard, _)| heard).sum();
    let crossed: Vec<&String> = all.iter().flat_map(|(_, foreign)| foreign).collect();
    // Progress, questions and an answer for each call, and what was read and has changed.
    assert!(heard >= CLIENTS * (CALLS as usize * 4 + 2), "{wire}: only {heard} messages");
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
        crowd("HTTP", revision, async |client, marker| {
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
        crowd("WebSocket", revision, async |client, marker| {
            client.connect(Ws::new(&url).header(AUTHORIZATION, bearer(marker))).await.unwrap()
        })
        .await;
    }
}

#[tokio::test]
async fn nothing_crosses_in_memory() {
    for revision in BOTH {
        let server = server();
        crowd("memory", revision, async |client, marker| {
            let (here, there) = mcp_core::memory();
            let peer = Peer::new().principal(Some(Principal::new(marker)));
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
        crowd("lines", revision, async |client, _| {
            let (here, there) = tokio::io::duplex(4 << 10);
            let (reader, writer) = tokio::io::split(there);
            tokio::spawn(serve_lines(server.clone(), reader, writer));
            let (reader, writer) = tokio::io::split(here);
            client.connect(Lines::new(reader, writer, Limits::default().message_bytes)).await.unwrap()
        })
        .await;
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
