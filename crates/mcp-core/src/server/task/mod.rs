//! Calls that go on after they were answered: the client is told which task they are, and comes back for it.
//!
//! What is known of a task is its record, in a store; what runs of it is here.
//!
//! Specification: *Tasks extension*.

mod methods;
#[cfg(all(test, mcp_loom))]
mod orders;
mod run;

use std::{
    collections::{HashMap, HashSet},
    future::pending,
    pin::pin,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use mcp_jsonrpc::{ErrorObject, Raw, code};
use tokio::{
    sync::{Notify, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

pub(crate) use self::{
    methods::{cancel, get, owned, require, update},
    run::begin,
};
use crate::{
    Fault,
    contained::Contained,
    hub::{Hub, Subject},
    lock::lock,
    store::{Replaced, TaskId, TaskRecord, TaskStore},
    sync::{
        AtomicWaker,
        atomic::{AtomicBool, Ordering},
    },
    types::Task,
};

/// The tasks of a server.
pub(crate) struct Tasks {
    store: Box<dyn TaskStore>,
    hub: Arc<Hub>,
    /// What one of them may hold, and have in the message that tells it.
    most_bytes: usize,
    /// What such a message has besides it.
    envelope: usize,
    /// Turns for those that are being made, whose clients may not wait for that.
    turns: Semaphore,
    /// Those that run in this process.
    live: Mutex<HashMap<TaskId, Arc<Live>>>,
    /// Their runs.
    runs: TaskTracker,
    /// Fires when none is to run any more.
    stopping: CancellationToken,
}

/// What runs of a task.
#[derive(Debug)]
pub(crate) struct Live {
    id: TaskId,
    /// Its record has changed.
    changed: Notify,
    /// It is called off, or has come to its end.
    ended: CancellationToken,
    /// The keys that it has asked under, each for one question.
    asked: Mutex<HashSet<String>>,
}

/// How often a change is tried that others get in the way of.
const TRIES: u32 = 64;

/// How long the store may take for one step.
const STEP: Duration = Duration::from_secs(10);

/// How many tasks are being made at once.
const TURNS: usize = 1024;

impl Tasks {
    /// `most_bytes` is how long a message may be, `named` how much of it is the server's name.
    pub(crate) fn new(store: Box<dyn TaskStore>, hub: &Arc<Hub>, most_bytes: usize, named: usize) -> Self {
        /// The id of the request or of the subscription, the method, and all members of a result that are no task's.
        const ENVELOPE: usize = 1024;
        let (live, runs, stopping) = Default::default();
        let (turns, envelope) = (Semaphore::new(TURNS), ENVELOPE + named);
        Self { store, hub: hub.clone(), most_bytes, envelope, turns, live, runs, stopping }
    }

    /// What ends them all.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    /// Ends them all, and waits until that is kept.
    pub(crate) async fn end(&self) {
        self.stopping.cancel();
        self.runs.close();
        self.runs.wait().await;
    }

    /// Now, in milliseconds since 1970.
    fn now(&self) -> u64 {
        self.store.now()
    }

    async fn load(&self, id: TaskId) -> Result<Option<TaskRecord>, Fault> {
        self.change(id, |_| false).await
    }

    /// Changes a task, whoever else does at the same time; `change` says whether it has. What it is then, if there is such a
    /// task. Where there is no room for what it is to hold, that is [`Fault::Busy`].
    async fn change(
        &self,
        id: TaskId,
        mut change: impl FnMut(&mut TaskRecord) -> bool + Send,
    ) -> Result<Option<TaskRecord>, Fault> {
        for _ in 0..TRIES {
            let Some(mut record) = step(async { self.store.load(id).await }).await? else { return Ok(None) };
            let (version, changes) = (record.version(), record.changes());
            let most = self.size(id, &record).max(self.most_bytes);
            let has_failed = self.is_lost(id, &record) && record.fail(lost(), self.now());
            if !change(&mut record) && !has_failed {
                return Ok(Some(record));
            }
            if self.size(id, &record) > most {
                return Err(Fault::Busy);
            }
            let replaced = step(async { self.store.replace(id, version, record.clone()).await }).await;
            // What has failed may be kept all the same.
            if matches!(replaced, Ok(Replaced::Done) | Err(_)) && record.changes() != changes {
                self.hub.changed(&Subject::Task(id.to_string().into()));
            }
            match replaced? {
                Replaced::Done => return Ok(Some(record)),
                Replaced::NoRoom => return Err(Fault::Busy),
                Replaced::Outdated => {}
            }
        }
        tracing::error!("a task changes so often that it could not be changed");
        Err(Fault::Internal)
    }

    /// Changes a task for its client and then tells what runs of it, be the client still there or not.
    async fn change_for_client(
        self: &Arc<Self>,
        id: TaskId,
        change: impl Fn(&mut TaskRecord, u64) -> bool + Send + Sync + 'static,
        tell: fn(&Live),
    ) -> Result<(), Fault> {
        let tasks = self.clone();
        let changing = async move {
            tasks.change(id, |task| change(task, tasks.now())).await?;
            if let Some(live) = tasks.live(id) {
                tell(&live);
            }
            Ok(())
        };
        self.runs.spawn(changing.in_current_span()).await.unwrap_or(Err(Fault::Internal))
    }

    /// What a task counts for where it is held to what a message may have: what it holds, or the message that tells it if
    /// that is longer. There is always room for a few words of failure.
    fn size(&self, id: TaskId, record: &TaskRecord) -> usize {
        /// No text gets longer than that when it is written as JSON.
        const LONGEST_BYTE: usize = 6;
        const LEAST: usize = 1024;
        let held = record.bytes();
        if held.saturating_mul(LONGEST_BYTE).saturating_add(LEAST + self.envelope) <= self.most_bytes {
            return held;
        }
        let told = Raw::encode(&Task::of(id, record)).map_or(usize::MAX, |told| told.as_str().len());
        held.max(told.max(LEAST).saturating_add(self.envelope))
    }

    /// Whether nobody runs a task any more that has not come to its end. What runs here is not lost, however long its store
    /// was away.
    fn is_lost(&self, id: TaskId, record: &TaskRecord) -> bool {
        let is_over = |_| record.held_until().is_none_or(|until| until <= self.now());
        !record.status().is_terminal() && self.live(id).is_none() && self.store.lease().is_none_or(is_over)
    }

    /// Until when what runs now counts as running.
    fn held_until(&self, lease: Duration) -> u64 {
        self.now().saturating_add(lease.as_millis().try_into().unwrap_or(u64::MAX))
    }

    /// Waits until it is worthwhile to look again for what other processes have done to tasks, if they can.
    pub(crate) async fn next_look(&self) {
        match self.store.lease() {
            Some(lease) => sleep(beat(lease)).await,
            None => pending().await,
        }
    }

    /// Says of a task that it runs, until it has come to its end elsewhere. What others have put into its record reaches the
    /// handler from here.
    async fn hold(&self, live: &Live, lease: Duration) {
        loop {
            self.next_look().await;
            let until = self.held_until(lease);
            let held = timeout(beat(lease), self.change(live.id, |task| task.hold(until)));
            match held.await {
                Ok(Ok(Some(task))) if !task.status().is_terminal() => {
                    if task.is_answered() {
                        live.changed.notify_waiters();
                    }
                }
                Ok(Ok(_)) => return live.ended.cancel(),
                // Nobody takes it for lost before its lease is over.
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    fn live(&self, id: TaskId) -> Option<Arc<Live>> {
        lock(&self.live).get(&id).cloned()
    }
}

impl std::fmt::Debug for Tasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tasks").field("store", &self.store).finish_non_exhaustive()
    }
}

/// One step of the store. One that hangs or panics has failed as well.
async fn step<T>(step: impl Future<Output = Result<T, crate::Error>>) -> Result<T, Fault> {
    match timeout(STEP, Contained(pin!(step))).await {
        Ok(Ok(Ok(value))) => return Ok(value),
        Ok(Ok(Err(error))) => tracing::error!(?error, "the store of tasks fails"),
        Ok(Err(_)) => tracing::error!("the store of tasks panics"),
        Err(_) => tracing::error!("the store of tasks does not answer in time"),
    }
    Err(Fault::Internal)
}

/// What is no request's turn, but a task's.
fn full(what: &str) -> Fault {
    Fault::Other(ErrorObject::new(code::INTERNAL_ERROR, format!("Server busy: there is no room for {what}")))
}

/// What a task comes to that nobody runs any more.
fn lost() -> ErrorObject {
    ErrorObject::new(code::INTERNAL_ERROR, "The process that ran this task is lost")
}

/// How often a lease is renewed.
fn beat(lease: Duration) -> Duration {
    (lease / 3).max(Duration::from_millis(1))
}

/// Which task a call is, or that it may become one.
#[derive(Debug, Default)]
pub(crate) struct Tasking {
    is_wanted: AtomicBool,
    live: OnceLock<Arc<Live>>,
    /// It is one.
    begun: CancellationToken,
    /// Whoever polls the handler.
    runner: AtomicWaker,
}

impl Tasking {
    /// The task that it is.
    pub(crate) fn live(&self) -> Option<&Arc<Live>> {
        self.live.get()
    }

    /// Wants to be one, and waits until it is.
    pub(crate) async fn become_task(&self) -> &Arc<Live> {
        self.is_wanted.store(true, Ordering::Release);
        self.runner.wake();
        self.begun().await
    }

    /// Waits until it is one.
    pub(crate) async fn begun(&self) -> &Arc<Live> {
        loop {
            // Whoever waits may do so in a task of the handler's own, which nobody else wakes.
            self.begun.cancelled().await;
            if let Some(live) = self.live.get() {
                return live;
            }
        }
    }

    /// It is one from now on; it does not become another one.
    fn begin(&self, live: Arc<Live>) {
        if self.live.set(live).is_ok() {
            self.begun.cancel();
        }
    }

    /// Whether it is to become one now.
    pub(crate) fn is_wanted(&self, cx: &std::task::Context<'_>) -> bool {
        self.runner.register(cx.waker());
        self.is_wanted.load(Ordering::Acquire) && self.live.get().is_none()
    }
}
