//! The other end of a connection: what a test holds while a server holds this one, be it in this process or its own.
//! It is a client of `mcp_test`'s, over the wires that only this suite has.

use std::{
    io,
    ops::{Deref, DerefMut},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use mcp_core::{Error, ErrorKind, FrameSink, FrameSource, Revision, Server};
use mcp_jsonrpc::Frame;
use mcp_test::{
    Failure, RawClient,
    transcript::{Conversation, unescape},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, ChildStderr, Command},
    sync::{
        Mutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};

use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream,
    tungstenite::{Message, Utf8Bytes},
};

use crate::{
    http::{Post, Response, Served},
    process::everything_server,
};

/// A way for messages to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// The pair in memory.
    Memory,
    /// The framing of stdio, within this process.
    Lines,
    /// A process of its own.
    Stdio,
    /// Each message a POST of its own.
    Http,
    /// A WebSocket, through the library that others use.
    Ws,
}

impl Wire {
    pub(crate) const ALL: [Self; 5] = [Self::Memory, Self::Lines, Self::Stdio, Self::Http, Self::Ws];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Lines => "lines",
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Ws => "ws",
        }
    }

    /// Whether nothing on it waits for the world, so that time can be made up.
    pub(crate) fn has_made_up_time(self) -> bool {
        matches!(self, Self::Memory | Self::Lines)
    }
}

/// A connection to a server, seen from the client's side. What the server sends is read all the time.
#[derive(Debug)]
pub(crate) struct Peer {
    wire: Wire,
    client: RawClient,
    /// Where bytes go that are no message, on wires of bytes.
    bytes: Option<Output>,
}

impl Peer {
    /// A server in this process at the other end of the pair in memory.
    pub(crate) fn memory(server: Server) -> Self {
        Self { wire: Wire::Memory, client: RawClient::connect(server), bytes: None }
    }

    /// A server in this process, with the framing of stdio.
    pub(crate) fn lines(server: Server) -> Self {
        let (here, there) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(there);
        let serving = mcp_stdio::serve_lines(server, reader, writer);
        let (reader, writer) = tokio::io::split(here);
        Self::over_bytes(Wire::Lines, reader, writer, serving)
    }

    /// The everything-server as a process.
    pub(crate) fn stdio() -> Self {
        Self::process("stdio")
    }

    /// The server that asks, as a process.
    pub(crate) fn asking() -> Self {
        Self::process("asking")
    }

    fn process(argument: &str) -> Self {
        let mut child = Command::new(everything_server())
            .arg(argument)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the everything-server starts");
        let (stdin, stdout) = (child.stdin.take().expect("its stdin"), child.stdout.take().expect("its stdout"));
        let stderr = child.stderr.take().expect("its stderr");
        Self::over_bytes(Wire::Stdio, stdout, stdin, ends_well(child, stderr))
    }

    /// A server in this process that gets each message as a POST, with the headers of the revision.
    pub(crate) async fn http(server: Server, speaks: Option<Revision>) -> Self {
        let served = Arc::new(Served::start(server).await);
        let (answers, incoming) = unbounded_channel();
        let wire = Split(Answers(incoming), Posts { served, speaks, answers: Some(answers) });
        // It serves others too, and does not end.
        Self { wire: Wire::Http, client: RawClient::over(wire, std::future::ready(Ok(()))), bytes: None }
    }

    /// A server in this process behind a WebSocket.
    pub(crate) async fn ws(server: Server) -> Self {
        let served = crate::ws::Served::start(server).await;
        let (socket, _) = tokio_tungstenite::connect_async(served.url()).await.expect("a WebSocket");
        let (sink, source) = socket.split();
        let client = RawClient::over(Split(TextSource(source, served), TextSink(sink)), std::future::ready(Ok(())));
        Self { wire: Wire::Ws, client, bytes: None }
    }

    fn over_bytes(
        wire: Wire,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        serving: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) -> Self {
        let output = Output(Arc::new(Mutex::new(Some(Box::new(writer)))));
        let client = RawClient::over(Split(Lines(BufReader::new(reader)), output.clone()), serving);
        Self { wire, client, bytes: Some(output) }
    }

    /// What plays a case on this connection.
    pub(crate) fn into_conversation(self) -> Conversation {
        let mut conversation = Conversation::new(self.client);
        if self.wire == Wire::Http {
            conversation = conversation.without_connection();
        }
        let Some(output) = self.bytes else { return conversation };
        let raw = output.clone();
        conversation
            .step(">raw", move |text| {
                let raw = raw.clone();
                async move { raw.write(&unescape(&text)?).await }
            })
            .step(">drip", move |text| {
                let output = output.clone();
                async move { output.drip(text.as_bytes()).await }
            })
    }
}

