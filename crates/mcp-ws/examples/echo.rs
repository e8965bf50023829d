//! Gives every text back: what Autobahn's fuzzing client wants of a server. `cargo xtask autobahn` runs it.
//!
//! Its argument is the address to listen at; it prints the one that it got.

use std::io;

use mcp_core::{FrameSink, FrameSource, Limits, Wire, jsonrpc::Frame};
use mcp_ws::Socket;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

#[tokio::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let listener = TcpListener::bind(address).await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    upgrade(&mut stream).await?;
    let limits = Limits::default().message_bytes(64 << 20);
    let (mut source, mut sink) = Socket::server(stream, &limits).await.split();
    loop {
        let next = tokio::select! {
            biased;
            next = source.next() => next,
            error = sink.tend() => Err(error),
        };
        let echoed = match next {
            Ok(Some(Frame::Line(text))) => sink.send(&mut vec![text]).await,
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        if echoed.is_err() {
            // It is closed as what has happened wants it.
            return sink.close().await;
        }
    }
}

/// Takes any upgrade.
async fn upgrade(stream: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let key = lines.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
    let key = key.map(|(_, key)| key.trim()).ok_or(io::ErrorKind::InvalidData)?;
    let accept = derive_accept_key(key.as_bytes());
    let switched = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(switched.as_bytes()).await
}
