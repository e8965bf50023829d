//! The process's own streams without threads, where the system allows: pipes, and sockets, which some hosts use instead.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::FileTypeExt,
    },
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout},
    net::{UnixStream, unix::pipe},
};

/// The process's stdin.
pub(crate) enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    /// A file or a terminal, which cannot be waited for: tokio reads it in a thread.
    Other(Stdin),
}

/// The process's stdout.
pub(crate) enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(Stdout),
}

pub(crate) fn stdin() -> Input {
    match kind(io::stdin().as_fd()) {
        Ok(Kind::Pipe(fd)) => pipe::Receiver::from_owned_fd(fd).map(Input::Pipe),
        Ok(Kind::Socket(fd)) => socket(fd).map(Input::Socket),
        _ => Ok(Input::Other(tokio::io::stdin())),
    }
    .unwrap_or_else(|_| Input::Other(tokio::io::stdin()))
}

pub(crate) fn stdout() -> Output {
    match kind(io::stdout().as_fd()) {
        Ok(Kind::Pipe(fd)) => pipe::Sender::from_owned_fd(fd).map(Output::Pipe),
        Ok(Kind::Socket(fd)) => socket(fd).map(Output::Socket),
        _ => Ok(Output::Other(tokio::io::stdout())),
    }
    .unwrap_or_else(|_| Output::Other(tokio::io::stdout()))
}

enum Kind {
    Pipe(OwnedFd),
    Socket(OwnedFd),
    Other,
}

fn kind(fd: BorrowedFd<'_>) -> io::Result<Kind> {
    let file = File::from(fd.try_clone_to_owned()?);
    let kind = file.metadata()?.file_type();
    Ok(match () {
        () if kind.is_fifo() => Kind::Pipe(file.into()),
        () if kind.is_socket() => Kind::Socket(file.into()),
        () => Kind::Other,
    })
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buf),
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Other(other) => Pin::new(other).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, buf),
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Other(other) => Pin::new(other).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Self::Socket(socket) => Pin::new(socket).poll_flush(cx),
            Self::Other(other) => Pin::new(other).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Other(other) => Pin::new(other).poll_shutdown(cx),
        }
    }
}
