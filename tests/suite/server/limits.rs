//! Bounds on memory where a peer does not read, and bounds at the edge of sense.

use std::time::Duration;

use mcp_core::{FrameSink as _, FrameSource as _, Limits, Wire as _, memory, server::serve};
use mcp_jsonrpc::Frame;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::{call, call_with_token, cancel, gauge, ping, text, until};
use crate::{
    duplex::Peer,
    fixture,
    http::{Post, Served},
};

/// What the server wrote in answer to these messages, none of which was read before all of it was there.
async fn unread(limits: Limits, messages: &[String]) -> Vec<Value> {
    let (here, there) = memory();
    let serving = tokio::spawn(serve(fixture::odd(limits, &[]), there));
    let (mut source, mut sink) = here.split();
    for message in messages {
        sink.send(&mut vec![message.clone().into()]).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    sink.close().await.unwrap();
    let mut heard = Vec::new();
    while let Some(Frame::Line(frame)) = source.next().await.unwrap() {
        heard.push(serde_json::from_slice(&frame).unwrap());
    }
    serving.await.unwrap().unwrap();
    heard
}

/// A handler that tells of progress faster than anybody reads keeps what is queued to the bound, and the newest of it.
#[tokio::test(start_paused = true)]
async fn progress_that_nobody_reads_is_bounded_by_number() {
    let call = call_with_token(1, "chatty", json!({ "times": 100_000 }), "t");
    let heard = unread(Limits::default().queue_messages(8), &[call]).await;
    let (answer, progress) = heard.split_last().unwrap();
    assert_eq!(text(answer), "100000");
    assert_eq!(progress.len(), 8, "the queue's bound");
    let told: Vec<f64> = progress.iter().map(|told| told["params"]["progress"].as_f64().unwrap()).collect();
    assert!(told.is_sorted_by(|earlier, later| earlier < later), "{told:?}");
    assert_eq!(told.last(), Some(&100_000.0), "the newest replaces an older one");
}

/// The same by bytes.
#[tokio::test(start_paused = true)]
async fn progress_that_nobody_reads_is_bounded_by_bytes() {
    let call = call_with_token(1, "chatty", json!({ "times": 100_000 }), "t");
    let heard = unread(Limits::default().queue_bytes(1000), &[call]).await;
    let (answer, progress) = heard.split_last().unwrap();
    assert_eq!(text(answer), "100000");
    let bytes: usize = progress.iter().map(|told| told.to_string().len()).sum();
    assert!((500..=1300).contains(&bytes), "{bytes} bytes of progress were queued");
    assert_eq!(progress.last().unwrap()["params"]["progress"].as_f64(), Some(100_000.0));
}

/// What is queued when a cancellation is read is dropped with the call; only what the wire has already may still come.
#[tokio::test(start_paused = true)]
async fn what_was_queued_is_dropped_with_its_call() {
    let server = everything_server::server_with(Limits::default().queue_messages(100));
    let (here, there) = memory();
    let serving = tokio::spawn(serve(server, there));
    let (mut source, mut sink) = here.split();
    sink.send(&mut vec![call_with_token(1, "count", json!({ "n": 100_000 }), "t").into()]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    sink.send(&mut vec![cancel(1).into(), ping(2).into()]).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    sink.close().await.unwrap();
    let mut heard: Vec<Value> = Vec::new();
    while let Some(Frame::Line(frame)) = source.next().await.unwrap() {
        heard.push(serde_json::from_slice(&frame).unwrap());
    }
    serving.await.unwrap().unwrap();
    let (last, progress) = heard.split_last().unwrap();
    assert_eq!(last["id"], 2);
    // One write's worth was on the wire, and another one was queued.
    assert!(progress.len() < 150, "{} of its messages came behind the cancellation", progress.len());
}

/// A handler that waits for room is told all of its progress to a reader who is slow but reads.
#[tokio::test(start_paused = true)]
async fn progress_that_is_waited_for_arrives_whole() {
    let server = everything_server::server_with(Limits::default().queue_messages(4));
    let (here, there) = memory();
    let serving = tokio::spawn(serve(server, there));
    let (mut source, mut sink) = here.split();
    sink.send(&mut vec![call_with_token(1, "count", json!({ "n": 300 }), "t").into()]).await.unwrap();
    for step in 1..=300 {
        if step % 50 == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let Frame::Line(frame) = source.next().await.unwrap().unwrap() else { panic!("a frame") };
        let told: Value = serde_json::from_slice(&frame).unwrap();
        assert_eq!(told["params"]["progress"].as_f64(), Some(f64::from(step)));
    }
    source.next().await.unwrap().unwrap();
    sink.close().await.unwrap();
    serving.await.unwrap().unwrap();
}

/// Who reads nothing is not read from either, or answers pile up; when he reads again, nothing was lost.
#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_not_read_from() {
    let (here, there) = memory();
    let serving = tokio::spawn(serve(everything_server::server(), there));
    let (mut source, mut sink) = here.split();
    let mut taken = 0_u64;
    while timeout(Duration::from_secs(1), sink.send(&mut vec![ping(taken).into()])).await.is_ok() {
        taken += 1;
        assert!(taken < 2000, "the server reads on and on though nobody reads its answers");
    }
    // The queue's 256, and what both directions of the wire hold.
    assert!((256..=256 + 3 * 64 + 8).contains(&taken), "{taken} requests were taken");
    let mut answered = 0;
    while answered < taken {
        let Frame::Line(frame) = source.next().await.unwrap().unwrap() else { panic!("a frame") };
        assert_eq!(serde_json::from_slice::<Value>(&frame).unwrap()["id"], answered);
        answered += 1;
    }
    sink.close().await.unwrap();
    while source.next().await.unwrap().is_some() {}
    serving.await.unwrap().unwrap();
}

/// The same by bytes: large answers stop the reading sooner.
#[tokio::test(start_paused = true)]
async fn large_answers_that_nobody_reads_are_bounded() {
    let (here, there) = memory();
    let server = everything_server::server_with(Limits::default().queue_bytes(256 << 10));
    let _serving = tokio::spawn(serve(server, there));
    let (_source, mut sink) = here.split();
    let mut taken = 0;
    while timeout(Duration::from_secs(1), sink.send(&mut vec![call(taken, "big", json!({ "bytes": 64 << 10 })).into()]))
        .await
        .is_ok()
    {
        taken += 1;
        assert!(taken < 1000, "the server answers on and on though nobody reads");
    }
    // The wire holds 64 each way whatever their size; the queue holds 256 KiB, not 256 of these.
    assert!(taken <= 64 + 64 + 8 + 8 + 2, "{taken} requests of 64 KiB each were answered");
}

/// Who reads nothing at all is given up after a while, or a host that hangs holds a server and its calls for ever.
#[tokio::test(start_paused = true)]
async fn a_peer_that_never_reads_is_given_up() {
    let server =
        everything_server::server_with(Limits::default().stall_timeout(Duration::from_secs(5)).queue_messages(4));
    let (here, there) = memory();
    let serving = tokio::spawn(serve(server.clone(), there));
    let (_source, mut sink) = here.split();
    sink.send(&mut vec![call(0, "sleep", json!({ "ms": 3_600_000 })).into()]).await.unwrap();
    for id in 1..1000 {
        if timeout(Duration::from_secs(1), sink.send(&mut vec![ping(id).into()])).await.is_err() {
            break;
        }
    }
    let outcome = timeout(Duration::from_secs(60), serving).await.expect("the connection ends").unwrap();
    assert!(outcome.is_err(), "why it ended is told");
    assert_eq!(gauge(&server).await, (0, 1), "its calls end with it");
}

/// A peer that leaves everything unread for a while, but asks for little, is only waiting for something.
#[tokio::test(start_paused = true)]
async fn a_peer_that_asks_for_little_may_leave_it_unread() {
    let (here, there) = memory();
    let serving = tokio::spawn(serve(everything_server::server(), there));
    let (mut source, mut sink) = here.split();
    for id in 0..100 {
        sink.send(&mut vec![ping(id).into()]).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    sink.close().await.unwrap();
    let mut answered = 0;
    while source.next().await.unwrap().is_some() {
        answered += 1;
    }
    assert_eq!(answered, 100);
    serving.await.unwrap().unwrap();
}

/// Slow is not stalled: as long as something is read now and then, nobody is given up.
#[tokio::test(start_paused = true)]
async fn a_slow_peer_is_not_given_up() {
    let limits = Limits::default().stall_timeout(Duration::from_secs(5)).queue_messages(4);
    let (here, there) = memory();
    let serving = tokio::spawn(serve(everything_server::server_with(limits), there));
    let (mut source, mut sink) = here.split();
    let asking = tokio::spawn(async move {
        for id in 0..300 {
            sink.send(&mut vec![ping(id).into()]).await.unwrap();
        }
        sink
    });
    for answered in 0..300 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let Frame::Line(frame) = source.next().await.unwrap().expect("the server goes on") else { panic!("a frame") };
        assert_eq!(serde_json::from_slice::<Value>(&frame).unwrap()["id"], answered);
    }
    asking.await.unwrap().close().await.unwrap();
    assert!(source.next().await.unwrap().is_none());
    serving.await.unwrap().unwrap();
}

/// The same within one large answer, of which a byte stream takes a little at a time.
#[tokio::test(start_paused = true)]
async fn a_slow_reader_of_one_large_answer_is_not_given_up() {
    let limits = Limits::default().stall_timeout(Duration::from_secs(5)).queue_messages(4);
    let (mut here, there) = tokio::io::duplex(1000);
    let (reader, writer) = tokio::io::split(there);
    let serving = tokio::spawn(mcp_stdio::serve_lines(everything_server::server_with(limits), reader, writer));
    here.write_all(format!("{}\n", call(1, "big", json!({ "bytes": 30_000 }))).as_bytes()).await.unwrap();
    for id in 2..=10 {
        here.write_all(format!("{}\n", ping(id)).as_bytes()).await.unwrap();
    }
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < 10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut part = [0; 1000];
        let read = here.read(&mut part).await.unwrap();
        assert!(read > 0, "the server gave up a reader that had read {} bytes, 1000 each second", text.len());
        text.extend_from_slice(&part[..read]);
    }
    here.shutdown().await.unwrap();
    serving.await.unwrap().unwrap();
}

