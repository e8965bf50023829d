use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt,
    sync::Mutex,
    time::Duration,
};

use mcp_jsonrpc::Bytes;
use tokio::time::Instant;

use super::{SessionId, ready};
use crate::{BoxFuture, Error, Limits, lock::lock, shown::Size};

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
mod tests {
    use super::*;

    const A: StreamId = StreamId(0xa);
    const B: StreamId = StreamId(0xb);

    fn event(stream: StreamId, seq: u64, bytes: usize, is_answer: bool) -> LoggedEvent {
        LoggedEvent { stream, seq, is_answer, frame: "x".repeat(bytes).into() }
    }

    async fn seqs(log: &MemoryEventLog, session: SessionId, stream: StreamId, after: u64) -> Option<Vec<u64>> {
        let events = log.after(session, stream, after).await.unwrap()?;
        Some(events.iter().map(|event| event.seq).collect())
    }

    #[test]
    fn ids_read_back_and_foreign_ones_are_none() {
        assert_eq!(LoggedEvent::parse_id(&LoggedEvent::id(StreamId(u64::MAX), 10)), Some((StreamId(u64::MAX), 10)));
        for foreign in ["", "-", "a-", "-1", "1", "a-b-c", "_GET_stream", "7/1", "g-1", "+1-1", &"1".repeat(100_000)] {
            assert_eq!(LoggedEvent::parse_id(foreign), None, "{foreign:.20}");
        }
    }

