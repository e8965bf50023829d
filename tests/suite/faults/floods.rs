//! Peers that ask for more than there may be: what is over the bound is refused, others are served meanwhile, and all is
//! given back when they go.

use std::time::Duration;

use futures_util::future::join_all;
use mcp_core::{
    Client, Context, Limits, ResourceTemplate, Server, Tool, ToolError,
    client::Changed,
    implementation,
    server::form,
    types::{ElicitParams, ElicitResult, LogLevel},
    uri_template::Variables,
};
use mcp_http::Routes;
use mcp_stdio::Lines;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use super::{
    PATIENCE,
    gauge::{CONNECTIONS, Gauge, HANDLERS, REQUESTS, Running},
};
use crate::{
    duplex::{Peer, Wire},
    http::{Connection, Post, Served, soon},
    report,
    server::{call, modern_meta, until},
};

const SHARED: [Wire; 3] = [Wire::Memory, Wire::Lines, Wire::Ws];

#[derive(Deserialize, JsonSchema)]
struct Name {
    #[expect(dead_code, reason = "it is never answered")]
    name: String,
}

async fn waits(context: Context) -> Result<(), ToolError> {
    let _running = Running::of(&context)?;
    std::future::pending().await
}

async fn asks(context: Context) -> Result<(), ToolError> {
    let _running = Running::of(&context)?;
    context.elicit("who", form::<Name>("Who?")).await.map(drop)
}

/// Says more than anybody reads.
async fn tells(context: Context) -> Result<(), ToolError> {
    let _running = Running::of(&context)?;
    loop {
        context.log(LogLevel::Error, "", "x".repeat(10_000)).await;
        tokio::task::yield_now().await;
    }
}

/// A server whose handlers do what floods are made of.
struct Host {
    server: Server,
    gauge: Gauge,
}

impl Host {
    fn within(limits: Limits) -> Self {
        let gauge = Gauge::default();
        let server = Server::builder(implementation!())
            .limits(limits.shutdown_grace(Duration::ZERO))
            .logging(true)
            .observer(gauge.clone())
            .state(gauge.clone())
            .tool(Tool::new("waits", waits))
            .tool(Tool::new("asks", asks))
            .tool(Tool::new("tells", tells))
            .tool(Tool::new("ok", async || Ok::<_, ToolError>("ok")))
            .template(ResourceTemplate::new("x:{n}", "x", async |_: Context, _: Variables| Ok("text")))
            .build();
        Self { server, gauge }
    }

    async fn peer(&self, wire: Wire) -> Peer {
        match wire {
            Wire::Memory => Peer::memory(self.server.clone()),
            Wire::Lines => Peer::lines(self.server.clone()),
            _ => Peer::ws(self.server.clone()).await,
        }
    }

    /// Another client is served, now.
    async fn serves_others(&self) {
        let other = Client::connect(self.server.clone()).await.unwrap();
        assert_eq!(soon("an answer to others", other.call::<String>("ok", json!({}))).await.unwrap(), "ok");
        other.disconnect().await;
    }

    /// Nothing is held any more.
    async fn is_idle(&self, flood: &str) {
        let counts = || [HANDLERS, REQUESTS, CONNECTIONS].map(|what| self.gauge.of(what));
        until(&format!("after {flood}, all is given back"), async || counts() == [0; 3]).await;
    }

    fn tell(flood: &str, wire: &str, asked: usize, refused: usize) {
        let cells = [
            ("flood", flood.to_owned()),
            ("wire", wire.to_owned()),
            ("asked", asked.to_string()),
            ("refused", refused.to_string()),
        ];
        report::row("Floods", cells);
    }
}

