//! WebSocket down to its frames, by hand: what peers in the wild do, no library would.

mod client;
mod cuts;
mod ends;
mod resume;
mod server;
mod subprotocols;
mod tls;

pub(crate) use client::switched;

use std::{io, net::SocketAddr, time::Duration};

use bytes::BytesMut;
use mcp_core::Server;
use mcp_ws::WsLayer;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::timeout,
};

/// How long anything may take that is expected to happen.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: nothing came in {PATIENCE:?}"))
}

pub(crate) const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CONTINUED: u8 = 0;
pub(crate) const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// A frame as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) opcode: u8,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    fn json(&self) -> Value {
        assert_eq!(self.opcode, TEXT, "{self:?}");
        serde_json::from_slice(&self.payload).unwrap()
    }

    /// The reason in a close frame.
    fn reason(&self) -> &str {
        assert_eq!(self.opcode, CLOSE, "{self:?}");
        std::str::from_utf8(&self.payload[2..]).unwrap()
    }

    /// The code of a close frame.
    fn code(&self) -> u16 {
        assert_eq!(self.opcode, CLOSE, "{self:?}");
        self.payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code))
    }
}

/// One side of a connection, after the handshake or before it.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: TcpStream,
    buffer: BytesMut,
    /// Whether it is a client, whose frames are masked.
    masks: bool,
}

impl Peer {
    pub(crate) fn new(stream: TcpStream, masks: bool) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: BytesMut::new(), masks }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        soon("writing", self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    fn frame(&self, is_last: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
        Self::frame_of(self.masks, is_last, opcode, payload)
    }

    /// The bytes of a frame. The mask is zero, which changes nothing.
    fn frame_of(masks: bool, is_last: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mask_bit = if masks { 0x80 } else { 0 };
        let mut out = vec![if is_last { 0x80 } else { 0 } | opcode];
        match payload.len() {
            length @ 0..126 => out.push(mask_bit | length as u8),
            length @ 126..0x1_0000 => {
                out.push(mask_bit | 126);
                out.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                out.push(mask_bit | 127);
                out.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        if masks {
            out.extend_from_slice(&[0; 4]);
        }
        out.extend_from_slice(payload);
        out
    }

    pub(crate) async fn send(&mut self, is_last: bool, opcode: u8, payload: impl AsRef<[u8]>) {
        let frame = self.frame(is_last, opcode, payload.as_ref());
        self.write(frame).await;
    }

    async fn say(&mut self, text: impl AsRef<str>) {
        self.send(true, TEXT, text.as_ref()).await;
    }

    /// What has come of a head, once it is whole.
    async fn peek(&mut self) -> Vec<u8> {
        while !self.buffer.ends_with(b"\r\n\r\n") && self.fill().await {}
        self.buffer.to_vec()
    }

    /// Reads more; false at the end.
    async fn fill(&mut self) -> bool {
        match soon("reading", self.stream.read_buf(&mut self.buffer)).await {
            Ok(read) => read > 0,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("reading failed: {error}"),
        }
    }

    async fn exactly(&mut self, length: usize) -> Option<BytesMut> {
        while self.buffer.len() < length {
            if !self.fill().await {
                return None;
            }
        }
        Some(self.buffer.split_to(length))
    }

    /// The next frame; none once the connection is closed. All frames of ours are whole messages.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let head = self.exactly(2).await?;
        assert_eq!(head[0] & 0xf0, 0x80, "a whole message without extensions");
        assert_eq!(head[1] & 0x80 != 0, !self.masks, "a client masks its frames, a server does not");
        let length = match head[1] & 0x7f {
            126 => usize::from(u16::from_be_bytes(*self.exactly(2).await?.first_chunk().unwrap())),
            127 => usize::try_from(u64::from_be_bytes(*self.exactly(8).await?.first_chunk().unwrap())).unwrap(),
            short => usize::from(short),
        };
        let mask = if self.masks { BytesMut::zeroed(4) } else { self.exactly(4).await? };
        let mut payload = self.exactly(length).await?.to_vec();
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Some(Frame { opcode: head[0] & 0x0f, payload })
    }

    async fn hear(&mut self) -> Value {
        self.next().await.expect("a frame").json()
    }

    /// Sees the other side close with this code, and then the connection.
    async fn closed_with(&mut self, code: u16) {
        let frame = self.next().await.expect("a close frame");
        assert_eq!(frame.code(), code);
        while self.next().await.is_some() {}
    }

    /// The lines of a head, its end not among them; none once the connection is closed.
    pub(crate) async fn head(&mut self) -> Option<Vec<String>> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = self.buffer.split_to(end + 4);
                return Some(
                    String::from_utf8(head[..end].to_vec()).unwrap().split("\r\n").map(str::to_owned).collect(),
                );
            }
            if !self.fill().await {
                return None;
            }
        }
    }
}

