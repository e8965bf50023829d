//! What of a session is in this process: its streams, and what runs for it.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Limits,
    observer::{CloseReason, Opened},
    server::Session,
    store::{LoggedEvent, MemoryEventLog, SessionId, SessionRecord, StreamId},
};
use mcp_jsonrpc::{Bytes, RequestId};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::channel::Channel;
use crate::sync::{Mutex, MutexGuard};

#[cfg(all(test, not(mcp_loom)))]
mod model;
#[cfg(all(test, mcp_loom))]
mod orders;

/// How many streams that were lost are remembered for clients that come back.
const LOST_STREAMS: usize = 8;

/// How long a new stream waits for an old one to fall whose connection is gone.
const GRACE: Duration = Duration::from_secs(1);

/// How long a session lives from a request on.
pub(super) fn ttl(limits: &Limits, is_used: bool) -> Duration {
    let idle = limits.session_idle;
    let idle = if is_used { idle } else { idle.min(limits.session_provisional) };
    if limits.session_streams > 0 { idle.max(limits.session_lease) } else { idle }
}

#[derive(Debug)]
pub(super) struct Live {
    pub(super) id: SessionId,
    /// Whom it belongs to.
    pub(super) principal: Option<[u8; 32]>,
    pub(super) session: Arc<Session>,
    /// Fires when the session ends, however it does.
    pub(super) ended: CancellationToken,
    /// What calls run at once.
    pub(super) permits: Arc<Semaphore>,
    /// Something has come since `initialize`.
    is_used: AtomicBool,
    state: Mutex<State>,
    /// What belongs to no call and found nobody to read it, of all sessions.
    unsent: Arc<MemoryEventLog>,
    /// Wakes who waits for a stream to fall.
    detached: Notify,
    opened: Mutex<Option<Opened>>,
    /// What makes numbers of streams those of this process.
    nonce: u32,
}

#[derive(Debug, Default)]
struct State {
    next_stream: u32,
    /// The calls that run, by id: over HTTP an id may be in flight more than once.
    calls: HashMap<RequestId, Vec<(u64, CancellationToken)>>,
    next_call: u64,
    /// How many calls wait for their turn, and how many bytes they hold on to.
    waiting: usize,
    waiting_bytes: usize,
    /// The streams of calls that are not answered yet.
    of_calls: Vec<Arc<Channel>>,
    /// The streams for what belongs to no call, the latest last; lost ones are among them.
    standalone: Vec<Arc<Channel>>,
    /// When one of them was lost last.
    lost: Option<Instant>,
}

/// What the number of a stream says of its kind, also to a process that knows nothing else of it.
const OF_A_CALL: u64 = 0;
const STANDALONE: u64 = 1 << 31;

/// Whether it is a stream for what belongs to no call.
pub(super) fn is_standalone(stream: StreamId) -> bool {
    stream.0 & STANDALONE != 0
}

/// One more stream than there may be.
#[derive(Debug)]
pub(super) struct TooMany;

