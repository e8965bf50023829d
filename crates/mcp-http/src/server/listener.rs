//! The connections that [`serve`](crate::serve) takes.

use std::{
    any::Any,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::server::requests::Requests;

/// A listener whose connections write small answers at once, and end when their peer reads nothing for long, or sends
/// no whole head of a request.
pub(super) struct Patient<L> {
    pub(super) listener: L,
    pub(super) patience: Duration,
    /// Fires when all connections are to fail.
    pub(super) severed: CancellationToken,
}

impl<L: Listener> Listener for Patient<L> {
    type Io = PatientStream<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, peer) = self.listener.accept().await;
        // Without it, small events wait for acknowledgements that the peer delays by 40 ms.
        if let Some(tcp) = (&stream as &dyn Any).downcast_ref::<TcpStream>()
            && let Err(error) = tcp.set_nodelay(true)
        {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        (PatientStream::new(stream, self.patience, self.severed.clone()), peer)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A stream whose writes fail when it takes nothing for `patience`, and whose reads fail when for as long no request came
/// whole and none was being answered. Which requests these are, whoever answers them says to `requests`.
pub(super) struct PatientStream<S> {
    stream: S,
    patience: Duration,
    pub(super) requests: Requests,
    /// While a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    /// While a read waits.
    idle: Option<Pin<Box<Sleep>>>,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S> PatientStream<S> {
    fn new(stream: S, patience: Duration, severed: CancellationToken) -> Self {
        let severed = Box::pin(severed.cancelled_owned());
        Self { stream, patience, requests: Requests::default(), stalled: None, idle: None, severed }
    }

    /// What a write came to, or that it waits for too long.
    fn judge<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        self.check_severed(cx)?;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        stalled.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn check_severed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.severed.as_mut().poll(cx).is_ready() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Waits until no request was there for all of `patience`.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let idle = self.idle.get_or_insert_with(|| Box::pin(sleep(self.patience)));
            std::task::ready!(idle.as_mut().poll(cx));
            let quiet = self.requests.quiet();
            if quiet.is_some_and(|quiet| quiet >= self.patience) {
                return Poll::Ready(());
            }
            // It was set when there were others, or while there was one.
            idle.set(sleep(self.patience - quiet.unwrap_or_default()));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PatientStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if read.is_ready() {
            return read;
        }
        self.check_severed(cx)?;
        self.poll_idle(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PatientStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.judge(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.judge(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::Instant,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_slowly_is_written_to_and_one_that_does_not_read_is_given_up() {
        let (here, mut there) = duplex(8);
        let mut stream = PatientStream::new(here, PATIENCE, CancellationToken::new());
        let reader = tokio::spawn(async move {
            let mut part = [0; 8];
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
                there.read_exact(&mut part).await.unwrap();
            }
            there
        });
        stream.write_all(&[0; 40]).await.unwrap();
        let _there = reader.await.unwrap();
        let start = Instant::now();
        assert_eq!(stream.write_all(&[0; 40]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), PATIENCE.as_secs());
    }
}
