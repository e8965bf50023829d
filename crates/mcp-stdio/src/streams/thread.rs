//! Streams that cannot be waited for, read and written by threads that nothing waits for: whoever sits at a terminal may
//! never press return, and one that was stopped takes nothing.

use std::{
    io::{self, Read, Write},
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::mpsc,
};

/// At most this much is read at once.
const CHUNK: usize = 16 << 10;

/// What a thread reads, one chunk ahead.
pub(crate) struct Reader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    /// What is left of the last one.
    rest: Bytes,
}

impl Reader {
    pub(crate) fn new(mut from: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(1);
        start("mcp-stdin", move || {
            loop {
                let chunk = read(&mut from);
                let is_last = chunk.as_ref().map_or(true, Bytes::is_empty);
                if sender.blocking_send(chunk).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, rest: Bytes::new() })
    }
}

fn read(from: &mut impl Read) -> io::Result<Bytes> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(length) => {
                chunk.truncate(length);
                return Ok(chunk.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl AsyncRead for Reader {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => self.rest = chunk?,
                None => return Poll::Ready(Ok(())),
            }
        }
        let length = self.rest.len().min(buf.remaining());
        buf.put_slice(&self.rest.split_to(length));
        Poll::Ready(Ok(()))
    }
}

/// What a thread writes, one chunk at a time.
pub(crate) struct Writer {
    chunks: mpsc::Sender<Bytes>,
    written: mpsc::Receiver<io::Result<()>>,
    is_writing: bool,
}

impl Writer {
    pub(crate) fn new(mut to: impl Write + Send + 'static) -> io::Result<Self> {
        let (chunks, mut receiver) = mpsc::channel::<Bytes>(1);
        let (sender, written) = mpsc::channel(1);
        start("mcp-stdout", move || {
            while let Some(chunk) = receiver.blocking_recv() {
                if sender.blocking_send(to.write_all(&chunk).and_then(|()| to.flush())).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, written, is_writing: false })
    }
}

impl AsyncWrite for Writer {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.chunks.try_send(Bytes::copy_from_slice(buf)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.is_writing = true;
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_writing {
            return Poll::Ready(Ok(()));
        }
        let written = ready!(self.written.poll_recv(cx)).unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()));
        self.is_writing = false;
        Poll::Ready(written)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_a_thread_reads_and_writes_is_whole() {
        let (from, mut into) = io::pipe().unwrap();
        let (back, to) = io::pipe().unwrap();
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let written = text.clone();
        let feeding = std::thread::spawn(move || into.write_all(&written));
        let mut echoed = Reader::new(back).unwrap();
        let echoing = tokio::spawn(async move {
            let (mut reader, mut writer) = (Reader::new(from).unwrap(), Writer::new(to).unwrap());
            tokio::io::copy(&mut reader, &mut writer).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let mut read = Vec::new();
        echoed.read_to_end(&mut read).await.unwrap();
        echoing.await.unwrap();
        feeding.join().unwrap().unwrap();
        assert_eq!(read, text);
    }

    #[tokio::test]
    async fn that_nobody_reads_is_told_by_the_flush() {
        let (back, to) = io::pipe().unwrap();
        drop(back);
        let mut writer = Writer::new(to).unwrap();
        writer.write_all(b"x").await.unwrap();
        assert_eq!(writer.flush().await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    /// Neither side waits for whoever is to read or write: here nobody ever does.
    #[test]
    fn a_runtime_ends_while_its_threads_wait() {
        let (from, _into) = io::pipe().unwrap();
        let (_back, to) = io::pipe().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async move {
            let (mut reader, mut writer) = (Reader::new(from).unwrap(), Writer::new(to).unwrap());
            let long = vec![0; 1 << 20];
            let both = async { tokio::join!(reader.read_u8(), writer.write_all(&long)) };
            assert!(tokio::time::timeout(Duration::from_millis(50), both).await.is_err());
        });
        // It waits for its tasks and its own threads, and for nothing else.
        drop(runtime);
    }
}
