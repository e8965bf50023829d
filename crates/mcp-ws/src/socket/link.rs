//! One WebSocket: what is read from it, what is written to it, and how it ends.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{Sink, Stream};
use mcp_core::Secrets;
use mcp_jsonrpc::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error as WsError, Message, Utf8Bytes,
        error::ProtocolError,
        protocol::{Role, WebSocketConfig},
    },
};

#[cfg(feature = "server")]
use crate::socket::counted::Counted;
use crate::socket::{
    counted::Traffic,
    ending::{End, Verdict, closed_by_peer},
    pulse::{Beat, Pause, Pulse},
};

/// A WebSocket whose handshake is over.
#[derive(Debug)]
pub(crate) struct Link<S> {
    stream: WebSocketStream<S>,
    role: Role,
    traffic: Traffic,
    pulse: Option<Pulse>,
    /// A ping was read whose answer is not written yet.
    owes_pong: bool,
    /// It is time to ask whether the peer is there.
    owes_ping: bool,
    /// Something was written, and may not have left.
    owes_flush: bool,
    /// What ends it, as the peer will be told; `None` once there is nobody to tell.
    verdict: Option<Verdict>,
    /// What the peer was told that nobody else may read.
    secrets: Secrets,
}

/// Buffers of a size that thousands of connections can have.
pub(crate) fn config(max: usize) -> WebSocketConfig {
    const BUFFER: usize = 16 << 10;
    let config = WebSocketConfig::default().read_buffer_size(BUFFER).write_buffer_size(BUFFER);
    config.max_message_size(Some(max)).max_frame_size(Some(max))
}

/// How long the peer may take to close its side.
const FAREWELL: Duration = Duration::from_secs(1);

