//! A legacy client over HTTP, byte for byte: what it sends within its session, and the streams that it reads.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::middleware::{Next, from_fn};
use mcp_core::{
    Context, Limits, Principal, Resource, Revision, Server, ServerBuilder, Tool, ToolError, implementation,
    types::LogLevel,
};
use mcp_http::{Routes, Sessions};
use mcp_test::HttpServer;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Semaphore};

use super::{
    Connection, Post, Response,
    raw::{Head, soon},
};

/// A resource that clients can subscribe to.
pub(super) const WATCHED: &str = "x:watched";

/// The doors that handlers wait at until a test opens them, and what became of the handlers.
#[derive(Clone, Debug, Default)]
pub(super) struct Doors(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    doors: Mutex<HashMap<String, Arc<Semaphore>>>,
    running: AtomicU64,
    done: AtomicU64,
    dropped: AtomicU64,
}

impl Doors {
    fn door(&self, name: &str) -> Arc<Semaphore> {
        let mut doors = self.0.doors.lock().unwrap();
        doors.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))).clone()
    }

    /// Lets one handler through.
    pub(super) fn open(&self, name: &str) {
        self.door(name).add_permits(1);
    }

    /// Whoever comes from now on waits again.
    pub(super) fn close(&self, name: &str) {
        self.0.doors.lock().unwrap().remove(name);
    }

    /// Waits until so many handlers run.
    pub(super) async fn running(&self, count: u64) {
        crate::server::until(&format!("{count} run"), async || self.0.running.load(Ordering::SeqCst) == count).await;
    }

    /// Waits until so many handlers have come to their end.
    pub(super) async fn done(&self, count: u64) {
        crate::server::until(&format!("{count} are done"), async || self.0.done.load(Ordering::SeqCst) == count).await;
    }

    /// Waits until so many handlers were dropped before their end.
    pub(super) async fn dropped(&self, count: u64) {
        crate::server::until(&format!("{count} are dropped"), async || self.0.dropped.load(Ordering::SeqCst) == count)
            .await;
    }

    fn enter(&self) -> Run {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        Run { doors: self.clone(), is_done: false }
    }
}

/// A handler that runs.
struct Run {
    doors: Doors,
    is_done: bool,
}

impl Drop for Run {
    fn drop(&mut self) {
        let Inner { running, done, dropped, .. } = &*self.doors.0;
        running.fetch_sub(1, Ordering::SeqCst);
        if self.is_done { done } else { dropped }.fetch_add(1, Ordering::SeqCst);
    }
}

/// What a handler is to do, in this order.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct Work {
    /// Says so many words.
    say: u32,
    /// Fills each of them with so many bytes, and gives whoever sends them the time to do so.
    pad: usize,
    /// Ends its connection.
    leave: bool,
    /// Waits until that door is open.
    door: Option<String>,
    /// Says so many words more.
    then: u32,
    /// Fills its answer with so many bytes.
    bytes: usize,
}

