use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    time::Duration,
};

use mcp_jsonrpc::Bytes;
use tokio::time::Instant;

use super::{SessionId, ready};
use crate::{
    BoxFuture, Error, Limits,
    shown::Size,
    sync::{Mutex, lock},
};

/// A stream of a session. No two of one session have one number, in whichever process they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number with a name")]
pub struct StreamId(pub u64);

/// An event that was sent on a stream of a legacy session, or would have been had somebody listened.
/// `Debug` says how long the message is, and not what is in it.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "what an event is, those who write stores make too")]
pub struct LoggedEvent {
    /// The stream.
    pub stream: StreamId,
    /// Its place in the stream, from 1 on; 0 is before all.
    pub seq: u64,
    /// Whether it is the answer that ends the stream.
    pub is_answer: bool,
    /// The message.
    pub frame: Bytes,
}

impl fmt::Debug for LoggedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, seq, is_answer, frame } = self;
        f.debug_struct("LoggedEvent")
            .field("stream", stream)
            .field("seq", seq)
            .field("is_answer", is_answer)
            .field("frame", &Size(frame))
            .finish()
    }
}

/// Ids: what a client names as the last event that it has seen, a stream and a place in it.
impl LoggedEvent {
    /// The id of the event at a place.
    #[must_use]
    pub fn id(stream: StreamId, seq: u64) -> String {
        format!("{:x}-{seq:x}", stream.0)
    }

    /// The stream and the place that an id names, if it is one of ours.
    #[must_use]
    pub fn parse_id(id: &str) -> Option<(StreamId, u64)> {
        let (stream, seq) = id.split_once('-')?;
        let number = |text: &str| {
            let is_ours = (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_ours.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        Some((StreamId(number(stream)?), number(seq)?))
    }
}

/// Where events are kept for clients that lost their connection.
///
/// Specification: *2025-11-25, Transports, Resumability and Redelivery*.
pub trait EventLog: fmt::Debug + Send + Sync + 'static {
    /// Keeps an event, in the place of older ones where there is no room. Events of one stream come in order.
    fn append(&self, session: SessionId, event: LoggedEvent) -> BoxFuture<'_, Result<(), Error>>;

    /// The events of a stream behind a place, in order, as far as they are kept; `None` if none of the stream's is.
    fn after(
        &self,
        session: SessionId,
        stream: StreamId,
        seq: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<LoggedEvent>>, Error>>;

    /// Drops all of a session.
    fn forget(&self, session: SessionId) -> BoxFuture<'_, Result<(), Error>>;

    /// Drops what is too old. Called now and then.
    fn sweep(&self) {}
}

/// Events in the memory of this process, with a bound a session on number, bytes and age, and one on the bytes of all.
///
/// Notifications make room before answers do. The newest event of a session is kept however large it is. Where all sessions
/// together have too many bytes, the one that has most makes room.
#[derive(Debug)]
pub struct MemoryEventLog {
    bounds: Bounds,
    logs: Mutex<Logs>,
}

#[derive(Debug, Clone)]
struct Bounds {
    events: usize,
    bytes: usize,
    all_bytes: usize,
    age: Duration,
}

#[derive(Debug, Default)]
struct Logs {
    by_session: HashMap<SessionId, Log>,
    /// The sessions by their bytes, the one with most last.
    by_bytes: BTreeSet<(usize, SessionId)>,
    /// Of all sessions.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<(LoggedEvent, Instant)>,
    bytes: usize,
}

impl MemoryEventLog {
    /// With the bounds of a server.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        let bounds = Bounds {
            events: limits.session_events,
            bytes: limits.session_event_bytes,
            all_bytes: limits.all_event_bytes,
            age: limits.session_event_age,
        };
        Self { bounds, logs: Mutex::default() }
    }

