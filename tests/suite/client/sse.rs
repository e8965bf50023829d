//! Streams of events as the HTML standard has them, however they are cut.
//!
//! Specification: *Streamable HTTP, Receiving Messages*; *HTML, Server-sent events, Parsing an event stream*.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use mcp_suite::{Blame, Client, Error, ErrorKind, Limits, client::CallOptions, http::Http, implementation};
use serde_json::json;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

const RESPONSE: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"你好😀"}]}}"#;
const TEXT: &str = "你好😀";

/// A server that answers the tool of that number with the answer of that number.
async fn streaming(answers: Vec<Answer>) -> (Client, HttpPeer) {
    streaming_within(answers, Limits::default()).await
}

async fn streaming_within(answers: Vec<Answer>, limits: Limits) -> (Client, HttpPeer) {
    let server = HttpPeer::start(http::modern(move |request: &Request| {
        let index: usize = request.body["params"]["name"].as_str().unwrap().parse().unwrap();
        answers[index].clone()
    }))
    .await;
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    (soon(client).await.unwrap(), server)
}

/// Each of these streams holds just the response.
async fn all_read(streams: Vec<Answer>) {
    let said: Vec<_> = streams.iter().map(|answer| format!("{answer:?}")).collect();
    let (client, _server) = streaming(streams).await;
    for (index, said) in said.iter().enumerate() {
        let outcome = soon(client.call::<String>(&index.to_string(), ())).await;
        assert_eq!(outcome.unwrap_or_else(|error| panic!("{said}: {error}")), TEXT, "{said}");
    }
}

async fn one(stream: Answer) -> Result<String, Error> {
    let (client, _server) = streaming(vec![stream]).await;
    soon(client.call::<String>("0", ())).await
}

/// An event in each style of line ends.
fn event(end: &str) -> String {
    format!("event: message{end}data: {RESPONSE}{end}{end}")
}

#[tokio::test]
async fn c083_a_stream_may_be_cut_anywhere() {
    // Two data lines, so that a line end too many would show.
    let text = r#"{"jsonrpc":"2.0",END data: "id":ID,"result":{"content":[{"type":"text","text":"你好😀"}]}}"#;
    let stream = |end: &str, id: usize| {
        format!("event: message{end}data: {text}{end}{end}").replace("END ", end).replace("ID", &id.to_string())
    };
    let mut answers = Vec::new();
    for end in ["\n", "\r\n"] {
        let length = stream(end, 100).len();
        for at in 1..length {
            // The calls count from 1, after the probe.
            let stream = stream(end, answers.len() + 1);
            answers.push(Answer::events(stream).cut_at(at.min(length - 1)).without_end());
        }
    }
    let count = answers.len();
    let (client, _server) = streaming(answers).await;
    for index in 0..count {
        let outcome = soon(client.call::<String>(&index.to_string(), ())).await;
        assert_eq!(outcome.unwrap_or_else(|error| panic!("cut {index}: {error}")), TEXT, "cut {index}");
    }
    all_read(vec![Answer::events(event("\r\n")).cut_every(1), Answer::events(event("\n")).cut_every(1)]).await;
}

#[tokio::test]
async fn c083_a_stream_of_cr_alone_may_be_cut_anywhere() {
    let length = event("\r").replace("$id", "1").len();
    let mut answers = vec![Answer::events(event("\r")).cut_every(1).without_end()];
    answers.extend((length - 6..length).map(|at| Answer::events(event("\r")).cut_at(at).without_end()));
    all_read(answers).await;
}

#[tokio::test]
async fn c090_an_event_without_a_blank_line_is_none() {
    let limits =
        Limits::default().probe_timeout(Duration::from_millis(200)).request_timeout(Duration::from_millis(400));
    let server = HttpPeer::start(|_| {
        Answer::events(format!(
            "data: {}\n",
            RESPONSE
                .replace(r#"{"content":[{"type":"text","text":"你好😀"}]}"#, &initialized("2025-11-25").to_string())
        ))
        .without_end()
    })
    .await;
    for era in ERAS {
        let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == era);
        let client = Client::builder(implementation!()).limits(limits.clone()).revisions(revisions);
        let start = Instant::now();
        let error = soon(client.connect(Http::new(server.url()))).await.unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    }
}