async fn work(doors: Doors, context: Context, work: Work) -> Result<String, ToolError> {
    let mut run = doors.enter();
    for word in 1..=work.say {
        if work.pad == 0 {
            context.log(LogLevel::Info, "", word);
        } else {
            context.log(LogLevel::Info, "", "x".repeat(work.pad));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let has_left = work.leave && context.disconnect();
    if let Some(door) = &work.door {
        doors.door(door).acquire().await.map_err(|_| ToolError::new("no door"))?.forget();
    }
    for word in work.say + 1..=work.say + work.then {
        context.log(LogLevel::Info, "", word);
    }
    run.is_done = true;
    Ok(if work.bytes > 0 { "x".repeat(work.bytes) } else { format!("done, left: {has_left}") })
}

/// Limits under which a session ends soon when nothing holds it.
pub(super) fn brief() -> Limits {
    Limits::default().session_idle(Duration::from_secs(1)).session_streams(0)
}

/// A server with a tool `work`, and with whatever else is added.
pub(super) fn builder(doors: &Doors, limits: Limits) -> ServerBuilder {
    let doors = doors.clone();
    Server::builder(implementation!())
        .limits(limits)
        .logging(true)
        .tool(Tool::new("work", move |context, args| work(doors.clone(), context, args)))
        .tool(Tool::new("who", async |context: Context| {
            Ok::<_, ToolError>(context.principal().map_or("nobody", Principal::id).to_owned())
        }))
        .tool(Tool::new("ask", super::questions::ask))
        .resource(Resource::fixed(WATCHED, "watched", "text"))
}

/// Whoever a bearer token is of, which stands before a dot in it.
async fn authenticate(mut request: axum::extract::Request, next: Next) -> axum::response::Response {
    let token = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let who = token.and_then(|token| token.strip_prefix("Bearer ")?.split_once('.')).map(|(who, _)| who.to_owned());
    match who.as_deref() {
        Some("bad") => {
            let mut refusal = axum::response::Response::default();
            *refusal.status_mut() = http::StatusCode::UNAUTHORIZED;
            return refusal;
        }
        Some(who) => drop(request.extensions_mut().insert(Principal::new(who))),
        None => {}
    }
    next.run(request).await
}

/// A server with sessions that listens until this is dropped.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) address: SocketAddr,
    pub(super) server: Server,
    pub(super) sessions: Sessions,
    pub(super) doors: Doors,
    _served: HttpServer,
}

impl Host {
    pub(super) async fn start() -> Self {
        Self::within(Limits::default()).await
    }

    pub(super) async fn within(limits: Limits) -> Self {
        let doors = Doors::default();
        let server = builder(&doors, limits).build();
        Self::serve(Routes::new(server.clone()), server, doors).await
    }

    /// Serves routes of a server.
    pub(super) async fn serve(routes: Routes, server: Server, doors: Doors) -> Self {
        let sessions = routes.sessions().unwrap().clone();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let served = HttpServer::start_on(listener, routes);
        Self { address: served.address(), server, sessions, doors, _served: served }
    }

    /// One that knows who calls, by `Authorization: Bearer who.anything`.
    pub(super) async fn with_principals() -> Self {
        let doors = Doors::default();
        let server = builder(&doors, Limits::default()).build();
        let routes = Routes::new(server.clone());
        let sessions = routes.sessions().unwrap().clone();
        let served = HttpServer::start_router(routes.into_router().layer(from_fn(authenticate))).await;
        Self { address: served.address(), server, sessions, doors, _served: served }
    }

    /// Sends one request on a connection of its own and reads the whole answer.
    pub(super) async fn send(&self, post: Post) -> Response {
        let mut connection = Connection::open(self.address).await;
        connection.write_what_goes(&post.bytes(self.address)).await;
        connection.response_to(&post).await.expect("an answer")
    }

    /// Sends a request and reads the answer as a stream.
    pub(super) async fn stream(&self, post: &Post) -> Stream {
        let mut connection = Connection::open(self.address).await;
        connection.write(&post.bytes(self.address)).await;
        Stream::of(connection).await
    }

    /// A session in the newest legacy revision.
    pub(super) async fn open(&self) -> Session {
        self.speaking(Revision::V2025_11_25).await
    }

    pub(super) async fn speaking(&self, revision: Revision) -> Session {
        let session = self.initialize(Post::new(hello(revision)), revision).await;
        assert_eq!(self.send(session.post(INITIALIZED)).await.status(), 202);
        session
    }

    /// A session of which only `initialize` was sent.
    pub(super) async fn initialize(&self, hello: Post, revision: Revision) -> Session {
        let response = self.send(hello).await;
        assert_eq!(response.status(), 200, "{}", response.text());
        let id = response.head.header("mcp-session-id").expect("a session id").to_owned();
        Session { id, revision, token: None }
    }

    /// The session of somebody.
    pub(super) async fn of(&self, token: Option<&str>) -> Session {
        let post = authorized(Post::new(hello(Revision::V2025_11_25)), token);
        let session = self.initialize(post, Revision::V2025_11_25).await;
        Session { token: token.map(str::to_owned), ..session }
    }

    /// Calls the tool `work`, and reads the whole answer.
    pub(super) async fn work(&self, session: &Session, id: u64, work: Value) -> Response {
        self.send(session.post(call(id, work))).await
    }

    /// The stream of a call of `work`.
    pub(super) async fn working(&self, session: &Session, id: u64, work: Value) -> Stream {
        self.stream(&session.post(call(id, work))).await
    }

    /// Calls `work`, and leaves before there is an answer.
    pub(super) async fn begin(&self, session: &Session, id: u64, work: Value) -> Connection {
        let mut connection = Connection::open(self.address).await;
        connection.write(&session.post(call(id, work)).bytes(self.address)).await;
        connection
    }

    /// The standalone stream, which begins with whatever shows that it is there.
    pub(super) async fn listen(&self, session: &Session) -> Stream {
        let mut stream = self.stream(&session.get()).await;
        assert_eq!(stream.head.status, 200);
        let first = stream.next().await.expect("something at once");
        assert_eq!(first.data, session.primes().then(String::new), "{first:?}");
        stream
    }

    /// The stream that goes on behind an event.
    pub(super) async fn resume(&self, session: &Session, last: &str) -> Stream {
        self.stream(&session.get().header("Last-Event-ID", last)).await
    }

    pub(super) async fn push(&self, session: &Session, number: u64) -> bool {
        let id = mcp_core::store::SessionId::parse(&session.id).unwrap();
        let params = mcp_jsonrpc::Raw::encode(&json!({ "n": number })).unwrap();
        self.sessions.push(id, "notifications/x", Some(params)).await
    }
}

pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(super) fn hello(revision: Revision) -> String {
    hello_of(revision, &json!({}))
}

/// The greeting of a client with these capabilities.
pub(super) fn hello_of(revision: Revision, capabilities: &Value) -> String {
    let client = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": capabilities, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

/// A request.
pub(super) fn request(id: impl Into<Value>, method: &str, params: Value) -> String {
    let id: Value = id.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(super) fn call(id: impl Into<Value>, work: Value) -> String {
    request(id, "tools/call", json!({ "name": "work", "arguments": work }))
}

pub(super) fn ping(id: u64) -> String {
    crate::server::ping(id)
}

fn authorized(post: Post, token: Option<&str>) -> Post {
    match token {
        Some(token) => post.header("Authorization", format!("Bearer {token}")),
        None => post,
    }
}

/// A session, as its client knows it.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) revision: Revision,
    pub(super) token: Option<String>,
}

impl Session {
    fn within(&self, post: Post) -> Post {
        let post =
            post.header("Mcp-Session-Id", self.id.as_str()).header("MCP-Protocol-Version", self.revision.as_str());
        authorized(post, self.token.as_deref())
    }

    pub(super) fn post(&self, body: impl Into<Vec<u8>>) -> Post {
        self.within(Post::new(body))
    }

    pub(super) fn get(&self) -> Post {
        self.within(Post::to("GET /mcp", "").header("Accept", "text/event-stream"))
    }

    pub(super) fn delete(&self) -> Post {
        self.within(Post::to("DELETE /mcp", ""))
    }

    /// The same id in the hands of somebody else.
    pub(super) fn as_of(&self, token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), ..self.clone() }
    }

    /// A session that there is not.
    pub(super) fn another(&self, id: &str) -> Self {
        Self { id: id.to_owned(), ..self.clone() }
    }

    fn primes(&self) -> bool {
        self.revision >= Revision::V2025_11_25
    }
}

