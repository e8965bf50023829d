//! How much is under way at a server, as its handlers and its observer have it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Context, ToolError,
    observer::{CloseReason, ConnectionEvent, Observer, Outcome, RequestEvent},
};

/// Four counts. Handlers find it in the server's state, and the server has it as its observer.
#[derive(Clone, Default)]
pub(super) struct Gauge(Arc<[AtomicI64; 4]>);

/// Handlers that live.
pub(super) const HANDLERS: usize = 0;
/// Requests that were told as begun, and not yet as over.
pub(super) const REQUESTS: usize = 1;
/// Connections and sessions, likewise.
pub(super) const CONNECTIONS: usize = 2;
/// Requests about tasks so far.
pub(super) const ABOUT_TASKS: usize = 3;

impl Gauge {
    fn add(&self, what: usize, number: i64) {
        self.0[what].fetch_add(number, Ordering::SeqCst);
    }

    pub(super) fn of(&self, what: usize) -> i64 {
        self.0[what].load(Ordering::SeqCst)
    }
}

impl Observer for Gauge {
    fn request_started(&self, request: &RequestEvent<'_>) {
        self.add(REQUESTS, 1);
        self.add(ABOUT_TASKS, i64::from(request.method == "tasks/get"));
    }

    fn request_completed(&self, _: &RequestEvent<'_>, _: Outcome, _: Duration) {
        self.add(REQUESTS, -1);
    }

    fn connection_opened(&self, _: &ConnectionEvent) {
        self.add(CONNECTIONS, 1);
    }

    fn connection_closed(&self, _: &ConnectionEvent, _: &CloseReason<'_>) {
        self.add(CONNECTIONS, -1);
    }
}

/// Counts a handler for as long as it lives.
pub(super) struct Running(Gauge);

impl Running {
    pub(super) fn of(context: &Context) -> Result<Self, ToolError> {
        let gauge = context.state::<Gauge>()?.clone();
        gauge.add(HANDLERS, 1);
        Ok(Self(gauge))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.add(HANDLERS, -1);
    }
}
