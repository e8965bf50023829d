//! Streams over HTTP: that they end, that unread ones are given up, and that nothing is left of them.

use std::time::Duration;

use mcp_core::{Limits, Revision};
use serde_json::{Value, json};

use super::{call, call_with_token, gauge, text, until};
use crate::{
    fixture,
    http::{Connection, Event, Post, Served, events},
};

fn modern(body: String) -> Post {
    Post::speaking(Revision::LATEST, body)
}

fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// A stream that stays open behind its answer is a connection lost; a hundred of them are a server lost.
#[tokio::test]
async fn c051_a_stream_ends_behind_its_answer() {
    let served = Served::start(everything_server::server()).await;
    let before = alive();
    let mut connection = served.connect().await;
    for round in 0..100 {
        let post = match round % 3 {
            0 => modern(call_with_token(round, "count", json!({ "n": 3 }), "t")),
            1 => modern(call(round, "echo", json!({ "text": "x" }))).header("Accept", "text/event-stream"),
            _ => modern(call_with_token(round, "sleep", json!({ "ms": 1 }), "t")),
        };
        connection.write(&post.bytes(served.address)).await;
        // Read to its end: a stream that does not end fails here.
        let response = connection.response().await.expect("the connection lives on");
        let last: Value = serde_json::from_slice(response.messages().last().unwrap()).unwrap();
        assert_eq!(last["id"], round);
    }
    connection.abort();
    until("all tasks have ended", async || alive() <= before).await;
}

/// Nothing may be left of a request, or the memory goes with the number of requests.
#[tokio::test]
async fn c050_no_task_is_left_of_thousands_of_requests() {
    let served = Served::start(everything_server::server()).await;
    let mut connection = served.connect().await;
    let mut alive_then = 0;
    for id in 0..4000 {
        let post = match id % 8 {
            0 => modern(call_with_token(id, "count", json!({ "n": 2 }), "t")),
            1 => Post::speaking(Revision::V2025_06_18, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
            2 => Post::new(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            _ => modern(call(id, "echo", json!({ "text": "x" }))),
        };
        connection.write(&post.bytes(served.address)).await;
        assert!([200, 202].contains(&connection.response().await.expect("an answer").status()));
        if id == 100 {
            alive_then = alive();
        }
    }
    until("as few tasks are left as there were", async || alive() <= alive_then).await;
}

/// Over connections of their own too.
#[tokio::test]
async fn c050_no_task_is_left_of_hundreds_of_connections() {
    let served = Served::start(everything_server::server()).await;
    let before = alive();
    for id in 0..300 {
        let response = served.send(modern(call_with_token(id, "count", json!({ "n": 2 }), "t"))).await;
        assert_eq!(response.messages().len(), 3);
    }
    until("all tasks have ended", async || alive() <= before).await;
}

/// Comments while nothing happens, then the events, then the end.
#[tokio::test]
async fn a_stream_is_kept_alive_while_nothing_happens() {
    let served =
        Served::start(everything_server::server_with(Limits::default().keep_alive(Duration::from_millis(30)))).await;
    let response = served.send(modern(call(1, "sleep", json!({ "ms": 900 })))).await;
    let parts = events(response.text());
    let comments = parts.iter().filter(|part| matches!(part, Event::Comment(_))).count();
    // How many depends on the machine; that it is more than one, and no flood, does not.
    assert!((2..=30).contains(&comments), "{comments} comments in 900 ms");
    assert!(matches!(parts.last(), Some(Event::Message(_))), "nothing comes behind the answer");
}

/// Progress goes out as it comes, and waits for nothing more to come.
#[tokio::test]
async fn events_are_not_held_back() {
    let served = Served::start(fixture::odd(Limits::default(), &[])).await;
    let mut connection = served.connect().await;
    let post = modern(call_with_token(1, "announce", json!({}), "t"));
    connection.write(&post.bytes(served.address)).await;
    let head = connection.head().await.unwrap();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    let first = String::from_utf8(connection.chunk().await.unwrap()).unwrap();
    assert!(first.contains("and then nothing") && first.ends_with("\n\n"), "{first}");
}

/// A stream that nobody reads is given up, and its call with it; the answer would come to nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d04_an_unread_stream_is_given_up() {
    let limits = Limits::default().stall_timeout(Duration::from_millis(300)).queue_messages(16);
    let server = everything_server::server_with(limits);
    let served = Served::start(server.clone()).await;
    let mut connection = Connection::narrow(served.address).await;
    let post = modern(call_with_token(1, "count", json!({ "n": u32::MAX }), "t"));
    connection.write(&post.bytes(served.address)).await;
    until("the call was cancelled", async || gauge(&server).await == (0, 1)).await;
    // What was on its way can still be read, and then the connection ends without an answer.
    assert!(!connection.rest().await.contains("\"result\""));
}

/// The same for an answer that is there as a whole: whoever reads none of it does not keep it in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unread_answer_is_given_up() {
    const BYTES: usize = 16 << 20;
    let limits = Limits::default().stall_timeout(Duration::from_millis(300));
    let served = Served::start(everything_server::server_with(limits)).await;
    let post = || modern(call(1, "big", json!({ "bytes": BYTES })));
    for post in [post(), post().header("Accept", "text/event-stream")] {
        let mut connection = Connection::narrow(served.address).await;
        connection.write(&post.bytes(served.address)).await;
        // It has begun; from here on nothing is read for ten times as long as that is borne.
        connection.head().await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let read = connection.rest().await.len();
        assert!(read > 0 && read < BYTES, "{read} bytes were kept for a reader that read nothing");
    }
}

