use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use mcp_core::{
    BoxFuture, Era, Error, ErrorKind, FrameSink, FrameSource, Limits, MemorySink, MemorySource, MemoryWire, Wire,
    client::{Connector, Duplex, IntoTransport},
    jsonrpc::{Bytes, Frame},
};
use serde_json::Value;
use tokio::{sync::Notify, time::timeout};

use crate::{
    Failure,
    like::{difference, mismatch},
    lock::lock,
    patience::{moment, patience},
    script::{Kind, Script, Step, legacy, modern},
};

/// A server that plays a script on each connection, in order, for a client to be tested with; a connection beyond the
/// last script is refused.
///
/// A clone is the same server, so that the test keeps one and the client gets the other. With tokio's paused time, the
/// waits of a script cost nothing.
///
/// ```
/// use mcp_core::Client;
/// use mcp_test::{ScriptedServer, script::{expect, send}};
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// let server = ScriptedServer::modern([
///     expect(json!({ "method": "tools/call", "params": { "name": "add" } })),
///     send(json!({ "id": "$id", "result": { "resultType": "complete", "content": [{ "type": "text", "text": "7" }] } })),
/// ]);
/// let client = Client::connect(server.clone()).await?;
/// assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await?, 7);
/// server.done().await;
/// assert_eq!(server.methods(), ["server/discover", "tools/call"]);
/// # Ok::<(), mcp_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct ScriptedServer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    scripts: Mutex<VecDeque<Script>>,
    connections: Mutex<Vec<Connection>>,
    changed: Notify,
}

/// What happened on one connection.
#[derive(Default)]
struct Connection {
    received: Vec<Bytes>,
    /// How the script ended, once it did.
    played: Option<Result<(), Failure>>,
    /// Whether either side closed the wire.
    closed: bool,
}

impl ScriptedServer {
    /// A server that begins as one of the modern era and goes on with `script`.
    pub fn modern(script: impl IntoIterator<Item = Step>) -> Self {
        Self::new(modern().into_iter().chain(script))
    }

    /// A server that begins as one of the legacy era, in its newest revision, and goes on with `script`. It expects to
    /// be probed before it is asked to shake hands; [`handshake`](crate::script::handshake) is for clients that do not.
    pub fn legacy(script: impl IntoIterator<Item = Step>) -> Self {
        Self::new(legacy().into_iter().chain(script))
    }

    /// A server that begins as one of that era and goes on with `script`.
    pub fn of(era: Era, script: impl IntoIterator<Item = Step>) -> Self {
        if era == Era::Modern { Self::modern(script) } else { Self::legacy(script) }
    }

    /// A server that plays `script` on its first connection, and nothing else.
    pub fn new(script: impl IntoIterator<Item = Step>) -> Self {
        Self::default().then(script)
    }

    /// What it plays on the connection after.
    #[must_use]
    pub fn then(self, script: impl IntoIterator<Item = Step>) -> Self {
        lock(&self.0.scripts).push_back(script.into_iter().collect());
        self
    }

    /// How many connections were opened.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.lock().len()
    }

    /// The frames that came, over all connections.
    #[must_use]
    pub fn frames(&self) -> Vec<Bytes> {
        self.lock().iter().flat_map(|connection| connection.received.clone()).collect()
    }

    /// The messages that came, over all connections.
    #[must_use]
    pub fn received(&self) -> Vec<Value> {
        self.frames().iter().filter_map(|frame| serde_json::from_slice(frame).ok()).collect()
    }

    /// The methods that came; a response has none.
    #[must_use]
    pub fn methods(&self) -> Vec<String> {
        self.received().iter().filter_map(|message| Some(message["method"].as_str()?.into())).collect()
    }

    /// Waits until every script was played; one that ends with [`serve`](crate::script::serve) is once the client has
    /// closed. As all waits here it gives up after 30 s, or an hour where tokio's time is paused.
    ///
    /// Then it waits a moment, 30 ms or 1 ms of paused time, for what is still on its way on connections that are open:
    /// no message may come behind the last step, unless that is [`rest`](crate::script::rest). What a client says
    /// later still is not seen; have it disconnect first.
    ///
    /// # Panics
    /// When something else came than was expected, with the place of the difference, or not enough, or too much.
    pub async fn done(&self) {
        self.until("the scripts are played", Shared::is_played).await;
        if self.lock().iter().any(|connection| !connection.closed) {
            tokio::time::sleep(moment()).await;
            self.0.is_played();
        }
    }

    /// Waits until `count` messages came, over all connections.
    ///
    /// # Panics
    /// When they do not come.
    pub async fn heard(&self, count: usize) {
        self.until("enough messages came", |shared| {
            let connections = lock(&shared.connections);
            connections.iter().map(|connection| connection.received.len()).sum::<usize>() >= count
        })
        .await;
    }

    /// Waits until the latest connection is closed, by either side.
    ///
    /// # Panics
    /// When it is not.
    pub async fn closed(&self) {
        self.until("the connection is closed", |shared| {
            lock(&shared.connections).last().is_some_and(|connection| connection.closed)
        })
        .await;
    }

    async fn until(&self, what: &str, reached: impl Fn(&Shared) -> bool) {
        let wait = async {
            loop {
                let changed = self.0.changed.notified();
                if reached(&self.0) {
                    return;
                }
                changed.await;
            }
        };
        if timeout(patience(), wait).await.is_err() {
            let came: Vec<_> = self.received().iter().map(|message| format!("\n  {message}")).collect();
            panic!(
                "waited in vain until {what}; so far came{}",
                if came.is_empty() { " nothing".into() } else { came.concat() }
            );
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        lock(&self.0.connections)
    }
}

