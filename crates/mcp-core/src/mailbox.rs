//! A bounded queue with one reader: what leaves a connection, a stream, or a call.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{Limits, lock::lock};

/// A queue bounded by number and bytes. What must not be lost goes in over the bound ([`push`](Self::push)); its senders
/// are themselves bounded. What may be dropped or waited with asks first ([`offer`](Self::offer)).
pub(crate) struct Mailbox<T> {
    state: Mutex<State<T>>,
    filled: Notify,
    emptied: Notify,
    most: usize,
    most_bytes: usize,
}

struct State<T> {
    items: VecDeque<Item<T>>,
    bytes: usize,
    /// How many of the items, and of the bytes, must not be lost.
    owed: usize,
    owed_bytes: usize,
    closed: bool,
    /// How often anything was read.
    read: u64,
}

struct Item<T> {
    item: T,
    bytes: usize,
    /// It must not be lost.
    owed: bool,
}

/// How much may wait in it, and not what does.
impl<T> std::fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { most, most_bytes, .. } = self;
        f.debug_struct("Mailbox").field("most", most).field("most_bytes", most_bytes).finish_non_exhaustive()
    }
}

impl<T> State<T> {
    fn add(&mut self, item: Item<T>) {
        self.bytes += item.bytes;
        if item.owed {
            self.owed += 1;
            self.owed_bytes += item.bytes;
        }
        self.items.push_back(item);
    }

    fn took(&mut self, item: Item<T>) -> T {
        self.bytes -= item.bytes;
        if item.owed {
            self.owed -= 1;
            self.owed_bytes -= item.bytes;
        }
        item.item
    }
}

