use std::time::Duration;

/// How many events of a legacy session are kept for a client that reconnects.
pub const DEFAULT_REPLAY_CAPACITY: usize = 1024;

/// How long they are kept.
pub const DEFAULT_EVENT_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// How many calls of one client are under way at once.
pub const DEFAULT_CALLS_AT_ONCE: usize = 256;

/// The longest that a client waits before it comes back to a stream, whatever the stream's `retry` says.
pub const MAX_RETRY: Duration = Duration::from_secs(60 * 60);

/// The longest id of an event that a client keeps, in bytes; a longer one counts as none.
#[cfg(feature = "client")]
pub(crate) const MAX_EVENT_ID: usize = 1024;
