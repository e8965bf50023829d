//! A task that runs: it outlives the request that began it.

use std::{pin::pin, sync::Arc, time::Duration};

use mcp_jsonrpc::{ErrorObject, Raw, RequestId, code};
use tokio::{runtime::Handle, sync::oneshot, task::JoinSet, time::sleep};
use tracing::Instrument;

use super::{Live, Tasks, full, step};
use crate::{
    Exchange, Fault, Principal, Reply, Revision, ToolError,
    contained::{Contained, contained},
    lock::lock,
    server::{
        Core,
        dispatch::{Handling, Timeout, settled},
        modern::over,
        reply::{Body, ResultKind},
    },
    store::{TaskId, TaskRecord},
    types::Task,
};

/// Has the handler of a call go on as a task; what the call is answered with.
///
/// Specification: *Tasks extension, Task Creation*.
pub(crate) async fn begin(
    exchange: Exchange,
    handler: Contained<Handling>,
    timeout: Option<Timeout>,
) -> Result<Body, Fault> {
    let (tell, told) = oneshot::channel();
    // In a task of its own: a client that leaves leaves none behind that is kept and does not run.
    let core = exchange.server.0.core.clone();
    core.tasks.runs.spawn(run(core.clone(), exchange, handler, timeout, tell).in_current_span());
    told.await.unwrap_or(Err(Fault::Internal))
}

async fn run(
    core: Arc<Core>,
    exchange: Exchange,
    handler: Contained<Handling>,
    timeout: Option<Timeout>,
    tell: oneshot::Sender<Result<Body, Fault>>,
) {
    let created = tokio::select! {
        biased;
        () = core.tasks.stopping.cancelled() => Err(Fault::Busy),
        created = created(&core, &exchange) => created,
    };
    let (live, record) = match created {
        Ok(created) => created,
        // Where nobody waits for it any more, nobody need know.
        Err(fault) => return drop(tell.send(Err(fault))),
    };
    if tell.send(introduction(live.id, &record)).is_err() {
        // Nobody will ever ask for it.
        drop(core.tasks.change(live.id, |task| task.cancel(core.tasks.now())).await);
        return;
    }
    let mut over = pin!(sleep(record.ttl()));
    let outcome = tokio::select! {
        biased;
        () = live.ended.cancelled() => return,
        () = core.tasks.stopping.cancelled() => Err(stopped()),
        () = &mut over => return,
        outcome = finished(handler, timeout, exchange.revision) => {
            written(exchange.id.clone(), exchange.revision, outcome)
        }
    };
    // Whatever it is, and whoever stops or cancels meanwhile: it may be kept already, and not be told of yet.
    tokio::select! {
        () = over => {}
        () = until_kept(|| core.tasks.finish(live.id, &outcome)) => {}
    }
}

