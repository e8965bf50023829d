//! Clocks that jump: the one on the wall, and the one that counts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_core::{
    Client, Context, Era, Error, ErrorKind, Limits, Principal, Resource, Revision, Server, Tool, ToolError,
    client::{CallOptions, Called, Changed},
    implementation,
    jsonrpc::Raw,
    observer::{Direction, Observer, Outcome, RequestEvent},
    server::{Arrival, Peer, StateKeys, form},
    types::{ElicitParams, ElicitResult},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::modern_meta;

const TTL: Duration = Duration::from_secs(600);

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn asks(context: Context) -> Result<String, ToolError> {
    let answer: Name = context.elicit("who", form("Who are you?")).await?;
    Ok(answer.name)
}

/// A server whose state is good for so long from now: all that a clock that is ahead changes of it.
fn server(ttl: Duration) -> Server {
    let limits = Limits::default().request_state_ttl(ttl);
    let keys = StateKeys::new([7; 32]);
    Server::builder(implementation!()).limits(limits).state_keys(keys).tool(Tool::new("asks", asks)).build()
}

async fn ask(server: &Server, state: Option<&Value>) -> Value {
    let mut meta = modern_meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    let mut params = json!({ "name": "asks", "_meta": meta });
    if let Some(state) = state {
        params["requestState"] = state.clone();
    }
    let params = Raw::parse(params.to_string()).unwrap();
    let request = mcp_jsonrpc::Request::new(1u64.into(), "tools/call", Some(params));
    let peer = Peer::new().principal(Some(Principal::new("ada")));
    let exchange = server.accept(request, Arrival::alone().of(&peer)).unwrap();
    serde_json::from_slice(&server.encode(&server.call(exchange).await)).unwrap()
}

/// What was sealed while the clock was ahead would be good until it gets there, in days or years.
#[tokio::test]
async fn state_that_was_sealed_by_a_clock_far_ahead_is_refused_once_the_clock_is_right() {
    let right = server(TTL);
    // Two of those that answer for one another may be a little apart.
    for (ahead, is_good) in [(0, true), (30, true), (90, false), (3600, false), (10 * 365 * 24 * 3600, false)] {
        let first = ask(&server(TTL + Duration::from_secs(ahead)), None).await;
        let answer = ask(&right, Some(&first["result"]["requestState"])).await;
        assert_eq!(answer["result"].is_object(), is_good, "{ahead} s ahead: {answer}");
        assert!(is_good || answer["error"]["code"] == -32602, "{ahead} s ahead: {answer}");
    }
}

/// No limit is often written as the longest time that there is.
#[tokio::test]
async fn state_may_be_good_for_ever() {
    let forever = server(Duration::MAX);
    let first = ask(&forever, None).await;
    let answer = ask(&forever, Some(&first["result"]["requestState"])).await;
    assert!(answer["result"].is_object(), "{answer}");
}

/// How often each request was told as begun and as over.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<HashMap<String, [u32; 2]>>>);

impl Told {
    fn count(&self, request: &RequestEvent<'_>, which: usize) {
        let incoming = request.direction == Direction::Incoming;
        let what = format!("{} {:?} {incoming}", request.method, request.id);
        self.0.lock().unwrap().entry(what).or_default()[which] += 1;
    }

    /// What was not told once and once.
    fn odd(&self) -> Vec<String> {
        let told = self.0.lock().unwrap();
        told.iter().filter(|(_, counts)| **counts != [1, 1]).map(|odd| format!("{odd:?}")).collect()
    }
}

impl Observer for Told {
    fn request_started(&self, request: &RequestEvent<'_>) {
        self.count(request, 0);
    }

    fn request_completed(&self, request: &RequestEvent<'_>, _: Outcome, _: Duration) {
        self.count(request, 1);
    }
}

/// A server whose handlers come to no end by themselves.
fn endless(told: &Told) -> Server {
    let waits = async || std::future::pending::<Result<(), ToolError>>().await;
    Server::builder(implementation!())
        .observer(told.clone())
        .tool(Tool::new("waits", waits))
        .tool(Tool::new("has a limit", waits).timeout(Duration::from_secs(60)))
        .tool(Tool::new("is a task", waits).task())
        .tool(Tool::new("asks", asks))
        .tool(Tool::new("ok", async || Ok::<_, ToolError>("ok")))
        .resource(Resource::fixed("x:a", "a", "text"))
        .build()
}

async fn waited(client: &Client, tool: &str, timeout: Duration) -> Result<Value, Error> {
    let options = CallOptions::new().timeout(timeout).at_most(timeout);
    client.call_with(tool, json!({}), options).await
}

/// A machine that was asleep, or a process that was stopped: all that was to happen meanwhile happens at once, and once.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_by_days_ends_each_wait_once_and_nothing_else() {
    const JUMP: Duration = Duration::from_secs(3 * 24 * 3600);
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let (here, there) = (Told::default(), Told::default());
        let server = endless(&there);
        let never = async |_: ElicitParams| std::future::pending::<Result<ElicitResult, Error>>().await;
        let client = Client::builder(implementation!()).revisions([revision]).observer(here.clone()).on_elicit(never);
        let client = client.tasks().connect(server.clone()).await.unwrap();
        let mut changes = client.subscribe("x:a").await.unwrap();
        let task = match client.call_as_task("is a task", json!({})).await {
            Ok(Called::Task(task)) => Some(task),
            _ if revision == Revision::LATEST => panic!("a task"),
            _ => None,
        };
        // In the legacy era the server waits for the answer; in the modern one the client does, as long as its user thinks.
        let asked = async {
            if revision.era() == Era::Modern {
                return None;
            }
            Some(waited(&client, "asks", Duration::MAX).await.unwrap_err().kind())
        };
        let jump = async {
            // Paused time goes on by itself only where nothing else does: by then all of them wait.
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::time::advance(JUMP).await;
        };
        let (waits, limited, asked, ()) = tokio::join!(
            waited(&client, "waits", Duration::from_secs(30)),
            waited(&client, "has a limit", Duration::MAX),
            asked,
            jump,
        );
        assert_eq!(waits.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(limited.unwrap_err().kind(), ErrorKind::HandlerFailed);
        assert!(asked.is_none_or(|kind| kind == ErrorKind::HandlerFailed), "{asked:?}");
        if let Some(task) = task {
            assert_eq!(task.get().await.unwrap_err().kind(), ErrorKind::InvalidParams, "its time is over");
        }
        // What has no time goes on: the connection, and what listens.
        assert_eq!(client.call::<String>("ok", json!({})).await.unwrap(), "ok");
        server.resource_updated("x:a");
        assert!(matches!(changes.next().await, Some(Changed::Resource(uri)) if uri == "x:a"));
        changes.close().await;
        client.disconnect().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((here.odd(), there.odd()), (vec![], vec![]), "{revision}");
    }
}
