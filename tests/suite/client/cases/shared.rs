//! Wires that carry all messages of both sides: memory, lines, WebSocket.

use bytes::Bytes;
use mcp_core::{
    BoxFuture, Error, FrameSink as _, FrameSource as _, Limits, MemorySink, MemorySource, MemoryWire, Wire as _,
    client::{Connector, Duplex, IntoTransport as _, Transport},
    jsonrpc::Frame,
};
use mcp_stdio::Lines;
use mcp_ws::Ws;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf},
    net::TcpListener,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::AbortHandle,
};

use super::stage::{Heard, Reply, ReplyEnd, Said, Stage, Wanted, cancelled};
use crate::{peer::http::Request, ws};

/// A server's end of one connection.
enum End {
    Memory(MemorySource, MemorySink),
    Lines(BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>),
    Ws(ws::Peer),
    /// An upgrade that is not answered yet, and its head.
    Upgrade(ws::Peer, Vec<String>),
}

impl End {
    /// The next message; none once the client has closed.
    async fn next(&mut self) -> Option<Heard> {
        match self {
            Self::Memory(source, _) => match source.next().await {
                Ok(Some(Frame::Line(frame))) => Some(Heard::message(&frame)),
                _ => None,
            },
            Self::Lines(reader, _) => {
                let mut line = Vec::new();
                reader.read_until(b'\n', &mut line).await.ok()?;
                line.pop().map(|_| Heard::message(&line))
            }
            Self::Ws(peer) => loop {
                let frame = peer.next().await?;
                match frame.opcode {
                    ws::TEXT => return Some(Heard::message(&frame.payload)),
                    ws::CLOSE => {
                        peer.send(true, ws::CLOSE, &frame.payload).await;
                        return None;
                    }
                    _ => {}
                }
            },
            Self::Upgrade(_, head) => Some(Heard::request(upgrade(head))),
        }
    }

    /// A client that has gone away is for the next step to notice.
    async fn write(&mut self, said: Said) -> Result<(), String> {
        match (self, said) {
            (Self::Memory(_, sink), Said::Message(frame)) => drop(sink.send(&mut vec![Bytes::from(frame)]).await),
            (Self::Lines(_, writer), Said::Message(mut line)) => {
                line.push(b'\n');
                let _ = writer.write_all(&line).await;
            }
            (Self::Lines(_, writer), Said::Raw(bytes)) => drop(writer.write_all(&bytes).await),
            (Self::Ws(peer), Said::Message(text)) => peer.send(true, ws::TEXT, text).await,
            (Self::Ws(peer), Said::Frame(is_last, opcode, payload)) => peer.send(is_last, opcode, payload).await,
            (_, said) => return Err(format!("this wire cannot carry {said:?}")),
        }
        Ok(())
    }
}

/// The request that a head is.
fn upgrade(head: &[String]) -> Request {
    let mut start = head[0].split(' ').map(str::to_owned);
    let headers = head[1..].iter().filter_map(|line| line.split_once(": "));
    Request {
        verb: start.next().unwrap_or_default(),
        path: start.next().unwrap_or_default(),
        headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
        body: Value::Null,
        text: String::new(),
        at: std::time::Instant::now(),
        connection: 0,
    }
}

/// How a client gets a connection.
enum Way {
    Memory(UnboundedSender<End>),
    Lines(UnboundedSender<End>),
    Ws(String),
}

/// A scripted server, one connection after another.
pub(super) struct Shared {
    way: Way,
    connections: UnboundedReceiver<End>,
    /// The connection that there is.
    end: Option<End>,
    listening: Option<AbortHandle>,
}

impl Shared {
    pub(super) fn memory() -> Self {
        let (connect, connections) = unbounded_channel();
        Self { way: Way::Memory(connect), connections, end: None, listening: None }
    }

    pub(super) fn lines() -> Self {
        let (connect, connections) = unbounded_channel();
        Self { way: Way::Lines(connect), connections, end: None, listening: None }
    }