#[tokio::test]
async fn c090_a_stream_that_ends_without_an_answer_is_an_error_at_once() {
    for stream in [
        format!("data: {RESPONSE}\n"),
        format!("data: {RESPONSE}"),
        format!("data: {RESPONSE}\r\n"),
        String::new(),
        ": nothing\n\n".into(),
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n".into(),
        "data: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n".into(),
    ] {
        let start = Instant::now();
        let error = one(Answer::events(stream.clone())).await.unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(error.kind(), ErrorKind::TransportClosed, "{stream:?}: {error}");
        assert!(error.to_string().contains("ended before the response"), "{stream:?}: {error}");
        // Broken off instead of ended: the connection's fault.
        let error = one(Answer::events(stream.clone()).broken_off()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TransportClosed | ErrorKind::TransportError), "{stream:?}: {error}");
    }
    // The same in a handshake.
    let server = HttpPeer::start(|_| Answer::events("data: {}\n")).await;
    let error = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
    assert!(error.to_string().contains("ended before the response"), "{error}");
}

/// The answer is the answer, though the stream stays open.
#[tokio::test]
async fn an_answer_is_taken_when_it_comes() {
    let (client, server) = streaming(vec![Answer::events(format!("data: {RESPONSE}\n\n")).without_end()]).await;
    let start = Instant::now();
    assert_eq!(soon(client.call::<String>("0", ())).await.unwrap(), TEXT);
    assert!(start.elapsed() < Duration::from_secs(2));
    // Nobody reads on, so the connection goes.
    server.given_up("tools/call").await;
}

