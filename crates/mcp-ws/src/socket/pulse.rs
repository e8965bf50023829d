//! When to ask whether the peer is alive, and when to believe that it is not.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

use crate::socket::counted::Traffic;

/// For how many beats in a row a peer may be silent: one before it is asked, and two for its answer.
const SILENCE: u32 = 3;

/// A beat every while. What is heard, whatever it is, is life; nothing else is.
#[derive(Debug)]
pub(super) struct Pulse {
    every: Duration,
    timer: Pin<Box<Sleep>>,
    /// What was read, and written, by the last beat.
    known: (u64, u64),
    silent: u32,
}

/// What a beat says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    Ask,
    /// Nothing was heard for this long.
    Dead(Duration),
}

impl Pulse {
    pub(super) fn new(every: Duration) -> Self {
        // A timer in no time would never let anything else happen.
        let every = every.max(Duration::from_millis(1));
        Self { every, timer: Box::pin(sleep(every)), known: (0, 0), silent: 0 }
    }

    /// The next beat. Where this side does not read, because of `pause`, silence means nothing.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, traffic: &Traffic, pause: Pause) -> Poll<Beat> {
        std::task::ready!(self.timer.as_mut().poll(cx));
        self.timer.as_mut().reset(Instant::now() + self.every);
        let (read, written) = std::mem::replace(&mut self.known, (traffic.read(), traffic.written()));
        let is_alive = self.known.0 != read
            || match pause {
                Pause::None => false,
                Pause::Full => true,
                Pause::Unanswered => self.known.1 != written,
            };
        self.silent = if is_alive { 0 } else { self.silent + 1 };
        Poll::Ready(if self.silent < SILENCE { Beat::Ask } else { Beat::Dead(self.every * SILENCE) })
    }
}

/// Why nothing is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    None,
    /// What was read is not taken.
    Full,
    /// The peer does not take the answer to its ping; what it does take is life.
    Unanswered,
}
