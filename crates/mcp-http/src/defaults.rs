use std::time::Duration;

/// How many events of a legacy session are kept for a client that reconnects.
pub const DEFAULT_REPLAY_CAPACITY: usize = 1024;

/// How long they are kept.
pub const DEFAULT_EVENT_LIFETIME: Duration = Duration::from_secs(5 * 60);
