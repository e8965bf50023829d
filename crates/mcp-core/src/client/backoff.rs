use std::{hash::BuildHasher, time::Duration};

/// How long to wait before a connection that was lost is opened anew, and how often that is tried: each time twice as long
/// as before, up to a bound, and a little less at random, so that not all clients of a server come back at once.
///
/// ```
/// use std::time::Duration;
///
/// let patient = mcp_core::client::Backoff::new().tries(100).most(Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Backoff {
    first: Duration,
    pub(super) most: Duration,
    tries: u32,
}

impl Backoff {
    /// 10 tries, after 100 ms at first and 10 s at most.
    pub const fn new() -> Self {
        Self { first: Duration::from_millis(100), most: Duration::from_secs(10), tries: 10 }
    }

    /// Sets how long to wait before the first try. Default: 100 ms.
    pub const fn first(mut self, wait: Duration) -> Self {
        self.first = wait;
        self
    }

    /// Sets how long to wait at most. Default: 10 s.
    pub const fn most(mut self, wait: Duration) -> Self {
        self.most = wait;
        self
    }

    /// Sets how often to try. Default: 10 times.
    pub const fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// The waits, one before each try.
    pub fn waits(self) -> impl Iterator<Item = Duration> + Send {
        (0..self.tries).map(move |tried| {
            let wait = self.first.saturating_mul(1 << tried.min(20)).min(self.most);
            // From three quarters of it to all of it.
            let share = std::hash::RandomState::new().hash_one(tried) % 256;
            wait - wait.mul_f64(share as f64 / 1024.0)
        })
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_end() {
        let backoff = Backoff::new().first(Duration::from_millis(100)).most(Duration::from_secs(1)).tries(40);
        let waits: Vec<Duration> = backoff.waits().collect();
        assert_eq!(waits.len(), 40);
        for (tried, wait) in waits.iter().enumerate() {
            let full = Duration::from_millis(100 << tried.min(10)).min(Duration::from_secs(1));
            assert!(*wait <= full && *wait >= full.mul_f64(0.74), "{tried}: {wait:?}");
        }
        assert_eq!(backoff.tries(0).waits().count(), 0);
        assert_eq!(Backoff::new().first(Duration::MAX).most(Duration::MAX).tries(2).waits().count(), 2);
    }
}
