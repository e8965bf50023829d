//! One stream of a session: what is sent on it is logged, and goes to whoever reads it now, if anybody does.

use std::{collections::VecDeque, sync::PoisonError, time::Duration};

use mcp_core::{
    Limits,
    store::{EventLog, LoggedEvent, SessionId, StreamId},
};
use mcp_jsonrpc::Bytes;
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::timeout,
};

use crate::sync::{Mutex, MutexGuard};

/// A stream, whether anybody reads it or not.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) id: StreamId,
    session: SessionId,
    most: usize,
    most_bytes: usize,
    /// The place of the last event. It is held while one is logged, so that the log and the reader have them in order.
    last: AsyncMutex<u64>,
    state: Mutex<State>,
    /// Wakes whoever reads, or waits for room.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// What the reader has missed, which it reads first. It may be more than waits for a reader otherwise.
    missed: VecDeque<LoggedEvent>,
    /// What the reader has not read yet of what came since.
    queue: VecDeque<LoggedEvent>,
    bytes: usize,
    /// The number of whoever reads; none reads at 0.
    reader: u64,
    /// How many have read.
    readers: u64,
    /// Nothing more will come.
    is_complete: bool,
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Found {
    Event(LoggedEvent),
    /// Nothing yet.
    Nothing,
    /// Nothing more, or somebody else reads now.
    End,
}