/// The value of a header in a head.
fn header<'a>(head: &'a [String], name: &str) -> Option<&'a str> {
    head.iter()
        .find_map(|line| line.split_once(": ").filter(|(seen, _)| seen.eq_ignore_ascii_case(name)))
        .map(|(_, v)| v)
}

/// A server that listens until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Served {
    /// HTTP and WebSocket at one endpoint.
    pub(crate) async fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, limits) = (listener.local_addr().unwrap(), server.limits().clone());
        let router = mcp_http::Routes::new(server.clone()).stateless().into_router().layer(WsLayer::new(server));
        let task = tokio::spawn(async move { mcp_http::serve_service(router, listener, &limits).await.unwrap() });
        Self { address, task }
    }

    /// WebSocket alone.
    async fn alone(server: Server) -> Self {
        Self::with(WsLayer::new(server)).await
    }

    /// WebSocket alone, as the layer has it.
    async fn with(layer: WsLayer) -> Self {
        Self::until(layer, std::future::pending()).await
    }

    /// The same until the signal.
    async fn until(layer: WsLayer, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { layer.serve_until(listener, signal).await.unwrap() });
        Self { address, task }
    }

    /// Whatever a router serves.
    async fn router(router: axum::Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/mcp", self.address)
    }

    /// Sends an upgrade with these headers beside the usual ones; a header that is there already is replaced.
    async fn upgrade(&self, path: &str, headers: &[(&str, &str)]) -> (Vec<String>, Peer) {
        let mut peer = Peer::new(TcpStream::connect(self.address).await.unwrap(), true);
        let host = self.address.to_string();
        let usual = [
            ("Host", host.as_str()),
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let kept = usual.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
        let lines: String = kept.chain(headers).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        peer.write(format!("GET {path} HTTP/1.1\r\n{lines}\r\n")).await;
        (peer.head().await.expect("an answer"), peer)
    }

    /// Sees an upgrade refused, with an error that says why.
    async fn refused(&self, headers: &[(&str, &str)], status: &str) -> String {
        let (head, mut peer) = self.upgrade("/mcp", headers).await;
        assert!(head[0].contains(status), "{head:?}");
        assert_eq!(header(&head, "content-type"), Some("application/json"));
        let length: usize = header(&head, "content-length").unwrap().parse().unwrap();
        let body: Value = serde_json::from_slice(&peer.exactly(length).await.unwrap()).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&Value::Null, &serde_json::json!(-32600)), "{body}");
        body["error"]["message"].as_str().unwrap().to_owned()
    }

    /// A connection that is open.
    async fn open(&self) -> Peer {
        let (head, peer) = self.upgrade("/mcp", &[("Sec-WebSocket-Protocol", "mcp")]).await;
        assert!(head[0].starts_with("HTTP/1.1 101 "), "{head:?}");
        assert_eq!(header(&head, "sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!(header(&head, "sec-websocket-protocol"), Some("mcp"));
        peer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}
