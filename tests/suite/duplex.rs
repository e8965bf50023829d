//! The other end of a connection: what a test holds while a server holds this one, be it in this process or its own.

use std::{fmt, process::Stdio, sync::Arc, time::Duration};

use bytes::Bytes;
use mcp_core::{
    Error, FrameSink as _, FrameSource as _, MemoryWire, Revision, Server, Wire as _, memory, server::serve,
};
use mcp_jsonrpc::Frame;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    runtime::{Handle, RuntimeFlavor},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::timeout,
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
}

impl Wire {
    pub(crate) const ALL: [Self; 4] = [Self::Memory, Self::Lines, Self::Stdio, Self::Http];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Lines => "lines",
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }

    /// Whether nothing on it waits for the world, so that time can be made up.
    pub(crate) fn has_made_up_time(self) -> bool {
        matches!(self, Self::Memory | Self::Lines)
    }

    /// How long is waited for what is expected, and for what must not come.
    fn waits(self) -> (Duration, Duration) {
        // Only a runtime of one thread can make time up.
        let has_threads = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        if self.has_made_up_time() && !has_threads {
            (Duration::from_secs(3600), Duration::from_secs(300))
        } else {
            (Duration::from_secs(30), Duration::from_millis(30))
        }
    }
}

/// How bytes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// As one message.
    Message,
    /// As they are.
    Raw,
    /// As one message, each byte in a write of its own.
    Drip,
}

/// A connection to a server, seen from the client's side. What the server sends is read all the time.
#[derive(Debug)]
pub(crate) struct Peer {
    wire: Wire,
    writer: Writer,
    incoming: UnboundedReceiver<Incoming>,
    ended: Ended,
}

/// A message, or what is wrong with the bytes that came instead.
type Incoming = Result<Vec<u8>, String>;

enum Writer {
    Memory(<MemoryWire as mcp_core::Wire>::Sink),
    Bytes(Box<dyn AsyncWrite + Send + Unpin>),
    Http { served: Arc<Served>, speaks: Option<Revision>, answers: UnboundedSender<Incoming> },
    Closed,
}

/// What tells that the server has ended, and how.
#[derive(Debug)]
enum Ended {
    Task(JoinHandle<Result<(), Error>>),
    Process {
        child: Child,
        stderr: JoinHandle<String>,
    },
    /// It serves others too.
    Never,
}

impl Peer {
    /// A server in this process at the other end of the pair in memory.
    pub(crate) fn memory(server: Server) -> Self {
        let (here, there) = memory();
        let task = tokio::spawn(serve(server, there));
        let (mut source, sink) = here.split();
        let (sender, incoming) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(frame)) = source.next().await {
                let _ = sender.send(match frame {
                    Frame::Line(bytes) => Ok(bytes.to_vec()),
                    other => Err(format!("{other:?}")),
                });
            }
        });
        Self { wire: Wire::Memory, writer: Writer::Memory(sink), incoming, ended: Ended::Task(task) }
    }

    /// A server in this process, with the framing of stdio.
    pub(crate) fn lines(server: Server) -> Self {
        let (here, there) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(there);
        let task = tokio::spawn(mcp_stdio::serve_lines(server, reader, writer));
        let (reader, writer) = tokio::io::split(here);
        Self {
            wire: Wire::Lines,
            writer: Writer::Bytes(Box::new(writer)),
            incoming: read_lines(reader),
            ended: Ended::Task(task),
        }
    }

    /// The everything-server as a process.
    pub(crate) fn stdio() -> Self {
        let mut child = Command::new(everything_server())
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the everything-server starts");
        let (stdin, stdout) = (child.stdin.take().expect("its stdin"), child.stdout.take().expect("its stdout"));
        let mut stderr = child.stderr.take().expect("its stderr");
        let stderr = tokio::spawn(async move {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text).await;
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            wire: Wire::Stdio,
            writer: Writer::Bytes(Box::new(stdin)),
            incoming: read_lines(stdout),
            ended: Ended::Process { child, stderr },
        }
    }

    /// A server in this process that gets each message as a POST, with the headers of the revision.
    pub(crate) async fn http(server: Server, speaks: Option<Revision>) -> Self {
        let served = Arc::new(Served::start(server).await);
        let (answers, incoming) = unbounded_channel();
        Self { wire: Wire::Http, writer: Writer::Http { served, speaks, answers }, incoming, ended: Ended::Never }
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, how: How, bytes: &[u8]) -> Result<(), String> {
        match (&mut self.writer, how) {
            (Writer::Memory(sink), How::Message) => {
                sink.send(&mut vec![Bytes::copy_from_slice(bytes)]).await.map_err(|error| error.to_string())
            }
            (Writer::Bytes(writer), _) => write(writer, how, bytes).await.map_err(|error| error.to_string()),
            (Writer::Http { served, speaks, answers }, How::Message) => {
                let post = speaks.map_or_else(|| Post::new(bytes), |revision| Post::speaking(revision, bytes));
                let (served, answers) = (served.clone(), answers.clone());
                tokio::spawn(async move { answered(&served.send(post).await, &answers) });
                Ok(())
            }
            (Writer::Closed, _) => Err("the input has ended already".to_owned()),
            (_, how) => Err(format!("{how:?} has no meaning on {}", self.wire.name())),
        }
    }

    /// Sends a message that the server must be able to take.
    pub(crate) async fn say(&mut self, message: &str) {
        self.send(How::Message, message.as_bytes()).await.expect("the server reads");
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Incoming {
        let (patience, _) = self.wire.waits();
        match timeout(patience, self.incoming.recv()).await {
            Ok(Some(message)) => message,
            Ok(None) => Err("the server has ended the connection".to_owned()),
            Err(_) => Err(format!("no message in {patience:?}")),
        }
    }

    /// The next message, as JSON.
    pub(crate) async fn hear(&mut self) -> serde_json::Value {
        let message = self.next().await.expect("a message");
        serde_json::from_slice(&message).expect("JSON")
    }

    /// Nothing comes for as long as one would wait for it.
    pub(crate) async fn silence(&mut self) -> Result<(), String> {
        let (_, suspicion) = self.wire.waits();
        match timeout(suspicion, self.incoming.recv()).await {
            Err(_) => Ok(()),
            Ok(None) => Err("the server has ended the connection".to_owned()),
            Ok(Some(message)) => Err(format!("a message that nothing expects: {}", shown(&message))),
        }
    }

    /// Ends the input.
    pub(crate) async fn end_input(&mut self) -> Result<(), String> {
        match std::mem::replace(&mut self.writer, Writer::Closed) {
            Writer::Memory(mut sink) => sink.close().await.map_err(|error| error.to_string()),
            Writer::Bytes(mut writer) => writer.shutdown().await.map_err(|error| error.to_string()),
            Writer::Http { .. } | Writer::Closed => Ok(()),
        }
    }

    /// Ends the input, where that is still to be done, and sees the server end in good order, without another word.
    pub(crate) async fn end(&mut self) -> Result<(), String> {
        self.end_input().await?;
        let (patience, _) = self.wire.waits();
        match timeout(patience, self.incoming.recv()).await {
            Ok(None) => {}
            Ok(Some(message)) => return Err(format!("a message at the end: {}", shown(&message))),
            Err(_) => return Err("the server does not end its side".to_owned()),
        }
        timeout(patience, self.ended.well()).await.unwrap_or_else(|_| Err("the server does not end".into()))
    }
}

