//! `ceiling stdio` | `http` | `ws` | `list [--tools N]` | `fan-out`: the least that a program can do on a wire.

use std::io::{BufRead, BufWriter, Write};

use anyhow::Result;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::post,
    serve::ListenerExt,
};
use bench::{
    ceiling::{Answer, answer},
    load::{
        call::{Template, Work},
        check::number_of,
        memory::ours_answers,
    },
};
use futures_util::{SinkExt, StreamExt, stream};
use tokio::{net::TcpStream, sync::broadcast};
use tokio_tungstenite::tungstenite::Message;

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("stdio") => stdio(),
        Some("http") => http(Router::new().route("/mcp", post(one))).await,
        Some("ws") => web_socket().await,
        Some("list") => http(list(bench::tools(&words)?).await?).await,
        Some("fan-out") => http(fan_out()).await,
        _ => anyhow::bail!("usage: ceiling stdio | http | ws | list [--tools N] | fan-out"),
    }
}

/// Flushes only before it would wait for input, as any server that is good at many calls at once does.
fn stdio() -> Result<()> {
    let mut input = std::io::BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(answer) = answer(&line)?.json() {
            writeln!(output, "{answer}")?;
        }
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

async fn http(router: Router) -> Result<()> {
    // Without TCP_NODELAY, what is written in two pieces waits for 40 ms.
    let listener = bench::listen("http").await?.tap_io(|stream| drop(stream.set_nodelay(true)));
    Ok(axum::serve(listener, router).await?)
}

const JSON: (header::HeaderName, &str) = (header::CONTENT_TYPE, "application/json");

const EVENTS: (header::HeaderName, &str) = (header::CONTENT_TYPE, "text/event-stream");

async fn one(body: Bytes) -> Response {
    match answer(&body) {
        Ok(Answer::Json(answer)) => ([JSON], answer).into_response(),
        Ok(Answer::Handshake(answer)) => ([JSON], [("mcp-session-id", "one-for-all")], answer).into_response(),
        Ok(Answer::Events(events)) => ([EVENTS], in_one_chunk(events)).into_response(),
        Ok(Answer::Nothing) => StatusCode::ACCEPTED.into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// A body of a length that is not known before.
fn in_one_chunk(text: String) -> Body {
    Body::from_stream(stream::iter([Ok::<_, std::io::Error>(text)]))
}

/// Answers each list with the very bytes that our server answers with, but for the id.
async fn list(tools: usize) -> Result<Router> {
    let answer = Template::of_answer(ours_answers(Work::List(tools)).await?)?;
    Ok(Router::new().route("/mcp", post(listed)).with_state(answer))
}

async fn listed(State(mut answer): State<Template>, body: Bytes) -> Response {
    match number_of(&body) {
        Ok(number) => {
            answer.numbered(number);
            ([JSON], answer.into_bytes()).into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

const ACKNOWLEDGED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#;

const UPDATED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"bench://changes"}}"#;

/// Changes that may wait for a listener.
const CHANGES: usize = 64;

fn fan_out() -> Router {
    Router::new().route("/mcp", post(listen_or_touch)).with_state(broadcast::Sender::new(CHANGES))
}

/// Whatever is no `subscriptions/listen` is a change, and one more for each listener.
async fn listen_or_touch(State(changes): State<broadcast::Sender<()>>, body: Bytes) -> Response {
    if memchr::memmem::find(&body, b"subscriptions/listen").is_none() {
        // There may be no listener.
        let _ = changes.send(());
        return ([JSON], r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).into_response();
    }
    let told = stream::unfold(changes.subscribe(), async |mut changes| {
        changes.recv().await.ok()?;
        Some((UPDATED, changes))
    });
    let events = stream::iter([ACKNOWLEDGED]).chain(told).map(|message| Event::default().data(message));
    Sse::new(events.map(Ok::<_, std::convert::Infallible>)).into_response()
}

async fn web_socket() -> Result<()> {
    let listener = bench::listen("ws").await?;
    loop {
        let (stream, _peer) = listener.accept().await?;
        tokio::spawn(talk(stream));
    }
}

async fn talk(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut socket = tokio_tungstenite::accept_async(stream).await?;
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        if let Some(answer) = answer(text.as_bytes())?.json() {
            socket.send(Message::text(answer)).await?;
        }
    }
    Ok(())
}
