use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often a stream gave something, and took something. A frame may take longer to arrive than a peer may be silent.
#[derive(Debug, Clone)]
pub(crate) struct Traffic {
    reads: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
    /// How many bytes it may still give, unless that is [`NO_BOUND`].
    room: Arc<AtomicUsize>,
}

const NO_BOUND: usize = usize::MAX;

impl Traffic {
    /// Lets the stream give so many bytes more, and fail then; `None`: any number.
    #[cfg(feature = "server")]
    pub(super) fn bound(&self, most: Option<usize>) {
        self.room.store(most.unwrap_or(NO_BOUND), Ordering::Relaxed);
    }

    /// How many of `wanted` bytes the stream may give.
    fn room(&self, wanted: usize) -> io::Result<usize> {
        match self.room.load(Ordering::Relaxed) {
            0 if wanted > 0 => Err(io::Error::new(io::ErrorKind::InvalidData, "more came than may come yet")),
            room => Ok(room.min(wanted)),
        }
    }

    fn gave(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let _ = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| {
            (room != NO_BOUND).then(|| room.saturating_sub(bytes))
        });
    }

    pub(super) fn read(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Both directions, counted by everything that holds it.
    pub(super) fn writes(&self) -> Arc<AtomicU64> {
        self.writes.clone()
    }

    pub(super) fn written(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }
}

/// A stream that counts what its peer says and takes, so that a slow peer is told from a dead one.
#[derive(Debug)]
pub struct Counted<S> {
    stream: S,
    traffic: Traffic,
}

impl<S> Counted<S> {
    /// The stream, and what it counts.
    pub(crate) fn new(stream: S) -> (Self, Traffic) {
        let traffic =
            Traffic { reads: Arc::default(), writes: Arc::default(), room: Arc::new(AtomicUsize::new(NO_BOUND)) };
        (Self { stream, traffic: traffic.clone() }, traffic)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let room = self.traffic.room(buf.remaining())?;
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        if read > 0 {
            self.traffic.gave(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(1..)) = written {
            self.traffic.writes.fetch_add(1, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