impl Deref for Peer {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.client
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut RawClient {
        &mut self.client
    }
}

async fn ends_well(mut child: Child, mut stderr: ChildStderr) -> Result<(), Error> {
    let failed = |why: String| Error::new(ErrorKind::TransportError, why);
    let mut said = Vec::new();
    let _ = stderr.read_to_end(&mut said).await;
    let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    Err(failed(format!("the process ended with {status}: {}", String::from_utf8_lossy(&said))))
}

/// Two directions that make a wire.
struct Split<R, W>(R, W);

impl<R: FrameSource, W: FrameSink> mcp_core::Wire for Split<R, W> {
    type Source = R;
    type Sink = W;

    fn split(self) -> (R, W) {
        (self.0, self.1)
    }
}

/// Each line without its end; a last one that has none is told as wrong.
struct Lines<R>(BufReader<R>);

impl<R: AsyncRead + Send + Unpin + 'static> FrameSource for Lines<R> {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line).await? {
            0 => Ok(None),
            _ if line.pop() == Some(b'\n') => Ok(Some(Frame::Line(line.into()))),
            _ => Err(io::Error::other(format!("a line without its end: {}", String::from_utf8_lossy(&line)))),
        }
    }
}

/// Where bytes go, until it is closed.
#[derive(Clone)]
struct Output(Arc<Mutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>>);

impl Output {
    async fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut output = self.0.lock().await;
        let writer = output.as_mut().ok_or("the input has ended already")?;
        writer.write_all(bytes).await.map_err(|error| error.to_string())?;
        Ok(writer.flush().await.map_err(|error| error.to_string())?)
    }

    /// One message, each byte in a write of its own.
    async fn drip(&self, message: &[u8]) -> Result<(), Failure> {
        for byte in message.iter().chain(b"\n") {
            self.write(&[*byte]).await?;
            // So that the reader gets it before the next one.
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        Ok(())
    }
}

impl FrameSink for Output {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        for frame in frames.drain(..) {
            self.write(&[&frame[..], b"\n"].concat()).await.map_err(io::Error::other)?;
        }
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        match self.0.lock().await.take() {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Output")
    }
}

/// Each frame a POST.
struct Posts {
    served: Arc<Served>,
    speaks: Option<Revision>,
    /// None once it is closed.
    answers: Option<UnboundedSender<io::Result<Frame>>>,
}

impl FrameSink for Posts {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        let answers = self.answers.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        for frame in frames.drain(..) {
            let post =
                self.speaks.map_or_else(|| Post::new(&frame[..]), |revision| Post::speaking(revision, &frame[..]));
            let (served, answers) = (self.served.clone(), answers.clone());
            tokio::spawn(async move { answered(&served.send(post).await, &answers) });
        }
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.answers = None;
        Ok(())
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The text frames of a socket, and the server behind it.
struct TextSource(SplitStream<Socket>, #[expect(dead_code, reason = "it serves while it lives")] crate::ws::Served);

impl FrameSource for TextSource {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        match self.0.next().await.transpose().map_err(io::Error::other)? {
            Some(Message::Text(text)) => Ok(Some(Frame::Line(text.into()))),
            None | Some(Message::Close(_)) => Ok(None),
            Some(other) => Err(io::Error::other(format!("no text: {other}"))),
        }
    }
}

/// Where text frames go.
struct TextSink(SplitSink<Socket, Message>);

impl FrameSink for TextSink {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        for frame in frames.drain(..) {
            let text = Utf8Bytes::try_from(frame).map_err(io::Error::other)?;
            self.0.send(Message::Text(text)).await.map_err(io::Error::other)?;
        }
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.close().await.map_err(io::Error::other)
    }
}

/// What the POSTs are answered with.
struct Answers(UnboundedReceiver<io::Result<Frame>>);

impl FrameSource for Answers {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        self.0.recv().await.transpose()
    }
}

/// The messages of an HTTP answer, which says 202 if there is none.
fn answered(response: &Response, answers: &UnboundedSender<io::Result<Frame>>) {
    let messages = response.messages();
    if messages.is_empty() != (response.status() == 202) {
        let why = format!("status {} with {} messages", response.status(), messages.len());
        let _ = answers.send(Err(io::Error::other(why)));
    }
    for message in messages {
        let _ = answers.send(Ok(Frame::Line(message.into())));
    }
}
