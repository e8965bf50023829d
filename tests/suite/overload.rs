//! Past the bounds, with as much as they allow: how much memory a server takes at most, who else is served meanwhile,
//! and what is left of it all afterwards. The server is a process of its own, so that its memory is.

#![cfg(target_os = "linux")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    process::{Command, Stdio},
    time::Duration,
};

use futures_util::future::join_all;
use mcp_core::{Context, Limits, Revision, Server, Tool, ToolError, implementation, types::LogLevel};
use mcp_http::Routes;
use mcp_stdio::serve_listener;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    http::{Connection, Post},
    process::Running,
    report,
    server::call,
};

const MIB: usize = 1 << 20;

/// How much more than the bounds in play a server may take: buffers grow by doubling, and what is read is still there
/// while it is being answered.
const ROOM: f64 = 1.5;

fn limits() -> Limits {
    Limits::default()
        .message_bytes(4 * MIB)
        .in_flight(2)
        .queue_bytes(MIB)
        .sessions(100)
        .session_event_bytes(MIB)
        .all_event_bytes(32 * MIB)
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

async fn echo(Text { text }: Text) -> Result<String, ToolError> {
    Ok(text)
}

#[derive(Deserialize, JsonSchema)]
struct Bytes {
    bytes: usize,
}

async fn fill(Bytes { bytes }: Bytes) -> Result<String, ToolError> {
    Ok("x".repeat(bytes))
}

/// Says it in events, which a session keeps.
async fn say(context: Context, Bytes { bytes }: Bytes) -> Result<(), ToolError> {
    for part in 0..bytes.div_ceil(100 << 10) {
        context.log(LogLevel::Info, "", format!("{part} {}", "x".repeat(100 << 10))).await;
    }
    Ok(())
}

/// The server of the tests below: HTTP and lines over TCP, until its stdin ends.
#[test]
#[ignore = "it is a process of the tests below, and ends with its stdin"]
fn serve() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::builder(implementation!())
            .limits(limits())
            .logging(true)
            .tool(Tool::new("echo", echo))
            .tool(Tool::new("fill", fill))
            .tool(Tool::new("say", say))
            .build();
        let [http, lines] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        println!("\nlistening {} {}", http.local_addr().unwrap(), lines.local_addr().unwrap());
        std::io::stdout().flush().unwrap();
        let [http, lines] = [http, lines].map(|listener| {
            listener.set_nonblocking(true).unwrap();
            tokio::net::TcpListener::from_std(listener).unwrap()
        });
        tokio::spawn(serve_listener(server.clone(), lines));
        let limits = server.limits().clone();
        tokio::spawn(async move { mcp_http::serve_service(Routes::new(server).into_service(), http, &limits).await });
        tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await.unwrap();
    });
}

/// The process, and where it listens.
struct Host {
    process: Running,
    http: SocketAddr,
    lines: SocketAddr,
    idle_kib: u64,
    idle_files: usize,
}