#[tokio::test]
async fn what_else_is_on_a_stream_does_no_harm() {
    let message = |text: &str| format!("data: {text}\n\n");
    let quiet = ": keep-alive\n\n:\n\n: \r\n\r\n";
    all_read(vec![
        Answer::events(format!("{quiet}{}{quiet}", message(RESPONSE))),
        Answer::events(
            message(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}"#) + &message(RESPONSE),
        ),
        Answer::events(message(r#"{"jsonrpc":"2.0","method":"unknown"}"#) + &message(RESPONSE)),
        Answer::events(message(r#"{"jsonrpc":"2.0","id":"?","result":{}}"#) + &message(RESPONSE)),
        Answer::events(message(RESPONSE) + &message(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}"#)),
        Answer::events(message(RESPONSE) + "data: no JSON\n\n"),
        Answer::events(format!("{}{}", ": \n".repeat(10_000), message(RESPONSE))),
    ])
    .await;
}

/// An event source dispatches each event by its type, and nobody listens for those; some servers send them as signs
/// of life.
///
/// Specification: *HTML, Server-sent events*: the type of a message is `message`, or none.
#[tokio::test]
async fn events_of_another_type_are_no_messages() {
    all_read(vec![
        Answer::events(format!("event: ping\ndata: 2026-01-01T00:00:00Z\n\ndata: {RESPONSE}\n\n")),
        Answer::events(format!("event: heartbeat\ndata: {{}}\n\nevent: message\ndata: {RESPONSE}\n\n")),
        Answer::events(format!("event: endpoint\ndata: /messages?session=1\n\ndata: {RESPONSE}\n\n")),
        Answer::events(format!("event:\ndata: {RESPONSE}\n\n")),
    ])
    .await;
}

#[tokio::test]
async fn an_event_over_the_limit_is_an_error_and_is_not_read_on() {
    const LIMIT: usize = 64 << 10;
    let limits = Limits::default().message_bytes(LIMIT);
    let long = |bytes: usize| format!("data: {}", "x".repeat(bytes));
    let answers = vec![
        // It never ends, neither as a line nor as an event, nor as one name of a field.
        Answer::events(long(8 * LIMIT)).without_end(),
        Answer::events("data: xxxxxxxx\n".repeat(LIMIT / 2)).without_end(),
        Answer::events("x".repeat(8 * LIMIT)).without_end(),
        // It ends, far beyond.
        Answer::events(long(8 * LIMIT) + "\n\n").without_end(),
    ];
    let count = answers.len();
    let (client, server) = streaming_within(answers, limits).await;
    for index in 0..count {
        let error = soon(client.call::<String>(&index.to_string(), ())).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{index}: {error}");
        assert!(error.to_string().contains(&LIMIT.to_string()), "the limit is named: {error}");
        server.given_up("tools/call").await;
    }
}

/// The limit is the same however the bytes arrive: half as much again is too long, and what just fits is not.
#[tokio::test]
async fn the_limit_of_an_event_is_the_limit() {
    const LIMIT: usize = 4 << 10;
    let limits = Limits::default().message_bytes(LIMIT);
    let of = |bytes: usize| format!("data: {}{RESPONSE}\n\n", " ".repeat(bytes - RESPONSE.len()));
    let (fits, long) = (of(LIMIT - 64), of(LIMIT * 3 / 2));
    let (client, _server) = streaming_within(
        vec![
            Answer::events(fits.clone()),
            Answer::events(fits.clone()).cut_every(1),
            Answer::events(fits.replace("data:", ": x\n\ndata:")),
            Answer::events(long.clone()).cut_every(1),
            Answer::events(long),
        ],
        limits,
    )
    .await;
    for index in 0..3 {
        assert_eq!(soon(client.call::<String>(&index.to_string(), ())).await.unwrap(), TEXT, "{index}");
    }
    for index in 3..5 {
        let outcome = soon(client.call::<String>(&index.to_string(), ())).await;
        assert_eq!(outcome.map_err(|error| error.kind()), Err(ErrorKind::ProtocolInvalid), "{index}");
    }
}

/// Comments belong to no event: a call that takes long is not ended by the signs of life that keep it alive.
#[tokio::test]
async fn keep_alives_do_not_count_as_an_event() {
    let limits = Limits::default().message_bytes(4 << 10);
    let quiet = ": keep-alive\n\n".repeat(1000);
    let pause = Duration::from_millis(2);
    let stream = Answer::events(quiet.clone())
        .then(pause, quiet.clone())
        .then(pause, quiet)
        .then(pause, format!("data: {RESPONSE}\n\n"));
    let (client, _server) = streaming_within(vec![stream], limits).await;
    assert_eq!(soon(client.call::<String>("0", ())).await.unwrap(), TEXT);
}

/// Many events that are each within the limit are not one event.
#[tokio::test]
async fn the_limit_is_each_events_own() {
    let limits = Limits::default().message_bytes(4 << 10);
    let note = r#"data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}"#;
    let stream = format!("{note}\n\n").repeat(2000) + &format!("data: {RESPONSE}\n\n");
    let (client, _server) = streaming_within(vec![Answer::events(stream)], limits).await;
    assert_eq!(soon(client.call::<String>("0", ())).await.unwrap(), TEXT);
}

/// A large answer on a stream takes time in proportion to its length, and not to its square, though it comes in bits.
#[tokio::test]
async fn c032_a_large_event_is_read_in_time() {
    const SIZE: usize = 2 << 20;
    let large = RESPONSE.replace(TEXT, &"x".repeat(SIZE));
    let (client, _server) = streaming(vec![
        Answer::new(200, "application/json", large.clone()).cut_every(1 << 10),
        Answer::events(format!("data: {large}\n\n")).cut_every(1 << 10),
    ])
    .await;
    let start = Instant::now();
    assert_eq!(client.call::<String>("0", ()).await.unwrap().len(), SIZE);
    let as_json = start.elapsed();
    let patience = as_json * 10 + Duration::from_secs(3);
    let length = tokio::time::timeout(patience, client.call::<String>("1", ())).await;
    let length = length.unwrap_or_else(|_| panic!("an event takes more than {patience:?}, and JSON {as_json:?}"));
    assert_eq!(length.unwrap().len(), SIZE);
}

/// Progress and the answer are told apart and come in order, however the stream is cut.
#[tokio::test]
async fn progress_on_a_stream_is_heard_in_order() {
    let progress = |step: u32| {
        format!(
            "data: {}\n\n",
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": step } })
        )
    };
    let stream: String = (1..=20).map(progress).collect::<String>() + &format!("data: {RESPONSE}\n\n");
    let (client, _server) = streaming(vec![Answer::events(stream).cut_every(1)]).await;
    let heard = Arc::<Mutex<Vec<f64>>>::default();
    let ear = heard.clone();
    let options = CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress));
    assert_eq!(soon(client.call_with::<String>("0", (), options)).await.unwrap(), TEXT);
    assert_eq!(*heard.lock().unwrap(), (1..=20).map(f64::from).collect::<Vec<_>>());
}
