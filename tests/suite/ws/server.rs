//! The server's side: guards, frames, ends.

use std::time::Duration;

use mcp_core::Limits;
use serde_json::json;

use super::*;
use crate::server::{call, gauge, ping, until};

#[tokio::test]
async fn http_and_websocket_share_one_endpoint() {
    let served = Served::start(everything_server::server()).await;
    let mut peer = served.open().await;
    peer.say(call(1, "add", json!({ "a": 2, "b": 5 }))).await;
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "7");
    for (path, changed, status) in [
        // What is no upgrade is for the routes behind.
        ("/mcp", ("Upgrade", "h2c"), "405"),
        ("/mcp", ("Sec-WebSocket-Version", "8"), "405"),
        ("/mcp", ("Sec-WebSocket-Key", "short"), "405"),
        ("/other", ("X-Nothing", "at all"), "404"),
    ] {
        let (head, _peer) = served.upgrade(path, &[changed]).await;
        assert!(head[0].contains(status), "{path} {changed:?}: {head:?}");
    }
}

#[tokio::test]
async fn a_server_for_websockets_alone_finds_nothing_else() {
    let served = Served::alone(everything_server::server()).await;
    let mut peer = served.open().await;
    peer.say(ping(1)).await;
    assert_eq!(peer.hear().await, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    for (path, changed) in [("/", ("X-Nothing", "at all")), ("/mcp", ("Upgrade", "h2c"))] {
        let (head, _peer) = served.upgrade(path, &[changed]).await;
        assert!(head[0].contains("404"), "{head:?}");
    }
}

/// A page on the open web must not reach a server on the visitor's machine, here as little as over HTTP.
#[tokio::test]
async fn c108_hosts_and_origins_are_checked_before_the_upgrade() {
    let served = Served::start(everything_server::server()).await;
    for (changed, status) in [
        (("Origin", "http://localhost:3000"), "101"),
        (("Origin", "https://evil.example"), "403"),
        (("Origin", "null"), "403"),
        (("Host", "evil.example"), "403"),
        (("Host", "127.0.0.1.evil.example"), "403"),
        (("Host", "localhost:1"), "101"),
    ] {
        let (head, mut peer) = served.upgrade("/mcp", &[changed]).await;
        assert!(head[0].contains(status), "{changed:?}: {head:?}");
        if status == "403" {
            let length: usize = header(&head, "content-length").unwrap().parse().unwrap();
            let body: Value = serde_json::from_slice(&peer.exactly(length).await.unwrap()).unwrap();
            assert_eq!((&body["id"], &body["error"]["code"]), (&Value::Null, &json!(-32600)), "{body}");
            assert!(body["error"]["message"].as_str().unwrap().contains(changed.1), "{body}");
        }
    }
}

/// A token that a browser passes as a subprotocol is neither picked nor told.
#[tokio::test]
async fn c107_c108_only_our_own_subprotocol_is_ever_echoed() {
    let served = Served::start(everything_server::server()).await;
    for (offered, echoed) in
        [("mcp", Some("mcp")), ("foo, mcp", Some("mcp")), ("mcp, mcp.auth.TOKEN", Some("mcp")), ("TOKEN", None)]
    {
        let (head, _peer) = served.upgrade("/mcp", &[("Sec-WebSocket-Protocol", offered)]).await;
        assert!(head[0].contains("101"), "{head:?}");
        assert_eq!(header(&head, "sec-websocket-protocol"), echoed, "{offered}");
        assert!(!head.concat().contains("TOKEN"), "{head:?}");
    }
    let (head, _peer) = served.upgrade("/mcp", &[]).await;
    assert_eq!(header(&head, "sec-websocket-protocol"), None);
}

#[tokio::test]
async fn c111_a_message_may_come_in_pieces_with_pings_between() {
    let served = Served::start(everything_server::server()).await;
    let mut peer = served.open().await;
    let text = call(1, "echo", json!({ "text": "größe" }));
    // One cut goes through a character.
    let middle = text.find('ö').unwrap() + 1;
    peer.send(false, TEXT, &text.as_bytes()[..middle]).await;
    peer.send(true, PING, b"between").await;
    assert_eq!(peer.next().await.unwrap(), Frame { opcode: PONG, payload: b"between".to_vec() });
    peer.send(false, CONTINUED, b"").await;
    peer.send(true, CONTINUED, &text.as_bytes()[middle..]).await;
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "größe");
}