/// The answers to these, which are refusals of that code.
async fn refused(peer: &mut Peer, count: usize, code: i64) {
    for _ in 0..count {
        let answer = soon("a refusal", peer.hear()).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
}

/// It goes, and leaves what it asked for unanswered.
async fn leave(mut peer: Peer) {
    soon("the end", peer.end_input()).await.unwrap();
}

#[tokio::test]
async fn calls_past_the_bounds_are_refused_and_harm_nobody_on_every_shared_wire() {
    for wire in SHARED {
        let host = Host::within(Limits::default().in_flight(2).waiting(3));
        let mut peer = host.peer(wire).await;
        for id in 0..50 {
            peer.say(&call(id, "waits", json!({}))).await;
        }
        refused(&mut peer, 45, -32603).await;
        assert_eq!(host.gauge.of(HANDLERS), 2, "{wire:?}");
        host.serves_others().await;
        leave(peer).await;
        host.is_idle("calls").await;
        Host::tell("`in_flight`, `waiting`: calls that never end", wire.name(), 50, 45);
    }
}

/// Each question is one of a call, and a client that answers none has no more of them than calls that run.
#[tokio::test]
async fn questions_that_nobody_answers_are_bounded_by_calls_and_harm_nobody_on_every_shared_wire() {
    for wire in SHARED {
        let host = Host::within(Limits::default().in_flight(2).waiting(3));
        let mut peer = host.peer(wire).await;
        let info = json!({ "name": "t", "version": "0" });
        let hello =
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": info });
        peer.say(&json!({ "jsonrpc": "2.0", "id": "h", "method": "initialize", "params": hello })).await;
        assert_eq!(soon("the handshake", peer.hear()).await["id"], "h");
        for id in 0..20 {
            let params = json!({ "name": "asks" });
            peer.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
        }
        // Two ask, and three wait to.
        let (mut busy, mut asked) = (0, 0);
        while busy + asked < 17 {
            let message = soon("a message", peer.hear()).await;
            asked += usize::from(message["method"] == "elicitation/create");
            busy += usize::from(message["error"]["code"] == -32603);
        }
        assert_eq!((busy, asked), (15, 2), "{wire:?}");
        host.serves_others().await;
        leave(peer).await;
        host.is_idle("questions").await;
        Host::tell("`in_flight`, `waiting`: questions without an answer", wire.name(), 20, 15);
    }
}

#[tokio::test]
async fn subscriptions_past_the_bounds_are_refused_and_given_back_on_every_shared_wire() {
    let listen = |id: usize, uris: usize| {
        let uris: Vec<String> = (0..uris).map(|uri| format!("x:{uri}")).collect();
        let params = json!({ "notifications": { "resourceSubscriptions": uris }, "_meta": modern_meta() });
        json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params })
    };
    for wire in SHARED {
        let host = Host::within(Limits::default().subscriptions(3).subscribed_uris(4));
        for _ in 0..2 {
            let mut peer = host.peer(wire).await;
            peer.say(&listen(100, 5)).await;
            refused(&mut peer, 1, -32602).await;
            for id in 0..3 {
                peer.say(&listen(id, 4)).await;
                let told = soon("an acknowledgement", peer.hear()).await;
                assert_eq!(told["method"], "notifications/subscriptions/acknowledged", "{wire:?}: {told}");
            }
            for id in 3..20 {
                peer.say(&listen(id, 1)).await;
            }
            refused(&mut peer, 17, -32603).await;
            host.serves_others().await;
            leave(peer).await;
            host.is_idle("subscriptions").await;
        }
        Host::tell("`subscriptions`, `subscribed_uris`", wire.name(), 21, 18);
    }
}

fn hello() -> Post {
    let info = json!({ "name": "t", "version": "0" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    Post::new(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }).to_string())
}

/// Who has a session keeps it while others are refused one, and each that ends makes room for one.
#[tokio::test]
async fn sessions_and_their_streams_past_the_bounds_are_refused_and_given_back() {
    const SESSIONS: usize = 3;
    let host = Host::within(Limits::default().sessions(SESSIONS));
    let routes = Routes::new(host.server.clone());
    let sessions = routes.sessions().unwrap().clone();
    let served = Served::with(routes, "127.0.0.1").await;
    for _ in 0..2 {
        let answers = join_all((0..20).map(|_| served.send(hello()))).await;
        let ids: Vec<String> =
            answers.iter().filter_map(|answer| answer.head.header("mcp-session-id").map(str::to_owned)).collect();
        let full = answers.iter().filter(|answer| answer.status() == 503).count();
        assert_eq!((ids.len(), full), (SESSIONS, 20 - SESSIONS));
        for id in &ids {
            let within = |post: Post| post.header("Mcp-Session-Id", id.as_str());
            let get = within(Post::to("GET /mcp", "").header("Accept", "text/event-stream"));
            let mut stream = served.connect().await;
            stream.write(&get.bytes(served.address)).await;
            assert_eq!(soon("the stream", stream.head()).await.unwrap().status, 200);
            let further = join_all((0..3).map(|_| served.send(get.clone()))).await;
            assert!(further.iter().all(|answer| answer.status() == 409));
            let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
            assert_eq!(served.send(within(Post::new(ping))).await.status(), 200);
            let delete = within(Post::to("DELETE /mcp", ""));
            assert_eq!(served.send(delete).await.status(), 204);
        }
        until("no session is left", async || sessions.count() == 0).await;
        host.is_idle("sessions").await;
    }
    Host::tell("`sessions`", "http", 20, 20 - SESSIONS);
    Host::tell("`session_streams`", "http", 4, 3);
}

