//! `tasks/get`, `tasks/update` and `tasks/cancel`.
//!
//! Specification: *Tasks extension, Task Polling; Task Update Requests; Task Cancellation*.

use std::{collections::BTreeMap, sync::Arc};

use mcp_jsonrpc::Raw;

use super::{Tasks, now};
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

/// Starts `tasks/get`.
pub(crate) fn get(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    require(&exchange)?;
    let tasks = core.tasks.clone();
    Ok(Running::new(
        None,
        Box::pin(async move {
            let (id, record) = asked_for(&tasks, &exchange).await?;
            Body::encode(&Task::of(id, &record))
        }),
    ))
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
    let tasks = core.tasks.clone();
    Ok(Running::new(
        None,
        Box::pin(async move {
            let (id, _) = asked_for(&tasks, &exchange).await?;
            tasks.change(id, |task| task.answer(answers.clone(), now())).await?;
            if let Some(live) = tasks.live(id) {
                live.changed.notify_waiters();
            }
            Ok(Body::default())
        }),
    ))
}

/// Starts `tasks/cancel`.
pub(crate) fn cancel(core: &Core, exchange: Exchange) -> Result<Running, Fault> {
    require(&exchange)?;
    let tasks = core.tasks.clone();
    Ok(Running::new(
        None,
        Box::pin(async move {
            let (id, _) = asked_for(&tasks, &exchange).await?;
            tasks.change(id, |task| task.cancel(now())).await?;
            if let Some(live) = tasks.live(id) {
                live.ended.cancel();
            }
            Ok(Body::default())
        }),
    ))
}

/// The task that a request is about.
async fn asked_for(tasks: &Arc<Tasks>, exchange: &Exchange) -> Result<(TaskId, TaskRecord), Fault> {
    let id = exchange.task_id().ok_or_else(|| Fault::InvalidParams("`taskId` must be a string".into()))?;
    owned(tasks, exchange, id).await?.ok_or_else(|| Fault::InvalidParams("Task not found".into()))
}

/// The task of that name, if it belongs to whoever asks: others are not told that it is there.
pub(crate) async fn owned(tasks: &Tasks, exchange: &Exchange, id: &str) -> Result<Option<(TaskId, TaskRecord)>, Fault> {
    let Some(id) = TaskId::parse(id) else { return Ok(None) };
    let record = tasks.load(id).await?;
    let asker = exchange.principal().map(Principal::digest);
    Ok(record.filter(|record| record.owner() == asker).map(|record| (id, record)))
}