impl Ended {
    async fn well(&mut self) -> Result<(), String> {
        match self {
            Self::Task(task) => match task.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(format!("serving failed: {error}")),
                Err(error) => Err(format!("serving ended badly: {error}")),
            },
            Self::Process { child, stderr } => {
                let status = child.wait().await.map_err(|error| error.to_string())?;
                let stderr = stderr.await.unwrap_or_default();
                if status.success() { Ok(()) } else { Err(format!("the process ended with {status}: {stderr}")) }
            }
            Self::Never => Ok(()),
        }
    }
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), how: How, bytes: &[u8]) -> std::io::Result<()> {
    match how {
        How::Raw => writer.write_all(bytes).await?,
        How::Message => writer.write_all(&[bytes, b"\n"].concat()).await?,
        How::Drip => {
            for byte in bytes.iter().chain(b"\n") {
                writer.write_all(&[*byte]).await?;
                writer.flush().await?;
                // So that the reader gets it before the next one.
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        }
    }
    writer.flush().await
}

/// Each line without its end; a last one that has none is told as wrong.
pub(crate) fn read_lines(reader: impl AsyncRead + Send + Unpin + 'static) -> UnboundedReceiver<Incoming> {
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move {
        let mut reader = BufReader::new(reader);
        loop {
            let mut line = Vec::new();
            let incoming = match reader.read_until(b'\n', &mut line).await {
                Ok(0) => return,
                Ok(_) if line.pop() == Some(b'\n') => Ok(line),
                Ok(_) => Err(format!("a line without its end: {}", String::from_utf8_lossy(&line))),
                Err(error) => Err(format!("reading failed: {error}")),
            };
            let _ = sender.send(incoming);
        }
    });
    receiver
}

/// The messages of an HTTP answer, which says 202 if there is none.
fn answered(response: &Response, answers: &UnboundedSender<Incoming>) {
    let messages = response.messages();
    if messages.is_empty() != (response.status() == 202) {
        let _ = answers.send(Err(format!("status {} with {} messages", response.status(), messages.len())));
    }
    for message in messages {
        let _ = answers.send(Ok(message));
    }
}

fn shown(message: &Incoming) -> String {
    match message {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(why) => why.clone(),
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory(_) => "Memory",
            Self::Bytes(_) => "Bytes",
            Self::Http { .. } => "Http",
            Self::Closed => "Closed",
        })
    }
}
