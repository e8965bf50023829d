//! Visitors that do not behave: what they send is broken, cut off, too long or never read.

use std::{collections::BTreeSet, io, sync::Arc, time::Duration};

use mcp_suite::Revision;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::sleep,
};
use tokio_tungstenite::tungstenite::{self, Message};

use super::{
    Field,
    lines::Lines,
    post::{Request, Session, modern},
    socket::{Heard, Socket},
    think,
};
use crate::tally::Outcome;

/// More than a message may have.
const TOO_LONG: usize = 2 << 20;

pub(super) async fn over_http(field: Arc<Field>) {
    const AT: &str = "HTTP by hand";
    while field.goes_on() {
        match fastrand::u32(..12) {
            0 => try_it(&field, "malformed messages", AT, malformed(&field)).await,
            1 => try_it(&field, "half requests", AT, half_request(&field)).await,
            2 => try_it(&field, "messages that are too long", AT, too_long(&field)).await,
            3 => try_it(&field, "resets", AT, reset(&field)).await,
            4 => try_it(&field, "streams that nobody reads", AT, unread(&field)).await,
            5 => try_it(&field, "slow readers", AT, slow(&field)).await,
            6 => try_it(&field, "sessions that are left", AT, left(&field)).await,
            7 | 8 => try_it(&field, "streams that are resumed", AT, resumed(&field)).await,
            9 => try_it(&field, "sessions that are ended", AT, ended(&field)).await,
            10 => try_it(&field, "batches", AT, batch(&field)).await,
            _ => try_it(&field, "subscriptions that are left", AT, listener(&field)).await,
        }
        think().await;
    }
}

pub(super) async fn over_lines(field: Arc<Field>) {
    const AT: &str = "a Unix socket by hand";
    while field.goes_on() {
        match fastrand::u32(..5) {
            0 => try_it(&field, "malformed messages", AT, malformed_line(&field)).await,
            1 => try_it(&field, "messages that are too long", AT, long_line(&field)).await,
            2 => try_it(&field, "half requests", AT, half_line(&field)).await,
            3 => try_it(&field, "slow readers", AT, late_reader(&field)).await,
            _ => try_it(&field, "streams that nobody reads", AT, no_reader(&field)).await,
        }
        think().await;
    }
}

pub(super) async fn over_websocket(field: Arc<Field>) {
    const AT: &str = "a WebSocket by hand";
    while field.goes_on() {
        match fastrand::u32(..5) {
            0 => try_socket(&field, "malformed messages", AT, binary(&field)).await,
            1 => try_socket(&field, "malformed messages", AT, malformed_text(&field)).await,
            2 => try_socket(&field, "messages that are too long", AT, long_text(&field)).await,
            3 => try_socket(&field, "resets", AT, cut_socket(&field)).await,
            _ => try_it(&field, "half requests", AT, half_upgrade(&field)).await,
        }
        think().await;
    }
}

async fn try_it(field: &Field, kind: &'static str, at: &str, attempt: impl Future<Output = io::Result<Outcome>>) {
    let attempt = async { attempt.await.unwrap_or_else(|error| Outcome::Wrong(error.to_string())) };
    field.attempt(kind, at, attempt).await;
}

async fn try_socket(
    field: &Field,
    kind: &'static str,
    at: &str,
    attempt: impl Future<Output = Result<Outcome, tungstenite::Error>>,
) {
    let attempt = async { attempt.await.unwrap_or_else(|error| Outcome::Wrong(error.to_string())) };
    field.attempt(kind, at, attempt).await;
}

/// What is refused fails as it must.
fn refused(is_refused: bool, about: impl std::fmt::Debug) -> Outcome {
    match Outcome::so(is_refused, about) {
        Outcome::Answered => Outcome::Failed,
        wrong => wrong,
    }
}

/// The server ends a connection, in order or not.
async fn is_ended(stream: &mut TcpStream) -> Outcome {
    let mut rest = vec![0; 64 << 10];
    while let Ok(1..) = stream.read(&mut rest).await {}
    Outcome::Failed
}

