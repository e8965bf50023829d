//! Two ends of a wire within one process.

use std::io;

use mcp_jsonrpc::{Bytes, Frame};
use tokio::sync::mpsc;

use crate::{
    BoxFuture, Error, FrameSink, FrameSource, Limits, Server, Wire,
    client::{Connector, Duplex, IntoTransport, OneWire},
    server,
};

/// One end of a wire in memory. Frames go over as they are, without a copy.
#[derive(Debug)]
pub struct MemoryWire {
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Bytes>,
}

/// Two ends of a wire in memory; each direction holds at most 64 frames before its writer waits.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let server = mcp_core::Server::builder(mcp_core::implementation!()).build();
/// let (here, there) = mcp_core::memory();
/// let serving = tokio::spawn(mcp_core::server::serve(server, there));
/// drop(here);
/// serving.await.unwrap().unwrap();
/// # });
/// ```
#[must_use]
pub fn memory() -> (MemoryWire, MemoryWire) {
    let ((to_left, from_right), (to_right, from_left)) = (mpsc::channel(64), mpsc::channel(64));
    (MemoryWire { incoming: from_right, outgoing: to_right }, MemoryWire { incoming: from_left, outgoing: to_left })
}

impl Wire for MemoryWire {
    const KIND: &'static str = "memory";
    type Source = MemorySource;
    type Sink = MemorySink;

    fn split(self) -> (Self::Source, Self::Sink) {
        (MemorySource(self.incoming), MemorySink(Some(self.outgoing)))
    }
}

/// Where frames come from in memory.
#[derive(Debug)]
pub struct MemorySource(mpsc::Receiver<Bytes>);

impl FrameSource for MemorySource {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        Ok(self.0.recv().await.map(Frame::Line))
    }
}

/// Where frames go into memory.
#[derive(Debug)]
pub struct MemorySink(Option<mpsc::Sender<Bytes>>);

impl FrameSink for MemorySink {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        for frame in frames.drain(..) {
            let sender = self.0.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
            sender.send(frame).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// A client connects to whatever is at the other end.
impl IntoTransport for MemoryWire {
    type Transport = Duplex<OneWire<Self>>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        Ok(Duplex::new(OneWire::new(self), limits))
    }
}

/// A client connects to a server in its own process by naming it.
impl IntoTransport for Server {
    type Transport = Duplex<Self>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        Ok(Duplex::new(self, limits))
    }
}

impl Connector for Server {
    type Wire = MemoryWire;

    fn connect(&self) -> BoxFuture<'_, Result<MemoryWire, Error>> {
        let (here, there) = memory();
        let server = self.clone();
        tokio::spawn(async move {
            if let Err(error) = server::serve(server, there).await {
                tracing::debug!(%error, "the client in memory went away");
            }
        });
        Box::pin(std::future::ready(Ok(here)))
    }
}
