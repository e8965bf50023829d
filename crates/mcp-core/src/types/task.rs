use std::{collections::BTreeMap, fmt};

use mcp_jsonrpc::{ErrorObject, Raw};
use serde::{Deserialize, Serialize};

use crate::{
    shown::Elided,
    store::{TaskId, TaskRecord, TaskStatus},
    types::timestamp::rfc3339,
};

/// The extension that tasks are.
///
/// Specification: *Tasks extension, Extension Identifier*.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A task, as far as it is.
///
/// Specification: *Tasks extension, Tasks*.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// What names it.
    pub task_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it began, as ISO 8601 has it.
    pub created_at: String,
    /// When it last changed.
    pub last_updated_at: String,
    /// How long it is kept from when it began, in milliseconds; for ever if none.
    pub ttl_ms: Option<u64>,
    /// How often to ask for it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// What it wants to know before it goes on, while it is `input_required`: requests by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input_requests: BTreeMap<String, Raw>,
    /// What the request came to, once it is `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Raw>,
    /// Why there is none, once it is `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
}

impl Task {
    pub(crate) fn of(id: TaskId, record: &TaskRecord) -> Self {
        Self {
            task_id: id.to_string(),
            status: record.status(),
            status_message: record.message().map(str::to_owned),
            created_at: rfc3339(record.created()),
            last_updated_at: rfc3339(record.updated()),
            ttl_ms: Some(millis(record.ttl())),
            poll_interval_ms: Some(millis(record.poll_interval())),
            input_requests: record.open().clone(),
            result: record.result().cloned(),
            error: record.error().cloned(),
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("task_id", &Elided(&self.task_id))
            .field("status", &self.status)
            .field("status_message", &self.status_message)
            .field("created_at", &self.created_at)
            .field("last_updated_at", &self.last_updated_at)
            .field("ttl_ms", &self.ttl_ms)
            .field("poll_interval_ms", &self.poll_interval_ms)
            .field("input_requests", &self.input_requests)
            .field("result", &self.result)
            .field("error", &self.error)
            .finish()
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}

/// The parameters of `tasks/get` and `tasks/cancel`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskParams {
    /// What names the task.
    pub task_id: String,
}

/// The parameters of `tasks/update`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskParams {
    /// What names the task.
    pub task_id: String,
    /// What the task wanted to know, by key.
    pub input_responses: BTreeMap<String, Raw>,
}

impl fmt::Debug for TaskParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskParams").field("task_id", &Elided(&self.task_id)).finish()
    }
}

impl fmt::Debug for UpdateTaskParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task_id, input_responses } = self;
        f.debug_struct("UpdateTaskParams")
            .field("task_id", &Elided(task_id))
            .field("input_responses", input_responses)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_task_has_the_members_of_its_status() {
        let mut record = TaskRecord::new(None, 1_764_498_600_000, Duration::from_secs(60), Duration::from_millis(500));
        let id = TaskId::random();
        let written = |record: &TaskRecord| serde_json::to_value(Task::of(id, record)).unwrap();
        let mut expected = serde_json::json!({
            "taskId": id.to_string(), "status": "working", "createdAt": "2025-11-30T10:30:00Z",
            "lastUpdatedAt": "2025-11-30T10:30:00Z", "ttlMs": 60000, "pollIntervalMs": 500,
        });
        assert_eq!(written(&record), expected);
        record.ask("k", Raw::parse(r#"{"method":"m"}"#).unwrap(), 1_764_498_600_250);
        expected["status"] = "input_required".into();
        expected["lastUpdatedAt"] = "2025-11-30T10:30:00.25Z".into();
        expected["inputRequests"] = serde_json::json!({ "k": { "method": "m" } });
        assert_eq!(written(&record), expected);
        assert_eq!(serde_json::from_value::<Task>(expected).unwrap(), Task::of(id, &record));
    }
}
