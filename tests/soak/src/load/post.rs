//! HTTP by hand: whole requests, parts of some, and answers that are read to their end, slowly, or not at all.

use std::{io, net::SocketAddr};

use mcp_suite::Revision;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A request in the making.
#[derive(Debug, Clone)]
pub(super) struct Request {
    line: &'static str,
    headers: String,
    body: Vec<u8>,
}

impl Request {
    pub(super) fn new(line: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n".into();
        Self { line, headers, body: body.into() }
    }

    pub(super) fn post(body: &Value) -> Self {
        Self::new("POST /mcp", body.to_string())
    }

    /// A call of a tool in the modern era.
    pub(super) fn call(tool: &str, arguments: &Value) -> Self {
        Self::modern("tools/call", json!({ "name": tool, "arguments": arguments })).header("Mcp-Name", tool)
    }

    /// A request in the modern era.
    pub(super) fn modern(method: &str, params: Value) -> Self {
        let message = modern(method, params);
        Self::post(&message).header("MCP-Protocol-Version", Revision::LATEST.as_str()).header("Mcp-Method", method)
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers += &format!("{name}: {value}\r\n");
        self
    }

    /// In that session.
    pub(super) fn of(self, session: &Session) -> Self {
        self.header("Mcp-Session-Id", &session.id).header("MCP-Protocol-Version", session.revision.as_str())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let Self { line, headers, body } = self;
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
        );
        [head.as_bytes(), body].concat()
    }

    /// Sends it whole, on a connection of its own.
    pub(super) async fn send(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(to).await?;
        stream.write_all(&self.bytes()).await?;
        Ok(stream)
    }

    /// The answer, whole.
    pub(super) async fn answer(&self, from: SocketAddr) -> io::Result<Answer> {
        let mut stream = self.send(from).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        Ok(Answer(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// A session of the legacy era.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    revision: Revision,
}

impl Session {
    /// Begins one.
    pub(super) async fn begin(at: SocketAddr, revision: Revision) -> io::Result<Self> {
        let answer = Request::post(&initialize(revision)).answer(at).await?;
        let id = answer.header("Mcp-Session-Id").ok_or_else(|| io::Error::other(format!("no session: {answer:?}")))?;
        let session = Self { id: id.to_owned(), revision };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let answer = Request::post(&initialized).of(&session).answer(at).await?;
        if answer.status() == 202 { Ok(session) } else { Err(io::Error::other(format!("{answer:?}"))) }
    }
}

/// A message of the modern era.
pub(super) fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
        "io.modelcontextprotocol/clientInfo": { "name": "soak", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "steps",
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// What begins a session of the legacy era.
fn initialize(revision: Revision) -> Value {
    let info = json!({ "name": "soak", "version": "1" });
    let params = json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

/// An answer as it came, chunks and all.
#[derive(Debug)]
pub(super) struct Answer(String);

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.0.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &&str| line.split(':').next().is_some_and(|found| found.eq_ignore_ascii_case(name));
        let (head, _) = self.0.split_once("\r\n\r\n")?;
        Some(head.lines().find(named)?.split_once(':')?.1.trim())
    }

    pub(super) fn has(&self, words: &str) -> bool {
        self.0.contains(words)
    }
}