impl Host {
    async fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["overload::serve", "--exact", "--ignored", "--nocapture"]);
        let mut process = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let stdout = BufReader::new(process.0.stdout.take().unwrap());
        let said =
            stdout.lines().map(Result::unwrap).find_map(|line| Some(line.strip_prefix("listening ")?.to_owned()));
        let said = said.expect("where it listens");
        let (http, lines) = said.split_once(' ').unwrap();
        let mut host =
            Self { process, http: http.parse().unwrap(), lines: lines.parse().unwrap(), idle_kib: 0, idle_files: 0 };
        assert!(host.serves_others().await);
        (host.idle_kib, host.idle_files) = (host.process.status("VmRSS:"), host.files());
        host
    }

    fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.process.0.id())).unwrap().count()
    }

    async fn post(&self, post: Post) -> crate::http::Response {
        let mut connection = Connection::open(self.http).await;
        connection.write_what_goes(&post.bytes(self.http)).await;
        connection.response_to(&post).await.expect("an answer")
    }

    async fn serves_others(&self) -> bool {
        let response = self.post(Post::speaking(Revision::LATEST, call(1, "echo", json!({ "text": "x" })))).await;
        response.json()["result"]["content"][0]["text"] == "x"
    }

    /// The peak beside the sum of the bounds in play; everybody has gone, and so has what they held.
    async fn judge(self, overload: &str, in_play: &str, sum: usize) {
        assert!(self.serves_others().await, "{overload}: the others are served");
        let released = async {
            while self.files() > self.idle_files {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let patience = Duration::from_secs(30);
        tokio::time::timeout(patience, released).await.unwrap_or_else(|_| panic!("{overload}: files stay open"));
        let peak = (self.process.most_memory() - self.idle_kib) as f64 / 1024.0;
        let sum = sum as f64 / MIB as f64;
        let cells = [
            ("overload", overload.to_owned()),
            ("bounds in play", in_play.to_owned()),
            ("their sum (MiB)", format!("{sum:.0}")),
            ("peak (MiB)", format!("{peak:.0}")),
            ("ratio", format!("{:.2}", peak / sum)),
        ];
        report::row("Overload", cells);
        assert!(peak <= ROOM * sum, "{overload}: {peak:.0} MiB, where the bounds are {sum:.0} MiB together");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_of_the_greatest_length_at_once() {
    const CALLERS: usize = 16;
    let host = Host::start().await;
    let text = "x".repeat(4 * MIB - 1024);
    let post = Post::speaking(Revision::LATEST, call(1, "echo", json!({ "text": text })));
    let calls = (0..CALLERS).map(|_| host.post(post.clone()));
    for response in join_all(calls).await {
        assert_eq!(response.json()["result"]["content"][0]["text"].as_str().unwrap().len(), text.len());
    }
    let too_long = Post::speaking(Revision::LATEST, call(1, "echo", json!({ "text": "x".repeat(4 * MIB) })));
    assert_eq!(host.post(too_long).await.status(), 413);
    let in_play = format!("{CALLERS} × `message_bytes`, in and out");
    host.judge("messages of the greatest length at once, over HTTP", &in_play, CALLERS * 2 * 4 * MIB).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_messages_that_never_come_whole() {
    const CALLERS: usize = 32;
    let host = Host::start().await;
    let post = Post::speaking(Revision::LATEST, call(1, "echo", json!({ "text": "x".repeat(4 * MIB - 1024) })));
    let bytes = post.bytes(host.http);
    let begin = async |_| {
        let mut stream = TcpStream::connect(host.http).await.unwrap();
        stream.write_all(&bytes[..bytes.len() - 10]).await.unwrap();
        stream
    };
    let connections = join_all((0..CALLERS).map(begin)).await;
    assert!(host.serves_others().await);
    drop(connections);
    let in_play = format!("{CALLERS} × `message_bytes`");
    host.judge("messages that never come whole, over HTTP", &in_play, CALLERS * 4 * MIB).await;
}

/// Each connection has two calls that run, and room for answers and for what waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_answers_that_nobody_reads() {
    const CALLERS: usize = 16;
    let host = Host::start().await;
    let calls: String = (0..200)
        .map(|id| {
            let params = json!({ "name": "fill", "arguments": { "bytes": MIB } });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string() + "\n"
        })
        .collect();
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": "h", "method": "initialize", "params": hello }).to_string() + "\n";
    let begin = async |_| {
        let mut stream = TcpStream::connect(host.lines).await.unwrap();
        let asked = [hello.as_bytes(), calls.as_bytes()].concat();
        // Who does not read is not read from at some time.
        let _ = tokio::time::timeout(Duration::from_millis(500), stream.write_all(&asked)).await;
        stream
    };
    let connections = join_all((0..CALLERS).map(begin)).await;
    assert!(host.serves_others().await);
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(connections);
    let in_play =
        format!("{CALLERS} × (`queue_bytes` for what waits, `queue_bytes` for answers, `in_flight` of 1 MiB each)");
    host.judge("answers that nobody reads, in lines", &in_play, CALLERS * (2 + 2) * MIB).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_sessions_as_there_may_be_each_full_of_events() {
    const SESSIONS: usize = 100;
    let host = Host::start().await;
    let legacy = |body: Value| Post::speaking(Revision::LATEST_LEGACY, body.to_string());
    let hello = legacy(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" },
    } }));
    let fill_one = async |_| {
        let id = host.post(hello.clone()).await.head.header("mcp-session-id").expect("a session").to_owned();
        let within = |body: Value| legacy(body).header("Mcp-Session-Id", id.as_str());
        let params = json!({ "name": "say", "arguments": { "bytes": 2 * MIB } });
        let said =
            host.post(within(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))).await;
        assert_eq!(said.status(), 200);
    };
    // A few at once: what a stream has in its queue is not what is looked at here.
    for at_once in (0..SESSIONS).collect::<Vec<_>>().chunks(10) {
        join_all(at_once.iter().map(fill_one)).await;
    }
    assert_eq!(host.post(hello.clone()).await.status(), 503, "there is no room for one more");
    let in_play = "`all_event_bytes`, 10 × (`queue_bytes`, twice, and `message_bytes`)";
    host.judge("sessions that are full of events", in_play, 32 * MIB + 10 * (2 + 4) * MIB).await;
}
