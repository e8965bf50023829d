//! Calls that go on as tasks: what a task comes to, who may see it, and how long it lives.

mod ends;
mod limits;
mod listening;
mod property;
mod questions;
mod shared;
mod slow;
mod stores;
mod wire;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Context, Limits, Principal, Server, ServerBuilder, Tool, ToolError, implementation,
    jsonrpc::Raw,
    server::{Arrival, Peer},
};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::sleep};

use super::rounds::name;

const HOUR: Duration = Duration::from_secs(3600);

/// `_meta` of a client that knows what a task is, and can be asked anything.
pub(super) fn meta() -> Value {
    let mut meta = super::modern_meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({
        "elicitation": {}, "sampling": {}, "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    meta
}

/// What the handlers of a server have done.
#[derive(Clone, Default)]
struct Seen {
    /// How many have begun, and how many of these are gone.
    begun: Arc<AtomicU32>,
    gone: Arc<AtomicU32>,
}

impl Seen {
    fn counts(server: &Server) -> (u32, u32) {
        let seen = server.state::<Self>().unwrap();
        (seen.begun.load(Ordering::SeqCst), seen.gone.load(Ordering::SeqCst))
    }
}

/// Counts a handler for as long as it lives.
struct Running(Seen);

impl Running {
    fn of(context: &Context) -> Result<Self, ToolError> {
        let seen = context.state::<Seen>()?.clone();
        seen.begun.fetch_add(1, Ordering::SeqCst);
        Ok(Self(seen))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.gone.fetch_add(1, Ordering::SeqCst);
    }
}

/// Opens for one handler at a time.
struct Gate(Semaphore);

fn open(server: &Server) {
    server.state::<Gate>().unwrap().0.add_permits(1);
}

/// Says so when the gate opens, and not before.
async fn waits(context: Context) -> Result<String, ToolError> {
    let _running = Running::of(&context)?;
    context.state::<Gate>()?.0.acquire().await?.forget();
    Ok("done".into())
}

async fn asks(context: Context) -> Result<String, ToolError> {
    let _running = Running::of(&context)?;
    name(&context, "who").await
}

fn builder(limits: Limits, tools: impl IntoIterator<Item = Tool>) -> ServerBuilder {
    let builder = Server::builder(implementation!()).limits(limits).state(Seen::default());
    tools.into_iter().fold(builder.state(Gate(Semaphore::new(0))), ServerBuilder::tool)
}

fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    builder(Limits::default(), tools).build()
}

/// The usual one.
fn waiting() -> Server {
    server([Tool::new("waits", waits).task()])
}

/// Sends a request by itself, in the name of a principal.
async fn send(server: &Server, who: Option<&str>, method: &str, params: Value) -> Value {
    let params = Raw::parse(params.to_string()).unwrap();
    let request = mcp_jsonrpc::Request::new(1u64.into(), method, Some(params));
    let peer = Peer::new().principal(who.map(Principal::new));
    let exchange = server.accept(request, Arrival::alone().of(&peer)).unwrap();
    serde_json::from_slice(&server.encode(&server.call(exchange).await)).unwrap()
}

async fn request(server: &Server, who: Option<&str>, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    send(server, who, method, params).await
}

async fn call(server: &Server, who: Option<&str>, tool: &str) -> Value {
    request(server, who, "tools/call", json!({ "name": tool })).await
}

/// Begins a task; its id.
async fn begin(server: &Server, tool: &str) -> String {
    let answer = call(server, None, tool).await;
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

async fn get_for(server: &Server, who: Option<&str>, id: &str) -> Value {
    request(server, who, "tasks/get", json!({ "taskId": id })).await
}

/// How a task is.
async fn get(server: &Server, id: &str) -> Value {
    let answer = get_for(server, None, id).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    answer["result"].clone()
}

async fn cancel(server: &Server, id: &str) -> Value {
    request(server, None, "tasks/cancel", json!({ "taskId": id })).await
}

async fn update(server: &Server, id: &str, responses: Value) {
    let answer = request(server, None, "tasks/update", json!({ "taskId": id, "inputResponses": responses })).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

/// Waits until a task is in that status; how it is then.
async fn until(server: &Server, id: &str, status: &str) -> Value {
    let mut task = Value::Null;
    for _ in 0..3000 {
        task = get(server, id).await;
        if task["status"] == status {
            return task;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not get {status}: {task}");
}

/// What a task has come to, as text.
fn text(task: &Value) -> &str {
    task["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {task}"))
}

/// The questions that a task has, by key.
fn open_questions(task: &Value) -> Vec<&str> {
    let open = task["inputRequests"].as_object().unwrap_or_else(|| panic!("{task}"));
    open.keys().map(String::as_str).collect()
}

fn is_unknown(answer: &Value) -> bool {
    answer["error"]["code"] == -32602 && answer["error"]["message"] == "Invalid params: Task not found"
}
