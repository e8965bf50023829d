//! `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! Specification: *Tasks extension, Task Polling; Task Update Requests; Task Cancellation*.

use std::{collections::BTreeMap, sync::Arc};

use mcp_jsonrpc::Raw;

use super::{Tasks, full};
use crate::{
    Era, Exchange, Fault, Principal,
    server::{Core, dispatch::Running, reply::Body},
    store::{TaskId, TaskRecord},
    types::{ClientCapability, TASKS, Task},
};

/// Makes sure that the client knows what a task is.
///
/// Specification: *Tasks extension, Capability Negotiation*.
pub(crate) fn require(exchange: &Exchange) -> Result<(), Fault> {
    let tasks = ClientCapability::Extension(TASKS);
    let is_declared = exchange.revision.era() == Era::Modern && tasks.is_in(&exchange.client_capabilities());
    if is_declared { Ok(()) } else { Err(Fault::MissingCapability(vec![tasks])) }
}

/// Starts what makes `answer` of the task that a request is about.
fn start<Fut>(
    core: &Core,
    exchange: Exchange,
    answer: impl FnOnce(Arc<Tasks>, TaskId, TaskRecord) -> Fut + Send + 'static,
) -> Running
where
    Fut: Future<Output = Result<Body, Fault>> + Send,
{
    let tasks = core.tasks.clone();
    let answering = async move {
        let id = exchange.task_id().ok_or_else(|| Fault::InvalidParams("`taskId` must be a string".into()))?;
        let found = owned(&tasks, &exchange, id).await?;
        let (id, record) = found.ok_or_else(|| Fault::InvalidParams("Task not found".into()))?;
        answer(tasks, id, record).await
    };
    Running::new(None, Box::pin(answering))
}

/// Starts `tasks/get`.
pub(crate) fn get(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    require(&exchange)?;
    Ok(start(core, exchange, |_, id, record| async move { Body::encode(&Task::of(id, &record)) }))
}

/// Starts `tasks/update`.
pub(crate) fn update(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    require(&exchange)?;
    let answers: BTreeMap<String, Raw> = match &exchange.head.input_responses {
        Some(answers) => {
            answers.decode().map_err(|_| Fault::InvalidParams("`inputResponses` must be an object".into()))?
        }
        None => return Err(Fault::InvalidParams("`inputResponses` is missing".into())),
    };
    Ok(start(core, exchange, |tasks, id, _| async move {
        let answer = move |task: &mut TaskRecord, now| task.answer(answers.clone(), now);
        match tasks.change_for_client(id, answer, |live| live.changed.notify_waiters()).await {
            Err(Fault::Busy) => Err(full("these answers")),
            answered => answered.map(|()| Body::default()),
        }
    }))
}

/// Starts `tasks/cancel`.
pub(crate) fn cancel(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    require(&exchange)?;
    Ok(start(core, exchange, |tasks, id, _| async move {
        tasks.change_for_client(id, TaskRecord::cancel, |live| live.ended.cancel()).await?;
        Ok(Body::default())
    }))
}

/// The task of that name, if it belongs to whoever asks: others are not told that it is there.
pub(crate) async fn owned(tasks: &Tasks, exchange: &Exchange, id: &str) -> Result<Option<(TaskId, TaskRecord)>, Fault> {
    let Some(id) = TaskId::parse(id) else { return Ok(None) };
    let record = tasks.load(id).await?;
    let asker = exchange.principal().map(Principal::digest);
    Ok(record.filter(|record| record.owner() == asker).map(|record| (id, record)))
}
