//! A peer over a pair in memory.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use mcp_suite::{
    Error, ErrorKind, FrameSink, FrameSource, Limits, MemoryWire, Wire,
    client::{Connector, Duplex, IntoTransport},
    jsonrpc::{Bytes, Frame},
};
use serde_json::Value;
use tokio::{sync::Notify, time::timeout};

use super::is_like;

/// One step of a script. After the last one the peer listens and says nothing.
#[derive(Clone)]
pub(crate) enum Step {
    /// The next frame has at least these members. Its id goes by that name from now on.
    Expect(&'static str, Value),
    /// Sends a message: `jsonrpc` is put in, and the string `$name` replaced by the id of that name.
    Send(Value),
    /// Sends a frame as it is.
    Raw(Bytes),
    /// Sends so many frames, each made when its turn comes; `$id` in them is not replaced.
    Flood(usize, Arc<dyn Fn(usize) -> Bytes + Send + Sync>),
    /// Lets time pass.
    Wait(Duration),
    /// Sends what the function makes of each message that comes, until the client closes.
    Serve(Arc<Rule>),
    /// Closes the wire.
    Close,
}

/// What a message is answered with.
type Rule = dyn Fn(&Value) -> Vec<Value> + Send + Sync;

/// What a peer does on one connection.
pub(crate) type Script = Vec<Step>;

/// The next frame is like this; its id is `$id` from now on.
pub(crate) fn expect(like: Value) -> Step {
    Step::Expect("$id", like)
}

/// The next frame is like this; its id is `name`, which begins with `$`, from now on.
pub(crate) fn expect_as(name: &'static str, like: Value) -> Step {
    Step::Expect(name, like)
}

/// Sends a message.
pub(crate) fn send(message: Value) -> Step {
    Step::Send(message)
}

/// Sends a frame as it is.
pub(crate) fn raw(frame: impl Into<Bytes>) -> Step {
    Step::Raw(frame.into())
}

/// Sends what `frame` makes of each number below `count`.
pub(crate) fn flood(count: usize, frame: impl Fn(usize) -> Bytes + Send + Sync + 'static) -> Step {
    Step::Flood(count, Arc::new(frame))
}

/// Lets time pass.
pub(crate) fn wait(duration: Duration) -> Step {
    Step::Wait(duration)
}

/// Sends what `answer` makes of each message.
pub(crate) fn serve(answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> Step {
    Step::Serve(Arc::new(answer))
}

/// Closes the wire.
pub(crate) fn close() -> Step {
    Step::Close
}

/// A server that plays a script on each connection, in order; a connection beyond the last is refused.
#[derive(Clone, Default)]
pub(crate) struct ScriptedPeer(Arc<Shared>);

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
    played: Option<Result<(), String>>,
    /// Whether either side closed the wire.
    closed: bool,
}

impl ScriptedPeer {
    /// A peer that plays `script` on its first connection.
    pub(crate) fn new(script: impl IntoIterator<Item = Step>) -> Self {
        Self::default().then(script)
    }

    /// What it plays on the connection after.
    pub(crate) fn then(self, script: impl IntoIterator<Item = Step>) -> Self {
        self.0.scripts.lock().unwrap().push_back(script.into_iter().collect());
        self
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.lock().len()
    }

    /// The frames that came, over all connections.
    pub(crate) fn frames(&self) -> Vec<Bytes> {
        self.lock().iter().flat_map(|connection| connection.received.clone()).collect()
    }

    /// The messages that came, over all connections.
    pub(crate) fn received(&self) -> Vec<Value> {
        self.frames().iter().map(|frame| serde_json::from_slice(frame).unwrap()).collect()
    }

    /// The methods that came; a response has none.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.received().iter().filter_map(|message| Some(message["method"].as_str()?.into())).collect()
    }

    /// Waits until every script was played.
    ///
    /// # Panics
    /// When something else came than was expected, or not enough.
    pub(crate) async fn done(&self) {
        self.until("the scripts are played", |shared| {
            let connections = shared.connections.lock().unwrap();
            connections.iter().for_each(|connection| {
                if let Some(Err(failure)) = &connection.played {
                    panic!("{failure}");
                }
            });
            shared.scripts.lock().unwrap().is_empty() && connections.iter().all(|c| c.played.is_some())
        })
        .await;
    }