// Over HTTP.

async fn malformed(field: &Field) -> io::Result<Outcome> {
    let bodies = ["", "{", "nonsense", r#"{"jsonrpc":"2.0","id":1,"#, "\u{0}", r#"{"jsonrpc":"2.0","id":{}}"#, "[[[["];
    let body = bodies[fastrand::usize(..bodies.len())];
    let answer = Request::new("POST /mcp", body).answer(field.address).await?;
    Ok(refused(answer.status() == 400 && answer.has(r#""error""#), (body, answer)))
}

/// A part of a request; sometimes the server has to find out that no more comes.
async fn half_request(field: &Field) -> io::Result<Outcome> {
    let whole = Request::call("add", &json!({ "a": 1, "b": 2 })).bytes();
    let mut stream = TcpStream::connect(field.address).await?;
    stream.write_all(&whole[..fastrand::usize(1..whole.len())]).await?;
    if fastrand::u8(..8) > 0 {
        return Ok(Outcome::Cancelled);
    }
    Ok(is_ended(&mut stream).await)
}

async fn too_long(field: &Field) -> io::Result<Outcome> {
    let request = Request::call("echo", &json!({ "text": "x".repeat(TOO_LONG) }));
    let mut stream = TcpStream::connect(field.address).await?;
    // It may answer before it has all of it.
    let written = stream.write_all(&request.bytes()).await;
    let mut start = [0; 12];
    match stream.read_exact(&mut start).await {
        Ok(_) => Ok(refused(&start == b"HTTP/1.1 413", String::from_utf8_lossy(&start))),
        // What is still on its way when the server closes resets what it has said.
        Err(error) if written.is_err() || error.kind() == io::ErrorKind::ConnectionReset => Ok(Outcome::Failed),
        Err(error) => Err(error),
    }
}

/// Leaves in the middle of a stream, with something unread.
async fn reset(field: &Field) -> io::Result<Outcome> {
    let mut stream = Request::call("count", &json!({ "n": 100_000, "ms": 1 })).send(field.address).await?;
    stream.read_u8().await?;
    sleep(Duration::from_millis(fastrand::u64(..50))).await;
    Ok(Outcome::Cancelled)
}

async fn unread(field: &Field) -> io::Result<Outcome> {
    let mut stream = Request::call("count", &json!({ "n": 10_000_000 })).send(field.address).await?;
    // Until the server is sure to have given it up.
    sleep(crate::server::limits().stall_timeout * 2).await;
    Ok(is_ended(&mut stream).await)
}

async fn slow(field: &Field) -> io::Result<Outcome> {
    let mut stream = Request::call("big", &json!({ "bytes": 500_000 })).send(field.address).await?;
    let (mut text, mut part) = (Vec::new(), [0; 8 << 10]);
    loop {
        match stream.read(&mut part).await? {
            0 => break,
            read => text.extend_from_slice(&part[..read]),
        }
        sleep(Duration::from_millis(2)).await;
    }
    let marks = text.iter().filter(|byte| **byte == b'x').count();
    // The word `text` has one of its own, wherever it stands.
    Ok(Outcome::so((500_000..500_020).contains(&marks), marks))
}

async fn session(field: &Field) -> io::Result<Session> {
    Session::begin(field.address, Revision::LATEST_LEGACY).await
}

fn legacy_call(tool: &str, arguments: &Value) -> Request {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "steps" } });
    Request::post(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }))
}

/// With a stream that was opened, and calls that still run.
async fn left(field: &Field) -> io::Result<Outcome> {
    let id = session(field).await?;
    let mut stream = Request::new("GET /mcp", "").of(&id).send(field.address).await?;
    stream.read_u8().await?;
    let tool = ["hang", "test_reconnection", "question"][fastrand::usize(..3)];
    let _call = legacy_call(tool, &json!({})).of(&id).send(field.address).await?;
    sleep(Duration::from_millis(fastrand::u64(..500))).await;
    Ok(Outcome::Cancelled)
}

