//! `ceiling stdio` | `ceiling http` | `ceiling ws`: the ceilings of the wires.

use std::io::{BufRead, BufWriter, Write};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

#[tokio::main]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => stdio(),
        Some("http") => http().await,
        Some("ws") => web_socket().await,
        _ => anyhow::bail!("usage: ceiling stdio | http | ws"),
    }
}

/// Flushes only before it would wait for input, as any server that is good at many calls at once does.
fn stdio() -> Result<()> {
    let mut input = std::io::BufReader::with_capacity(1 << 16, std::io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(answer) = bench::ceiling::answer(&line)? {
            writeln!(output, "{answer}")?;
        }
        line.clear();
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

async fn http() -> Result<()> {
    let listener = bench::listen("http").await?;
    Ok(axum::serve(listener, Router::new().route("/mcp", post(answer))).await?)
}

async fn answer(body: Bytes) -> Response {
    match bench::ceiling::answer(&body) {
        Ok(Some(answer)) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(None) => StatusCode::ACCEPTED.into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn web_socket() -> Result<()> {
    let listener = bench::listen("ws").await?;
    loop {
        let (stream, _peer) = listener.accept().await?;
        tokio::spawn(echo(stream));
    }
}

/// An echo that reads what it is sent.
async fn echo(stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut socket = tokio_tungstenite::accept_async(stream).await?;
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message? else { continue };
        if let Some(answer) = bench::ceiling::answer(text.as_bytes())? {
            socket.send(Message::text(answer)).await?;
        }
    }
    Ok(())
}
