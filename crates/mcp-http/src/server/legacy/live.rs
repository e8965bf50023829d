//! What of a session is in this process: its streams, and what runs for it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Limits,
    observer::Opened,
    server::Session,
    store::{LoggedEvent, SessionId, SessionRecord, StreamId},
};
use mcp_jsonrpc::{Bytes, RequestId};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::channel::Channel;

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
    /// What belongs to no call and found nobody to read it.
    unsent: VecDeque<Bytes>,
    unsent_bytes: usize,
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
    pub(super) fn new(id: SessionId, principal: Option<[u8; 32]>, session: Arc<Session>, limits: &Limits) -> Self {
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

    pub(super) fn take_opened(&self) -> Option<Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Nothing of it goes on.
    pub(super) fn end(&self) {
        self.session.end();
        self.ended.cancel();
        *self.state() = State::default();
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

    /// A stream for what belongs to no call; what was `missed` on another goes out first. Where there are as many as may be,
    /// it waits a moment for one of them to fall.
    pub(super) async fn open_standalone(
        &self,
        missed: &[LoggedEvent],
        limits: &Limits,
    ) -> Result<(Arc<Channel>, u64), TooMany> {
        let opening = async {
            loop {
                let mut detached = std::pin::pin!(self.detached.notified());
                detached.as_mut().enable();
                if let Some(opened) = self.try_open_standalone(missed, limits) {
                    return opened;
                }
                detached.await;
            }
        };
        timeout(GRACE, opening).await.map_err(|_| TooMany)
    }

    fn try_open_standalone(&self, missed: &[LoggedEvent], limits: &Limits) -> Option<(Arc<Channel>, u64)> {
        let mut state = self.state();
        if state.standalone.iter().filter(|channel| channel.is_read()).count() >= limits.session_streams {
            return None;
        }
        while state.standalone.iter().filter(|channel| !channel.is_read()).count() >= LOST_STREAMS {
            let lost = state.standalone.iter().position(|channel| !channel.is_read());
            lost.map(|index| state.standalone.remove(index));
        }
        let channel = self.new_channel(&mut state, STANDALONE, limits);
        // Under the lock, so that of two that come at once one sees the other.
        let reader = channel.attach();
        for event in missed.iter().rev() {
            state.unsent_bytes += event.frame.len();
            state.unsent.push_front(event.frame.clone());
        }
        state.standalone.push(channel.clone());
        Some((channel, reader))
    }

    /// A stream that is not over yet, and whether it is one for what belongs to no call.
    pub(super) fn find(&self, id: StreamId) -> Option<(Arc<Channel>, bool)> {
        let state = self.state();
        let of = |channels: &[Arc<Channel>]| channels.iter().find(|channel| channel.id == id).cloned();
        of(&state.of_calls).map(|channel| (channel, false)).or_else(|| Some((of(&state.standalone)?, true)))
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
    pub(super) fn route(&self, frame: Bytes, limits: &Limits) -> Result<(Arc<Channel>, Bytes), Kept> {
        let mut state = self.state();
        if self.ended.is_cancelled() {
            return Err(Kept(false));
        }
        // Not past what waits: whoever reads gets that first.
        if state.unsent.is_empty()
            && let Some(channel) = state.standalone.iter().rev().find(|channel| channel.is_read())
        {
            return Ok((channel.clone(), frame));
        }
        state.unsent_bytes += frame.len();
        state.unsent.push_back(frame);
        while state.unsent.len() > limits.session_events || state.unsent_bytes > limits.session_event_bytes {
            let Some(dropped) = state.unsent.pop_front() else { break };
            state.unsent_bytes -= dropped.len();
        }
        Err(Kept(true))
    }

    /// The first of what waits for somebody to read it.
    pub(super) fn next_unsent(&self) -> Option<Bytes> {
        let mut state = self.state();
        let frame = state.unsent.pop_front()?;
        state.unsent_bytes -= frame.len();
        Some(frame)
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