/// A bound of nothing is odd, but a server must say so, or answer, and not fall silent.
#[tokio::test(start_paused = true)]
async fn a_bound_of_zero_is_no_hang() {
    let mut silent = Vec::new();
    for (name, limits) in [
        ("in_flight", Limits::default().in_flight(0)),
        ("waiting", Limits::default().waiting(0)),
        ("queue_messages", Limits::default().queue_messages(0)),
        ("queue_bytes", Limits::default().queue_bytes(0)),
        ("page_size", Limits::default().page_size(0)),
        ("batch", Limits::default().batch(0)),
        ("handler_timeout", Limits::default().handler_timeout(Some(Duration::ZERO))),
        ("cursor_bytes", Limits::default().cursor_bytes(0)),
        ("nesting", Limits::default().nesting(0)),
        ("id_bytes", Limits::default().id_bytes(0)),
        ("stall_timeout", Limits::default().stall_timeout(Duration::ZERO)),
        ("shutdown_grace", Limits::default().shutdown_grace(Duration::ZERO)),
        ("message_bytes", Limits::default().message_bytes(0)),
    ] {
        let (here, there) = memory();
        tokio::spawn(serve(everything_server::server_with(limits), there));
        let (mut source, mut sink) = here.split();
        for id in 1..=2 {
            let asked = call_with_token(id, "count", json!({ "n": 3 }), "t");
            let answer = async {
                sink.send(&mut vec![asked.into()]).await.unwrap();
                loop {
                    let Frame::Line(frame) = source.next().await.unwrap().unwrap() else { panic!("a frame") };
                    let message: Value = serde_json::from_slice(&frame).unwrap();
                    if message.get("method").is_none() {
                        return message;
                    }
                }
            };
            if timeout(Duration::from_secs(3600), answer).await.is_err() {
                silent.push(format!("`{name}` at request {id}"));
                break;
            }
        }
    }
    assert!(silent.is_empty(), "never answered with a bound of zero: {}", silent.join(", "));
}

