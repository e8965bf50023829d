//! What a server keeps of legacy sessions between requests, and where: in this process, or wherever the traits here are
//! implemented, so that several processes share them.

mod event_log;
mod session_id;
mod sessions;

pub use event_log::{EventLog, LoggedEvent, MemoryEventLog, StreamId};
pub use session_id::SessionId;
pub use sessions::{MemorySessions, SessionRecord, SessionStore};
