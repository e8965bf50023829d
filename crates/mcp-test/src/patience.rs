//! How long is waited. Where tokio's time stands still, waiting costs nothing, and is long; elsewhere a person waits.

use std::time::Duration;

use tokio::time::Instant;

/// How long is waited for what is expected: 30 s, an hour of paused time.
pub(crate) fn patience() -> Duration {
    Duration::from_secs(if is_paused() { 3600 } else { 30 })
}

/// How long nothing must come until nothing is taken to come any more: 30 ms, five minutes of paused time.
pub(crate) fn suspicion() -> Duration {
    if is_paused() { Duration::from_secs(300) } else { Duration::from_millis(30) }
}

/// How long what is on its way takes at most: 30 ms, one of paused time, which moves when nothing else can.
pub(crate) fn moment() -> Duration {
    if is_paused() { Duration::from_millis(1) } else { suspicion() }
}

/// Whether tokio's time stands still, as `start_paused` makes it: tokio does not tell.
fn is_paused() -> bool {
    // Taken first, so that in real time no less has passed since than is waited for below.
    let told = Instant::now();
    let real = std::time::Instant::now();
    while real.elapsed() < Duration::from_micros(1) {
        std::hint::spin_loop();
    }
    told.elapsed().is_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn real_time_is_seen_to_pass() {
        for _ in 0..1000 {
            assert!(!is_paused());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn paused_time_is_seen_to_stand_still_even_after_it_moved() {
        assert!(is_paused());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(is_paused());
    }
}