impl<T> Mailbox<T> {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                bytes: 0,
                owed: 0,
                owed_bytes: 0,
                closed: false,
                read: 0,
            }),
            filled: Notify::new(),
            emptied: Notify::new(),
            most: limits.queue_messages,
            most_bytes: limits.queue_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    fn is_full(&self, state: &State<T>) -> bool {
        state.items.len() >= self.most || state.bytes >= self.most_bytes
    }

    /// Queues an item whatever is queued already; false once the mailbox is closed.
    pub(crate) fn push(&self, item: T, bytes: usize) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        state.add(Item { item, bytes, owed: true });
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Queues an item if there is room and `wanted`, which is asked under the same lock that [`retain`](Self::retain)
    /// takes. If there is no room, it takes the place of the newest item for which it is `newer`, or is dropped.
    pub(crate) fn offer(&self, item: T, bytes: usize, newer: impl Fn(&T) -> bool, wanted: impl FnOnce() -> bool) {
        let mut state = self.lock();
        if state.closed || !wanted() {
            return;
        }
        if !self.is_full(&state) {
            state.add(Item { item, bytes, owed: false });
            drop(state);
            self.filled.notify_one();
        } else if let Some(old) = state.items.iter_mut().rev().find(|old| !old.owed && newer(&old.item)) {
            let freed = std::mem::replace(old, Item { item, bytes, owed: false }).bytes;
            state.bytes = state.bytes + bytes - freed;
        }
    }

    /// Queues an item that must not be lost, once there is room; false once the mailbox is closed.
    pub(crate) async fn put(&self, item: T, bytes: usize) -> bool {
        let mut item = Some(item);
        self.emptied_until(|| {
            let mut state = self.lock();
            if state.closed {
                return true;
            }
            if self.is_full(&state) {
                return false;
            }
            if let Some(item) = item.take() {
                state.add(Item { item, bytes, owed: true });
            }
            true
        })
        .await;
        self.filled.notify_one();
        item.is_none()
    }

    /// Drops the queued items that are not to be kept, and says whether there was one.
    pub(crate) fn retain(&self, keep: impl Fn(&T) -> bool) -> bool {
        let mut state = self.lock();
        let before = state.items.len();
        for item in std::mem::take(&mut state.items) {
            if keep(&item.item) {
                state.items.push_back(item);
            } else {
                drop(state.took(item));
            }
        }
        let dropped = state.items.len() < before;
        drop(state);
        self.emptied.notify_waiters();
        dropped
    }

    /// The next item, if there is one now.
    pub(crate) fn try_pop(&self) -> Option<T> {
        let mut state = self.lock();
        let item = state.items.pop_front()?;
        let item = state.took(item);
        state.read += 1;
        drop(state);
        self.emptied.notify_waiters();
        Some(item)
    }

    /// Everything that is there now.
    pub(crate) fn drain<U>(&self, into: &mut Vec<U>, leave: impl Fn(T) -> U) {
        let mut state = self.lock();
        into.extend(state.items.drain(..).map(|item| leave(item.item)));
        (state.bytes, state.owed, state.owed_bytes) = (0, 0, 0);
        state.read += 1;
        drop(state);
        self.emptied.notify_waiters();
    }

    /// The next item; `None` once the mailbox is closed and empty. Safe to drop while it waits.
    pub(crate) async fn pop(&self) -> Option<T> {
        loop {
            if let Some(item) = self.try_pop() {
                return Some(item);
            }
            if self.lock().closed {
                return self.try_pop();
            }
            self.filled.notified().await;
        }
    }

    /// Waits until something can be popped.
    pub(crate) async fn filled(&self) {
        while self.is_empty() && !self.lock().closed {
            self.filled.notified().await;
        }
    }

    /// Waits until there is room, or nobody reads any more.
    pub(crate) async fn room(&self) {
        self.emptied_until(|| self.has_room()).await;
    }

    /// How often anything was read.
    pub(crate) fn reads(&self) -> u64 {
        self.lock().read
    }

    /// Waits until items have lain unread, and none was read, for all of `patience`.
    pub(crate) async fn stalled(&self, patience: Duration) {
        // How many were read, while some are not.
        let look = || {
            let state = self.lock();
            (!state.items.is_empty()).then_some(state.read)
        };
        loop {
            let before = look();
            tokio::time::sleep(patience).await;
            if before.is_some() && look() == before {
                return;
            }
        }
    }

    /// Waits until what must not be lost is within the bounds, whatever else is queued, or nobody reads any more.
    pub(crate) async fn settled(&self) {
        self.emptied_until(|| {
            let state = self.lock();
            state.closed || (state.owed < self.most && state.owed_bytes < self.most_bytes)
        })
        .await;
    }

    /// Whether an offer would be taken, or nobody reads any more.
    fn has_room(&self) -> bool {
        let state = self.lock();
        state.closed || !self.is_full(&state)
    }

    /// Waits until the mailbox is closed.
    pub(crate) async fn closed(&self) {
        self.emptied_until(|| self.lock().closed).await;
    }

    /// Waits until `is_so`, which something that notifies `emptied` makes so.
    async fn emptied_until(&self, mut is_so: impl FnMut() -> bool) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            // From here on nothing is missed, so looking comes after.
            emptied.as_mut().enable();
            if is_so() {
                return;
            }
            emptied.await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().items.is_empty()
    }

    /// Refuses new items; those queued can still be read.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.emptied.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox(most: usize, bytes: usize) -> Mailbox<u32> {
        Mailbox::new(&Limits::default().queue_messages(most).queue_bytes(bytes))
    }

    fn all(mailbox: &Mailbox<u32>) -> Vec<u32> {
        std::iter::from_fn(|| mailbox.try_pop()).collect()
    }

    #[test]
    fn a_full_mailbox_takes_replies_and_keeps_the_newest_of_the_rest() {
        let full = mailbox(2, 100);
        for item in [10, 11, 12] {
            full.offer(item, 1, |old| *old >= 10, || true);
        }
        full.push(1, 1);
        full.offer(13, 1, |old| *old == 99, || true);
        assert_eq!(all(&full), [10, 12, 1]);
    }

    #[test]
    fn what_is_not_wanted_any_more_is_not_queued() {
        let mailbox = mailbox(2, 100);
        mailbox.offer(1, 1, |_| false, || false);
        assert!(mailbox.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_must_not_be_lost_holds_up_who_waits_for_it_to_settle() {
        let mailbox = mailbox(2, 100);
        (0..2).for_each(|item| mailbox.offer(item, 1, |_| false, || true));
        mailbox.settled().await;
        (0..2).for_each(|item| assert!(mailbox.push(item, 1)));
        let waited = tokio::time::timeout(Duration::from_secs(1), mailbox.settled()).await;
        assert!(waited.is_err());
        assert_eq!(all(&mailbox), [0, 1, 0, 1]);
        mailbox.settled().await;
    }

    #[test]
    fn bytes_count_too() {
        let full = mailbox(100, 10);
        full.offer(1, 10, |_| false, || true);
        full.offer(2, 1, |_| false, || true);
        assert_eq!(all(&full), [1]);
        full.offer(3, 1, |_| false, || true);
        full.retain(|item| *item != 3);
        assert!(full.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_mailbox_reads_to_its_end() {
        let mailbox = mailbox(8, 100);
        mailbox.push(1, 1);
        mailbox.close();
        assert!(!mailbox.push(2, 1));
        assert_eq!(mailbox.pop().await, Some(1));
        assert_eq!(mailbox.pop().await, None);
        assert_eq!(mailbox.pop().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_reads_nothing_is_told_from_a_slow_one() {
        let (mailbox, patience) = (mailbox(8, 100), Duration::from_secs(60));
        (0..4).for_each(|item| assert!(mailbox.push(item, 1)));
        let slow = async {
            for _ in 0..4 {
                tokio::time::sleep(patience / 2).await;
                mailbox.try_pop();
            }
            tokio::time::sleep(patience * 9).await;
            mailbox.push(9, 1);
            std::future::pending::<()>().await;
        };
        let start = tokio::time::Instant::now();
        tokio::select! {
            () = slow => {}
            () = mailbox.stalled(patience) => {}
        }
        assert!(start.elapsed() > patience * 11);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_room_never_goes_over_it() {
        let mailbox = std::sync::Arc::new(mailbox(2, 100));
        let waiting: Vec<_> = (0..5)
            .map(|item| {
                let mailbox = mailbox.clone();
                tokio::spawn(async move { mailbox.put(item, 1).await })
            })
            .collect();
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(all(&mailbox).len(), 2);
        }
        mailbox.close();
        let mut put = 0;
        for task in waiting {
            put += u32::from(task.await.unwrap());
        }
        assert!((4..=5).contains(&put), "{put}");
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_waited_for() {
        let mailbox = std::sync::Arc::new(mailbox(1, 100));
        mailbox.push(1, 1);
        let waiting = tokio::spawn({
            let mailbox = mailbox.clone();
            async move { mailbox.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        mailbox.try_pop();
        waiting.await.unwrap();
    }
}