    /// Waits until `count` messages came.
    pub(crate) async fn heard(&self, count: usize) {
        self.until("messages", |shared| {
            shared.connections.lock().unwrap().iter().map(|c| c.received.len()).sum::<usize>() >= count
        })
        .await;
    }

    /// Waits until the latest connection is closed.
    pub(crate) async fn closed(&self) {
        self.until("the connection is closed", |shared| {
            shared.connections.lock().unwrap().last().is_some_and(|connection| connection.closed)
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
        if timeout(Duration::from_secs(3600), wait).await.is_err() {
            panic!("waited in vain until {what}; so far {:?}", self.received());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.connections.lock().unwrap()
    }
}

impl Connector for ScriptedPeer {
    type Wire = MemoryWire;

    fn connect(&self) -> std::pin::Pin<Box<dyn Future<Output = Result<MemoryWire, Error>> + Send + '_>> {
        let Some(script) = self.0.scripts.lock().unwrap().pop_front() else {
            let refused = Error::new(ErrorKind::TransportError, "there is no script for another connection");
            return Box::pin(std::future::ready(Err(refused)));
        };
        let (here, there) = mcp_suite::memory();
        let mut connections = self.lock();
        connections.push(Connection::default());
        let seat = Seat { shared: self.0.clone(), index: connections.len() - 1 };
        tokio::spawn(play(script, there, seat));
        Box::pin(std::future::ready(Ok(here)))
    }
}

impl IntoTransport for ScriptedPeer {
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
        note(&mut self.shared.connections.lock().unwrap()[self.index]);
        self.shared.changed.notify_waiters();
    }
}

type Source = <MemoryWire as Wire>::Source;
type Sink = <MemoryWire as Wire>::Sink;

async fn play(script: Script, wire: MemoryWire, seat: Seat) {
    let (mut source, sink) = wire.split();
    let mut stage = Stage { sink, ids: HashMap::new() };
    for (index, step) in script.into_iter().enumerate() {
        match stage.step(step, &mut source, &seat).await {
            Ok(true) => {}
            Ok(false) => {
                seat.note(|connection| (connection.played, connection.closed) = (Some(Ok(())), true));
                return;
            }
            Err(failure) => {
                let failure = format!("step {index} of connection {}: {failure}", seat.index);
                eprintln!("{failure}");
                seat.note(|connection| (connection.played, connection.closed) = (Some(Err(failure)), true));
                return;
            }
        }
    }
    seat.note(|connection| connection.played = Some(Ok(())));
    while hear(&mut source, &seat).await.is_some() {}
    seat.note(|connection| connection.closed = true);
}

struct Stage {
    sink: Sink,
    ids: HashMap<&'static str, Value>,
}

impl Stage {
    /// Plays one step; false ends the connection.
    async fn step(&mut self, step: Step, source: &mut Source, seat: &Seat) -> Result<bool, String> {
        match step {
            Step::Expect(name, like) => {
                let seen = hear(source, seat).await.ok_or_else(|| format!("expected {like}, and the client closed"))?;
                if !is_like(&seen, &like) {
                    return Err(format!("expected {like}, and {seen} came"));
                }
                self.ids.insert(name, seen["id"].clone());
            }
            Step::Send(message) => self.say(message).await,
            Step::Raw(frame) => self.write(frame).await,
            Step::Flood(count, frame) => {
                for number in 0..count {
                    self.write(frame(number)).await;
                }
            }
            Step::Wait(duration) => tokio::time::sleep(duration).await,
            Step::Serve(answer) => {
                while let Some(message) = hear(source, seat).await {
                    for message in answer(&message) {
                        self.say(message).await;
                    }
                }
                return Ok(false);
            }
            Step::Close => return Ok(false),
        }
        Ok(true)
    }

    async fn say(&mut self, mut message: Value) {
        self.fill_in(&mut message);
        message.as_object_mut().unwrap().entry("jsonrpc").or_insert("2.0".into());
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

async fn hear(source: &mut Source, seat: &Seat) -> Option<Value> {
    let Ok(Some(Frame::Line(frame))) = source.next().await else { return None };
    let message = serde_json::from_slice(&frame).unwrap();
    seat.note(|connection| connection.received.push(frame));
    Some(message)
}
