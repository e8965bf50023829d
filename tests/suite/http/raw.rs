use std::{future::Future, io, net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_core::{Era, Revision};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

/// How long anything may take that is expected to happen; long, for machines that do other things as well.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what}: nothing came in {PATIENCE:?}"))
}

/// A request in the making: a POST of JSON to `/mcp`, unless told otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    target: String,
    version: String,
    /// A header without a value is one that must not be sent.
    headers: Vec<(String, Option<Vec<u8>>)>,
    body: Vec<u8>,
}

impl Post {
    /// A POST of `body`.
    pub(crate) fn new(body: impl Into<Vec<u8>>) -> Self {
        Self::to("POST /mcp", body)
    }

    /// Another request: method and path.
    pub(crate) fn to(target: &str, body: impl Into<Vec<u8>>) -> Self {
        let post = Self { target: target.into(), version: "HTTP/1.1".into(), headers: Vec::new(), body: body.into() };
        post.header("Content-Type", "application/json").header("Accept", "application/json, text/event-stream")
    }

    /// A POST in a revision, with the headers that this revision wants.
    pub(crate) fn speaking(revision: Revision, body: impl Into<Vec<u8>>) -> Self {
        Self::new(body).speaks(revision)
    }

    /// Adds the headers that a revision wants.
    pub(crate) fn speaks(self, revision: Revision) -> Self {
        let post = self.header("MCP-Protocol-Version", revision.as_str());
        if revision.era() == Era::Legacy {
            return post;
        }
        let Ok(message) = serde_json::from_slice::<Value>(&post.body) else { return post };
        let Some(method) = message["method"].as_str() else { return post };
        let post = post.header("Mcp-Method", method);
        let member = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return post,
        };
        match message["params"][member].as_str() {
            Some(name) => post.header("Mcp-Name", header_value(name)),
            None => post,
        }
    }

    pub(crate) fn version(mut self, version: &str) -> Self {
        self.version = version.into();
        self
    }

    /// Sets a header.
    pub(crate) fn header(self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.without(name).add(name, value)
    }

    /// Adds a header, whether there is one of that name or not.
    pub(crate) fn add(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Lets the request go without a header, be it one that is otherwise added when the request is written.
    pub(crate) fn never(mut self, name: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.into(), None));
        self
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    fn head(&self, address: SocketAddr) -> Vec<u8> {
        let mut out = format!("{} {}\r\n", self.target, self.version).into_bytes();
        let mut line =
            |name: &str, value: &[u8]| out.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
        if !self.has("Host") {
            line("Host", address.to_string().as_bytes());
        }
        for (name, value) in &self.headers {
            value.iter().for_each(|value| line(name, value));
        }
        if !self.has("Content-Length") && !self.is_chunked() {
            line("Content-Length", self.body.len().to_string().as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    fn is_chunked(&self) -> bool {
        let coding = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Transfer-Encoding"));
        coding.is_some_and(|(_, value)| value.as_deref() == Some(b"chunked"))
    }

    /// The request as it goes over the wire.
    pub(crate) fn bytes(&self, address: SocketAddr) -> Vec<u8> {
        const CHUNK: usize = 1000;
        let mut out = self.head(address);
        if !self.is_chunked() {
            out.extend_from_slice(&self.body);
            return out;
        }
        for chunk in self.body.chunks(CHUNK) {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }
}

/// A value as `Mcp-Name` carries it.
pub(crate) fn header_value(value: &str) -> String {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic()) && !value.starts_with("=?");
    if is_plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

/// A connection, and what was read of it and not yet looked at.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) version: String,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    /// Whether the server let the connection live.
    pub(crate) keeps_open: bool,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    fn length(&self) -> Option<usize> {
        self.header("content-length").map(|length| length.parse().expect("a length"))
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }

    fn keeps_open(&self) -> bool {
        let says_close = self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        self.version == "HTTP/1.1" && !says_close
    }
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body in UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.head.header("content-type") == Some("text/event-stream")
    }

    /// The JSON-RPC messages in the answer, in order.
    pub(crate) fn messages(&self) -> Vec<Vec<u8>> {
        if self.body.is_empty() {
            return Vec::new();
        }
        if !self.is_stream() {
            return vec![self.body.clone()];
        }
        let data = |event| match event {
            Event::Message(data) => Some(data.into_bytes()),
            Event::Start | Event::Comment(_) => None,
        };
        events(self.text()).into_iter().filter_map(data).collect()
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = soon("connecting", TcpStream::connect(address)).await.expect("a connection");
        Self { stream, buffer: Vec::new() }
    }

    /// A connection with a small receive buffer, so that what nobody reads soon stops the sender.
    pub(crate) async fn narrow(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4 << 10).expect("a small buffer");
        let stream = soon("connecting", socket.connect(address)).await.expect("a connection");
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        soon("writing", self.stream.write_all(bytes)).await.expect("the server reads");
    }

    /// Writes until the server takes no more; how many bytes it took.
    pub(crate) async fn write_what_goes(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match soon("writing", self.stream.write(&bytes[written..])).await {
                Ok(more) if more > 0 => written += more,
                _ => break,
            }
        }
        written
    }

    /// Reads more; false at the end of the stream.
    async fn fill(&mut self) -> bool {
        let read = soon("reading", self.stream.read_buf(&mut self.buffer)).await;
        match read {
            Ok(read) => read > 0,
            // What the peer did not read when it closed makes the system say so rudely.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("reading failed: {error}"),
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).take(end).collect();
                return Some(String::from_utf8(line).expect("text"));
            }
            if !self.fill().await {
                return None;
            }
        }
    }

    /// The head of the next answer; `None` if the server closed instead. Interim answers are passed over.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        loop {
            let status = self.line().await?;
            let mut words = status.split(' ');
            let version = words.next().unwrap_or_default().to_owned();
            let status = words.next().and_then(|status| status.parse().ok());
            let status = status.unwrap_or_else(|| panic!("no status line: {version}"));
            let mut headers = Vec::new();
            while let Some(line) = self.line().await.filter(|line| !line.is_empty()) {
                let (name, value) = line.split_once(':').unwrap_or_else(|| panic!("no header: {line}"));
                headers.push((name.to_owned(), value.trim().to_owned()));
            }
            if status != 100 {
                return Some(Head { version, status, headers });
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.fill().await, "the body ended early");
        }
        self.buffer.drain(..length).collect()
    }

    /// All that comes until the connection is closed, in whatever way.
    pub(crate) async fn rest(&mut self) -> String {
        while self.fill().await {}
        String::from_utf8_lossy(&self.buffer).into_owned()
    }

    /// All that one read brings.
    pub(crate) async fn segment(&mut self) -> String {
        self.buffer.reserve(64 << 10);
        assert!(self.fill().await, "the server closed");
        String::from_utf8(std::mem::take(&mut self.buffer)).expect("text")
    }

    /// The next chunk of a chunked body; `None` behind the last one. A body that just breaks off is a failure.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.line().await.expect("the stream broke off without its end");
        let length = usize::from_str_radix(&size, 16).unwrap_or_else(|_| panic!("no chunk size: {size:?}"));
        let chunk = self.exactly(length).await;
        assert_eq!(self.line().await.as_deref(), Some(""), "a chunk has its end");
        (length > 0).then_some(chunk)
    }

    /// The body that belongs to a head.
    pub(crate) async fn body(&mut self, head: &Head) -> Vec<u8> {
        if head.is_chunked() {
            let mut body = Vec::new();
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
            return body;
        }
        match head.length() {
            Some(length) => self.exactly(length).await,
            None if head.keeps_open() => Vec::new(),
            None => {
                while self.fill().await {}
                std::mem::take(&mut self.buffer)
            }
        }
    }

    /// The next answer, whole.
    pub(crate) async fn response(&mut self) -> Option<Response> {
        let head = self.head().await?;
        let body = self.body(&head).await;
        let keeps_open = head.keeps_open();
        Some(Response { head, body, keeps_open })
    }

    /// The answer to this request, which has no body where only the head was asked for.
    pub(crate) async fn response_to(&mut self, post: &Post) -> Option<Response> {
        if !post.target.starts_with("HEAD ") {
            return self.response().await;
        }
        let head = self.head().await?;
        let keeps_open = head.keeps_open();
        Some(Response { head, body: Vec::new(), keeps_open })
    }

    /// Whether the server has closed, and sends nothing more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await
    }

    /// Ends the connection from here: rudely, with what was not read thrown away.
    pub(crate) fn abort(self) {
        drop(self);
    }
}