/// What breaks the rules of WebSocket ends the connection with the code that says so.
#[tokio::test]
async fn c111_what_is_no_websocket_is_closed_with_its_code() {
    let served = Served::start(everything_server::server_with(Limits::default().message_bytes(1000))).await;
    let ask = ping(1);
    let frames = |peer: &Peer| -> Vec<(u16, Vec<u8>)> {
        let unmasked = Peer::frame_of(false, true, TEXT, ask.as_bytes());
        let cut = |first: &[u8], opcode| [peer.frame(false, TEXT, first), peer.frame(true, opcode, b"x")].concat();
        vec![
            (1002, cut(b"{", TEXT)),
            (1002, peer.frame(true, CONTINUED, b"x")),
            (1002, peer.frame(true, 3, b"x")),
            (1002, peer.frame(false, PING, b"x")),
            (1002, peer.frame(true, PING, &[b'x'; 126])),
            (1002, peer.frame(true, 0x40 | TEXT, ask.as_bytes())),
            (1002, unmasked),
            (1003, peer.frame(true, BINARY, ask.as_bytes())),
            (1007, peer.frame(true, TEXT, b"\"\xff\"")),
            (1009, peer.frame(true, TEXT, &[b' '; 1001])),
            (1009, [peer.frame(false, TEXT, &[b' '; 600]), peer.frame(true, CONTINUED, &[b' '; 600])].concat()),
            // Nothing of what is announced need come.
            (1009, vec![0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ]
    };
    let count = frames(&served.open().await).len();
    for index in 0..count {
        let mut peer = served.open().await;
        let (code, bytes) = frames(&peer).swap_remove(index);
        peer.write(&bytes).await;
        let frame = peer.next().await.unwrap_or_else(|| panic!("no close frame for {index}"));
        assert_eq!(frame.code(), code, "{index}");
        while peer.next().await.is_some() {}
    }
    // At the limit it is served.
    let mut peer = served.open().await;
    let padding = " ".repeat(1000 - ask.len());
    peer.say(ask.clone() + &padding).await;
    assert_eq!(peer.hear().await["id"], 1);
}

/// What is a text but no message is answered, and the connection goes on.
#[tokio::test]
async fn what_is_no_message_is_told_and_the_connection_goes_on() {
    let served = Served::start(everything_server::server()).await;
    let mut peer = served.open().await;
    for (text, code) in [("", -32700), ("garbage", -32700), ("{}", -32600), ("[]", -32600), (" \n", -32700)] {
        peer.say(text).await;
        let answer = peer.hear().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(code)), "{text:?}");
    }
    // A message on several lines, with a byte order mark, is one message.
    peer.say("\u{feff}{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"ping\"}\n").await;
    assert_eq!(peer.hear().await["id"], 1);
}

/// After a close nothing can be answered any more, so nothing goes on.
#[tokio::test]
async fn a_closed_connection_ends_its_calls_at_once() {
    let server = everything_server::server();
    let served = Served::start(server.clone()).await;
    for (round, orderly) in [true, false].into_iter().enumerate() {
        let mut peer = served.open().await;
        peer.say(call(1, "sleep", json!({ "ms": 600_000 }))).await;
        until("the call runs", async || gauge(&server).await.0 == 1).await;
        if orderly {
            peer.send(true, CLOSE, 1000u16.to_be_bytes()).await;
            // The answer to it has the same code, and the server is first to close.
            peer.closed_with(1000).await;
        } else {
            drop(peer);
        }
        let start = std::time::Instant::now();
        until("the call was cancelled", async || gauge(&server).await == (0, round as u64 + 1)).await;
        assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    }
}

/// What a peer sends behind its own end, or ours, harms nobody.
#[tokio::test]
async fn a_peer_that_goes_on_after_the_end_is_not_waited_for() {
    let served = Served::start(everything_server::server()).await;
    let mut peer = served.open().await;
    peer.send(true, BINARY, b"x").await;
    assert_eq!(peer.next().await.unwrap().code(), 1003);
    let start = std::time::Instant::now();
    // It neither closes nor stops; the server does, within its second.
    while start.elapsed() < PATIENCE {
        let noise = peer.frame(true, TEXT, &[b' '; 1000]);
        if peer.stream.write_all(&noise).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the server holds a connection that it has closed");
}

/// The resident memory of this process, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// A peer that pings and reads no answer is not read from any more, instead of being answered into memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_that_nobody_reads_the_answers_of_fill_no_memory() {
    const MOST: usize = 64 << 20;
    let served = Served::start(everything_server::server()).await;
    let mut peer = served.open().await;
    let ping = peer.frame(true, PING, &[b'x'; 125]).repeat(1000);
    let (before, mut written) = (resident(), 0);
    // It takes what the system's own buffers hold, and then no more.
    while let Ok(outcome) = timeout(Duration::from_secs(2), peer.stream.write(&ping[written % ping.len()..])).await {
        written += outcome.unwrap();
        assert!(written < 4 * MOST, "all of it is read");
    }
    assert!(resident().saturating_sub(before) < MOST / 1024, "{written} bytes of pings are kept");
    // Once the answers are read, the connection goes on.
    let fence = ping_frame(&peer);
    let (mut reader, mut writer) = peer.stream.split();
    let reading = async {
        let mut all = Vec::new();
        while !all.windows(9).any(|window| window == b"\"fence\",\"") {
            let mut part = vec![0; 64 << 10];
            let read = soon("reading", reader.read(&mut part)).await.unwrap();
            assert!(read > 0);
            all = [&all[all.len().saturating_sub(100)..], &part[..read]].concat();
        }
    };
    // What was begun has to be ended before anything else can be said.
    let rest = (ping.len() - written % ping.len()) % ping.len();
    let tail = [&ping[ping.len() - rest..], &fence[..]].concat();
    let (sent, ()) = tokio::join!(writer.write_all(&tail), reading);
    sent.unwrap();
}

fn ping_frame(peer: &Peer) -> Vec<u8> {
    peer.frame(true, TEXT, ping("fence").as_bytes())
}

/// Over HTTP a connection without a request is given up after a while. A socket is no such connection.
#[tokio::test]
async fn a_quiet_socket_is_no_connection_without_a_request() {
    let patience = Duration::from_millis(200);
    let served = Served::start(everything_server::server_with(Limits::default().stall_timeout(patience))).await;
    let mut peer = served.open().await;
    tokio::time::sleep(patience * 4).await;
    peer.say(ping(1)).await;
    assert_eq!(peer.hear().await["id"], 1);
}
