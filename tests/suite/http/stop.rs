//! How a server stops.

use std::time::Duration;

use mcp_core::{Limits, Revision, Server};
use mcp_http::Routes;
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::Instant};

use super::{
    Connection, Post,
    old_sse::{Old, hello, listen, send},
    raw::soon,
};
use crate::server::{call, gauge, until};

const GRACE: Duration = Duration::from_millis(1500);

struct Stopping {
    address: std::net::SocketAddr,
    server: Server,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), mcp_core::Error>>,
}

async fn start() -> Stopping {
    within(GRACE).await
}

async fn within(grace: Duration) -> Stopping {
    let server = everything_server::server_with(Limits::default().shutdown_grace(grace));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let signal = async move { drop(stopped.await) };
    let routes = Routes::new(server.clone()).http_sse("/sse", "/messages");
    let serving = tokio::spawn(routes.serve_until(listener, signal));
    Stopping { address, server, stop, serving }
}

fn sleep(ms: u64) -> Post {
    Post::speaking(Revision::LATEST, call(1, "sleep", json!({ "ms": ms })))
}

async fn begin(stopping: &Stopping, post: &Post) -> Connection {
    let mut connection = Connection::open(stopping.address).await;
    connection.write(&post.bytes(stopping.address)).await;
    connection
}

/// The id of a new session.
async fn greeted(stopping: &Stopping) -> String {
    let post = Post::new(super::session::hello(Revision::V2025_11_25));
    let response = begin(stopping, &post).await.response_to(&post).await.unwrap();
    response.head.header("Mcp-Session-Id").unwrap().to_owned()
}

#[tokio::test]
async fn what_runs_may_finish_and_no_connection_is_taken_any_more() {
    let stopping = start().await;
    let post = sleep(500);
    let mut running = begin(&stopping, &post).await;
    let mut idle = Connection::open(stopping.address).await;
    until("the call runs", async || gauge(&stopping.server).await.0 == 1).await;
    stopping.stop.send(()).unwrap();
    let response = running.response_to(&post).await.unwrap();
    assert_eq!(crate::server::text(&response.json()), "slept 500 ms");
    soon("the end", stopping.serving).await.unwrap().unwrap();
    assert!(idle.is_closed().await);
    assert!(tokio::net::TcpStream::connect(stopping.address).await.is_err());
}

#[tokio::test]
async fn what_outlives_the_grace_is_cut_off_and_idle_streams_hold_up_nobody() {
    let stopping = start().await;
    let session = greeted(&stopping).await;
    let listen = Post::to("GET /mcp", "").header("Accept", "text/event-stream").header("Mcp-Session-Id", session);
    let mut listening = begin(&stopping, &listen).await;
    assert_eq!(listening.head().await.unwrap().status, 200);
    let post = sleep(600_000);
    let mut running = begin(&stopping, &post).await;
    until("the call runs", async || gauge(&stopping.server).await.0 == 1).await;

    let start = Instant::now();
    stopping.stop.send(()).unwrap();
    soon("the stream ends", async { while listening.chunk().await.is_some() {} }).await;
    assert!(start.elapsed() < GRACE, "{:?}", start.elapsed());
    soon("the end", stopping.serving).await.unwrap().unwrap();
    assert!(start.elapsed() >= GRACE && start.elapsed() < GRACE * 3, "{:?}", start.elapsed());
    assert_eq!(running.response_to(&post).await.unwrap().status(), 503);
    until("the call is over", async || gauge(&stopping.server).await == (0, 1)).await;
}

/// What a client leaves half-sent, or unread, is not waited for longer than what runs.
#[tokio::test]
async fn requests_that_never_come_whole_and_answers_that_nobody_reads_hold_up_nobody_for_longer_than_the_grace() {
    let stopping = start().await;
    let mut halves = Vec::new();
    for half in [
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        "PRI * HTTP/2.0\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut connection = Connection::open(stopping.address).await;
        connection.write(half.as_bytes()).await;
        halves.push(connection);
    }
    let mut unread = Connection::narrow(stopping.address).await;
    let big = call(1, "big", json!({ "bytes": 32 << 20 }));
    unread.write(&Post::speaking(Revision::LATEST, big).bytes(stopping.address)).await;
    assert_eq!(unread.head().await.unwrap().status, 200);
    stopping.stop.send(()).unwrap();
    soon("the end", stopping.serving).await.unwrap().unwrap();
    for half in &mut halves {
        soon("its connection is over", half.rest()).await;
    }
}

/// A stream that nothing would end any more is not opened.
#[tokio::test]
async fn a_stream_that_is_asked_for_while_the_server_stops_is_refused() {
    let stopping = within(Duration::from_secs(600)).await;
    let session = greeted(&stopping).await;
    let listen = Post::to("GET /mcp", "").header("Accept", "text/event-stream").header("Mcp-Session-Id", session);
    let bytes = listen.bytes(stopping.address);
    let (beginning, rest) = bytes.split_at(bytes.len() - 2);
    let mut connection = Connection::open(stopping.address).await;
    connection.write(beginning).await;
    // On its way through once more, so that the beginning has come.
    greeted(&stopping).await;
    stopping.stop.send(()).unwrap();
    until("it stops", async || tokio::net::TcpStream::connect(stopping.address).await.is_err()).await;
    connection.write(rest).await;
    assert_eq!(connection.head().await.unwrap().status, 503);
    soon("the end", stopping.serving).await.unwrap().unwrap();
}

/// Who listens over HTTP+SSE is hung up on at once, and who waits for an answer gets it first.
#[tokio::test]
async fn a_connection_over_http_sse_ends_once_nothing_runs_on_it() {
    let stopping = within(Duration::from_secs(600)).await;
    let mut idle = Old::connect(stopping.address, &listen()).await;
    let mut busy = Old::connect(stopping.address, &listen()).await;
    for (id, message) in [(0, hello()), (1, serde_json::from_str(&call(1, "sleep", json!({ "ms": 500 }))).unwrap())] {
        assert_eq!(send(stopping.address, &busy.post(&message)).await, 202);
        if id == 0 {
            assert_eq!(busy.hear().await["id"], 0);
        }
    }
    until("the call runs", async || gauge(&stopping.server).await.0 == 1).await;
    stopping.stop.send(()).unwrap();
    assert_eq!(idle.next().await, None);
    assert_eq!(crate::server::text(&busy.hear().await), "slept 500 ms");
    assert_eq!(busy.next().await, None);
    soon("the end", stopping.serving).await.unwrap().unwrap();
}
