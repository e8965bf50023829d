//! The process's own streams: taken while a server is served on them, and put back as they were found.

mod thread;
#[cfg(unix)]
mod unix;

use std::{
    io,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What comes in on stdin.
pub(crate) struct Input(Box<dyn AsyncRead + Send + Unpin>);

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

/// What goes out on stdout.
pub(crate) struct Output(Box<dyn AsyncWrite + Send + Unpin>);

impl AsyncWrite for Output {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    /// It stays open: this process may print to it once it serves no more, which would fail on a socket that was shut down.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Whether somebody has them.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The streams as they were found. Dropping this, behind what reads and writes them, puts them back.
pub(crate) struct Found {
    #[cfg(unix)]
    streams: unix::Found,
}

/// Takes the streams. With `guard`, and where the system has it, nothing else of the process reads or writes them then.
pub(crate) fn take(guard: bool) -> io::Result<(Input, Output, Found)> {
    if TAKEN.swap(true, Ordering::AcqRel) {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the process's streams are being served already"));
    }
    let mut found = Found {
        #[cfg(unix)]
        streams: unix::Found::now(),
    };
    let (input, output) = found.take(guard)?;
    Ok((input, output, found))
}

impl Found {
    #[cfg(unix)]
    fn take(&mut self, guard: bool) -> io::Result<(Input, Output)> {
        let (input, output) = (self.streams.input()?, self.streams.output()?);
        if guard {
            self.streams.guard()?;
        }
        Ok((input, output))
    }

    #[cfg(not(unix))]
    fn take(&mut self, _: bool) -> io::Result<(Input, Output)> {
        let (input, output) = (thread::Reader::new(io::stdin())?, thread::Writer::new(io::stdout())?);
        Ok((Input(Box::new(input)), Output(Box::new(output))))
    }
}

impl Drop for Found {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.streams.put_back();
        TAKEN.store(false, Ordering::Release);
    }
}
