//! What is remembered for a while, by its SHA-256 and bounded in number.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

/// So that no time is added to that has no sum.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(super) type Digest = [u8; 32];

/// Values that all stay as long, or less where each says so.
#[derive(Debug)]
pub(super) struct Recent<V> {
    most: usize,
    known: HashMap<Digest, (V, Instant)>,
    /// When each is forgotten, in the order in which they came.
    order: VecDeque<(Digest, Instant)>,
}

impl<V> Recent<V> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, known: HashMap::new(), order: VecDeque::new() }
    }

    pub(super) fn get(&self, digest: &Digest, now: Instant) -> Option<&V> {
        self.known.get(digest).filter(|(_, until)| now < *until).map(|(value, _)| value)
    }

    /// Whether there is room for a further one.
    pub(super) fn has_room(&mut self, now: Instant) -> bool {
        while self.order.front().is_some_and(|(_, until)| *until <= now) {
            self.forget_oldest();
        }
        self.order.len() < self.most
    }

    /// Remembers it for so long, in place of the oldest one where there is no room.
    pub(super) fn insert(&mut self, digest: Digest, value: V, time: Duration, now: Instant) {
        if !self.has_room(now) {
            self.forget_oldest();
        }
        let until = now + time.min(LONGEST);
        self.order.push_back((digest, until));
        self.known.insert(digest, (value, until));
    }

    fn forget_oldest(&mut self) {
        let Some((digest, until)) = self.order.pop_front() else { return };
        // It may have come again since.
        if self.known.get(&digest).is_some_and(|(_, newer)| *newer == until) {
            self.known.remove(&digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_more_is_remembered_than_there_is_room_for_and_nothing_for_longer_than_it_may() {
        let mut recent = Recent::new(2);
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        recent.insert([1; 32], 1, second, start);
        recent.insert([2; 32], 2, second * 2, start);
        assert!(!recent.has_room(start) && recent.get(&[1; 32], start) == Some(&1));
        assert!(recent.get(&[1; 32], start + second).is_none() && recent.get(&[2; 32], start + second) == Some(&2));
        assert!(recent.has_room(start + second));
        recent.insert([3; 32], 3, second * 5, start + second);
        recent.insert([4; 32], 4, second * 5, start + second);
        assert!(recent.get(&[2; 32], start + second).is_none());
        assert_eq!((recent.known.len(), recent.order.len()), (2, 2));
    }
}