/// Streams that nobody reads end after a while, with their calls, and hold up no other.
#[tokio::test]
async fn streams_that_nobody_reads_end_and_harm_nobody() {
    const STREAMS: usize = 16;
    let limits = Limits::default().stall_timeout(Duration::from_millis(500)).queue_bytes(64 << 10);
    let host = Host::within(limits);
    let served = Served::with(Routes::new(host.server.clone()), "127.0.0.1").await;
    let mut meta = modern_meta();
    meta["progressToken"] = "t".into();
    meta["io.modelcontextprotocol/logLevel"] = "error".into();
    let params = json!({ "name": "tells", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let post = Post::speaking(mcp_core::Revision::LATEST, body.to_string());
    let begin = async |_| {
        let mut connection = Connection::narrow(served.address).await;
        connection.write(&post.bytes(served.address)).await;
        connection
    };
    let unread = join_all((0..STREAMS).map(begin)).await;
    until("they run", async || host.gauge.of(HANDLERS) > 0).await;
    while host.gauge.of(HANDLERS) > 0 {
        let ok = Post::speaking(mcp_core::Revision::LATEST, call(1, "ok", json!({})));
        assert_eq!(soon("an answer", served.send(ok)).await.status(), 200);
        host.serves_others().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    host.is_idle("streams").await;
    drop(unread);
    Host::tell("`stall_timeout`: streams that nobody reads", "http", STREAMS, STREAMS);
}

/// What a server says besides that nobody asked for: as often as it likes, and then the answer.
fn noise(number: usize) -> String {
    let notice = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    let question = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
    let question =
        json!({ "jsonrpc": "2.0", "id": format!("q{number}"), "method": "elicitation/create", "params": question });
    let lines = [
        notice("notifications/progress", json!({ "progressToken": number + 1_000_000, "progress": 1 })),
        notice("notifications/resources/updated", json!({ "uri": "x:a" })),
        notice("notifications/tools/list_changed", json!({})),
        notice("notifications/message", json!({ "level": "error", "data": "x" })),
        json!({ "jsonrpc": "2.0", "id": number + 1_000_000, "result": {} }),
        question,
    ];
    let long = json!({ "x": "x".repeat(if number.is_multiple_of(50) { 10_000 } else { 1 }) });
    lines.into_iter().chain([notice("notifications/message", long)]).map(|line| line.to_string() + "\n").collect()
}

/// A server in lines that floods its client before it answers.
async fn flood(stream: tokio::io::DuplexStream) {
    let (reader, mut writer) = tokio::io::split(stream);
    // It is read from all the time: who writes and does not read would be waited for.
    let (heard, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let reading = tokio::spawn(async move {
        let mut lines = tokio::io::BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let _ = heard.send(line);
        }
    });
    let mut number = 0;
    while let Some(line) = lines.recv().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
        if id.is_null() || method.is_empty() {
            continue;
        }
        let result = match method {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "t", "version": "0" },
                "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
            }),
            "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
            _ => json!({}),
        };
        if method == "tools/call" {
            for _ in 0..500 {
                number += 1;
                writer.write_all(noise(number).as_bytes()).await.unwrap();
            }
        }
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        if writer.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
            break;
        }
    }
    reading.await.unwrap();
}

/// Its calls are answered all the same, it hears what it listens to, and its other connections know nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_flooded_by_its_server_is_answered_and_goes() {
    let (here, there) = tokio::io::duplex(4 << 10);
    let flooding = tokio::spawn(flood(there));
    let (reader, writer) = tokio::io::split(here);
    let never = async |_: ElicitParams| std::future::pending::<Result<ElicitResult, mcp_core::Error>>().await;
    let limits = Limits::default().message_bytes(4 << 10).request_timeout(PATIENCE);
    let client = Client::builder(implementation!()).revisions([mcp_core::Revision::LATEST_LEGACY]).limits(limits);
    let client = client.on_elicit(never).on_log(|_| {}).connect(Lines::new(reader, writer, 4 << 10)).await.unwrap();
    let mut changes = soon("a subscription", client.subscribe("x:a")).await.unwrap();
    let host = Host::within(Limits::default());
    for _ in 0..4 {
        let (answer, ()) = tokio::join!(client.call::<String>("a", json!({})), host.serves_others());
        assert_eq!(answer.unwrap(), "done");
    }
    assert!(matches!(soon("a change", changes.next()).await, Some(Changed::Resource(uri)) if uri == "x:a"));
    soon("it goes", client.disconnect()).await;
    soon("the server is let go", flooding).await.unwrap();
    Host::tell("of a client: notifications, progress, answers and questions, long lines", "lines", 4 * 500 * 7, 0);
}
