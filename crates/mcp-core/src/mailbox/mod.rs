//! A bounded queue with one reader: what leaves a connection, a stream, or a call.

use std::{collections::VecDeque, time::Duration};

use tokio::sync::Notify;

use crate::{
    Limits,
    sync::{Mutex, MutexGuard, lock},
};

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
        self.push_wanted(item, bytes, || true)
    }

    /// The same if it is `wanted`, which is asked under the same lock that [`retain`](Self::retain) takes; else false.
    pub(crate) fn push_wanted(&self, item: T, bytes: usize, wanted: impl FnOnce() -> bool) -> bool {
        let mut state = self.lock();
        if state.closed || !wanted() {
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
mod model;
#[cfg(all(test, mcp_loom))]
mod orders;
#[cfg(test)]
mod tests;