impl Shared {
    /// Panics with the first failure.
    fn is_played(&self) -> bool {
        let connections = lock(&self.connections);
        if let Some(failure) = connections.iter().find_map(|connection| connection.played.as_ref()?.as_ref().err()) {
            panic!("{failure}");
        }
        lock(&self.scripts).is_empty() && connections.iter().all(|connection| connection.played.is_some())
    }
}

impl Connector for ScriptedServer {
    type Wire = MemoryWire;

    fn connect(&self) -> BoxFuture<'_, Result<MemoryWire, Error>> {
        let Some(script) = lock(&self.0.scripts).pop_front() else {
            let refused = Error::new(ErrorKind::TransportError, "there is no script for another connection");
            return Box::pin(std::future::ready(Err(refused)));
        };
        let (here, there) = mcp_core::memory();
        let mut connections = self.lock();
        connections.push(Connection::default());
        let seat = Seat { shared: self.0.clone(), index: connections.len() - 1 };
        tokio::spawn(play(script, there, seat));
        Box::pin(std::future::ready(Ok(here)))
    }
}

impl IntoTransport for ScriptedServer {
    type Transport = Duplex<Self>;

    fn into_transport(self, limits: &Limits) -> Result<Self::Transport, Error> {
        Ok(Duplex::new(self, limits))
    }
}

/// Where a connection's log is kept.
struct Seat {
    shared: Arc<Shared>,
    index: usize,
}

impl Seat {
    fn note(&self, note: impl FnOnce(&mut Connection)) {
        note(&mut lock(&self.shared.connections)[self.index]);
        self.shared.changed.notify_waiters();
    }

    /// What was heard is too much; the first such message is what the connection fails with.
    fn blame(&self, heard: Result<Value, Failure>) {
        let failure = heard.map_or_else(|failure| failure, |message| format!("nothing expects {message}").into());
        let failure = failure.at(format_args!("behind the last step of connection {}", self.index + 1));
        eprintln!("{failure}");
        self.note(|connection| {
            if connection.played == Some(Ok(())) {
                connection.played = Some(Err(failure));
            }
        });
    }
}

async fn play(script: Script, wire: MemoryWire, seat: Seat) {
    let (mut source, sink) = wire.split();
    let mut stage = Stage { sink, ids: HashMap::new() };
    let mut takes_rest = false;
    for (index, step) in script.into_iter().enumerate() {
        let played = match stage.step(step, &mut source, &seat).await {
            Ok(Next::Step) => continue,
            Ok(Next::Rest) => {
                takes_rest = true;
                break;
            }
            Ok(Next::End) => Ok(()),
            Err(failure) => Err(failure.at(format_args!("step {} of connection {}", index + 1, seat.index + 1))),
        };
        if let Err(failure) = &played {
            // The test may fail at the client first, which cannot know why.
            eprintln!("{failure}");
        }
        seat.note(|connection| (connection.played, connection.closed) = (Some(played), true));
        return;
    }
    seat.note(|connection| connection.played = Some(Ok(())));
    while let Some(heard) = hear(&mut source, &seat).await.transpose() {
        if !takes_rest {
            seat.blame(heard);
        }
    }
    seat.note(|connection| connection.closed = true);
}

/// What comes after a step.
enum Next {
    Step,
    Rest,
    End,
}

struct Stage {
    sink: MemorySink,
    ids: HashMap<&'static str, Value>,
}

impl Stage {
    async fn step(&mut self, step: Step, source: &mut MemorySource, seat: &Seat) -> Result<Next, Failure> {
        match step.0 {
            Kind::Expect(name, like) => self.expect(name, &like, hear(source, seat).await?)?,
            Kind::Send(message) => self.say(message).await,
            Kind::Raw(frame) => self.write(frame).await,
            Kind::Flood(count, frame) => {
                for number in 0..count {
                    self.write(frame(number)).await;
                }
            }
            Kind::Wait(duration) => tokio::time::sleep(duration).await,
            Kind::Serve(answer) => {
                while let Some(message) = hear(source, seat).await? {
                    for message in answer(&message) {
                        self.say(message).await;
                    }
                }
                return Ok(Next::End);
            }
            Kind::Rest => return Ok(Next::Rest),
            Kind::Close => return Ok(Next::End),
        }
        Ok(Next::Step)
    }

    fn expect(&mut self, name: &'static str, like: &Value, came: Option<Value>) -> Result<(), Failure> {
        let came = came.ok_or_else(|| format!("expected {like}, and the client closed"))?;
        if let Some(why) = mismatch(like, &came) {
            return Err(difference(&why, like, &came).into());
        }
        self.ids.insert(name, came["id"].clone());
        Ok(())
    }

    async fn say(&mut self, mut message: Value) {
        self.fill_in(&mut message);
        if let Some(members) = message.as_object_mut() {
            members.entry("jsonrpc").or_insert("2.0".into());
        }
        self.write(message.to_string().into()).await;
    }

    fn fill_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(id) = self.ids.get(text.as_str()) {
                    *value = id.clone();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_in(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.fill_in(member)),
            _ => {}
        }
    }

    /// A client that has gone away is for the next step to notice.
    async fn write(&mut self, frame: Bytes) {
        let _ = self.sink.send(&mut vec![frame]).await;
    }
}

/// The next message; none when the client closed.
async fn hear(source: &mut MemorySource, seat: &Seat) -> Result<Option<Value>, Failure> {
    let Ok(Some(Frame::Line(frame))) = source.next().await else { return Ok(None) };
    let message = serde_json::from_slice(&frame).map_err(|error| format!("{error}: {frame:?} came"));
    seat.note(|connection| connection.received.push(frame));
    Ok(Some(message?))
}

impl fmt::Debug for ScriptedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedServer").field("connections", &self.connections()).finish_non_exhaustive()
    }
}
