use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mcp_core::{
    Error, FrameSink, FrameSource, Limits, Wire,
    client::{Duplex, IntoTransport, OneWire},
};
use mcp_jsonrpc::{Frame, LineDecoder};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

/// A wire over a byte stream each way, one message a line: pipes, sockets, anything. Servers take it with
/// [`mcp_core::server::serve`], clients connect over it.
///
/// ```
/// use mcp_core::{Client, Limits};
/// use mcp_stdio::Lines;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (reader, writer) = tokio::net::TcpStream::connect("127.0.0.1:7000").await?.into_split();
/// let client = Client::connect(Lines::new(reader, writer, Limits::default().message_bytes)).await?;
/// # drop(client); Ok(()) }
/// ```
#[derive(Debug)]
pub struct Lines<R, W> {
    reader: R,
    writer: W,
    max: usize,
    patience: Option<Duration>,
}

impl<R, W> Lines<R, W> {
    /// A wire whose lines have at most `max` bytes; a longer one is reported as such and passed over.
    pub fn new(reader: R, writer: W, max: usize) -> Self {
        Self { reader, writer, max, patience: None }
    }

    /// For those that anybody can connect to: ends where the first line, or the rest of one that was begun, is waited for
    /// longer than `patience`, and where the first one is none of this protocol. What follows the head of an HTTP request may
    /// be a message that somebody else has put there.
    pub(crate) fn wary(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }
}

impl<R, W> Wire for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    const KIND: &'static str = "stdio";
    type Source = LineSource<R>;
    type Sink = LineSink<W>;

    fn split(self) -> (Self::Source, Self::Sink) {
        (
            LineSource {
                reader: self.reader,
                decoder: LineDecoder::new(self.max),
                ended: false,
                patience: self.patience,
                is_first: true,
            },
            LineSink { writer: self.writer, buffer: Vec::new(), writes: Arc::default() },
        )
    }
}

/// A client connects to whatever is at the other end.
impl<R, W> IntoTransport for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Transport = Duplex<OneWire<Self>>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        Ok(Duplex::new(OneWire::new(self), limits))
    }
}

/// Where lines come from.
#[derive(Debug)]
pub struct LineSource<R> {
    reader: R,
    decoder: LineDecoder,
    ended: bool,
    /// How long a line may take, where not everybody is trusted.
    patience: Option<Duration>,
    /// Whether no line has come yet.
    is_first: bool,
}

/// At least this much is read at once.
const CHUNK: usize = 16 << 10;

impl<R: AsyncRead + Unpin + Send + 'static> FrameSource for LineSource<R> {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.decoder.next_frame() {
                return self.admit(frame).map(Some);
            }
            if self.ended {
                return self.decoder.finish().map(|frame| self.admit(frame)).transpose();
            }
            self.ended = self.read().await? == 0;
        }
    }
}

impl<R: AsyncRead + Unpin> LineSource<R> {
    async fn read(&mut self) -> io::Result<usize> {
        let buffer = self.decoder.buffer();
        let is_due = self.is_first || !buffer.is_empty();
        buffer.reserve(CHUNK);
        let read = self.reader.read_buf(buffer);
        let read = match self.patience.filter(|_| is_due) {
            None => read.await,
            Some(patience) => {
                let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the peer has sent no whole line in time");
                timeout(patience, read).await.map_err(late)?
            }
        };
        read.map_err(failed)
    }

    fn admit(&mut self, frame: Frame) -> io::Result<Frame> {
        if !std::mem::take(&mut self.is_first) || self.patience.is_none() {
            return Ok(frame);
        }
        let start = match &frame {
            Frame::Line(line) | Frame::TooLong(line) => line,
            _ => return Ok(frame),
        };
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start().first();
        match start {
            Some(b'{' | b'[') => Ok(frame),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the peer speaks another protocol")),
        }
    }
}

/// A stream that was aborted has failed: only wires that can say so end in good order with that kind of error.
fn failed(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ConnectionAborted => io::Error::new(io::ErrorKind::ConnectionReset, error),
        _ => error,
    }
}

/// Where lines go.
#[derive(Debug)]
pub struct LineSink<W> {
    writer: W,
    buffer: Vec<u8>,
    writes: Arc<AtomicU64>,
}

/// What the buffer keeps of its memory when it is not in use.
const KEPT: usize = 64 << 10;

impl<W: AsyncWrite + Unpin + Send + 'static> FrameSink for LineSink<W> {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.buffer.clear();
        for frame in frames.drain(..) {
            self.buffer.extend_from_slice(&frame);
            self.buffer.push(b'\n');
        }
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() {
            let written = self.writer.write(rest).await.map_err(failed)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.writes.fetch_add(1, Ordering::Relaxed);
            rest = &rest[written..];
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        self.writer.flush().await.map_err(failed)
    }

    fn writes(&self) -> Option<Arc<AtomicU64>> {
        Some(self.writes.clone())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await.map_err(failed)
    }
}