/// A part of an event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// An event's data.
    Message(String),
    /// The event without a message that a stream of 2025-11-25 begins with.
    Start,
    /// A comment, which only keeps the connection alive.
    Comment(String),
}

/// The parts of an event stream. Anything that a plain reader could trip over is a failure.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let blocks = text.strip_suffix("\n\n").unwrap_or_else(|| panic!("the last event is cut off: {text:?}"));
    blocks.split("\n\n").map(event).collect()
}

fn event(block: &str) -> Event {
    if let Some(comment) = block.strip_prefix(':') {
        return Event::Comment(comment.trim().to_owned());
    }
    let lines: Vec<&str> = block.split('\n').collect();
    let lines = if lines[0].starts_with("id: ") { &lines[1..] } else { &lines };
    match lines {
        [retry, "data: "] if retry.starts_with("retry: ") => Event::Start,
        ["event: message", data] if data.starts_with("data: ") => Event::Message(data["data: ".len()..].to_owned()),
        other => panic!("no event: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stream_reads_as_its_parts() {
        let text = "event: message\ndata: {\"a\":1}\n\n: keep-alive\n\n";
        assert_eq!(events(text), [Event::Message("{\"a\":1}".into()), Event::Comment("keep-alive".into())]);
        let text = "id: 1-0\nretry: 1000\ndata: \n\nid: 1-1\nevent: message\ndata: {}\n\n";
        assert_eq!(events(text), [Event::Start, Event::Message("{}".into())]);
    }

    #[test]
    #[should_panic(expected = "cut off")]
    fn a_stream_that_breaks_off_is_a_failure() {
        events("event: message\ndata: 1\n");
    }

    #[test]
    fn a_request_has_its_headers_once() {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let post = Post::new("12").header("accept", "x").never("Host").header("Content-Length", "7");
        let text = String::from_utf8(post.bytes(address)).unwrap();
        assert_eq!(
            text,
            "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\naccept: x\r\nContent-Length: 7\r\n\r\n12"
        );
        let text = String::from_utf8(Post::new("12").header("Transfer-Encoding", "chunked").bytes(address)).unwrap();
        assert!(text.contains("Host: 127.0.0.1:1\r\n") && text.ends_with("\r\n\r\n2\r\n12\r\n0\r\n\r\n"), "{text}");
    }
}
