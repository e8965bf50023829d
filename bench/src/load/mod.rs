//! The load: calls that are numbered, on all wires, each answer checked; and what else is timed.

pub mod call;
pub mod check;
pub mod client;
pub mod decode;
mod flight;
pub mod listeners;
pub mod memory;
pub mod pipe;
mod post;
pub mod session;
pub mod socket;
mod typed;
pub mod wire;

use std::time::{Duration, Instant};

/// What came of a round.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Score {
    /// In the unit of its row.
    pub value: f64,
    /// How many calls were answered.
    pub calls: u64,
}

impl Score {
    /// Calls a second, since `start`.
    fn since(start: Instant, calls: u64) -> Self {
        Self::of(calls, start.elapsed())
    }

    /// Calls a second.
    fn of(calls: u64, elapsed: Duration) -> Self {
        Self { value: float(calls) / elapsed.as_secs_f64(), calls }
    }

    /// Something else than calls a second.
    #[must_use]
    pub fn new(value: f64, calls: u64) -> Self {
        Self { value, calls }
    }
}

/// A count as a number with a point.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "nothing here is counted up to 2^53")]
pub fn float(count: u64) -> f64 {
    count as f64
}

/// How long something is done over and over.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "the programs of this package name both")]
pub enum Effort {
    /// Until so much time is over.
    Time(Duration),
    /// So often.
    Calls(u64),
}

impl Effort {
    /// Whether there is more to do.
    fn goes_on(self, start: Instant, calls: u64) -> bool {
        match self {
            Self::Time(time) => start.elapsed() < time,
            Self::Calls(most) => calls < most,
        }
    }
}
