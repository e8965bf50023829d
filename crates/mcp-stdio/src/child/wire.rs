use std::{io, time::Duration};

use bytes::Bytes;
use mcp_core::{FrameSink, FrameSource, Wire};
use mcp_jsonrpc::Frame;
use tokio::{
    process::{ChildStdin, ChildStdout},
    time::{Instant, sleep_until, timeout},
};

use super::{
    process::{Exit, Process},
    stderr::LastWords,
};
use crate::{LineSink, LineSource, Lines};

/// The streams of a child process.
#[derive(Debug)]
pub struct ChildWire {
    pub(super) lines: Lines<ChildStdout, ChildStdin>,
    pub(super) process: Process,
    pub(super) last_words: LastWords,
}

impl Wire for ChildWire {
    const KIND: &'static str = "stdio";
    type Source = ChildSource;
    type Sink = ChildSink;

    fn split(self) -> (Self::Source, Self::Sink) {
        let (lines, sink) = self.lines.split();
        let source = ChildSource { lines, exit: self.process.exit(), until: None, last_words: self.last_words };
        (source, ChildSink { lines: Some(sink), process: self.process })
    }
}

/// A child's stdout, and how the child ended.
#[derive(Debug)]
pub struct ChildSource {
    lines: LineSource<ChildStdout>,
    exit: Exit,
    /// Until when is read, once it has exited.
    until: Option<Instant>,
    last_words: LastWords,
}

/// How long an exit and the rest of stderr may come behind the end of stdout, and the rest of stdout behind an exit.
const CLOSE_BEHIND: Duration = Duration::from_millis(500);

impl FrameSource for ChildSource {
    /// At the end, the error tells the exit status and the last lines of stderr.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        tokio::select! {
            biased;
            frame = self.lines.next() => match frame? {
                Some(frame) => Ok(Some(frame)),
                None => Err(self.ended().await),
            },
            // What it has started may hold its stdout open, and is not who was spoken to.
            () = gone(self.exit.clone(), &mut self.until) => Err(self.ended().await),
        }
    }
}

/// Waits until it has exited, and its stdout has had its time since.
async fn gone(exit: Exit, until: &mut Option<Instant>) {
    exit.status().await;
    sleep_until(*until.get_or_insert_with(|| Instant::now() + CLOSE_BEHIND)).await;
}

impl ChildSource {
    async fn ended(&self) -> io::Error {
        let exited = timeout(CLOSE_BEHIND, self.exit.clone().status());
        let words = timeout(CLOSE_BEHIND, self.last_words.clone().all());
        let (exited, words) = tokio::join!(exited, words);
        let (exited, words) = (exited.ok().flatten(), words.unwrap_or_else(|_| self.last_words.so_far()));
        let (kind, how) = match exited {
            None => (io::ErrorKind::UnexpectedEof, "the server closed its stdout".to_owned()),
            Some(status) if status.success() => (io::ErrorKind::UnexpectedEof, format!("the server ended ({status})")),
            Some(status) => (io::ErrorKind::BrokenPipe, format!("the server failed ({status})")),
        };
        let words = if words.is_empty() { String::new() } else { format!("; it said last: {}", words.join(" | ")) };
        io::Error::new(kind, how + &words)
    }
}

/// A child's stdin, and the child.
#[derive(Debug)]
pub struct ChildSink {
    /// None once stdin is closed.
    lines: Option<LineSink<ChildStdin>>,
    process: Process,
}

impl FrameSink for ChildSink {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.lines.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.send(frames).await
    }

    /// Closes stdin and waits; then asks the child to end, and waits; then ends it.
    async fn close(&mut self) -> io::Result<()> {
        self.lines = None;
        self.process.end().await;
        Ok(())
    }
}