impl Live {
    pub(super) fn new(
        id: SessionId,
        principal: Option<[u8; 32]>,
        session: Arc<Session>,
        unsent: Arc<MemoryEventLog>,
        limits: &Limits,
    ) -> Self {
        let mut nonce = [0; 4];
        // Without random numbers there would be no id either.
        let _ = getrandom::fill(&mut nonce);
        Self {
            id,
            principal,
            session,
            ended: CancellationToken::new(),
            permits: Arc::new(Semaphore::new(limits.in_flight)),
            is_used: AtomicBool::new(false),
            state: Mutex::default(),
            unsent,
            detached: Notify::new(),
            opened: Mutex::default(),
            nonce: u32::from_be_bytes(nonce),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be kept of it.
    pub(super) fn record(&self) -> Option<SessionRecord> {
        self.session.record(self.principal)
    }

    /// How long it lives from now on.
    pub(super) fn ttl(&self, limits: &Limits) -> Duration {
        ttl(limits, self.is_used.load(Ordering::Relaxed))
    }

    /// How often an open call or stream renews it: so that it does not end in between.
    pub(super) fn pause(&self, limits: &Limits) -> Duration {
        limits.session_lease.min(self.ttl(limits)) / 3
    }

    /// A request has come that was accepted.
    pub(super) fn used(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Keeps what tells observers of its end.
    pub(super) fn opened(&self, opened: Opened) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
    }

    fn take_opened(&self) -> Option<Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Nothing of it goes on.
    pub(super) fn end(&self) {
        self.session.end();
        self.ended.cancel();
        *self.state() = State::default();
        while self.unsent.pop(self.id).is_some() {}
    }

    /// The same, which observers are told of once.
    pub(super) fn close(&self, reason: &CloseReason<'_>) {
        self.end();
        if let Some(mut opened) = self.take_opened() {
            opened.close(reason);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Enters a call.
    pub(super) fn begin(self: &Arc<Self>, id: &RequestId) -> Call {
        let mut state = self.state();
        state.next_call += 1;
        let (number, cancelled) = (state.next_call, CancellationToken::new());
        state.calls.entry(id.clone()).or_default().push((number, cancelled.clone()));
        Call { live: self.clone(), id: id.clone(), number, cancelled }
    }

    /// When a call of so many bytes has its turn; `None` if too much waits. It outlives its connection, which therefore
    /// does not bound it.
    pub(super) fn turn(self: &Arc<Self>, bytes: usize, limits: &Limits) -> Option<Turn> {
        if let Ok(permit) = self.permits.clone().try_acquire_owned() {
            return Some(Turn::Now(permit));
        }
        let mut state = self.state();
        if state.waiting >= limits.waiting || state.waiting_bytes >= limits.queue_bytes {
            return None;
        }
        state.waiting += 1;
        state.waiting_bytes += bytes;
        Some(Turn::Later(Waiting { live: self.clone(), bytes }))
    }

    /// Cancels what runs under that id.
    pub(super) fn cancel(&self, id: &RequestId) {
        let calls = self.state().calls.get(id).cloned().unwrap_or_default();
        calls.iter().for_each(|(_, cancelled)| cancelled.cancel());
    }

    fn new_channel(&self, state: &mut State, kind: u64, limits: &Limits) -> Arc<Channel> {
        state.next_stream += 1;
        let number = u64::from(self.nonce) << 32 | kind | u64::from(state.next_stream);
        Arc::new(Channel::new(self.id, StreamId(number), limits))
    }

    /// A stream for a call.
    pub(super) fn open_for_call(&self, limits: &Limits) -> Arc<Channel> {
        let mut state = self.state();
        let channel = self.new_channel(&mut state, OF_A_CALL, limits);
        state.of_calls.push(channel.clone());
        channel
    }

    /// The call is answered.
    pub(super) fn close_for_call(&self, channel: &Arc<Channel>) {
        self.state().of_calls.retain(|other| !Arc::ptr_eq(other, channel));
    }

    /// A stream for what belongs to no call, and its reader's number.
    pub(super) async fn open_standalone(&self, limits: &Limits) -> Result<(Arc<Channel>, u64), TooMany> {
        self.in_time(|| self.try_open_standalone(limits)).await
    }

    /// A stream that is not over yet, if it is one, and the number of a reader that takes it over.
    pub(super) async fn rejoin(&self, id: StreamId, limits: &Limits) -> Result<Option<(Arc<Channel>, u64)>, TooMany> {
        self.in_time(|| self.try_rejoin(id, limits)).await
    }

    /// Where there are as many streams as may be, waits a moment for one of them to fall.
    async fn in_time<T>(&self, attach: impl Fn() -> Option<T>) -> Result<T, TooMany> {
        let attaching = async {
            loop {
                let mut detached = std::pin::pin!(self.detached.notified());
                detached.as_mut().enable();
                if let Some(attached) = attach() {
                    return attached;
                }
                detached.await;
            }
        };
        timeout(GRACE, attaching).await.map_err(|_| TooMany)
    }

    fn try_open_standalone(&self, limits: &Limits) -> Option<(Arc<Channel>, u64)> {
        let mut state = self.state();
        if !state.has_room(limits) {
            return None;
        }
        while state.standalone.iter().filter(|channel| !channel.is_read()).count() >= LOST_STREAMS {
            let lost = state.standalone.iter().position(|channel| !channel.is_read());
            lost.map(|index| state.standalone.remove(index));
        }
        let channel = self.new_channel(&mut state, STANDALONE, limits);
        state.standalone.push(channel.clone());
        // Under the lock, so that of two that come at once one sees the other.
        let reader = channel.attach();
        Some((channel, reader))
    }

    fn try_rejoin(&self, id: StreamId, limits: &Limits) -> Option<Option<(Arc<Channel>, u64)>> {
        let state = self.state();
        let Some(channel) = state.of_calls.iter().chain(&state.standalone).find(|channel| channel.id == id) else {
            return Some(None);
        };
        // One that nobody reads becomes one more that is read.
        let may = !is_standalone(id) || channel.is_read() || state.has_room(limits);
        may.then(|| Some((channel.clone(), channel.attach())))
    }

    /// Ends the streams for what belongs to no call.
    pub(super) fn hang_up(&self) {
        self.state().standalone.iter().for_each(|channel| channel.hang_up());
    }

    /// Whether a question that has no other way would be heard: somebody listens, or has been lost just now and may come
    /// back.
    pub(super) fn is_listened_to(&self, limits: &Limits) -> bool {
        let state = self.state();
        state.standalone.iter().any(|channel| channel.is_read())
            || state.lost.is_some_and(|lost| lost.elapsed() < limits.session_lease)
    }

    /// A reader of what belongs to no call is gone.
    pub(super) fn lost(&self) {
        self.state().lost = Some(Instant::now());
    }

    /// A reader is gone.
    pub(super) fn detached(&self) {
        self.detached.notify_waiters();
    }

    /// Where what belongs to no call goes now; else it is kept for who comes next.
    pub(super) fn route(&self, frame: Bytes) -> Result<(Arc<Channel>, Bytes), Kept> {
        let state = self.state();
        if self.has_ended() {
            return Err(Kept(false));
        }
        // Not past what waits: whoever reads gets that first.
        if self.unsent.is_empty_of(self.id)
            && let Some(channel) = state.standalone.iter().rev().find(|channel| channel.is_read())
        {
            return Ok((channel.clone(), frame));
        }
        self.unsent.push(self.id, LoggedEvent { stream: StreamId(STANDALONE), seq: 0, is_answer: false, frame });
        Err(Kept(true))
    }

    /// The first of what waits for somebody to read it.
    pub(super) fn next_unsent(&self) -> Option<Bytes> {
        // Under the lock under which it is kept: what comes beside the last of it goes to the reader, or is seen here.
        let _state = self.state();
        self.unsent.pop(self.id).map(|event| event.frame)
    }
}

impl State {
    /// Whether a further stream for what belongs to no call may be read.
    fn has_room(&self, limits: &Limits) -> bool {
        self.standalone.iter().filter(|channel| channel.is_read()).count() < limits.session_streams
    }
}

/// Whether a message is kept; not where the session has ended.
#[derive(Debug)]
pub(super) struct Kept(pub(super) bool);

/// A call of a session that runs; it is over when this is dropped.
#[derive(Debug)]
pub(super) struct Call {
    live: Arc<Live>,
    pub(super) id: RequestId,
    number: u64,
    /// Fires when the client cancels it.
    pub(super) cancelled: CancellationToken,
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut state = self.live.state();
        if let Some(calls) = state.calls.get_mut(&self.id) {
            calls.retain(|(number, _)| *number != self.number);
            if calls.is_empty() {
                state.calls.remove(&self.id);
            }
        }
    }
}

/// When a call has its turn, for as long as it runs.
#[derive(Debug)]
pub(super) enum Turn {
    /// At any time, beside all others.
    Any,
    Now(OwnedSemaphorePermit),
    Later(Waiting),
}

impl Turn {
    pub(super) async fn has_come(self) -> Option<OwnedSemaphorePermit> {
        match self {
            Self::Any => None,
            Self::Now(permit) => Some(permit),
            Self::Later(waiting) => waiting.live.permits.clone().acquire_owned().await.ok(),
        }
    }
}

/// A call that waits for its turn, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    live: Arc<Live>,
    bytes: usize,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.live.state();
        // Where the session has ended, nothing is counted any more.
        state.waiting = state.waiting.saturating_sub(1);
        state.waiting_bytes = state.waiting_bytes.saturating_sub(self.bytes);
    }
}