/// A page of nothing that says there is more, or says nothing of what there is, hides every tool.
#[tokio::test(start_paused = true)]
async fn a_page_of_zero_hides_no_tools() {
    let mut peer = Peer::memory(everything_server::server_with(Limits::default().page_size(0)));
    let (mut tools, mut cursor) = (0, Value::Null);
    for id in 0..60 {
        let params = json!({ "cursor": cursor, "_meta": super::modern_meta() });
        peer.say(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params }).to_string()).await;
        let page = peer.hear().await;
        tools += page["result"]["tools"].as_array().unwrap().len();
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(tools, everything_server::server().tools().len());
}

/// Keep-alives without a pause between them would be a flood.
#[tokio::test]
async fn a_quiet_of_zero_is_no_flood() {
    let served = Served::start(everything_server::server_with(Limits::default().keep_alive(Duration::ZERO))).await;
    let response = served.send(Post::speaking(mcp_core::Revision::LATEST, call(1, "sleep", json!({ "ms": 50 })))).await;
    assert_eq!(response.messages().len(), 1);
    assert!(response.body.len() < 100_000, "{} bytes within 50 ms", response.body.len());
}

/// Every default that is documented, through a server that has them: a request at the edge is served, one beyond is not.
#[tokio::test]
async fn the_defaults_of_size_are_those_that_are_documented() {
    let served = Served::start(everything_server::server()).await;
    let text = |bytes: usize| {
        let frame = call(1, "echo", json!({ "text": "" }));
        let more = bytes - frame.len();
        frame.replace(r#""text":"""#, &format!(r#""text":"{}""#, "x".repeat(more)))
    };
    for (bytes, status) in [(4 << 20, 200), ((4 << 20) + 1, 413)] {
        let body = text(bytes);
        assert_eq!(body.len(), bytes);
        let response = served.send(Post::speaking(mcp_core::Revision::LATEST, body)).await;
        assert_eq!(response.status(), status, "{bytes} bytes");
    }
}

/// What waits is bounded by its bytes too, also where most of them are not the request's.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_are_bounded_by_bytes() {
    let limits = Limits::default().in_flight(1).queue_bytes(100_000);
    let mut peer = Peer::memory(everything_server::server_with(limits));
    peer.say(&call(0, "sleep", json!({ "ms": 1000 }))).await;
    for id in 1..=5 {
        peer.say(&call(id, "echo", json!({ "text": "x".repeat(30_000) }))).await;
    }
    let refused = peer.hear().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32603)), "{refused}");
    for id in 0..=4 {
        let answer = peer.hear().await;
        assert_eq!(answer["id"], id);
        assert!(answer.get("result").is_some());
    }
    // There is room again.
    peer.say(&call(6, "echo", json!({ "text": "x" }))).await;
    assert_eq!(super::text(&peer.hear().await), "x");
}

