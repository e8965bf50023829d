//! A WebSocket as a shared wire: text frames in, text frames out, and how it ends. Both directions are one state, polled by
//! one task: what keeps the socket alive is polled with the direction that writes.

mod counted;
mod ending;
pub(crate) mod ledger;
mod link;
mod pulse;
mod resume;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

pub use counted::Counted;
pub(crate) use ending::{End, Verdict};
pub(crate) use link::Link;
#[cfg(feature = "client")]
pub(crate) use link::config;
use mcp_core::{Farewell, FrameSink, FrameSource, Wire};
use mcp_jsonrpc::{Bytes, Frame};
pub(crate) use resume::{Renewal, Renewed, Resume};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::socket::ledger::{Broken, Hello, Read};

/// A WebSocket over a byte stream, as a wire. Where both sides resume, it outlives the stream.
#[derive(Debug)]
pub struct Socket<S>(Shared<S>);

#[cfg(feature = "server")]
impl<S: AsyncRead + AsyncWrite + Unpin> Socket<Counted<S>> {
    /// A server's side of a WebSocket whose handshake is over, for servers that take their upgrades themselves. It takes
    /// messages of [`Limits::message_bytes`](mcp_core::Limits), and pings every [`Limits::keep_alive`](mcp_core::Limits).
    pub async fn server(stream: S, limits: &mcp_core::Limits) -> Self {
        Self::new(Link::server(stream, limits.message_bytes, Some(limits.keep_alive)).await, None)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(crate) fn new(link: Link<S>, resume: Option<Resume<S>>) -> Self {
        let resume = resume.map(Box::new);
        Self(Shared { link: Some(link), resume, ahead: VecDeque::new(), ahead_bytes: 0, is_awaited: false, over: None })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Wire for Socket<S> {
    const KIND: &'static str = "websocket";
    type Source = SocketSource<S>;
    type Sink = SocketSink<S>;

    fn split(self) -> (Self::Source, Self::Sink) {
        let shared = Arc::new(Mutex::new(self.0));
        (SocketSource(shared.clone()), SocketSink(shared))
    }
}

/// All of a connection. Both directions need all of the socket: a ping that is read is answered by a pong. They are polled
/// by one task, so nobody ever waits for the lock.
struct Shared<S> {
    /// The socket, unless it was lost and the connection waits for another.
    link: Option<Link<S>>,
    resume: Option<Box<Resume<S>>>,
    /// What was read while nobody waited for it, so that pings are answered, and the peer's silence is told from ours.
    ahead: VecDeque<Bytes>,
    ahead_bytes: usize,
    /// Somebody waits for the next frame, and will be polled when it comes.
    is_awaited: bool,
    /// How it ended.
    over: Option<(io::ErrorKind, String)>,
}

/// What was read, and what waits to be written, is whoever's it is.
impl<S> std::fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("has_socket", &self.link.is_some())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// How much is read while nobody waits for it, where the two sides have not said how much it may be.
const AHEAD: usize = 64;
const AHEAD_BYTES: usize = 256 << 10;

fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where text frames come from.
#[derive(Debug)]
pub struct SocketSource<S>(Arc<Mutex<Shared<S>>>);

/// While somebody waits, nothing is read ahead.
struct Awaiting<'a, S>(&'a Mutex<Shared<S>>);

impl<S> Drop for Awaiting<'_, S> {
    fn drop(&mut self) {
        lock(self.0).is_awaited = false;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> FrameSource for SocketSource<S> {
    /// The end is always an error: after it nothing can be written any more, so that nothing need be finished.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        let awaiting = Awaiting(&self.0);
        std::future::poll_fn(|cx| {
            let mut shared = lock(awaiting.0);
            let next = shared.poll_next(cx);
            shared.is_awaited = next.is_pending();
            next
        })
        .await
        .map(|text| Some(Frame::Line(text)))
    }
}

/// Where text frames go.
#[derive(Debug)]
pub struct SocketSink<S>(Arc<Mutex<Shared<S>>>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> FrameSink for SocketSink<S> {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        for frame in frames.drain(..) {
            let text = Utf8Bytes::try_from(frame).map_err(|_| lock(&self.0).our_fault("a message was not UTF-8"))?;
            std::future::poll_fn(|cx| lock(&self.0).poll_put(&text, cx)).await?;
        }
        std::future::poll_fn(|cx| lock(&self.0).poll_sent(cx)).await
    }

    fn writes(&self) -> Option<Arc<AtomicU64>> {
        let shared = lock(&self.0);
        match (&shared.resume, &shared.link) {
            (Some(resume), _) => Some(resume.writes.clone()),
            (None, link) => link.as_ref().map(|link| link.traffic().writes()),
        }
    }

    async fn tend(&mut self) -> io::Error {
        std::future::poll_fn(|cx| lock(&self.0).poll_tend(cx)).await
    }

    fn because(&mut self, why: Farewell) {
        if let Some(link) = &mut lock(&self.0).link {
            link.because(why.into());
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let link = {
            let mut shared = lock(&self.0);
            shared.resume = None;
            shared.link.take()
        };
        match link {
            Some(mut link) => link.close().await,
            None => Ok(()),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Shared<S> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let text = match self.ahead.pop_front() {
            Some(text) => {
                self.ahead_bytes -= text.len();
                text
            }
            None => ready!(self.poll_text(cx))?,
        };
        if let Some(resume) = &mut self.resume {
            resume.ledger.took(text.len());
        }
        Poll::Ready(Ok(text))
    }

    /// The next message off the socket.
    fn poll_text(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        loop {
            self.alive()?;
            let Some(link) = &mut self.link else {
                ready!(self.poll_renewal(cx))?;
                continue;
            };
            match ready!(link.poll_text(cx)) {
                Ok(text) => {
                    if self.is_message(&text)? {
                        return Poll::Ready(Ok(text));
                    }
                }
                Err(end) => self.on_end(end)?,
            }
        }
    }

    /// Whether a text is a message, and not about messages.
    fn is_message(&mut self, text: &[u8]) -> io::Result<bool> {
        let Some(resume) = &mut self.resume else { return Ok(true) };
        match resume.ledger.read(text) {
            Ok(Read::Taken) => Ok(false),
            Ok(Read::Message) if resume.ledger.is_overrun(resume.most) => {
                Err(self.refuse(Verdict::OVERRUN, "more came than there is room for"))
            }
            Ok(Read::Message) => Ok(true),
            Err(Broken(why)) => Err(self.refuse(Verdict::BROKEN, why)),
        }
    }

    /// Sees to what is due beside messages. Fails once the connection is over.
    fn poll_upkeep(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.alive()?;
        let is_full = self.is_full();
        if let Some(link) = &mut self.link {
            match link.poll_beat(cx, is_full) {
                Ok(false) => {}
                Ok(true) => {
                    if let Some(resume) = &mut self.resume {
                        resume.is_beat = true;
                    }
                }
                Err(end) => self.on_end(end)?,
            }
        }
        if self.resume.is_some()
            && let Poll::Ready(renewed) = self.poll_renewal(cx)
        {
            renewed?;
        }
        self.read_ahead(cx)
    }

    /// A source that waits is polled by itself, and told of the end there.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.is_awaited && !self.is_full() {
            match self.poll_text(cx) {
                Poll::Ready(Ok(text)) => {
                    self.ahead_bytes += text.len();
                    self.ahead.push_back(text);
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Whether no more is read ahead. Where both sides resume, what the peer may send is bounded by what it was told, and
    /// what is behind it, being about our own messages, is needed.
    fn is_full(&self) -> bool {
        self.resume.is_none() && (self.ahead.len() >= AHEAD || self.ahead_bytes >= AHEAD_BYTES)
    }

    fn poll_tend(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let tended = self.poll_upkeep(cx).and_then(|()| match self.poll_pump(cx) {
            Poll::Ready(Err(error)) => Err(error),
            _ => Ok(()),
        });
        match tended {
            Ok(()) => Poll::Pending,
            Err(_) if self.is_awaited => {
                // Whoever reads is told, once it is polled.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(error),
        }
    }

    /// Takes a message, to be sent, once there is room for one.
    fn poll_put(&mut self, text: &Utf8Bytes, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_meanwhile(cx, |shared, cx| shared.poll_take(text, cx))
    }

    /// Waits until what was put has left, or is kept for the next socket.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_meanwhile(cx, Self::poll_pump)
    }

    /// Does something, and where it has to wait, sees meanwhile to what is due beside; that may be what it waits for.
    fn poll_meanwhile(
        &mut self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Self, &mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        self.alive()?;
        if let Poll::Ready(done) = poll(self, cx) {
            return Poll::Ready(done);
        }
        self.poll_upkeep(cx)?;
        poll(self, cx)
    }

    fn poll_take(&mut self, text: &Utf8Bytes, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.resume.is_some() {
            let _ = self.poll_pump(cx)?;
        }
        match (&mut self.resume, &mut self.link) {
            (Some(resume), _) if !resume.ledger.has_room() => Poll::Pending,
            (Some(resume), _) => {
                resume.ledger.keep(text.clone());
                Poll::Ready(Ok(()))
            }
            (None, Some(link)) => match ready!(link.poll_put(text, cx)) {
                Ok(()) => Poll::Ready(Ok(())),
                Err(end) => Poll::Ready(Err(end.into_error())),
            },
            (None, None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Sends what is kept, and what is to be said of the peer's messages, and flushes.
    fn poll_pump(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let Some(link) = &mut self.link else { return Poll::Ready(Ok(())) };
            let pumped = match &mut self.resume {
                Some(resume) => resume.poll_pump(link, cx),
                None => link.poll_left(cx),
            };
            match ready!(pumped) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(end) if self.resume.is_some() => self.on_end(end)?,
                Err(end) => return Poll::Ready(Err(end.into_error())),
            }
        }
    }

    /// Comes by the next socket, in place of the one that there may be.
    fn poll_renewal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(resume) = &mut self.resume else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        let (link, hello) = match ready!(resume.renewal.poll(cx)) {
            Ok(renewed) => renewed,
            Err(error) => return Poll::Ready(Err(self.ended(error))),
        };
        // Whoever waits for a message of the old one waits on the new one from here on.
        cx.waker().wake_by_ref();
        if let Some(mut old) = self.link.replace(link) {
            old.because(Verdict::REPLACED);
            tokio::spawn(async move { old.close().await });
        }
        Poll::Ready(self.renewed(&hello))
    }

    fn renewed(&mut self, hello: &Hello) -> io::Result<()> {
        let (Some(resume), Some(link)) = (&mut self.resume, &mut self.link) else { return Ok(()) };
        (resume.counted, resume.is_beat) = (0, true);
        if let Some(answer) = resume.renewal.answer(resume.hello())
            && let Err(end) = link.put(answer.to_text())
        {
            return self.on_end(end);
        }
        resume.ledger.resume(hello).map_err(|Broken(why)| self.refuse(Verdict::BROKEN, why))
    }

    /// The socket has ended. Where it was lost and can be resumed, the connection goes on without one.
    fn on_end(&mut self, end: End) -> io::Result<()> {
        match (end, &mut self.resume) {
            (End::Lost(error), Some(resume)) => {
                tracing::debug!(%error, "a socket was lost, and may be resumed");
                self.link = None;
                resume.renewal.lost(resume.hello());
                Ok(())
            }
            (end, _) => Err(self.ended(end.into_error())),
        }
    }

    fn refuse(&mut self, verdict: Verdict, why: &str) -> io::Error {
        let error = match &mut self.link {
            Some(link) => link.refuse(verdict, why).into_error(),
            None => io::ErrorKind::InvalidData.into(),
        };
        self.ended(error)
    }

    fn our_fault(&mut self, why: &str) -> io::Error {
        self.refuse(Verdict::OUR_FAULT, why)
    }

    fn ended(&mut self, error: io::Error) -> io::Error {
        self.over = Some((error.kind(), error.to_string()));
        // Nobody finds it any more.
        self.resume = None;
        error
    }

    fn alive(&self) -> io::Result<()> {
        self.over.as_ref().map_or(Ok(()), |(kind, told)| Err(io::Error::new(*kind, told.clone())))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Resume<S> {
    fn poll_pump(&mut self, link: &mut Link<S>, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        while let Some(message) = self.ledger.next() {
            ready!(link.poll_put(message, cx))?;
            self.ledger.sent();
        }
        if let Some(told) = self.ledger.tell(std::mem::take(&mut self.is_beat)) {
            link.put(told)?;
        }
        let flushed = link.poll_left(cx);
        let written = link.traffic().written();
        self.writes.fetch_add(written - std::mem::replace(&mut self.counted, written), Ordering::Relaxed);
        flushed
    }
}
