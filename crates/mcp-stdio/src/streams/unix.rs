//! Pipes, and sockets, which some hosts use instead, are read and written without threads. For that they are made
//! non-blocking; but that is a property of what is open, which the parent, a shell or a sibling may have open too, and
//! would trip over once this process is gone. So it is put back.

use std::{
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    pin::Pin,
    sync::mpsc,
    task::{Context, Poll},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat},
    stdio::{dup2_stdin, dup2_stdout},
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::{UnixStream, unix::pipe},
};

use super::{Input, Output, thread};

/// The streams as they were found. A process may have closed either.
pub(super) struct Found {
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    is_guarded: bool,
}

/// A stream under a private descriptor.
struct Stream {
    fd: OwnedFd,
    /// Whether it was blocking.
    blocked: bool,
}

impl Found {
    /// Looks at both before either is changed: they may be one and the same.
    pub(super) fn now() -> Self {
        Self { stdin: Stream::of(io::stdin().as_fd()), stdout: Stream::of(io::stdout().as_fd()), is_guarded: false }
    }

    pub(super) fn input(&self) -> io::Result<Input> {
        let Some(Stream { fd, .. }) = &self.stdin else { return Ok(Input(Box::new(tokio::io::empty()))) };
        let waited_for: io::Result<Input> = match kind(fd)? {
            FileType::Fifo => pipe::Receiver::from_owned_fd(fd.try_clone()?).map(|pipe| Input(Box::new(pipe))),
            FileType::Socket => socket(fd.try_clone()?).map(|socket| Input(Box::new(socket))),
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        waited_for.or_else(|_| Attended::new(fd.try_clone()?.into()).map(|input| Input(Box::new(input))))
    }

    pub(super) fn output(&self) -> io::Result<Output> {
        let Some(Stream { fd, .. }) = &self.stdout else { return Ok(Output(Box::new(tokio::io::sink()))) };
        let waited_for: io::Result<Output> = match kind(fd)? {
            FileType::Fifo => pipe::Sender::from_owned_fd(fd.try_clone()?).map(|pipe| Output(Box::new(pipe))),
            FileType::Socket => socket(fd.try_clone()?).map(|socket| Output(Box::new(socket))),
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        waited_for.or_else(|_| Ok(Output(Box::new(thread::Writer::new(Waiting(fd.try_clone()?.into()))?))))
    }

    /// What is printed goes to stderr from here on, and nobody else reads what is sent to this server.
    pub(super) fn guard(&mut self) -> io::Result<()> {
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        self.is_guarded = true;
        if self.stdin.is_some() {
            dup2_stdin(&nothing)?;
        }
        if self.stdout.is_some() && dup2_stdout(io::stderr()).is_err() {
            dup2_stdout(&nothing)?;
        }
        Ok(())
    }

    pub(super) fn put_back(&mut self) {
        if std::mem::take(&mut self.is_guarded) {
            flush();
            // There is nobody to tell that it cannot be done, and nothing else to do.
            let _ = self.stdin.as_ref().map(|stdin| dup2_stdin(&stdin.fd));
            let _ = self.stdout.as_ref().map(|stdout| dup2_stdout(&stdout.fd));
        }
        for stream in [&self.stdin, &self.stdout].into_iter().flatten() {
            if stream.blocked
                && let Ok(flags) = fcntl_getfl(&stream.fd)
            {
                let _ = fcntl_setfl(&stream.fd, flags - OFlags::NONBLOCK);
            }
        }
    }
}

impl Stream {
    /// None if it is closed.
    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        let fd = fd.try_clone_to_owned().ok()?;
        let blocked = !fcntl_getfl(&fd).ok()?.contains(OFlags::NONBLOCK);
        Some(Self { fd, blocked })
    }
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// What was printed without the end of a line belongs on stderr too. Whoever prints this moment may be waiting for a
/// reader for ever, and is not waited for.
fn flush() {
    const PATIENCE: Duration = Duration::from_millis(100);
    let (flushed, done) = mpsc::channel();
    let flushing = std::thread::Builder::new().spawn(move || {
        let _ = io::stdout().flush();
        let _ = flushed.send(());
    });
    if flushing.is_ok() {
        let _ = done.recv_timeout(PATIENCE);
    }
}

/// A file or a terminal, in a thread that may wait. Somebody else may have made it non-blocking.
struct Waiting(File);

impl Waiting {
    fn wait<T>(&mut self, on: PollFlags, mut attempt: impl FnMut(&mut File) -> io::Result<T>) -> io::Result<T> {
        loop {
            match attempt(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.0, on)], None)?;
                }
                outcome => return outcome,
            }
        }
    }
}

/// An input that a thread reads for as long as this is there: what comes later is somebody else's.
struct Attended {
    reader: thread::Reader,
    _here: PipeWriter,
}

impl Attended {
    fn new(file: File) -> io::Result<Self> {
        let (gone, here) = io::pipe()?;
        let reader = thread::Reader::new(Attending { waiting: Waiting(file), gone })?;
        Ok(Self { reader, _here: here })
    }
}

impl AsyncRead for Attended {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

/// The thread's part.
struct Attending {
    waiting: Waiting,
    /// It ends with the other part.
    gone: PipeReader,
}

impl Read for Attending {
    /// Ends where nobody is there any more who would hear of it.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut both = [PollFd::new(&self.waiting.0, PollFlags::IN), PollFd::new(&self.gone, PollFlags::IN)];
        poll(&mut both, None)?;
        if !both[1].revents().is_empty() {
            return Ok(0);
        }
        self.waiting.wait(PollFlags::IN, |file| file.read(buf))
    }
}

impl Write for Waiting {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.wait(PollFlags::OUT, |file| file.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// As at a terminal, where the process may serve again, or ask the user something.
    #[tokio::test]
    async fn what_comes_once_nobody_reads_is_left_to_whoever_reads_next() {
        let (from, mut into) = io::pipe().unwrap();
        let from = File::from(OwnedFd::from(from));
        let mut input = Attended::new(from.try_clone().unwrap()).unwrap();
        into.write_all(b"one").unwrap();
        let mut read = [0; 3];
        input.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"one");
        // The thread waits for more.
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(input);
        into.write_all(b"two").unwrap();
        drop(into);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut next = Attended::new(from).unwrap();
        let mut rest = String::new();
        next.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "two");
    }
}