/// The usual way to write that there is no limit.
#[tokio::test(start_paused = true)]
async fn no_duration_is_too_long() {
    let limits = Limits::default()
        .handler_timeout(Some(Duration::MAX))
        .keep_alive(Duration::MAX)
        .stall_timeout(Duration::MAX)
        .shutdown_grace(Duration::MAX);
    let mut peer = Peer::memory(everything_server::server_with(limits.clone()));
    peer.say(&call(1, "sleep", json!({ "ms": 1000 }))).await;
    peer.end_input().await.unwrap();
    assert_eq!(peer.hear().await["id"], 1);
    peer.end().await.unwrap();
    let served = Served::start(everything_server::server_with(limits)).await;
    let response = served.send(Post::speaking(mcp_core::Revision::LATEST, call(1, "sleep", json!({ "ms": 20 })))).await;
    assert_eq!(response.status(), 200);
}

/// A head that announces too much is refused without waiting for what it announces.
#[tokio::test]
async fn d08_an_announced_excess_is_refused_at_once() {
    let served = Served::start(everything_server::server()).await;
    let post = Post::new("").header("Content-Length", "100000000");
    let mut connection = served.connect().await;
    connection.write_what_goes(&post.bytes(served.address)).await;
    assert_eq!(connection.response_to(&post).await.unwrap().status(), 413);
}

/// A body that does not come does not hold the server's memory for ever.
#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let limits = Limits::default().stall_timeout(Duration::from_millis(200));
    let served = Served::start(everything_server::server_with(limits)).await;
    let post = Post::new("{\"jsonrpc\"").header("Content-Length", "1000");
    let mut connection = served.connect().await;
    connection.write_what_goes(&post.bytes(served.address)).await;
    assert_eq!(connection.response_to(&post).await.unwrap().status(), 408);
}

/// Sockets run out as memory does. A connection that is served, however quietly, is not meant.
#[tokio::test]
async fn a_connection_on_which_no_request_comes_whole_is_given_up_and_one_that_is_served_is_not() {
    let patience = Duration::from_secs(1);
    let limits = Limits::default().stall_timeout(patience);
    let served = Served::start(everything_server::server_with(limits)).await;
    let quiet = Post::speaking(mcp_core::Revision::LATEST, call(1, "sleep", json!({ "ms": 2500 })));
    let quiet = quiet.header("Accept", "application/json");
    let mut calling = served.connect().await;
    calling.write(&quiet.bytes(served.address)).await;
    for beginning in [
        "",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-",
        "PRI * HTTP/2.0\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let mut connection = served.connect().await;
        connection.write(beginning.as_bytes()).await;
        connection.rest().await;
    }
    let mut dripping = served.connect().await;
    dripping.write(b"POST /mcp HTTP/1.1\r\nX-").await;
    until("it is given up", async || {
        tokio::time::sleep(patience / 20).await;
        dripping.write_what_goes(b"x").await == 0
    })
    .await;
    assert_eq!(text(&calling.response_to(&quiet).await.unwrap().json()), "slept 2500 ms");
}
