use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use mcp_core::{
    Error, FrameSink, FrameSource, Limits, Wire,
    client::{Duplex, IntoTransport, OneWire},
};
use mcp_jsonrpc::{Frame, LineDecoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

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
}

impl<R, W> Lines<R, W> {
    /// A wire whose lines have at most `max` bytes; a longer one is reported as such and passed over.
    pub fn new(reader: R, writer: W, max: usize) -> Self {
        Self { reader, writer, max }
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
            LineSource { reader: self.reader, decoder: LineDecoder::new(self.max), ended: false },
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
}

/// At least this much is read at once.
const CHUNK: usize = 16 << 10;

impl<R: AsyncRead + Unpin + Send + 'static> FrameSource for LineSource<R> {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.decoder.next_frame() {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(self.decoder.finish());
            }
            let buffer = self.decoder.buffer();
            buffer.reserve(CHUNK);
            self.ended = self.reader.read_buf(buffer).await? == 0;
        }
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
            let written = self.writer.write(rest).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.writes.fetch_add(1, Ordering::Relaxed);
            rest = &rest[written..];
        }
        self.buffer.clear();
        self.buffer.shrink_to(KEPT);
        self.writer.flush().await
    }

    fn writes(&self) -> Option<Arc<AtomicU64>> {
        Some(self.writes.clone())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}