/// One block of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Block {
    pub(super) id: Option<String>,
    pub(super) retry: Option<u64>,
    /// An event's data; a comment has none.
    pub(super) data: Option<String>,
}

impl Block {
    fn parse(text: &str) -> Self {
        let mut block = Self::default();
        for line in text.split('\n') {
            match line.split_once(':').map(|(name, value)| (name, value.strip_prefix(' ').unwrap_or(value))) {
                Some(("", _)) => {}
                Some(("id", id)) => block.id = Some(id.to_owned()),
                Some(("retry", retry)) => block.retry = Some(retry.parse().expect("milliseconds")),
                Some(("event", "message")) => {}
                Some(("data", data)) => {
                    assert!(block.data.replace(data.to_owned()).is_none(), "a message is one line: {text:?}");
                }
                _ => panic!("no line of an event: {line:?}"),
            }
        }
        block
    }

    pub(super) fn is_message(&self) -> bool {
        self.data.as_ref().is_some_and(|data| !data.is_empty())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(self.data.as_deref().expect("data")).expect("JSON")
    }
}

/// A message of a stream, and its event's id.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) id: String,
    pub(super) message: Value,
}

impl Heard {
    /// What a pushed message or a word of a handler counts.
    pub(super) fn number(&self) -> u64 {
        let params = &self.message["params"];
        params["n"].as_u64().or(params["data"].as_u64()).unwrap_or_else(|| panic!("no number: {}", self.message))
    }

    /// The text of an answer.
    pub(super) fn text(&self) -> &str {
        self.message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {}", self.message))
    }
}

/// A stream that is read block by block. Dropping it cuts the connection.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) head: Head,
    pub(super) connection: Connection,
    text: String,
    is_over: bool,
}

impl Stream {
    async fn of(mut connection: Connection) -> Self {
        let head = connection.head().await.expect("an answer");
        let is_over = head.header("transfer-encoding").is_none();
        Self { head, connection, text: String::new(), is_over }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.head.status == 200 && self.head.header("content-type") == Some("text/event-stream")
    }

    /// The next block; `None` when the server has ended the stream.
    pub(super) async fn next(&mut self) -> Option<Block> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (Block::parse(block), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            if self.is_over {
                assert_eq!(self.text, "", "a block is whole");
                return None;
            }
            match self.connection.chunk().await {
                Some(chunk) => self.text.push_str(std::str::from_utf8(&chunk).expect("text")),
                None => self.is_over = true,
            }
        }
    }

    /// The next message; what only shows that the stream is there is passed over.
    pub(super) async fn hear(&mut self) -> Option<Heard> {
        while let Some(block) = self.next().await {
            if block.is_message() {
                let message = block.json();
                return Some(Heard { id: block.id.expect("each message of a session has an id"), message });
            }
        }
        None
    }

    /// The numbers of the next messages.
    pub(super) async fn numbers(&mut self, count: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            numbers.push(soon("a message", self.hear()).await.expect("a message").number());
        }
        numbers
    }

    /// All messages to the end of the stream.
    pub(super) async fn rest(&mut self) -> Vec<Heard> {
        let mut all = Vec::new();
        while let Some(heard) = soon("the end of the stream", self.hear()).await {
            all.push(heard);
        }
        all
    }

    /// Nothing but comments comes for a while.
    pub(super) async fn is_quiet(&mut self) {
        const WHILE: Duration = Duration::from_millis(150);
        let heard = tokio::time::timeout(WHILE, self.hear()).await;
        assert!(heard.is_err(), "{heard:?}");
    }
}
