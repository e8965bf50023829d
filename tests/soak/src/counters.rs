//! What the server tells of itself.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use mcp_suite::{
    BoxFuture, Error,
    observer::{CloseReason, ConnectionEvent, Direction, Observer, Outcome, RequestEvent},
    store::{MemoryTasks, Replaced, TaskId, TaskRecord, TaskStore},
};
use serde::{Deserialize, Serialize};

/// What there is now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Requests that were served since the start.
    pub(crate) served: u64,
    /// Requests of clients that are being served.
    pub(crate) in_flight: i64,
    /// Those of them that listen to changes.
    pub(crate) listening: i64,
    /// Questions to clients that are open.
    pub(crate) questions: i64,
    /// Shared wires.
    pub(crate) connections: i64,
    /// Legacy sessions over HTTP.
    pub(crate) sessions: usize,
    /// Tasks of the protocol that are kept.
    pub(crate) kept: usize,
    /// Tasks of the runtime that are alive.
    pub(crate) tasks: usize,
    /// Bytes that are allocated.
    pub(crate) heap: usize,
}

/// Counts what an observer hears of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    served: AtomicU64,
    in_flight: AtomicI64,
    listening: AtomicI64,
    questions: AtomicI64,
    connections: AtomicI64,
}

impl Counters {
    /// What was counted.
    pub(crate) fn status(&self) -> Status {
        let now = |count: &AtomicI64| count.load(Ordering::Relaxed);
        Status {
            served: self.0.served.load(Ordering::Relaxed),
            in_flight: now(&self.0.in_flight),
            listening: now(&self.0.listening),
            questions: now(&self.0.questions),
            connections: now(&self.0.connections),
            ..Status::default()
        }
    }

    fn count(&self, request: &RequestEvent<'_>, by: i64) {
        if request.direction == Direction::Outgoing {
            self.0.questions.fetch_add(by, Ordering::Relaxed);
            return;
        }
        self.0.in_flight.fetch_add(by, Ordering::Relaxed);
        if request.method == "subscriptions/listen" {
            self.0.listening.fetch_add(by, Ordering::Relaxed);
        }
    }
}

impl Observer for Counters {
    fn request_started(&self, request: &RequestEvent<'_>) {
        self.count(request, 1);
    }

    fn request_completed(&self, request: &RequestEvent<'_>, _: Outcome, _: std::time::Duration) {
        self.count(request, -1);
        self.0.served.fetch_add(1, Ordering::Relaxed);
    }

    fn connection_opened(&self, _: &ConnectionEvent) {
        self.0.connections.fetch_add(1, Ordering::Relaxed);
    }

    fn connection_closed(&self, _: &ConnectionEvent, _: &CloseReason<'_>) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A store of tasks that can be asked how many it keeps while a server has it.
#[derive(Debug, Clone)]
pub(crate) struct SharedTasks(pub(crate) Arc<MemoryTasks>);

impl TaskStore for SharedTasks {
    fn create(&self, id: TaskId, record: TaskRecord, most: usize) -> BoxFuture<'_, Result<bool, Error>> {
        self.0.create(id, record, most)
    }

    fn load(&self, id: TaskId) -> BoxFuture<'_, Result<Option<TaskRecord>, Error>> {
        self.0.load(id)
    }

    fn replace(&self, id: TaskId, before: u64, record: TaskRecord) -> BoxFuture<'_, Result<Replaced, Error>> {
        self.0.replace(id, before, record)
    }
}
