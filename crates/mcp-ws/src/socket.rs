//! A WebSocket as a shared wire: text frames in, text frames out, and how it ends.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Sink, Stream};
use mcp_core::{FrameSink, FrameSource, Wire, shown};
use mcp_jsonrpc::{Bytes, Frame};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error as WsError, Message, Utf8Bytes,
        error::ProtocolError,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

/// A WebSocket over a byte stream, as a wire.
#[derive(Debug)]
pub struct Socket<S> {
    stream: WebSocketStream<S>,
    role: Role,
    writes: Option<Arc<AtomicU64>>,
}

#[cfg(feature = "server")]
impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// A socket whose handshake is over; `max` is the longest message that it takes, in bytes, and `writes` counts what
    /// its peer takes.
    pub(crate) async fn server(stream: S, max: usize, writes: Arc<AtomicU64>) -> Self {
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config(max))).await;
        Self { stream, role: Role::Server, writes: Some(writes) }
    }
}

#[cfg(feature = "client")]
impl<S> Socket<S> {
    pub(crate) fn client(stream: WebSocketStream<S>) -> Self {
        Self { stream, role: Role::Client, writes: None }
    }
}

/// Buffers of a size that thousands of connections can have.
pub(crate) fn config(max: usize) -> WebSocketConfig {
    const BUFFER: usize = 16 << 10;
    let config = WebSocketConfig::default().read_buffer_size(BUFFER).write_buffer_size(BUFFER);
    config.max_message_size(Some(max)).max_frame_size(Some(max))
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire for Socket<S> {
    const KIND: &'static str = "websocket";
    type Source = SocketSource<S>;
    type Sink = SocketSink<S>;

    fn split(self) -> (Self::Source, Self::Sink) {
        let shared = Arc::new(Mutex::new(Shared { socket: self.stream, verdict: None, owes_pong: false }));
        (SocketSource(shared.clone()), SocketSink { shared, writes: self.writes, role: self.role })
    }
}

/// Both directions need all of the socket: a ping that is read is answered by a pong. They are polled by one task, so
/// nobody ever waits for the lock.
#[derive(Debug)]
struct Shared<S> {
    socket: WebSocketStream<S>,
    /// What the peer did that ends the connection, as it will be told.
    verdict: Option<CloseCode>,
    /// A ping was read whose answer is not written yet.
    owes_pong: bool,
}

fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where text frames come from.
#[derive(Debug)]
pub struct SocketSource<S>(Arc<Mutex<Shared<S>>>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> FrameSource for SocketSource<S> {
    /// The end is always an error: after it nothing can be written any more, so that nothing need be finished.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        std::future::poll_fn(|cx| lock(&self.0).poll_next(cx)).await.map(Some)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Shared<S> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Frame>> {
        loop {
            if self.owes_pong {
                std::task::ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(broken)?;
                self.owes_pong = false;
            }
            match std::task::ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Text(text))) => return Poll::Ready(Ok(Frame::Line(text.into()))),
                // The answer leaves before anything more is read: pings of a peer that reads nothing would pile up.
                Some(Ok(Message::Ping(_))) => self.owes_pong = true,
                Some(Ok(Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Binary(_))) => return Poll::Ready(Err(self.refuse(CloseCode::Unsupported, "binary"))),
                Some(Ok(Message::Close(frame))) => return Poll::Ready(Err(closed_by_peer(frame.as_ref()))),
                Some(Err(error)) => return Poll::Ready(Err(self.failed(error))),
                None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            }
        }
    }

    fn failed(&mut self, error: WsError) -> io::Error {
        match error {
            WsError::Io(error) => error,
            WsError::ConnectionClosed | WsError::AlreadyClosed => io::ErrorKind::UnexpectedEof.into(),
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => io::ErrorKind::ConnectionReset.into(),
            WsError::Capacity(error) => self.refuse(CloseCode::Size, &error.to_string()),
            WsError::Utf8(error) => self.refuse(CloseCode::Invalid, &error),
            error => self.refuse(CloseCode::Protocol, &error.to_string()),
        }
    }

    fn refuse(&mut self, code: CloseCode, what: &str) -> io::Error {
        self.verdict = Some(code);
        io::Error::new(io::ErrorKind::InvalidData, format!("closed with {code}: {what}"))
    }
}

fn closed_by_peer(frame: Option<&CloseFrame>) -> io::Error {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    let Some(CloseFrame { code, reason }) = frame else {
        return io::Error::new(ConnectionAborted, "the peer closed the connection");
    };
    let (kind, words) = match code {
        CloseCode::Normal | CloseCode::Away => (ConnectionAborted, ""),
        CloseCode::Size => (ConnectionReset, " (a message was too large for it)"),
        _ => (ConnectionReset, ""),
    };
    io::Error::new(kind, format!("the peer closed the connection with {code}{words}: {}", shown(reason)))
}

/// Where text frames go.
#[derive(Debug)]
pub struct SocketSink<S> {
    shared: Arc<Mutex<Shared<S>>>,
    writes: Option<Arc<AtomicU64>>,
    role: Role,
}

/// How long the peer may take to close its side.
const FAREWELL: Duration = Duration::from_secs(1);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> FrameSink for SocketSink<S> {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        for frame in frames.drain(..) {
            let text = Utf8Bytes::try_from(frame).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            self.ready().await?;
            let mut shared = lock(&self.shared);
            Pin::new(&mut shared.socket).start_send(Message::Text(text)).map_err(broken)?;
        }
        std::future::poll_fn(|cx| Pin::new(&mut lock(&self.shared).socket).poll_flush(cx)).await.map_err(broken)
    }

    fn writes(&self) -> Option<Arc<AtomicU64>> {
        self.writes.clone()
    }

    /// Closes with what the peer has done wrong, if it has, and waits for it to close too: a connection that is dropped
    /// while the peer still writes may take the close frame along.
    async fn close(&mut self) -> io::Result<()> {
        let farewell = async {
            let code = lock(&self.shared).verdict.unwrap_or(CloseCode::Normal);
            let frame = Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::default() }));
            // It fails where the peer has closed first, and then the answer to that is what is flushed.
            if self.ready().await.is_ok() {
                let _ = Pin::new(&mut lock(&self.shared).socket).start_send(frame);
            }
            let _ = std::future::poll_fn(|cx| Pin::new(&mut lock(&self.shared).socket).poll_flush(cx)).await;
            // A server closes first, and a client waits for that (RFC 6455, 7.1.1).
            if self.role == Role::Server {
                std::future::poll_fn(|cx| Pin::new(lock(&self.shared).socket.get_mut()).poll_shutdown(cx)).await?;
            }
            std::future::poll_fn(|cx| lock(&self.shared).poll_discard(cx)).await
        };
        timeout(FAREWELL, farewell).await.unwrap_or(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> SocketSink<S> {
    async fn ready(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| Pin::new(&mut lock(&self.shared).socket).poll_ready(cx)).await.map_err(broken)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Shared<S> {
    /// Reads to the end, past whatever it is, since frames may have no meaning any more.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut waste = [0; 4 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut waste);
            std::task::ready!(Pin::new(self.socket.get_mut()).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

fn broken(error: WsError) -> io::Error {
    match error {
        WsError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::BrokenPipe, error),
    }
}