    #[tokio::test]
    async fn a_stream_is_replayed_behind_a_place_and_others_are_not() {
        let log = MemoryEventLog::new(&Limits::default());
        let (one, other) = (SessionId::random(), SessionId::random());
        for (stream, seq) in [(A, 1), (B, 1), (A, 2), (A, 3)] {
            log.append(one, event(stream, seq, 1, seq == 3)).await.unwrap();
        }
        assert_eq!(seqs(&log, one, A, 1).await, Some(vec![2, 3]));
        assert_eq!(seqs(&log, one, A, 3).await, Some(vec![]));
        assert_eq!(seqs(&log, one, B, 0).await, Some(vec![1]));
        assert_eq!(seqs(&log, one, StreamId(1), 0).await, None);
        assert_eq!(seqs(&log, other, A, 0).await, None);
        log.forget(one).await.unwrap();
        assert_eq!(seqs(&log, one, A, 0).await, None);
        assert_eq!(lock(&log.logs).bytes, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn number_bytes_and_age_are_bounded_and_answers_go_last() {
        let limits = Limits::default().session_events(3).session_event_bytes(100).all_event_bytes(150);
        let log = MemoryEventLog::new(&limits);
        let id = SessionId::random();
        log.append(id, event(A, 1, 1, true)).await.unwrap();
        for seq in 1..=5 {
            log.append(id, event(B, seq, 1, false)).await.unwrap();
        }
        assert_eq!((seqs(&log, id, A, 0).await, seqs(&log, id, B, 0).await), (Some(vec![1]), Some(vec![4, 5])));
        // The newest is kept however large it is.
        log.append(id, event(B, 6, 120, false)).await.unwrap();
        assert_eq!((seqs(&log, id, A, 0).await, seqs(&log, id, B, 0).await), (None, Some(vec![6])));
        tokio::time::advance(Duration::from_secs(300)).await;
        assert_eq!(seqs(&log, id, B, 0).await, None);
        log.sweep();
        let logs = lock(&log.logs);
        assert!(logs.bytes == 0 && logs.by_session.is_empty());
    }

    /// However many events of whomever else there are, who keeps little keeps it.
    #[tokio::test]
    async fn where_all_have_too_many_bytes_whoever_has_most_makes_room() {
        let log = MemoryEventLog::new(&Limits::default().all_event_bytes(150));
        let (greedy, modest, late) = (SessionId::random(), SessionId::random(), SessionId::random());
        log.append(modest, event(A, 1, 20, true)).await.unwrap();
        log.append(greedy, event(A, 1, 10, true)).await.unwrap();
        for seq in 1..=50 {
            log.append(greedy, event(B, seq, 10, false)).await.unwrap();
        }
        assert_eq!((seqs(&log, greedy, B, 0).await.unwrap().len(), lock(&log.logs).bytes), (12, 150));
        log.append(late, event(A, 1, 60, true)).await.unwrap();
        assert_eq!((seqs(&log, late, A, 0).await, seqs(&log, modest, A, 0).await), (Some(vec![1]), Some(vec![1])));
        assert_eq!((seqs(&log, greedy, B, 0).await.unwrap().len(), lock(&log.logs).bytes), (6, 150));
        assert_eq!(seqs(&log, greedy, A, 0).await, Some(vec![1]), "its answer goes last");
        // What nobody could keep is not kept.
        log.append(late, event(A, 2, 151, true)).await.unwrap();
        assert_eq!(seqs(&log, late, A, 0).await, None);
        assert_eq!(seqs(&log, modest, A, 0).await, Some(vec![1]));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_out_comes_in_order_and_is_gone() {
        let log = MemoryEventLog::new(&Limits::default());
        let id = SessionId::random();
        log.push(id, event(A, 1, 10, false));
        tokio::time::advance(Duration::from_secs(299)).await;
        (2..=3).for_each(|seq| log.push(id, event(A, seq, 10, false)));
        tokio::time::advance(Duration::from_secs(1)).await;
        let taken: Vec<_> = std::iter::from_fn(|| log.pop(id)).map(|event| event.seq).collect();
        assert_eq!((taken, log.is_empty_of(id), lock(&log.logs).bytes), (vec![2, 3], true, 0));
        assert!(lock(&log.logs).by_bytes.is_empty());
    }

    /// Whatever is appended by whom, and however time goes: what is replayed is what came, of that stream alone, in order
    /// and without a gap behind what was dropped; and every bound holds.
    #[test]
    fn what_is_replayed_is_the_end_of_what_came() {
        use futures_util::FutureExt as _;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let limits = Limits::default().session_events(6).session_event_bytes(60).all_event_bytes(100);
        crate::model::rows(|random| {
            let _guard = runtime.enter();
            let log = MemoryEventLog::new(&limits);
            let sessions: Vec<_> = std::iter::repeat_with(SessionId::random).take(3).collect();
            let mut came = HashMap::<(SessionId, u64), Vec<(LoggedEvent, Instant)>>::new();
            for _ in 0..80 {
                let (session, stream) = (random.one_of(&sessions), StreamId(random.below(2) as u64));
                match random.below(10) {
                    0..=6 => {
                        let all = came.entry((session, stream.0)).or_default();
                        let event = event(stream, all.len() as u64 + 1, random.below(40), false);
                        all.push((event.clone(), Instant::now()));
                        log.append(session, event).now_or_never().unwrap().unwrap();
                    }
                    7 => {
                        log.forget(session).now_or_never().unwrap().unwrap();
                        for stream in 0..2 {
                            // Numbers go on, so what is forgotten is marked as too old to come again.
                            let all = came.entry((session, stream)).or_default().iter_mut();
                            all.for_each(|(_, at)| *at -= limits.session_event_age);
                        }
                    }
                    8 => runtime.block_on(tokio::time::advance(limits.session_event_age / 3)),
                    _ => log.sweep(),
                }
                let logs = lock(&log.logs);
                let sum: usize = logs.by_session.values().map(|log| log.bytes).sum();
                assert!(logs.bytes == sum && sum <= 100 && logs.by_bytes.len() == logs.by_session.len());
                for log in logs.by_session.values() {
                    let bytes: usize = log.events.iter().map(|(event, _)| event.frame.len()).sum();
                    assert!(bytes == log.bytes && (1..=6).contains(&log.events.len()));
                    assert!(bytes <= 60 || log.events.len() == 1);
                }
                drop(logs);
                let (from, all) = (random.below(8) as u64, came.entry((session, stream.0)).or_default());
                let replayed = log.after(session, stream, from).now_or_never().unwrap().unwrap().unwrap_or_default();
                let behind: Vec<&LoggedEvent> =
                    all.iter().map(|(event, _)| event).filter(|event| event.seq > from).collect();
                let end = &behind[behind.len() - replayed.len()..];
                assert!(replayed.iter().eq(end.iter().copied()), "{replayed:?} is not the end of {behind:?}");
                let is_old = |event: &LoggedEvent| all[event.seq as usize - 1].1.elapsed() >= limits.session_event_age;
                assert!(!replayed.iter().any(is_old));
            }
        });
    }
}