#[cfg(feature = "server")]
impl<S: AsyncRead + AsyncWrite + Unpin> Link<Counted<S>> {
    /// The server's side, for messages of `max` bytes.
    pub(crate) async fn server(stream: S, max: usize, keep_alive: Option<Duration>) -> Self {
        let (stream, traffic) = Counted::new(stream);
        let stream = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config(max))).await;
        Self::new(stream, Role::Server, traffic, keep_alive)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// The first text, for which nothing more is read than `most` bytes, frames about nothing among them.
    #[cfg(feature = "server")]
    pub(crate) async fn first_text(&mut self, most: usize) -> Result<Bytes, End> {
        self.traffic.bound(Some(most));
        let text = std::future::poll_fn(|cx| self.poll_text(cx)).await;
        self.traffic.bound(None);
        text
    }

    pub(crate) fn new(stream: WebSocketStream<S>, role: Role, traffic: Traffic, keep_alive: Option<Duration>) -> Self {
        Self {
            stream,
            role,
            traffic,
            pulse: keep_alive.map(Pulse::new),
            owes_pong: false,
            owes_ping: false,
            owes_flush: false,
            verdict: Some(Verdict::NORMAL),
            secrets: Secrets::default(),
        }
    }

    /// The same, whose errors do not repeat these.
    #[cfg(feature = "client")]
    pub(crate) fn with_secrets(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// From here on the peer knows this one, too.
    pub(crate) fn add_secret(&mut self, secret: &str) {
        self.secrets.add(secret);
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The next text. All else is dealt with, or ends the socket.
    pub(crate) fn poll_text(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, End>> {
        loop {
            if self.owes_pong {
                ready!(self.poll_flush(cx))?;
                self.owes_pong = false;
            }
            match ready!(Pin::new(&mut self.stream).poll_next(cx)) {
                Some(Ok(Message::Text(text))) => return Poll::Ready(Ok(text.into())),
                // The answer leaves before anything more is read: pings of a peer that reads nothing would pile up.
                Some(Ok(Message::Ping(_))) => self.owes_pong = true,
                Some(Ok(Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Binary(_))) => {
                    return Poll::Ready(Err(self.refuse(Verdict::BINARY, "a binary frame")));
                }
                Some(Ok(Message::Close(frame))) => {
                    let closed = closed_by_peer(frame.as_ref(), &self.secrets);
                    tracing::debug!(%closed, "a socket was closed");
                    return Poll::Ready(Err(End::Over(closed)));
                }
                Some(Err(error)) => return Poll::Ready(Err(self.failed(error))),
                None => return Poll::Ready(Err(End::Lost(io::ErrorKind::UnexpectedEof.into()))),
            }
        }
    }

    fn failed(&mut self, error: WsError) -> End {
        match error {
            WsError::Io(error) => End::Lost(error),
            WsError::ConnectionClosed | WsError::AlreadyClosed => End::Lost(io::ErrorKind::UnexpectedEof.into()),
            WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                End::Lost(io::ErrorKind::ConnectionReset.into())
            }
            WsError::Capacity(error) => self.refuse(Verdict::TOO_LARGE, &error.to_string()),
            WsError::Utf8(error) => self.refuse(Verdict::NO_TEXT, &error),
            error => self.refuse(Verdict::BROKEN, &error.to_string()),
        }
    }

    /// Ends the socket, which is to be closed with `verdict`.
    pub(super) fn refuse(&mut self, verdict: Verdict, what: &str) -> End {
        self.verdict = Some(verdict);
        let code = u16::from(verdict.code);
        tracing::debug!(code, what, "a socket is closed");
        End::Over(io::Error::new(io::ErrorKind::InvalidData, format!("closed with {code}: {what}")))
    }

    /// Says what it is closed with, unless something else ended it already.
    pub(crate) fn because(&mut self, why: Verdict) {
        if self.verdict == Some(Verdict::NORMAL) {
            self.verdict = Some(why);
        }
    }

    /// Takes a text once there is room for one, to be flushed.
    pub(super) fn poll_put(&mut self, text: &Utf8Bytes, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        ready!(Pin::new(&mut self.stream).poll_ready(cx)).map_err(broken)?;
        Poll::Ready(self.put(text.clone()))
    }

    /// Takes a text, to be flushed.
    pub(crate) fn put(&mut self, text: Utf8Bytes) -> Result<(), End> {
        self.owes_flush = true;
        Pin::new(&mut self.stream).start_send(Message::Text(text)).map_err(broken)
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx)).map_err(broken)?;
        self.owes_flush = false;
        Poll::Ready(Ok(()))
    }

    /// The same, where there is something to flush.
    pub(super) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        if self.owes_flush { self.poll_flush(cx) } else { Poll::Ready(Ok(())) }
    }

    /// Keeps it alive: says whether it was time to, and ends it where the peer is dead.
    pub(super) fn poll_beat(&mut self, cx: &mut Context<'_>, is_full: bool) -> Result<bool, End> {
        let mut has_beaten = false;
        let pause = match (is_full, self.owes_pong) {
            (true, _) => Pause::Full,
            (false, true) => Pause::Unanswered,
            (false, false) => Pause::None,
        };
        while let Some(Poll::Ready(beat)) = self.pulse.as_mut().map(|pulse| pulse.poll(cx, &self.traffic, pause)) {
            match beat {
                Beat::Ask => self.owes_ping = true,
                Beat::Dead(silence) => return Err(self.died(silence)),
            }
            has_beaten = true;
        }
        if self.owes_ping && self.is_ready(cx)? {
            Pin::new(&mut self.stream).start_send(Message::Ping(Bytes::new())).map_err(broken)?;
            (self.owes_ping, self.owes_flush) = (false, true);
        }
        if let Poll::Ready(Err(end)) = self.poll_left(cx) {
            return Err(end);
        }
        Ok(has_beaten)
    }

    fn is_ready(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        match Pin::new(&mut self.stream).poll_ready(cx) {
            Poll::Ready(ready) => ready.map(|()| true).map_err(broken),
            Poll::Pending => Ok(false),
        }
    }

    fn died(&mut self, silence: Duration) -> End {
        self.verdict = None;
        let message = format!("nothing was heard of the peer for {} ms: it is taken for dead", silence.as_millis());
        End::Lost(io::Error::new(io::ErrorKind::TimedOut, message))
    }

    /// Closes with the verdict, and waits for the peer to close too: a connection that is dropped while the peer still
    /// writes may take the close frame along.
    pub(crate) async fn close(&mut self) -> io::Result<()> {
        let Some(verdict) = self.verdict else { return Ok(()) };
        let farewell = async {
            // It fails where the peer has closed first, and then the answer to that is what is flushed.
            if std::future::poll_fn(|cx| self.meanwhile(cx, |stream, cx| stream.poll_ready(cx))).await.is_ok() {
                let _ = Pin::new(&mut self.stream).start_send(Message::Close(Some(verdict.frame())));
            }
            let _ = std::future::poll_fn(|cx| self.meanwhile(cx, |stream, cx| stream.poll_flush(cx))).await;
            // A server closes first, and a client waits for that (RFC 6455, 7.1.1).
            if self.role == Role::Server {
                std::future::poll_fn(|cx| Pin::new(self.stream.get_mut()).poll_shutdown(cx)).await?;
            }
            std::future::poll_fn(|cx| self.poll_discard(cx)).await
        };
        timeout(FAREWELL, farewell).await.unwrap_or(Ok(()))
    }

    /// Does something while what comes is read: a peer that waits for its reader would take nothing, either.
    fn meanwhile<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut WebSocketStream<S>>, &mut Context<'_>) -> Poll<Result<T, WsError>>,
    ) -> Poll<Result<T, WsError>> {
        let done = poll(Pin::new(&mut self.stream), cx);
        if done.is_pending() && self.poll_discard(cx).is_ready() {
            return Poll::Ready(Err(WsError::ConnectionClosed));
        }
        done
    }

    /// Reads to the end, past whatever it is, since frames may have no meaning any more.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut waste = [0; 4 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut waste);
            ready!(Pin::new(self.stream.get_mut()).poll_read(cx, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

fn broken(error: WsError) -> End {
    End::Lost(match error {
        WsError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::BrokenPipe, error),
    })
}
