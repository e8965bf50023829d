use std::{
    fmt, io,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use mcp_core::{
    BoxFuture, Error, FrameSink, FrameSource, Limits, Wire,
    client::{Connector, Duplex, IntoTransport},
    jsonrpc::{Bytes, Frame},
};

use crate::lock::lock;

/// Stands between a client and a server, and takes down what they say as a case of a
/// [transcript](crate::transcript), so that a golden file can be made of a real session.
///
/// ```
/// use mcp_core::{Client, Server, implementation};
/// use mcp_test::Recorder;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// let recorder = Recorder::new(Server::builder(implementation!()).build());
/// let client = Client::connect(recorder.clone()).await?;
/// client.disconnect().await;
///
/// let transcript = recorder.transcript("a client connects");
/// assert!(transcript.starts_with("== a client connects\n> {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"server/discover\""));
/// # Ok::<(), mcp_core::Error>(()) }).unwrap();
/// ```
pub struct Recorder<C> {
    connector: Arc<C>,
    lines: Lines,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn add(&self, mark: &str, frame: &[u8]) {
        lock(&self.0).push(format!("{mark} {}", String::from_utf8_lossy(frame)));
    }
}

impl<C: Connector> Recorder<C> {
    /// Records what goes over the connections that `connector` opens, as a [`Server`](mcp_core::Server) does.
    pub fn new(connector: C) -> Self {
        Self { connector: Arc::new(connector), lines: Lines::default() }
    }

    /// What was said until now, as a case of that title.
    #[must_use]
    pub fn transcript(&self, title: &str) -> String {
        let lines = lock(&self.lines.0);
        std::iter::once(format!("== {title}\n")).chain(lines.iter().map(|line| format!("{line}\n"))).collect()
    }
}

impl<C> Clone for Recorder<C> {
    /// The same recorder.
    fn clone(&self) -> Self {
        Self { connector: self.connector.clone(), lines: self.lines.clone() }
    }
}

impl<C> fmt::Debug for Recorder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("lines", &lock(&self.lines.0).len()).finish_non_exhaustive()
    }
}

impl<C: Connector> Connector for Recorder<C> {
    type Wire = RecordedWire<C::Wire>;

    fn connect(&self) -> BoxFuture<'_, Result<Self::Wire, Error>> {
        Box::pin(async { Ok(RecordedWire { wire: self.connector.connect().await?, lines: self.lines.clone() }) })
    }
}

impl<C: Connector> IntoTransport for Recorder<C> {
    type Transport = Duplex<Self>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        Ok(Duplex::new(self, limits))
    }
}

/// A wire whose messages are taken down.
pub struct RecordedWire<W> {
    wire: W,
    lines: Lines,
}

/// Where its messages come from.
pub struct RecordedSource<S> {
    source: S,
    lines: Lines,
}

/// Where its messages go.
pub struct RecordedSink<S> {
    sink: S,
    lines: Lines,
}

impl<W: Wire> Wire for RecordedWire<W> {
    type Source = RecordedSource<W::Source>;
    type Sink = RecordedSink<W::Sink>;

    fn split(self) -> (Self::Source, Self::Sink) {
        let (source, sink) = self.wire.split();
        (RecordedSource { source, lines: self.lines.clone() }, RecordedSink { sink, lines: self.lines })
    }
}

impl<S: FrameSource> FrameSource for RecordedSource<S> {
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        let frame = self.source.next().await?;
        if let Some(Frame::Line(line)) = &frame {
            self.lines.add("<", line);
        }
        Ok(frame)
    }
}

impl<S: FrameSink> FrameSink for RecordedSink<S> {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        frames.iter().for_each(|frame| self.lines.add(">", frame));
        self.sink.send(frames).await
    }

    fn writes(&self) -> Option<Arc<AtomicU64>> {
        self.sink.writes()
    }

    async fn close(&mut self) -> io::Result<()> {
        self.sink.close().await
    }
}

macro_rules! opaque {
    ($($name:ident)*) => {
        $(impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        })*
    };
}

opaque! { RecordedWire RecordedSource RecordedSink }