/// Offers a change to a store that fails for a while, ever more seldom.
async fn until_kept<Fut: Future<Output = Result<(), Fault>>>(change: impl Fn() -> Fut) {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);
    let mut pause = FIRST;
    while change().await.is_err() {
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Keeps a new task, which runs here from now on.
async fn created(core: &Arc<Core>, exchange: &Exchange) -> Result<(Running, TaskRecord), Fault> {
    let (limits, owner) = (&core.limits, exchange.principal().map(Principal::digest));
    let (tasks, mut running) = (&core.tasks, Running::new(core));
    if tasks.stopping.is_cancelled() {
        return Err(Fault::Busy);
    }
    let _turn = tasks.turns.try_acquire().map_err(|_| full("another task"))?;
    let mut record = TaskRecord::new(owner, tasks.now(), limits.task_ttl, limits.task_poll_interval);
    let lease = tasks.store.lease();
    if let Some(lease) = lease {
        record.hold(tasks.held_until(lease));
    }
    if !step(async { tasks.store.create(running.id, record.clone(), limits.tasks).await }).await? {
        return Err(full("another task"));
    }
    if let Some(lease) = lease {
        running.hold(lease);
    }
    if let Some(tasking) = &exchange.task {
        tasking.begin(running.live.clone());
    }
    Ok((running, record))
}

/// What is in the table of those that run, for as long as it does.
struct Running {
    core: Arc<Core>,
    live: Arc<Live>,
    /// What says so to others.
    holding: JoinSet<()>,
}

impl Running {
    fn new(core: &Arc<Core>) -> Self {
        let id = TaskId::random();
        let (changed, ended, asked) = Default::default();
        let live = Arc::new(Live { id, changed, ended, asked });
        lock(&core.tasks.live).insert(id, live.clone());
        Self { core: core.clone(), live, holding: JoinSet::new() }
    }

    /// Holds it in a task of its own, so that a handler which keeps its thread to itself is not taken for lost.
    fn hold(&mut self, lease: Duration) {
        let (tasks, live) = (self.core.tasks.clone(), self.live.clone());
        self.holding.spawn(async move { tasks.hold(&live, lease).await }.in_current_span());
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
        self.live.ended.cancel();
        lock(&self.core.tasks.live).remove(&self.live.id);
    }
}

fn introduction(id: TaskId, record: &TaskRecord) -> Result<Body, Fault> {
    Ok(Body { kind: ResultKind::Task, ..Body::encode(&Task::of(id, record))? })
}

/// What the handler comes to; dropping it may panic too.
async fn finished(
    mut handler: Contained<Handling>,
    timeout: Option<Timeout>,
    revision: Revision,
) -> Result<Body, Fault> {
    let outcome = match timeout {
        None => (&mut handler).await,
        Some(Timeout { mut sleep, expired, after }) => tokio::select! {
            biased;
            outcome = &mut handler => outcome,
            () = pin!(&mut sleep) => Ok(expired(after, revision)),
        },
    };
    settled(contained(|| drop(handler)).and(outcome))
}

/// The result of the call as it would have been answered, or the error.
fn written(id: RequestId, revision: Revision, outcome: Result<Body, Fault>) -> Result<Raw, ErrorObject> {
    Reply::new(id, revision, outcome).into_outcome(None)
}

/// What a task comes to that ends with its server.
fn stopped() -> ErrorObject {
    ErrorObject::new(code::INTERNAL_ERROR, "The server that ran this task has ended")
}

/// What a task comes to whose end is larger than what may be kept.
fn no_room() -> ErrorObject {
    ErrorObject::new(code::INTERNAL_ERROR, "There is no room to keep what the task came to")
}

/// What a handler is told that could not change what is kept of its task.
fn unkept(fault: Fault) -> ToolError {
    match fault {
        Fault::Busy => ToolError::new("There is no room to keep that of the task"),
        fault => ToolError::faulty(fault),
    }
}

impl Tasks {
    async fn finish(&self, id: TaskId, outcome: &Result<Raw, ErrorObject>) -> Result<(), Fault> {
        let finished = self.change(id, |task| match outcome {
            Ok(result) => task.complete(result.clone(), self.now()),
            Err(error) => task.fail(error.clone(), self.now()),
        });
        match finished.await {
            Err(Fault::Busy) => self.change(id, |task| task.fail(no_room(), self.now())).await.map(drop),
            finished => finished.map(drop),
        }
    }
}

impl Live {
    pub(crate) async fn say(&self, core: &Core, message: String) -> Result<(), ToolError> {
        let said = core.tasks.change(self.id, |task| task.say(message.clone(), core.tasks.now())).await;
        said.map(drop).map_err(unkept)
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
        for _ in 0..core.limits.input_rounds.max(1) {
            let key = self.fresh(key);
            let open = Open { live: self, tasks: &core.tasks, key: &key };
            let asked = core.tasks.change(self.id, |task| task.ask(&key, question.clone(), core.tasks.now())).await;
            if asked.map_err(unkept)?.is_none_or(|task| task.status().is_terminal()) {
                return Err(over());
            }
            let answer = self.answer(&core.tasks, &key).await?;
            std::mem::forget(open);
            if let Some(answer) = read(&answer) {
                return Ok(answer);
            }
        }
        Err(ToolError::new("The client's answers do not have the shape that was asked for"))
    }

    /// A key that no question of this task has had: `key`, or what begins like it.
    fn fresh(&self, key: &str) -> String {
        let mut asked = lock(&self.asked);
        let (mut fresh, mut number) = (key.to_owned(), 1);
        while !asked.insert(fresh.clone()) {
            number += 1;
            fresh = format!("{key}-{number}");
        }
        fresh
    }

    async fn answer(&self, tasks: &Tasks, key: &str) -> Result<Raw, ToolError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on nothing is missed.
            changed.as_mut().enable();
            let mut answer = None;
            let task = tasks.change(self.id, |task| {
                answer = task.take_answer(key, tasks.now());
                answer.is_some()
            });
            let task = task.await.map_err(ToolError::faulty)?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if task.is_none_or(|task| task.status().is_terminal()) {
                return Err(over());
            }
            tokio::select! {
                () = changed => {}
                // It runs no more, and what it has left running is not to wait for ever.
                () = self.ended.cancelled() => return Err(over()),
            }
        }
    }
}

/// A question that is open, and taken back when this is dropped: nobody waits for its answer any more.
struct Open<'a> {
    live: &'a Live,
    tasks: &'a Arc<Tasks>,
    key: &'a str,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // Without a runtime the process ends.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.live.ended.is_cancelled() {
            return;
        }
        let (tasks, id, key) = (self.tasks.clone(), self.live.id, self.key.to_owned());
        let Some(live) = tasks.live(id) else { return };
        let taking_back = async move {
            let take_back = || async { tasks.change(id, |task| task.take_back(&key, tasks.now())).await.map(drop) };
            tokio::select! {
                () = live.ended.cancelled() => {}
                () = until_kept(take_back) => {}
            }
        };
        self.tasks.runs.spawn_on(taking_back.in_current_span(), &runtime);
    }
}