impl Channel {
    pub(super) fn new(session: SessionId, id: StreamId, limits: &Limits) -> Self {
        Self {
            id,
            session,
            most: limits.queue_messages,
            most_bytes: limits.queue_bytes,
            last: AsyncMutex::default(),
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message. Where the reader is slow it waits for `patience`; then the reader has to come again.
    pub(super) async fn send(&self, log: &dyn EventLog, frame: Bytes, is_answer: bool, patience: Duration) {
        let mut last = self.last.lock().await;
        let event = self.enter(log, &mut last, frame, is_answer).await;
        let overtaxed = self.deliver(event);
        drop(last);
        self.changed.notify_waiters();
        if let Some(reader) = overtaxed
            && !is_answer
            && timeout(patience, self.room(reader)).await.is_err()
        {
            tracing::debug!("a stream that nobody read was disconnected; it can be resumed");
            self.detach(reader);
        }
    }

    /// Lets the reader begin with what it missed, as far as that has not come to it since. Says the place of the last event.
    pub(super) async fn replay(&self, missed: Vec<LoggedEvent>) -> u64 {
        // While nothing is being sent, what is logged is delivered too.
        let last = self.last.lock().await;
        let mut state = self.state();
        let next = state.missed.front().or(state.queue.front()).map_or(u64::MAX, |event| event.seq);
        missed.into_iter().rev().filter(|event| event.seq < next).for_each(|event| state.missed.push_front(event));
        *last
    }

    /// Sends what found nobody to read it, however much it is.
    pub(super) async fn catch_up(&self, log: &dyn EventLog, mut next: impl FnMut() -> Option<Bytes>) {
        let mut last = self.last.lock().await;
        while self.is_read()
            && let Some(frame) = next()
        {
            let event = self.enter(log, &mut last, frame, false).await;
            self.deliver(event);
            self.state().forgive();
        }
        drop(last);
        self.changed.notify_waiters();
    }

    async fn enter(&self, log: &dyn EventLog, last: &mut u64, frame: Bytes, is_answer: bool) -> LoggedEvent {
        *last += 1;
        let event = LoggedEvent { stream: self.id, seq: *last, is_answer, frame };
        if let Err(error) = log.append(self.session, event.clone()).await {
            // Whoever reads now gets it all the same.
            tracing::warn!(?error, "an event could not be logged; a client that reconnects will miss it");
        }
        event
    }

    /// Gives it to the reader, whose number it says where more waits for it than may.
    fn deliver(&self, event: LoggedEvent) -> Option<u64> {
        let mut state = self.state();
        state.is_complete |= event.is_answer;
        if state.reader != 0 {
            state.bytes += event.frame.len();
            state.queue.push_back(event);
        }
        (!self.has_room(&state)).then_some(state.reader)
    }

    fn has_room(&self, state: &State) -> bool {
        state.queue.len() <= self.most && state.bytes <= self.most_bytes
    }

    async fn room(&self, reader: u64) {
        self.until(|state| state.reader != reader || self.has_room(state)).await;
    }

    /// Waits until there is something to read, or nothing more for this reader.
    pub(super) async fn readable(&self, reader: u64) {
        self.until(|state| state.reader != reader || state.is_complete || state.has_more()).await;
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on nothing is missed, so looking comes after.
            changed.as_mut().enable();
            if is_so(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    /// Makes somebody its reader, in the place of whoever reads now.
    pub(super) fn attach(&self) -> u64 {
        let mut state = self.state();
        state.readers += 1;
        let reader = state.readers;
        state.begin(reader);
        drop(state);
        self.changed.notify_waiters();
        reader
    }

    pub(super) fn take(&self, reader: u64) -> Found {
        let mut state = self.state();
        if state.reader != reader {
            return Found::End;
        }
        match state.next() {
            Some(event) => {
                drop(state);
                self.changed.notify_waiters();
                Found::Event(event)
            }
            None if state.is_complete => Found::End,
            None => Found::Nothing,
        }
    }

    /// The reader is gone; false if it was somebody else's turn already.
    pub(super) fn detach(&self, reader: u64) -> bool {
        let is_it = self.state().reader == reader;
        if is_it {
            self.hang_up();
        }
        is_it
    }

    /// Ends the connection of whoever reads. What comes from here on is logged alone.
    pub(super) fn hang_up(&self) {
        self.state().begin(0);
        self.changed.notify_waiters();
    }

    /// Ends the connection once all is read that is there.
    pub(super) async fn hang_up_gently(&self, patience: Duration) {
        // Whoever does not read is not waited for.
        let _ = timeout(patience, self.until(|state| !state.has_more())).await;
        self.hang_up();
    }

    /// Ends the stream without an answer.
    pub(super) fn complete(&self) {
        self.state().is_complete = true;
        self.changed.notify_waiters();
    }

    pub(super) fn is_read(&self) -> bool {
        self.state().reader != 0
    }
}

impl State {
    /// Whoever reads from now on.
    fn begin(&mut self, reader: u64) {
        (self.missed, self.queue, self.bytes) = (VecDeque::new(), VecDeque::new(), 0);
        self.reader = reader;
    }

    fn has_more(&self) -> bool {
        !self.missed.is_empty() || !self.queue.is_empty()
    }

    fn next(&mut self) -> Option<LoggedEvent> {
        self.missed.pop_front().or_else(|| {
            let event = self.queue.pop_front()?;
            self.bytes -= event.frame.len();
            Some(event)
        })
    }

    /// What waits counts as missed.
    fn forgive(&mut self) {
        self.missed.append(&mut self.queue);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_core::store::MemoryEventLog;

    use super::*;

    fn channel(limits: &Limits) -> (Arc<Channel>, MemoryEventLog) {
        let channel = Channel::new(SessionId::random(), StreamId(7), limits);
        (Arc::new(channel), MemoryEventLog::new(limits))
    }

    fn seq(found: Found) -> u64 {
        match found {
            Found::Event(event) => event.seq,
            other => panic!("no event but {other:?}"),
        }
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn who_comes_later_takes_over_and_nothing_is_on_two_connections() {
        let (channel, log) = channel(&Limits::default());
        let first = channel.attach();
        channel.send(&log, "1".into(), false, PATIENCE).await;
        assert_eq!(seq(channel.take(first)), 1);
        let second = channel.attach();
        channel.send(&log, "2".into(), false, PATIENCE).await;
        assert!(matches!(channel.take(first), Found::End) && !channel.detach(first) && channel.is_read());
        assert_eq!(seq(channel.take(second)), 2);
        channel.send(&log, "3".into(), true, PATIENCE).await;
        assert_eq!(seq(channel.take(second)), 3);
        assert!(matches!(channel.take(second), Found::End) && channel.detach(second) && !channel.is_read());
        assert_eq!(log.after(channel.session, channel.id, 1).await.unwrap().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_read_is_disconnected_and_the_log_has_it_all() {
        let limits = Limits::default().queue_messages(4);
        let (channel, log) = channel(&limits);
        let reader = channel.attach();
        let start = tokio::time::Instant::now();
        for _ in 0..10 {
            channel.send(&log, "x".into(), false, PATIENCE).await;
        }
        assert_eq!(start.elapsed(), PATIENCE);
        assert!(matches!(channel.take(reader), Found::End));
        assert_eq!(log.after(channel.session, channel.id, 0).await.unwrap().unwrap().len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        let (channel, log) = channel(&Limits::default().queue_messages(1));
        let reader = channel.attach();
        let slow = tokio::spawn({
            let channel = channel.clone();
            async move {
                let mut read = 0;
                while read < 6 {
                    tokio::time::sleep(PATIENCE / 2).await;
                    channel.readable(reader).await;
                    read = seq(channel.take(reader));
                }
            }
        });
        for _ in 0..6 {
            channel.send(&log, "x".into(), false, PATIENCE).await;
        }
        slow.await.unwrap();
        assert!(channel.is_read());
    }
}
