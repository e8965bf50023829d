//! What the sessions of a connection were like, by which the next is judged.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::cursor::{LONGEST, grown, random};

/// The sessions so far.
#[derive(Debug, Default)]
pub(in crate::client) struct Past {
    had_stream: AtomicBool,
    losses: Mutex<Losses>,
}

/// Sessions that were lost while nobody called. A server that forgets each of them at once would be asked for the next
/// without end. Whether they brought anything does not count, as that is up to the server too.
#[derive(Debug, Default)]
struct Losses {
    /// How many there were, one soon after the other.
    count: u32,
    /// When a session was begun after the last of them.
    renewed: Option<Instant>,
}

impl Past {
    /// There is a stream for what belongs to no call.
    pub(super) fn has_stream(&self) {
        self.had_stream.store(true, Ordering::Relaxed);
    }

    /// Whether there was one in any session: a server that never had it may refuse it like one that lost the session.
    pub(super) fn had_stream(&self) -> bool {
        self.had_stream.load(Ordering::Relaxed)
    }

    /// Waits before a session that is lost now is begun anew.
    pub(super) async fn wait_to_renew(&self) {
        let wait = self.losses.lock().unwrap_or_else(PoisonError::into_inner).wait(Instant::now(), random());
        tokio::time::sleep(wait).await;
    }
}

impl Losses {
    /// How long to wait after this one, which is then counted. A session that lasted makes up for those before it.
    fn wait(&mut self, now: Instant, random: f64) -> Duration {
        if self.renewed.is_none_or(|renewed| now.saturating_duration_since(renewed) >= LONGEST) {
            self.count = 0;
        }
        let wait = grown(self.count, random);
        self.count = self.count.saturating_add(1);
        self.renewed = Some(now + wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_a_session_lasts() {
        let (mut losses, mut now) = (Losses::default(), Instant::now());
        let mut after = |lasted: Duration| {
            now += lasted;
            let wait = losses.wait(now, 1.0);
            now += wait;
            wait.as_secs()
        };
        let short = LONGEST - Duration::from_millis(1);
        let waits = [short; 8].map(&mut after);
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!([LONGEST, short, LONGEST].map(&mut after), [1, 2, 1]);
    }
}
