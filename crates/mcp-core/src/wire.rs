//! Server path 11 of 11 (shared wires): what a shared wire is, and how queued frames leave on it. Before: `crates/mcp-jsonrpc/src/encode.rs`.

use std::{
    future::Future,
    io,
    sync::{Arc, atomic::AtomicU64},
};

use mcp_jsonrpc::{Bytes, Frame};

use crate::mailbox::Mailbox;

/// Where something to read is always at hand, writing and the tasks of calls have a turn after so many messages.
#[derive(Debug, Default)]
pub(crate) struct Turns(u64);

impl Turns {
    const MESSAGES: u64 = 64;

    /// Before each message that is read.
    pub(crate) async fn next(&mut self) {
        self.0 += 1;
        if self.0.is_multiple_of(Self::MESSAGES) {
            tokio::task::yield_now().await;
        }
    }
}

/// A wire that both sides share for all their messages: stdio, WebSocket, memory, any byte stream in lines.
///
/// Both roles drive it with the same loop, so a new wire needs no more than this.
pub trait Wire: Send + 'static {
    /// What observers are told that it is.
    const KIND: &'static str = "other";
    /// Where frames come from.
    type Source: FrameSource;
    /// Where frames go.
    type Sink: FrameSink;

    /// The two directions.
    fn split(self) -> (Self::Source, Self::Sink);
}

/// Where frames come from.
pub trait FrameSource: Send + 'static {
    /// The next frame; `None` at the end. Dropping the future loses nothing.
    ///
    /// An error of the kind `ConnectionAborted` is no failure: the peer has ended the connection in good order, and nothing
    /// can be written to it any more.
    fn next(&mut self) -> impl Future<Output = io::Result<Option<Frame>>> + Send;
}

/// Why this side ends a connection, for wires that can say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Farewell {
    /// Nothing was asked, and nothing ran, for as long as a connection may be idle.
    Idle,
    /// This side is stopping.
    GoingAway,
}

/// Where frames go.
pub trait FrameSink: Send + 'static {
    /// Writes all of `frames`, in as few writes as can be, and leaves it empty.
    fn send(&mut self, frames: &mut Vec<Bytes>) -> impl Future<Output = io::Result<()>> + Send;

    /// A count that grows with each write that the wire takes, for wires that take a frame piece by piece. It tells a
    /// peer that reads slowly from one that does not read. Default: none; then a frame counts when it is sent.
    fn writes(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// What the wire has to do beside, as keeping itself alive. It is polled while nothing is being sent, also where nothing
    /// is read, in the task that reads; it ends only by failing, and the connection with it. Dropping the future loses
    /// nothing. Default: nothing.
    fn tend(&mut self) -> impl Future<Output = io::Error> + Send {
        std::future::pending()
    }

    /// Why [`close`](Self::close), which follows, is called, where this side has a reason. Default: nobody is told.
    fn because(&mut self, _: Farewell) {}

    /// Tells the other side that nothing more will come, and does what else ends the wire, as waiting for a child
    /// process. Called once, last.
    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Writes what is queued until the queue is closed and empty; all that is ready leaves in one write.
pub(crate) async fn write<T>(
    queue: &Mailbox<T>,
    sink: &mut impl FrameSink,
    frame: impl Fn(T) -> Bytes,
) -> io::Result<()> {
    let mut frames = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = queue.filled() => {}
            error = sink.tend() => return Err(error),
        }
        queue.drain(&mut frames, &frame);
        if frames.is_empty() {
            return Ok(());
        }
        sink.send(&mut frames).await?;
    }
}
