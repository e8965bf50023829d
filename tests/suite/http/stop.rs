//! The example of a server that stops without cutting what runs.

#[path = "../../../crates/mcp-suite/examples/stop.rs"]
#[expect(dead_code, reason = "an example has a `main` too")]
mod example;

use std::{net::SocketAddr, time::Duration};

use mcp_core::Revision;
use mcp_http::Routes;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::Instant,
};

use super::{Connection, Post, raw::soon};

struct Stopping {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

async fn start(grace: Duration) -> Stopping {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let stopped = async {
        let _ = stopped.await;
    };
    let routes = Routes::new(everything_server::server());
    let task = tokio::spawn(example::serve_until(routes, listener, stopped, grace));
    Stopping { address, stop, task }
}

impl Stopping {
    async fn send(&self, post: &Post) -> Connection {
        let mut connection = Connection::open(self.address).await;
        connection.write(&post.bytes(self.address)).await;
        connection
    }

    async fn session(&self) -> String {
        let client = json!({ "name": "raw", "version": "1" });
        let revision = Revision::LATEST_LEGACY.as_str();
        let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = self.send(&Post::new(initialize.to_string())).await.response().await.unwrap();
        answer.head.header("mcp-session-id").expect("a session").to_owned()
    }
}

fn count(session: &str, n: u64, ms: u64) -> Post {
    let params = json!({ "name": "count", "arguments": { "n": n, "ms": ms }, "_meta": { "progressToken": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    Post::new(call.to_string()).header("Mcp-Session-Id", session)
}

#[tokio::test]
async fn calls_finish_within_the_grace_and_streams_end_behind_it() {
    let grace = Duration::from_secs(2);
    let server = start(grace).await;
    let session = server.session().await;
    let get = Post::to("GET /mcp", "").header("Accept", "text/event-stream").header("Mcp-Session-Id", &*session);
    let (mut stream, mut call) = (server.send(&get).await, server.send(&count(&session, 3, 100)).await);
    let (stream_head, call_head) = (stream.head().await.unwrap(), call.head().await.unwrap());
    assert_eq!((stream_head.status, call_head.status), (200, 200));

    let start = Instant::now();
    server.stop.send(()).unwrap();
    let answer = String::from_utf8(soon("the rest of the call", call.body(&call_head)).await).unwrap();
    assert!(answer.contains(r#""id":2,"result""#), "{answer}");
    assert!(TcpStream::connect(server.address).await.is_err(), "it listens still");
    // The stream ends in order, and not by a connection that breaks off.
    soon("the end of the stream", stream.body(&stream_head)).await;
    assert!(start.elapsed() >= grace, "{:?}", start.elapsed());
    soon("the end", server.task).await.unwrap().unwrap();
    assert!(start.elapsed() < grace + Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_call_that_takes_longer_than_the_grace_is_cut() {
    let server = start(Duration::from_millis(200)).await;
    let session = server.session().await;
    let mut call = server.send(&count(&session, 1000, 1000)).await;
    let head = call.head().await.unwrap();
    server.stop.send(()).unwrap();
    soon("the end", server.task).await.unwrap().unwrap();
    let said = String::from_utf8(soon("the end of the call", call.body(&head)).await).unwrap();
    assert!(said.contains("notifications/progress") && !said.contains("result"), "{said}");
}