    /// Where the script `upgrades` by itself, upgrades are for it to answer.
    pub(super) async fn ws(upgrades: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("ws://{}/mcp", listener.local_addr().expect("an address"));
        let (connect, connections) = unbounded_channel();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut peer = ws::Peer::new(stream, false);
                let Some(head) = peer.head().await else { continue };
                let end = if upgrades {
                    End::Upgrade(peer, head)
                } else {
                    ws::switched(&mut peer, &head, "Sec-WebSocket-Protocol: mcp\r\n").await;
                    End::Ws(peer)
                };
                let _ = connect.send(end);
            }
        });
        Self { way: Way::Ws(url), connections, end: None, listening: Some(listening.abort_handle()) }
    }

    /// The connection that there is, or the next one.
    async fn connection(&mut self) -> Result<&mut End, String> {
        if self.end.is_none() {
            self.end = self.connections.recv().await;
        }
        self.end.as_mut().ok_or_else(|| "there is no connection".to_owned())
    }

    async fn answer(&mut self, reply: Reply) -> Result<(), String> {
        let Some(End::Upgrade(mut peer, head)) = self.end.take() else {
            return Err("there is no upgrade to answer".to_owned());
        };
        let lines: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        if reply.status == 101 {
            ws::switched(&mut peer, &head, &lines).await;
            self.end = Some(End::Ws(peer));
            return Ok(());
        }
        let length = reply.body.len();
        let head = format!("HTTP/1.1 {} Scripted\r\n{lines}content-length: {length}\r\n\r\n", reply.status);
        peer.write([head.as_bytes(), &reply.body].concat()).await;
        if reply.end == ReplyEnd::Open {
            self.end = Some(End::Ws(peer));
        }
        Ok(())
    }
}

impl Stage for Shared {
    fn transport(&self, limits: &Limits) -> Result<Box<dyn Transport>, String> {
        Ok(match &self.way {
            Way::Memory(connect) => Box::new(Duplex::new(InMemory(connect.clone()), limits)),
            Way::Lines(connect) => Box::new(Duplex::new(InLines(connect.clone(), limits.message_bytes), limits)),
            Way::Ws(url) => Box::new(Ws::new(url).into_transport(limits).map_err(|error| error.to_string())?),
        })
    }

    async fn hear(&mut self, wanted: &Wanted) -> Result<Heard, String> {
        let heard = loop {
            match self.connection().await?.next().await {
                Some(heard) => break heard,
                None => self.end = None,
            }
        };
        match wanted.why_not(&heard) {
            Some(why) => Err(format!("{why}\n  got {}", heard.shown())),
            None => Ok(heard),
        }
    }

    async fn say(&mut self, said: Said) -> Result<(), String> {
        match said {
            Said::Reply(reply) => self.answer(reply).await,
            said => self.end.as_mut().ok_or("there is no connection")?.write(said).await,
        }
    }

    async fn end(&mut self, in_order: bool) -> Result<(), String> {
        if let (Some(End::Ws(peer)), true) = (&mut self.end, in_order) {
            peer.send(true, ws::CLOSE, 1000u16.to_be_bytes()).await;
        }
        self.end = None;
        Ok(())
    }

    async fn taken_back(&mut self, id: &Value) -> Result<(), String> {
        self.hear(&cancelled(id)).await.map(drop)
    }

    async fn frame(&mut self) -> Result<(u8, Vec<u8>), String> {
        let Some(End::Ws(peer)) = &mut self.end else { return Err("there are no frames here".to_owned()) };
        let frame = peer.next().await.ok_or("the client has closed")?;
        Ok((frame.opcode, frame.payload))
    }

    async fn rest(&mut self) -> Result<Vec<Heard>, String> {
        let mut rest = Vec::new();
        if let Ok(end) = self.connections.try_recv() {
            self.end = self.end.take().or(Some(end));
        }
        if let Some(end) = &mut self.end {
            while let Some(heard) = end.next().await {
                rest.push(heard);
            }
        }
        Ok(rest)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

struct InMemory(UnboundedSender<End>);

impl Connector for InMemory {
    type Wire = MemoryWire;

    fn connect(&self) -> BoxFuture<'_, Result<MemoryWire, Error>> {
        let (here, there) = mcp_core::memory();
        let (source, sink) = there.split();
        let _ = self.0.send(End::Memory(source, sink));
        Box::pin(std::future::ready(Ok(here)))
    }
}

/// With the most bytes of a line.
struct InLines(UnboundedSender<End>, usize);

type Half = Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

impl Connector for InLines {
    type Wire = Half;

    fn connect(&self) -> BoxFuture<'_, Result<Half, Error>> {
        let (here, there) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(there);
        let _ = self.0.send(End::Lines(BufReader::new(reader), writer));
        let (reader, writer) = tokio::io::split(here);
        Box::pin(std::future::ready(Ok(Lines::new(reader, writer, self.1))))
    }
}
