//! What an event stream costs beside JSON: nothing waits for an acknowledgement that the peer delays by 40 ms.

use std::time::{Duration, Instant};

use mcp_core::{DEFAULT_PATH, Era, Revision};
use mcp_http::Routes;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Post, Served, raw::soon};

const CALLS: usize = 20;

/// Far below the delay of an acknowledgement, and far above what a busy machine adds.
const MARGIN: Duration = Duration::from_millis(20);

async fn served() -> Served {
    Served::with(Routes::new(everything_server::server()), "127.0.0.1").await
}

/// What belongs to calls of an era: its headers, and a session in the legacy one.
async fn speaking(served: &Served, revision: Revision) -> Option<String> {
    if revision.era() == Era::Modern {
        return None;
    }
    let client = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let answer = served.send(Post::new(initialize.to_string())).await;
    Some(answer.head.header("mcp-session-id").expect("a session").to_owned())
}

/// A call that pauses between its notifications, so that each is written by itself.
fn count(revision: Revision, session: Option<&str>, is_stream: bool) -> Post {
    let mut meta = match revision.era() {
        Era::Modern => json!({
            "io.modelcontextprotocol/protocolVersion": revision.as_str(),
            "io.modelcontextprotocol/clientCapabilities": {},
        }),
        _ => json!({}),
    };
    if is_stream {
        meta["progressToken"] = Value::from(1);
    }
    let params = json!({ "name": "count", "arguments": { "n": 3, "ms": 1 }, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let post = Post::speaking(revision, call.to_string());
    match session {
        Some(session) => post.header("Mcp-Session-Id", session),
        None => post,
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test]
async fn calls_that_stream_take_no_longer_than_calls_that_do_not() {
    let served = served().await;
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let session = speaking(&served, revision).await;
        let mut forms = [false, true].map(|is_stream| (is_stream, Vec::new()));
        let mut connections = [served.connect().await, served.connect().await];
        for _ in 0..CALLS {
            for ((is_stream, times), connection) in forms.iter_mut().zip(&mut connections) {
                let post = count(revision, session.as_deref(), *is_stream);
                let start = Instant::now();
                connection.write(&post.bytes(served.address)).await;
                let answer = connection.response().await.expect("an answer on the same connection");
                times.push(start.elapsed());
                assert_eq!((answer.status(), answer.is_stream()), (200, *is_stream), "{answer:?}");
            }
        }
        let [json, stream] = forms.map(|(_, times)| median(times));
        println!("{revision}: {json:?} as JSON, {stream:?} as a stream");
        assert!(stream < json + MARGIN, "{revision}: {json:?} as JSON, {stream:?} as a stream");
    }
}

#[tokio::test]
async fn the_head_of_a_stream_and_its_first_event_come_in_one_read() {
    let served = served().await;
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let session = speaking(&served, revision).await;
        let post = count(revision, session.as_deref(), true);
        one_read(&served, &post, CALLS).await;
        if let Some(session) = &session {
            let get = Post::to(&format!("GET {DEFAULT_PATH}"), "").header("Accept", "text/event-stream");
            one_read(&served, &get.header("Mcp-Session-Id", session.as_str()), 1).await;
        }
    }
}

/// Sends it on one connection, and looks at what comes first each time.
async fn one_read(served: &Served, post: &Post, times: usize) {
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    for round in 0..times {
        stream.write_all(&post.bytes(served.address)).await.unwrap();
        let mut buffer = vec![0; 64 << 10];
        let read = soon("the first of an answer", stream.read(&mut buffer)).await.unwrap();
        let mut text = String::from_utf8(buffer[..read].to_vec()).unwrap();
        let (head, events) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("half a head: {text:?}"));
        assert!(head.contains("text/event-stream"), "{head}");
        let is_whole = events.contains("data: ") && events.contains("\n\n");
        assert!(is_whole, "round {round}: the first event comes later: {text:?}");
        while round + 1 < times && !text.ends_with("0\r\n\r\n") {
            let read = soon("the rest of an answer", stream.read(&mut buffer)).await.unwrap();
            assert!(read > 0, "the connection has ended");
            text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    }
}
