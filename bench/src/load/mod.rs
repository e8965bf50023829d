//! The load: calls that are numbered, on three kinds of wires, each answer checked.

pub(crate) mod call;
mod check;
pub(crate) mod memory;
pub(crate) mod pipe;
pub(crate) mod socket;
pub(crate) mod wire;

use std::time::{Duration, Instant};

/// How many calls were answered in how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Score {
    pub(crate) calls: u64,
    pub(crate) elapsed: Duration,
}

impl Score {
    fn since(start: Instant, calls: u64) -> Self {
        Self { calls, elapsed: start.elapsed() }
    }

    /// Calls a second.
    pub(crate) fn rate(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "no round has 2^53 calls")]
        let calls = self.calls as f64;
        calls / self.elapsed.as_secs_f64()
    }
}