/// A slow reader is no stalled one: as long as something is read, the call goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_is_not_given_up() {
    let limits = Limits::default().stall_timeout(Duration::from_millis(1500)).queue_messages(16);
    let served = Served::start(everything_server::server_with(limits)).await;
    let mut connection = Connection::narrow(served.address).await;
    let post = modern(call_with_token(1, "count", json!({ "n": 3000 }), "t"));
    connection.write(&post.bytes(served.address)).await;
    connection.head().await.unwrap();
    let mut text = String::new();
    let mut chunks = 0;
    while let Some(chunk) = connection.chunk().await {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        chunks += 1;
        if chunks < 30 {
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
    }
    let messages = events(&text).len();
    assert_eq!(messages, 3001, "a handler that waits for room loses no progress");
}

/// A handler that does not wait for room does not fill the memory of a stream that nobody reads.
#[tokio::test]
async fn d04_an_unread_streams_queue_is_bounded() {
    let served = Served::start(fixture::odd(Limits::default().queue_messages(8), &[])).await;
    let response = served.send(modern(call_with_token(1, "chatty", json!({ "times": 100_000 }), "t"))).await;
    let messages = response.messages();
    assert_eq!(messages.len(), 9, "the queue's bound, and the answer");
    let newest: Value = serde_json::from_slice(&messages[7]).unwrap();
    assert_eq!(newest["params"]["progress"].as_f64(), Some(100_000.0));
}

/// An event may be larger than what a request may be, and stays one event.
#[tokio::test]
async fn a_large_answer_is_one_event() {
    let served = Served::start(everything_server::server()).await;
    let bytes = 6 << 20;
    let post = modern(call(1, "big", json!({ "bytes": bytes }))).header("Accept", "text/event-stream");
    let messages = served.send(post).await.messages();
    assert_eq!(messages.len(), 1);
    let answer: Value = serde_json::from_slice(&messages[0]).unwrap();
    assert_eq!(text(&answer).len(), bytes);
}

/// A body of any length that never says how long it is: reading stops at the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c074_a_body_without_end_is_not_read_to_its_end() {
    let served = Served::start(everything_server::server_with(Limits::default().message_bytes(1 << 20))).await;
    for coding in ["Transfer-Encoding: chunked", "Content-Length: 104857600"] {
        let (name, value) = coding.split_once(": ").unwrap();
        let head = Post::new(Vec::new()).header(name, value).bytes(served.address);
        let head = head.strip_suffix(b"0\r\n\r\n").unwrap_or(&head);
        let mut connection = served.connect().await;
        connection.write(head).await;
        let chunk = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b'a'; 1 << 20], b"\r\n"].concat();
        let mut written = 0;
        for _ in 0..100 {
            let taken = connection.write_what_goes(&chunk).await;
            written += taken;
            if taken < chunk.len() {
                break;
            }
        }
        assert!(written < 30 << 20, "with {coding} the server took {written} bytes of 100 MiB");
    }
}

/// Who sends the head first and waits is told at once, and sends nothing.
#[tokio::test]
async fn c074_who_asks_first_is_told_before_the_body() {
    let served = Served::start(everything_server::server_with(Limits::default().message_bytes(1000))).await;
    for (length, goes_on) in [(1001, false), (1000, true)] {
        let mut connection = served.connect().await;
        let head = Post::new(Vec::new()).header("Content-Length", length.to_string()).header("Expect", "100-continue");
        connection.write(&head.bytes(served.address)).await;
        if goes_on {
            let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
            connection.write(format!("{ping:1000}").as_bytes()).await;
        }
        let response = connection.response().await.unwrap();
        assert_eq!(response.status(), if goes_on { 200 } else { 413 });
    }
}

/// What a refused request had in its body is never taken for the next request.
#[tokio::test]
async fn a_refused_body_is_no_request() {
    let server = everything_server::server();
    let served = Served::start(server.clone()).await;
    let hidden = modern(call(1, "register", json!({ "name": "smuggled" }))).bytes(served.address);
    for refused in [
        Post::new(hidden.clone()).header("Origin", "http://evil.example"),
        Post::new(hidden.clone()).header("Content-Type", "text/plain"),
        Post::new(hidden.clone()).header("Accept", "text/html"),
        Post::to("GET /mcp", hidden.clone()),
        Post::to("POST /nowhere", hidden.clone()),
    ] {
        let mut connection = served.connect().await;
        connection.write(&refused.bytes(served.address)).await;
        assert!(connection.response().await.unwrap().status() >= 400);
    }
    let list = served.send(Post::new(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)).await;
    assert!(!list.text().contains("smuggled"));
}

/// A body may come in as many pieces as it likes.
#[tokio::test]
async fn a_body_may_come_byte_by_byte() {
    let served = Served::start(everything_server::server()).await;
    let mut connection = served.connect().await;
    for byte in modern(call(1, "echo", json!({ "text": "€😀" }))).bytes(served.address) {
        connection.write(&[byte]).await;
    }
    assert_eq!(text(&connection.response().await.unwrap().json()), "€😀");
}
