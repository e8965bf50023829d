use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The moment that lies `after` behind `start`; far away where that is more than a clock can tell, as for
/// [`Duration::MAX`], which is how no limit is often written.
pub(crate) fn deadline(start: Instant, after: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    start.checked_add(after).unwrap_or_else(|| start + FAR)
}

/// What the clock on the wall says; nothing where it stands before 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_duration_is_too_long() {
        let now = Instant::now();
        assert_eq!(deadline(now, Duration::from_secs(5)), now + Duration::from_secs(5));
        assert!(deadline(now, Duration::MAX) > now + Duration::from_secs(1 << 28));
    }
}
