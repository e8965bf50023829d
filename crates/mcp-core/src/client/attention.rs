//! Whether the server waits for this client rather than the other way round.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use crate::lock::lock;

/// The questions of a legacy server that are being answered: as long as one is, no call runs out of time for hearing nothing.
#[derive(Debug, Default)]
pub(crate) struct Attention(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answering: usize,
    /// When the last was answered.
    last: Option<Instant>,
}

impl Attention {
    /// A question is being answered, until what is returned is dropped.
    pub(super) fn hold(self: &Arc<Self>) -> Held {
        lock(&self.0).answering += 1;
        Held(Arc::clone(self))
    }

    /// Until when the server has waited for an answer; none if it never did.
    pub(super) fn held_until(&self) -> Option<Instant> {
        let state = lock(&self.0);
        if state.answering > 0 { Some(Instant::now()) } else { state.last }
    }
}

pub(super) struct Held(Arc<Attention>);

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.answering -= 1;
        state.last = Some(Instant::now());
    }
}
