//! A task that runs: it outlives the request that began it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
};

use mcp_jsonrpc::{ErrorObject, Raw, RequestId};
use tokio::{sync::oneshot, time::sleep};

use super::{Live, Tasks, now};
use crate::{
    Exchange, Fault, Principal, Reply, Revision, ToolError,
    lock::lock,
    server::{
        Core,
        dispatch::{Timeout, Unwinding, panicked},
        modern::over,
        reply::{Body, ResultKind},
    },
    store::{TaskId, TaskRecord},
    types::Task,
};

/// Has the handler of a call go on as a task; what the call is answered with.
///
/// Specification: *Tasks extension, Task Creation*.
pub(crate) async fn begin(exchange: Exchange, handler: Unwinding, timeout: Option<Timeout>) -> Result<Body, Fault> {
    let (tell, told) = oneshot::channel();
    // In a task of its own: a client that leaves leaves none behind that is kept and does not run.
    tokio::spawn(run(exchange, handler, timeout, tell));
    told.await.unwrap_or(Err(Fault::Internal))
}

async fn run(
    exchange: Exchange,
    handler: Unwinding,
    timeout: Option<Timeout>,
    tell: oneshot::Sender<Result<Body, Fault>>,
) {
    let core = exchange.server.0.core.clone();
    let (live, record) = match created(&core, &exchange).await {
        Ok(created) => created,
        // Where nobody waits for it any more, nobody need know.
        Err(fault) => return drop(tell.send(Err(fault))),
    };
    if tell.send(introduction(live.id, &record)).is_err() {
        // Nobody will ever ask for it.
        drop(core.tasks.change(live.id, |task| task.cancel(now())).await);
        return;
    }
    let outcome = tokio::select! {
        biased;
        () = live.ended.cancelled() => None,
        () = sleep(record.ttl()) => None,
        outcome = finished(handler, timeout, exchange.revision) => Some(outcome),
    };
    if let Some(outcome) = outcome {
        let outcome = written(exchange.id.clone(), exchange.revision, outcome);
        core.tasks.finish(live.id, &outcome).await;
    }
}

/// Keeps a new task, which runs here from now on.
async fn created(core: &Arc<Core>, exchange: &Exchange) -> Result<(Running, TaskRecord), Fault> {
    let (limits, owner) = (&core.limits, exchange.principal().map(Principal::digest));
    let record = TaskRecord::new(owner, now(), limits.task_ttl, limits.task_poll_interval);
    let running = Running::new(core);
    if let Some(tasking) = &exchange.task {
        // It is set once: a task does not become another one.
        let _ = tasking.live.set(running.live.clone());
    }
    let create = core.tasks.store.create(running.id, record.clone(), limits.tasks);
    if create.await.map_err(super::broken)? { Ok((running, record)) } else { Err(Fault::Busy) }
}

/// What is in the table of those that run, for as long as it does.
struct Running {
    core: Arc<Core>,
    live: Arc<Live>,
}

impl Running {
    fn new(core: &Arc<Core>) -> Self {
        let id = TaskId::random();
        let (changed, ended) = Default::default();
        let live = Arc::new(Live { id, changed, ended });
        lock(&core.tasks.live).insert(id, live.clone());
        Self { core: core.clone(), live }
    }
}

impl std::ops::Deref for Running {
    type Target = Live;

    fn deref(&self) -> &Live {
        &self.live
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.core.tasks.live).remove(&self.live.id);
    }
}

fn introduction(id: TaskId, record: &TaskRecord) -> Result<Body, Fault> {
    Ok(Body { kind: ResultKind::Task, ..Body::encode(&Task::of(id, record))? })
}

/// What the handler comes to; dropping it may panic too.
async fn finished(mut handler: Unwinding, timeout: Option<Timeout>, revision: Revision) -> Result<Body, Fault> {
    let outcome = match timeout {
        None => (&mut handler).await,
        Some(Timeout { mut sleep, expired, after }) => tokio::select! {
            biased;
            outcome = &mut handler => outcome,
            () = pin!(&mut sleep) => Ok(expired(after, revision)),
        },
    };
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(handler)));
    if dropped.is_err() { Err(panicked()) } else { outcome.unwrap_or_else(|_| Err(panicked())) }
}

/// The result of the call as it would have been answered, or the error.
fn written(id: RequestId, revision: Revision, outcome: Result<Body, Fault>) -> Result<Raw, ErrorObject> {
    Reply::new(id, revision, outcome).into_outcome(None)
}

impl Tasks {
    async fn finish(&self, id: TaskId, outcome: &Result<Raw, ErrorObject>) {
        let finished = self.change(id, |task| match outcome {
            Ok(result) => task.complete(result.clone(), now()),
            Err(error) => task.fail(error.clone(), now()),
        });
        if finished.await.is_err() {
            tracing::error!("what a task came to could not be kept");
        }
    }
}

impl Live {
    pub(crate) async fn say(&self, core: &Core, message: String) -> Result<(), ToolError> {
        let said = core.tasks.change(self.id, |task| task.say(message.clone(), now())).await;
        said.map(drop).map_err(ToolError::faulty)
    }

    /// Asks the client, in place. `read` makes the answer out; one that does not read is asked for again, under another key, as
    /// each key names one question.
    ///
    /// Specification: *Tasks extension, Task Update Requests*.
    pub(crate) async fn ask<R>(
        &self,
        core: &Core,
        key: &str,
        question: &Raw,
        read: impl Fn(&Raw) -> Option<R>,
    ) -> Result<R, ToolError> {
        for round in 1..=core.limits.input_rounds.max(1) {
            let key = if round == 1 { key.to_owned() } else { format!("{key}-{round}") };
            let asked = core.tasks.change(self.id, |task| task.ask(&key, question.clone(), now())).await;
            if asked.map_err(ToolError::faulty)?.is_none_or(|task| task.status().is_terminal()) {
                return Err(over());
            }
            if let Some(answer) = read(&self.answer(&core.tasks, &key).await?) {
                return Ok(answer);
            }
        }
        Err(ToolError::new("The client's answers do not have the shape that was asked for"))
    }

    async fn answer(&self, tasks: &Tasks, key: &str) -> Result<Raw, ToolError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on nothing is missed.
            changed.as_mut().enable();
            let mut answer = None;
            let task = tasks.change(self.id, |task| {
                answer = task.take_answer(key, now());
                answer.is_some()
            });
            let task = task.await.map_err(ToolError::faulty)?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if task.is_none_or(|task| task.status().is_terminal()) {
                return Err(over());
            }
            changed.await;
        }
    }
}
