//! The web pages that the user was sent to, and came back from.
//!
//! Specification: *2025-11-25, Elicitation, URL Mode*.

use std::{collections::VecDeque, sync::Mutex};

use tokio::sync::Notify;

use crate::lock::lock;

/// What the user has agreed to visit, and the server has not said to be done.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    open: Mutex<VecDeque<String>>,
    changed: Notify,
}

/// How many are remembered. Of those that no server ever says to be done, the oldest are forgotten.
const MOST: usize = 1024;

impl Visits {
    pub(super) fn begin(&self, id: String) {
        let mut open = lock(&self.open);
        if open.len() == MOST {
            open.pop_front();
        }
        open.push_back(id);
    }

    /// The server says that it is done; false if it is none that is known, or was done before.
    pub(super) fn complete(&self, id: &str) -> bool {
        let mut open = lock(&self.open);
        let Some(at) = open.iter().position(|known| known == id) else { return false };
        open.remove(at);
        drop(open);
        self.changed.notify_waiters();
        true
    }

    /// Waits until all of these are done.
    pub(super) async fn until_done(&self, ids: &[String]) {
        loop {
            let changed = self.changed.notified();
            if !lock(&self.open).iter().any(|open| ids.contains(open)) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_visit_is_done_once_and_only_if_it_began() {
        let visits = Visits::default();
        assert!(!visits.complete("a"));
        ["a", "b"].iter().for_each(|id| visits.begin((*id).into()));
        assert!(visits.complete("a") && !visits.complete("a"));
        visits.until_done(&["a".into(), "c".into()]).await;
        let both = ["a".to_owned(), "b".to_owned()];
        tokio::join!(visits.until_done(&both), async { assert!(visits.complete("b")) });
        (0..=MOST).for_each(|number| visits.begin(number.to_string()));
        assert!(!visits.complete("0") && visits.complete("1"));
    }
}
