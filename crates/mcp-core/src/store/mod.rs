//! What a server keeps between requests, of legacy sessions and of tasks, and where: in this process, or wherever the traits
//! here are implemented, so that several processes share them.

mod event_log;
mod ids;
mod sessions;
mod tasks;

use crate::{BoxFuture, Error};

pub use event_log::{EventLog, LoggedEvent, MemoryEventLog, StreamId};
pub use ids::{SessionId, TaskId};
pub use sessions::{MemorySessions, SessionRecord, SessionStore};
pub use tasks::{MemoryTasks, Replaced, TaskRecord, TaskStatus, TaskStore};

/// What is in memory is there at once.
fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(std::future::ready(Ok(value)))
}
