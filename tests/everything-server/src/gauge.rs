use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// How many handlers run, and how many were dropped before they were done.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    running: AtomicU64,
    cancelled: AtomicU64,
}

/// One handler that runs.
pub(crate) struct Run {
    gauge: Gauge,
    done: bool,
}

impl Gauge {
    pub(crate) fn begin(&self) -> Run {
        self.0.running.fetch_add(1, Ordering::SeqCst);
        Run { gauge: self.clone(), done: false }
    }

    pub(crate) fn running(&self) -> u64 {
        self.0.running.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> u64 {
        self.0.cancelled.load(Ordering::SeqCst)
    }
}

impl Run {
    pub(crate) fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.done {
            self.gauge.0.cancelled.fetch_add(1, Ordering::SeqCst);
        }
        self.gauge.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}
