//! Where a stream stands, and when to come back to it.

use std::time::Duration;

use http::HeaderValue;

use crate::client::sse::Event;

/// What is known of a stream that goes on over several connections.
///
/// Specification: *2025-11-25, Transports, Resumability and Redelivery*; *HTML, Server-sent events*.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
    /// How often it was gone back to since it last brought anything.
    barren: u32,
}

/// How long to wait where the stream does not say, the first time; then twice as long each time.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait, but for what a stream asks for itself.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

/// The shortest wait: a stream that asks for none would be a busy loop.
pub(super) const SHORTEST: Duration = Duration::from_millis(100);

/// What is added to a wait that the stream asked for, at most: clients that were cut off together shall not come back
/// together, and each is to come when it was told.
pub(super) const SPREAD: Duration = Duration::from_millis(50);

impl Cursor {
    /// Takes note of an event. A connection that merely opened brings nothing, and neither does an event that is known.
    pub(super) fn heard(&mut self, event: &Event) {
        let moved = event.id.as_deref().is_some_and(|id| self.go_to(id));
        if moved || !event.data.is_empty() {
            self.barren = 0;
        }
    }

    /// Whether that is another place. An id that no header can carry is none; an empty one takes back those before.
    fn go_to(&mut self, id: &[u8]) -> bool {
        let Ok(mut id) = HeaderValue::from_bytes(id) else { return false };
        id.set_sensitive(true);
        let next = Some(id).filter(|id| !id.is_empty());
        let moved = next != self.last;
        self.last = next;
        moved
    }

    /// The last event that was seen, where events have ids.
    pub(super) fn last(&self) -> Option<&HeaderValue> {
        self.last.as_ref()
    }

    /// Goes back to no event that was seen.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// How often it was gone back to in vain.
    pub(super) fn barren(&self) -> u32 {
        self.barren
    }

    /// Its connection ended; `retry` is what it said about coming back.
    pub(super) fn ended(&mut self, retry: Option<Duration>) {
        self.retry = retry.or(self.retry);
    }

    /// How long to wait before going back, which is then counted. `random` is between 0 and 1.
    pub(super) fn wait(&mut self, random: f64) -> Duration {
        let grown = grown(self.barren, random);
        let wait = match self.retry {
            Some(retry) if self.barren == 0 => retry + SPREAD.mul_f64(random),
            Some(retry) => grown.max(retry),
            None => grown,
        };
        self.barren = self.barren.saturating_add(1);
        wait.max(SHORTEST)
    }
}

/// How long to wait after so many times in vain. Half of it is by chance.
pub(super) fn grown(times: u32, random: f64) -> Duration {
    FIRST.saturating_mul(1 << times.min(16)).min(LONGEST).mul_f64(0.5 + random / 2.0)
}

/// Between 0 and 1. Where the system has no random numbers, that is 1, and waits are at their longest.
pub(super) fn random() -> f64 {
    getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: Option<&'static str>, data: &'static str) -> Event {
        Event { kind: "".into(), data: data.into(), id: id.map(Into::into) }
    }

    #[test]
    fn waits_grow_until_an_event_comes() {
        let mut cursor = Cursor::default();
        let waits: Vec<_> = (0..8).map(|_| cursor.wait(1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        cursor.heard(&event(None, "x"));
        assert_eq!(cursor.wait(0.0), Duration::from_millis(500));
        cursor.barren = u32::MAX;
        assert_eq!(cursor.wait(0.0), Duration::from_secs(15), "nothing overflows");
    }

    #[test]
    fn a_stream_is_gone_back_to_when_it_says_and_later_where_it_brings_nothing() {
        let mut cursor = Cursor::default();
        cursor.ended(Some(Duration::from_millis(500)));
        for random in [0.0, 1.0] {
            let wait = cursor.wait(random);
            assert!((500..=600).contains(&wait.as_millis()), "{wait:?}");
            cursor.heard(&event(None, "x"));
        }
        cursor.ended(None);
        assert_eq!(cursor.wait(0.0), Duration::from_millis(500), "what it said once holds");
        assert_eq!(cursor.wait(0.0), Duration::from_secs(1));
        cursor.ended(Some(Duration::from_secs(3600)));
        assert_eq!(cursor.wait(1.0), Duration::from_secs(3600));
        cursor.ended(Some(Duration::ZERO));
        cursor.heard(&event(None, "x"));
        assert_eq!(cursor.wait(0.0), SHORTEST);
    }

    #[test]
    fn the_last_id_is_kept_until_another_comes() {
        let mut cursor = Cursor::default();
        let last = |cursor: &Cursor| cursor.last().map(|id| id.to_str().unwrap().to_owned());
        for (id, expected) in [
            (None, None),
            (Some("1"), Some("1")),
            (None, Some("1")),
            (Some("a\nb"), Some("1")),
            (Some("2"), Some("2")),
            (Some(""), None),
        ] {
            cursor.heard(&event(id, "x"));
            assert_eq!(last(&cursor).as_deref(), expected, "{id:?}");
        }
    }

    #[test]
    fn the_same_event_again_is_nothing_new() {
        let mut cursor = Cursor::default();
        cursor.heard(&event(Some("1"), ""));
        cursor.wait(0.0);
        cursor.heard(&event(Some("1"), ""));
        assert_eq!(cursor.barren(), 1);
        cursor.heard(&event(Some("2"), ""));
        assert_eq!(cursor.barren(), 0);
    }
}
