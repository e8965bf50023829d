use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often a stream gave something, and took something. A frame may take longer to arrive than a peer may be silent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic {
    reads: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Traffic {
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
        let traffic = Traffic::default();
        (Self { stream, traffic: traffic.clone() }, traffic)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.traffic.reads.fetch_add(1, Ordering::Relaxed);
        }
        read
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
