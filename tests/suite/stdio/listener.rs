//! Whoever connects to a socket is served in lines.

use std::time::Duration;

use mcp_core::{Client, Context, Limits, Server, Tool, ToolError, implementation};
use mcp_stdio::{Lines, serve_listener, serve_listener_until};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    http::soon,
    server::{call, gauge, ping, until},
};

/// A listener on a free port, and what ends it.
struct Serving {
    address: std::net::SocketAddr,
    ending: CancellationToken,
    serving: JoinHandle<()>,
}

async fn tcp(server: Server) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, ending) = (listener.local_addr().unwrap(), CancellationToken::new());
    let serving = tokio::spawn(serve_listener_until(server, listener, ending.clone().cancelled_owned()));
    Serving { address, ending, serving }
}

impl Serving {
    async fn connect(&self) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(self.address).await.unwrap())
    }
}

/// What comes back for a message: a line, or nothing where the connection has ended.
async fn asked(connection: &mut BufReader<TcpStream>, message: &str) -> String {
    let mut line = String::new();
    // It may be closed before it is written to, or while it is.
    let _ = connection.write_all(format!("{message}\n").as_bytes()).await;
    let _ = soon("an answer", connection.read_line(&mut line)).await;
    line
}

#[tokio::test]
async fn clients_are_served_over_tcp_side_by_side() {
    let serving = tcp(everything_server::server()).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let (reader, writer) = TcpStream::connect(serving.address).await.unwrap().into_split();
        let max = Limits::default().message_bytes;
        clients.push(soon("a client", Client::connect(Lines::new(reader, writer, max))).await.unwrap());
    }
    for client in &clients {
        assert_eq!(client.call::<u64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
    }
}

/// Over a Unix socket the system says whose process it is, and handlers know.
#[cfg(unix)]
#[tokio::test]
async fn who_is_at_the_other_end_of_a_unix_socket_is_known() {
    async fn who(context: Context) -> Result<String, ToolError> {
        Ok(context.principal().map_or("nobody", |principal| principal.id()).to_owned())
    }

    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mcp.sock");
    let server = Server::builder(implementation!()).tool(Tool::new("who", who)).build();
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let _serving = AbortOnDropHandle::new(tokio::spawn(serve_listener(server.clone(), listener)));
    let (reader, writer) = tokio::net::UnixStream::connect(&socket).await.unwrap().into_split();
    let client = Client::connect(Lines::new(reader, writer, Limits::default().message_bytes)).await.unwrap();
    let user = rustix::process::geteuid().as_raw();
    assert_eq!(client.call::<String>("who", ()).await.unwrap(), format!("unix:{user}"));

    let over_tcp = tcp(server).await;
    let (reader, writer) = TcpStream::connect(over_tcp.address).await.unwrap().into_split();
    let client = Client::connect(Lines::new(reader, writer, Limits::default().message_bytes)).await.unwrap();
    assert_eq!(client.call::<String>("who", ()).await.unwrap(), "nobody");
}

/// A connection too many is closed at once, and its place is free when another one is gone.
#[tokio::test]
async fn connections_are_bounded() {
    let serving = tcp(everything_server::server_with(Limits::default().sessions(2))).await;
    let (mut first, mut second) = (serving.connect().await, serving.connect().await);
    for connection in [&mut first, &mut second] {
        assert!(asked(connection, &ping(1)).await.contains(r#""id":1"#));
    }
    assert_eq!(asked(&mut serving.connect().await, &ping(1)).await, "", "the third one is closed");
    assert!(asked(&mut first, &ping(2)).await.contains(r#""id":2"#), "those that are there go on");
    drop(second);
    until("there is room for another one", async || !asked(&mut serving.connect().await, &ping(3)).await.is_empty())
        .await;
}

/// What a web page has a browser post to the port of a local server.
#[tokio::test]
async fn what_follows_the_head_of_an_http_request_is_not_heeded() {
    let server = everything_server::server();
    let serving = tcp(server.clone()).await;
    let body = call(1, "sleep", json!({ "ms": 3_600_000 }));
    let head = "POST / HTTP/1.1\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\n\r\n";
    for first in [head, "GET / HTTP/1.1\r\n", "\u{feff}x\r\n", "\x16\x03\x01\n"] {
        let mut connection = serving.connect().await;
        assert_eq!(asked(&mut connection, &format!("{first}{body}")).await, "", "{first}");
    }
    assert_eq!(gauge(&server).await, (0, 0), "nothing ever ran");
    for first in ["", "\r\n", "\u{feff} \t"] {
        assert!(asked(&mut serving.connect().await, &format!("{first}{}", ping(1))).await.contains(r#""id":1"#));
    }
    // Behind the first line, one that cannot be read is answered.
    let mut connection = serving.connect().await;
    asked(&mut connection, &ping(1)).await;
    assert!(asked(&mut connection, "Host: x").await.contains("-32700"));
}

/// Those that say nothing, or not all of it, take nobody's place.
#[tokio::test]
async fn a_line_that_does_not_come_is_not_waited_for() {
    let limits = Limits::default().sessions(2).stall_timeout(Duration::from_millis(100));
    let serving = tcp(everything_server::server_with(limits)).await;
    let (mut silent, mut slow) = (serving.connect().await, serving.connect().await);
    slow.write_all(ping(1).as_bytes()).await.unwrap();
    let mut rest = String::new();
    for connection in [&mut silent, &mut slow] {
        let _ = soon("its end", connection.read_to_string(&mut rest)).await;
    }
    assert_eq!(rest, "");
    let mut idle = serving.connect().await;
    assert!(asked(&mut idle, &ping(2)).await.contains(r#""id":2"#));
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(asked(&mut idle, &ping(3)).await.contains(r#""id":3"#), "whoever has nothing to say is left alone");
}

/// A server that stops takes nobody any more, and answers what runs.
#[tokio::test]
async fn a_listener_ends_in_good_order() {
    let serving = tcp(everything_server::server()).await;
    let (mut busy, mut idle) = (serving.connect().await, serving.connect().await);
    assert!(asked(&mut idle, &ping(1)).await.contains(r#""id":1"#));
    busy.write_all(format!("{}\n", call(1, "sleep", json!({ "ms": 500 }))).as_bytes()).await.unwrap();
    assert!(asked(&mut busy, &ping(2)).await.contains(r#""id":2"#), "the call before it has begun");
    serving.ending.cancel();
    let mut rest = String::new();
    soon("the end", idle.read_to_string(&mut rest)).await.unwrap();
    assert_eq!(rest, "");
    soon("the answer", busy.read_to_string(&mut rest)).await.unwrap();
    assert!(rest.contains("slept 500 ms"), "{rest}");
    soon("the end of it all", serving.serving).await.unwrap();
    assert!(TcpStream::connect(serving.address).await.is_err(), "nobody can connect any more");
}

/// One connection that misbehaves is no other's business.
#[tokio::test]
async fn connections_that_break_off_harm_no_other() {
    let serving = tcp(everything_server::server()).await;
    let mut good = serving.connect().await;
    for _ in 0..100 {
        let mut bad = serving.connect().await;
        bad.write_all(b"{\"jsonrpc\":").await.unwrap();
        bad.get_ref().set_zero_linger().unwrap();
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(asked(&mut good, &ping(1)).await.contains(r#""id":1"#));
}