/// A call whose stream is lost, and gone on with by its last event.
async fn resumed(field: &Field) -> io::Result<Outcome> {
    let id = session(field).await?;
    let mut stream = legacy_call("count", &json!({ "n": 20, "ms": 5 })).of(&id).send(field.address).await?;
    let (mut heard, mut part) = (String::new(), [0; 512]);
    while !heard.contains("step 2 of") {
        match stream.read(&mut part).await? {
            0 => return Ok(Outcome::Wrong(format!("it ended: {heard}"))),
            read => heard += &String::from_utf8_lossy(&part[..read]),
        }
    }
    drop(stream);
    let last = heard.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap_or_default();
    let again = Request::new("GET /mcp", "").of(&id).header("Last-Event-ID", last);
    let answer = again.answer(field.address).await?;
    let is_whole = answer.has("step 20 of 20") && answer.has(r#""id":7"#) && answer.has(r#""result""#);
    // What was heard before the last id is not told again.
    Ok(Outcome::so(is_whole && !answer.has("step 1 of"), answer))
}

async fn ended(field: &Field) -> io::Result<Outcome> {
    let id = session(field).await?;
    let mut call = legacy_call("hang", &json!({})).of(&id).send(field.address).await?;
    call.read_u8().await?;
    let deleted = Request::new("DELETE /mcp", "").of(&id).answer(field.address).await?;
    let after = legacy_call("add", &json!({ "a": 1, "b": 1 })).of(&id).answer(field.address).await?;
    is_ended(&mut call).await;
    Ok(Outcome::so((200..300).contains(&deleted.status()) && after.status() == 404, (deleted, after)))
}

async fn batch(field: &Field) -> io::Result<Outcome> {
    let session = Session::begin(field.address, Revision::V2025_03_26).await?;
    let ping = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let batch = json!([ping("one"), { "id": {} }, ping("two"), ping("three")]);
    let answer = Request::post(&batch).of(&session).answer(field.address).await?;
    let has_all = ["one", "two", "three"].iter().all(|id| answer.has(&format!(r#""id":"{id}""#)));
    Ok(Outcome::so(has_all && answer.has("-32600"), answer))
}

async fn listener(field: &Field) -> io::Result<Outcome> {
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut stream = Request::modern("subscriptions/listen", filter).send(field.address).await?;
    let (mut heard, mut part) = (String::new(), [0; 512]);
    while !heard.contains("acknowledged") {
        match stream.read(&mut part).await? {
            0 => return Ok(Outcome::Wrong(heard)),
            read => heard += &String::from_utf8_lossy(&part[..read]),
        }
    }
    sleep(Duration::from_millis(fastrand::u64(..3000))).await;
    Ok(Outcome::Cancelled)
}

// In lines.

const PING: &str = r#"{"jsonrpc":"2.0","id":"still there","method":"ping"}"#;

/// The connection goes on.
async fn goes_on(lines: &mut Lines) -> io::Result<bool> {
    lines.say(PING).await?;
    let answer = lines.hear().await?;
    Ok(answer["id"] == "still there" && answer.get("result").is_some())
}

async fn malformed_line(field: &Field) -> io::Result<Outcome> {
    let mut lines = Lines::connect(&field.socket).await?;
    let broken = ["{", r#"{"jsonrpc":"2.0","id":1,"method":"#, "[1", "{\u{0}}"];
    lines.say(broken[fastrand::usize(..broken.len())]).await?;
    let answer = lines.hear().await?;
    Ok(refused(answer["error"]["code"] == -32700 && goes_on(&mut lines).await?, answer))
}

async fn long_line(field: &Field) -> io::Result<Outcome> {
    let mut lines = Lines::connect(&field.socket).await?;
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "x", "params": { "text": "x".repeat(TOO_LONG) } });
    lines.say(&call.to_string()).await?;
    let answer = lines.hear().await?;
    Ok(refused(answer["error"]["code"] == -32700 && goes_on(&mut lines).await?, answer))
}

async fn half_line(field: &Field) -> io::Result<Outcome> {
    let mut lines = Lines::connect(&field.socket).await?;
    lines.writer.write_all(&PING.as_bytes()[..fastrand::usize(1..PING.len())]).await?;
    if fastrand::u8(..8) > 0 {
        return Ok(Outcome::Cancelled);
    }
    while lines.hear().await.is_ok_and(|heard| !heard.is_null()) {}
    Ok(Outcome::Failed)
}

/// So many calls at once.
async fn flood(lines: &mut Lines, calls: u32) -> io::Result<()> {
    for id in 0..calls {
        let mut call = modern("tools/call", json!({ "name": "big", "arguments": { "bytes": 50_000 } }));
        call["id"] = id.into();
        lines.say(&call.to_string()).await?;
    }
    Ok(())
}

/// Their answers are read late, and each is there once.
async fn late_reader(field: &Field) -> io::Result<Outcome> {
    let mut lines = Lines::connect(&field.socket).await?;
    flood(&mut lines, 100).await?;
    sleep(Duration::from_millis(500)).await;
    let mut ids = BTreeSet::new();
    for _ in 0..100 {
        let answer = lines.hear().await?;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        if text.len() != 50_000 || !ids.insert(answer["id"].as_i64()) {
            return Ok(Outcome::so(false, answer));
        }
    }
    Ok(Outcome::so(goes_on(&mut lines).await?, "it does not go on"))
}

async fn no_reader(field: &Field) -> io::Result<Outcome> {
    let mut lines = Lines::connect(&field.socket).await?;
    // So much is over the bounds, and the server may end it before all of it is sent.
    let _ = flood(&mut lines, 300).await;
    sleep(crate::server::limits().stall_timeout * 2).await;
    let mut heard = 0;
    while lines.hear().await.is_ok_and(|answer| !answer.is_null()) {
        heard += 1;
    }
    Ok(refused(heard < 300, heard))
}

// Over WebSocket.

async fn binary(field: &Field) -> Result<Outcome, tungstenite::Error> {
    let mut socket = Socket::connect(field.address).await?;
    socket.say(Message::binary(vec![1, 2, 3])).await?;
    let heard = socket.hear().await?;
    Ok(refused(heard == Heard::Closed(1003), heard))
}

async fn malformed_text(field: &Field) -> Result<Outcome, tungstenite::Error> {
    let mut socket = Socket::connect(field.address).await?;
    socket.say(Message::text("{")).await?;
    let refusal = socket.hear().await?;
    socket.say(Message::text(PING)).await?;
    let answer = socket.hear().await?;
    let is_refused = matches!(&refusal, Heard::Message(refusal) if refusal["error"]["code"] == -32700);
    let goes_on = matches!(&answer, Heard::Message(answer) if answer.get("result").is_some());
    Ok(refused(is_refused && goes_on, (refusal, answer)))
}

async fn long_text(field: &Field) -> Result<Outcome, tungstenite::Error> {
    let mut socket = Socket::connect(field.address).await?;
    // It may be closed before all of it is sent.
    let sent = socket.say(Message::text("x".repeat(TOO_LONG))).await;
    match socket.hear().await {
        Ok(heard) => Ok(refused(heard == Heard::Closed(1009), heard)),
        Err(tungstenite::Error::Io(_)) => Ok(Outcome::Failed),
        Err(error) => sent.and(Err(error)),
    }
}

async fn cut_socket(field: &Field) -> Result<Outcome, tungstenite::Error> {
    let mut socket = Socket::connect(field.address).await?;
    let call = modern("tools/call", json!({ "name": "count", "arguments": { "n": 100_000, "ms": 1 } }));
    socket.say(Message::text(call.to_string())).await?;
    socket.hear().await?;
    sleep(Duration::from_millis(fastrand::u64(..50))).await;
    Ok(Outcome::Cancelled)
}

async fn half_upgrade(field: &Field) -> io::Result<Outcome> {
    let whole = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\u{1}";
    let mut stream = TcpStream::connect(field.address).await?;
    stream.write_all(&whole.as_bytes()[..fastrand::usize(1..=whole.len())]).await?;
    Ok(Outcome::Cancelled)
}
