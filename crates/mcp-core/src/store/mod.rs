//! What a server keeps between requests, of legacy sessions and of tasks, and where: in this process, or wherever the traits
//! here are implemented, so that several processes share them.

mod event_log;
mod ids;
mod sessions;
mod tasks;

pub use event_log::{EventLog, LoggedEvent, MemoryEventLog, StreamId};
pub use ids::{SessionId, TaskId};
pub use sessions::{MemorySessions, SessionRecord, SessionStore};
pub use tasks::{MemoryTasks, TaskRecord, TaskStatus, TaskStore};