    /// Keeps an event, as [`append`](EventLog::append) does.
    pub fn push(&self, session: SessionId, event: LoggedEvent) {
        let (now, mut logs) = (Instant::now(), lock(&self.logs));
        logs.change(session, |log| {
            log.bytes += event.frame.len();
            log.events.push_back((event, now));
            log.shrink(&self.bounds, now);
        });
        logs.shrink(self.bounds.all_bytes);
    }

    /// Takes out the oldest event of a session.
    #[must_use = "it is kept no more"]
    pub fn pop(&self, session: SessionId) -> Option<LoggedEvent> {
        let now = Instant::now();
        lock(&self.logs).change(session, |log| {
            log.drop_the_old(&self.bounds, now);
            log.take_at(0)
        })
    }

    /// Whether nothing is kept of a session.
    #[must_use]
    pub fn is_empty_of(&self, session: SessionId) -> bool {
        !lock(&self.logs).by_session.contains_key(&session)
    }
}

impl Logs {
    /// Changes a log and counts it anew. One that is empty is none.
    fn change<T>(&mut self, session: SessionId, change: impl FnOnce(&mut Log) -> T) -> T {
        let mut log = self.by_session.remove(&session).unwrap_or_default();
        self.by_bytes.remove(&(log.bytes, session));
        self.bytes -= log.bytes;
        let changed = change(&mut log);
        if !log.events.is_empty() {
            self.bytes += log.bytes;
            self.by_bytes.insert((log.bytes, session));
            self.by_session.insert(session, log);
        }
        changed
    }

    /// Drops what is over the bound of all, from whoever has most.
    fn shrink(&mut self, most: usize) {
        while self.bytes > most
            && let Some(&(_, largest)) = self.by_bytes.last()
        {
            self.change(largest, Log::make_room);
        }
    }
}

impl Log {
    fn take_at(&mut self, index: usize) -> Option<LoggedEvent> {
        let (event, _) = self.events.remove(index)?;
        self.bytes -= event.frame.len();
        Some(event)
    }

    /// Drops the event that is missed least: the newest last, and the answers before it last but that.
    fn make_room(&mut self) {
        let behind_the_newest = self.events.len().saturating_sub(1);
        let oldest = self.events.iter().take(behind_the_newest).position(|(event, _)| !event.is_answer);
        self.take_at(oldest.unwrap_or(0));
    }

    /// Drops what is over the bounds of a session.
    fn shrink(&mut self, bounds: &Bounds, now: Instant) {
        self.drop_the_old(bounds, now);
        while self.events.len() > 1 && (self.events.len() > bounds.events || self.bytes > bounds.bytes) {
            self.make_room();
        }
    }

    fn drop_the_old(&mut self, bounds: &Bounds, now: Instant) {
        while self.events.front().is_some_and(|(_, at)| now.duration_since(*at) >= bounds.age) {
            self.take_at(0);
        }
    }
}

impl EventLog for MemoryEventLog {
    fn append(&self, session: SessionId, event: LoggedEvent) -> BoxFuture<'_, Result<(), Error>> {
        self.push(session, event);
        ready(())
    }

    fn after(
        &self,
        session: SessionId,
        stream: StreamId,
        seq: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<LoggedEvent>>, Error>> {
        let now = Instant::now();
        ready(lock(&self.logs).change(session, |log| {
            log.drop_the_old(&self.bounds, now);
            let of_stream = log.events.iter().map(|(event, _)| event).filter(|event| event.stream == stream);
            let mut of_stream = of_stream.peekable();
            let is_known = of_stream.peek().is_some();
            is_known.then(|| of_stream.filter(|event| event.seq > seq).cloned().collect())
        }))
    }

    fn forget(&self, session: SessionId) -> BoxFuture<'_, Result<(), Error>> {
        lock(&self.logs).change(session, |log| *log = Log::default());
        ready(())
    }

    fn sweep(&self) {
        let (now, mut logs) = (Instant::now(), lock(&self.logs));
        let sessions: Vec<_> = logs.by_session.keys().copied().collect();
        for session in sessions {
            logs.change(session, |log| log.drop_the_old(&self.bounds, now));
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
