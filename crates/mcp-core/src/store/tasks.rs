use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use mcp_jsonrpc::{ErrorObject, Raw};
use serde::{Deserialize, Serialize};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

use super::{TaskId, ready};
use crate::{
    BoxFuture, Error,
    deadline::{deadline, since_1970},
    lock::lock,
};

/// How far a task is. The last three are for ever.
///
/// Specification: *Tasks extension, Task Status*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for what only its client can say.
    InputRequired,
    /// It has come to a result, which may be a tool's failure.
    Completed,
    /// It has come to an error of the protocol.
    Failed,
    /// It was called off.
    Cancelled,
}

impl TaskStatus {
    /// Whether it stays so.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What a task came to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Result(Raw),
    Error(ErrorObject),
    Cancelled,
}

/// What is kept of a task. It changes by its own methods alone, which keep its rules; each says whether it has.
///
/// As JSON it is what stores keep: what one version of this crate has written, later ones read. `Debug` shows how far it is,
/// and neither whom it belongs to nor what was said about it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default = "TaskRecord::nothing")]
pub struct TaskRecord {
    owner: Option<[u8; 32]>,
    /// Milliseconds since 1970.
    created: u64,
    updated: u64,
    ttl: Duration,
    poll_interval: Duration,
    /// How often it has changed, and how often only in that it still runs.
    version: u64,
    renewals: u64,
    /// Until when it counts as running, in milliseconds since 1970, without a further word of whoever runs it.
    held_until: Option<u64>,
    message: Option<String>,
    /// The questions that wait for an answer, as the client gets them.
    open: BTreeMap<String, Raw>,
    /// The answers that wait for the task.
    answers: BTreeMap<String, Raw>,
    outcome: Option<Outcome>,
}

impl fmt::Debug for TaskRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRecord")
            .field("status", &self.status())
            .field("created", &self.created)
            .field("updated", &self.updated)
            .field("ttl", &self.ttl)
            .field("version", &self.version)
            .field("held_until", &self.held_until)
            .field("has_owner", &self.owner.is_some())
            .field("open", &self.open.len())
            .field("answers", &self.answers.len())
            .finish_non_exhaustive()
    }
}

impl TaskRecord {
    /// A task that begins. `now` is in milliseconds since 1970.
    #[must_use]
    pub fn new(owner: Option<[u8; 32]>, now: u64, ttl: Duration, poll_interval: Duration) -> Self {
        let (version, renewals, held_until, message, open, answers, outcome) = Default::default();
        let (created, updated) = (now, now);
        Self {
            owner,
            created,
            updated,
            ttl,
            poll_interval,
            version,
            renewals,
            held_until,
            message,
            open,
            answers,
            outcome,
        }
    }

    /// What members say that a record was written without.
    fn nothing() -> Self {
        Self::new(None, 0, Duration::ZERO, Duration::ZERO)
    }

    /// Whom it belongs to: the SHA-256 of the principal's id; `None` is anybody who is nobody.
    #[must_use]
    pub fn owner(&self) -> Option<[u8; 32]> {
        self.owner
    }

    /// When it began, in milliseconds since 1970.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.created
    }

    /// When it last changed, in milliseconds since 1970.
    #[must_use]
    pub fn updated(&self) -> u64 {
        self.updated
    }

    /// How long it is kept, from when it began.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often whoever waits for it should ask.
    #[must_use]
    pub fn poll_interval(&self) -> Duration {
        self.poll_interval
    }

    /// How often it has changed: a store puts a record only in the place of the version that it was made from.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// How often it has changed in what is told of it.
    pub(crate) fn changes(&self) -> u64 {
        self.version - self.renewals
    }

    /// Until when it counts as running without a further word of the process that runs it, in milliseconds since 1970.
    #[must_use]
    pub fn held_until(&self) -> Option<u64> {
        self.held_until
    }

    /// How far it is.
    #[must_use]
    pub fn status(&self) -> TaskStatus {
        match &self.outcome {
            Some(Outcome::Result(_)) => TaskStatus::Completed,
            Some(Outcome::Error(_)) => TaskStatus::Failed,
            Some(Outcome::Cancelled) => TaskStatus::Cancelled,
            None if self.open.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// What it says of itself.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The questions that wait for an answer.
    #[must_use]
    pub fn open(&self) -> &BTreeMap<String, Raw> {
        &self.open
    }

    /// Whether an answer waits for the task.
    pub(crate) fn is_answered(&self) -> bool {
        !self.answers.is_empty()
    }

    /// What it came to, once it is completed.
    #[must_use]
    pub fn result(&self) -> Option<&Raw> {
        match &self.outcome {
            Some(Outcome::Result(result)) => Some(result),
            _ => None,
        }
    }

    /// Why there is no result, once it has failed.
    #[must_use]
    pub fn error(&self) -> Option<&ErrorObject> {
        match &self.outcome {
            Some(Outcome::Error(error)) => Some(error),
            _ => None,
        }
    }

    /// What it counts for where bytes are bounded: what it holds, and itself. Never less than 1 KiB, so that there is room
    /// for the words of a failure.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const ITSELF: usize = 256;
        const ENTRY: usize = 64;
        const LEAST: usize = 1024;
        let texts = self.open.iter().chain(&self.answers).map(|(key, text)| ENTRY + key.len() + text.as_str().len());
        let end = match &self.outcome {
            Some(Outcome::Result(result)) => result.as_str().len(),
            Some(Outcome::Error(error)) => {
                error.message.len() + error.data.as_ref().map_or(0, |data| data.as_str().len())
            }
            Some(Outcome::Cancelled) | None => 0,
        };
        LEAST.max(ITSELF + self.message.as_ref().map_or(0, String::len) + texts.sum::<usize>() + end)
    }

    /// Runs on, at least until then.
    pub fn hold(&mut self, until: u64) -> bool {
        let updated = self.updated;
        self.change(updated, |task| {
            task.held_until = Some(until);
            task.renewals += 1;
        })
    }

    /// Says something else of itself.
    pub fn say(&mut self, message: String, now: u64) -> bool {
        self.change(now, |task| task.message = Some(message))
    }

    /// Asks its client.
    pub fn ask(&mut self, key: &str, question: Raw, now: u64) -> bool {
        self.change(now, |task| drop(task.open.insert(key.to_owned(), question)))
    }

    /// Takes the answers to questions that are open; others are of no interest. Whether there was one.
    pub fn answer(&mut self, answers: BTreeMap<String, Raw>, now: u64) -> bool {
        let wanted: BTreeMap<_, _> = answers.into_iter().filter(|(key, _)| self.open.contains_key(key)).collect();
        !wanted.is_empty()
            && self.change(now, |task| {
                task.open.retain(|key, _| !wanted.contains_key(key));
                task.answers.extend(wanted);
            })
    }

    /// The answer to a question, which is then gone.
    pub fn take_answer(&mut self, key: &str, now: u64) -> Option<Raw> {
        let answer = self.answers.get(key)?.clone();
        self.change(now, |task| drop(task.answers.remove(key))).then_some(answer)
    }

    /// Takes a question back, or its answer.
    pub fn take_back(&mut self, key: &str, now: u64) -> bool {
        let is_known = self.open.contains_key(key) || self.answers.contains_key(key);
        is_known
            && self.change(now, |task| {
                task.open.remove(key);
                task.answers.remove(key);
            })
    }

    /// Comes to a result.
    pub fn complete(&mut self, result: Raw, now: u64) -> bool {
        // A copy, as what it was written into may be larger.
        let result = Raw::assume_valid(result.as_str().into());
        self.change(now, |task| task.end(Outcome::Result(result)))
    }

    /// Comes to an error of the protocol, and says so of itself.
    pub fn fail(&mut self, error: ErrorObject, now: u64) -> bool {
        self.change(now, |task| {
            task.message = Some(error.message.to_string());
            task.end(Outcome::Error(error));
        })
    }

    /// Is called off. What it says of itself stays: how far it was.
    pub fn cancel(&mut self, now: u64) -> bool {
        self.change(now, |task| task.end(Outcome::Cancelled))
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.open.clear();
        self.answers.clear();
    }

    /// What has come to its end does not change.
    fn change(&mut self, now: u64, change: impl FnOnce(&mut Self)) -> bool {
        if self.status().is_terminal() {
            return false;
        }
        change(self);
        self.version += 1;
        self.updated = self.updated.max(now);
        true
    }
}

/// What came of putting a record in the place of another version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replaced {
    /// It is kept.
    Done,
    /// That version is not what is kept.
    Outdated,
    /// There is no room for it; what is kept stays as it was. What has not grown is never refused so.
    NoRoom,
}

/// Where tasks are kept, each until its time is over.
///
/// The futures may be dropped at any `await`, and are after 10 s: what they do is done whole or not at all, be anybody there
/// to hear of it or not. What hangs or panics counts as failed. A [`load`](Self::load) sees the last
/// [`replace`](Self::replace) that was done, whichever process did it.
pub trait TaskStore: fmt::Debug + Send + Sync + 'static {
    /// Keeps a new task, for its [`ttl`](TaskRecord::ttl) from now on; whoever loads it afterwards, wherever, finds it. False if
    /// there is no room for it, or its owner has `most` of them already. A store may forget the owner's oldest that have ended
    /// to make room.
    fn create(&self, id: TaskId, record: TaskRecord, most: usize) -> BoxFuture<'_, Result<bool, Error>>;

    /// The task, if it is kept.
    fn load(&self, id: TaskId) -> BoxFuture<'_, Result<Option<TaskRecord>, Error>>;

    /// Puts a record in the place of the [version](TaskRecord::version) `before`, if that is what is kept and there is room.
    /// The task is kept no longer for that.
    fn replace(&self, id: TaskId, before: u64, record: TaskRecord) -> BoxFuture<'_, Result<Replaced, Error>>;

    /// How long a task counts as running without a word of the process that runs it, where several share the store; then it
    /// has failed. Whoever runs it renews that three times as often, and sees as often what others have done to it.
    ///
    /// Default: none, as what is kept is lost with the process. What does not run in this process then runs nowhere.
    fn lease(&self) -> Option<Duration> {
        None
    }

    /// Now, in milliseconds since 1970, for all who share the store. Default: what this process's clock says, which is to be
    /// within a third of the lease of the others'.
    fn now(&self) -> u64 {
        since_1970().as_millis().try_into().unwrap_or(u64::MAX)
    }
}

/// Tasks in the memory of this process. Those whose time is over are let go by a task of the runtime, which runs for as long
/// as there are any.
pub struct MemoryTasks {
    most: usize,
    most_bytes: usize,
    now: Clock,
    tasks: Arc<Mutex<Kept>>,
}

type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

#[derive(Default)]
struct Kept {
    tasks: HashMap<TaskId, TaskRecord>,
    /// When the time of each is over.
    ends: BTreeSet<(Instant, TaskId)>,
    by_owner: HashMap<Option<[u8; 32]>, usize>,
    /// What they count for, all together.
    bytes: usize,
    /// What lets them go when their time is over.
    sweeper: Option<AbortOnDropHandle<()>>,
}

impl Kept {
    /// Forgets those whose time is over.
    fn forget(&mut self, now: Instant) {
        while let Some(&end) = self.ends.first().filter(|(until, _)| *until <= now) {
            self.remove(end);
        }
    }

    fn remove(&mut self, end: (Instant, TaskId)) {
        self.ends.remove(&end);
        let Some(record) = self.tasks.remove(&end.1) else { return };
        self.bytes -= record.bytes();
        if let Entry::Occupied(mut count) = self.by_owner.entry(record.owner) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Forgets the owner's oldest task that has come to its end; whether there was one.
    fn make_room(&mut self, owner: Option<[u8; 32]>) -> bool {
        let has_ended = |record: &TaskRecord| record.owner == owner && record.status().is_terminal();
        let ended = self.ends.iter().find(|(_, id)| self.tasks.get(id).is_some_and(has_ended)).copied();
        ended.map(|end| self.remove(end)).is_some()
    }

    fn of(&self, owner: Option<[u8; 32]>) -> usize {
        self.by_owner.get(&owner).copied().unwrap_or_default()
    }
}

impl MemoryTasks {
    /// Room for so many, which [count](TaskRecord::bytes) for so many bytes, of all owners together.
    #[must_use]
    pub fn new(most: usize, bytes: usize) -> Self {
        Self { most, most_bytes: bytes, now: Arc::new(Instant::now), tasks: Arc::default() }
    }

    /// The same with a clock of its own, for tests.
    #[must_use]
    pub fn with_clock(mut self, now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// How many tasks it holds, ended ones among them.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.tasks).tasks.len()
    }

    /// What is kept now.
    fn kept(&self) -> (MutexGuard<'_, Kept>, Instant) {
        let (mut kept, now) = (lock(&self.tasks), (self.now)());
        kept.forget(now);
        (kept, now)
    }

    /// Lets tasks go when their time is over, though nobody may ask for any by then.
    fn sweep(&self, kept: &mut Kept) {
        let Ok(runtime) = Handle::try_current() else { return };
        // One may have ended with another runtime.
        if kept.sweeper.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let sweeper = sweep(Arc::downgrade(&self.tasks), self.now.clone());
            kept.sweeper = Some(AbortOnDropHandle::new(runtime.spawn(sweeper)));
        }
    }
}

async fn sweep(tasks: Weak<Mutex<Kept>>, now: Clock) {
    while let Some(pause) = tasks.upgrade().and_then(|tasks| forget(&mut lock(&tasks), now())) {
        sleep(pause).await;
    }
}

/// Forgets those whose time is over; how long the next one has, if there is one.
fn forget(kept: &mut Kept, now: Instant) -> Option<Duration> {
    kept.forget(now);
    let next = kept.ends.first().map(|(end, _)| end.saturating_duration_since(now));
    if next.is_none() {
        // With the room that was taken at the fullest. Under the same lock, so that the next task has another sweeper made;
        // this one ends by itself.
        drop(std::mem::take(kept).sweeper.map(AbortOnDropHandle::detach));
    }
    next
}

impl TaskStore for MemoryTasks {
    fn create(&self, id: TaskId, record: TaskRecord, most: usize) -> BoxFuture<'_, Result<bool, Error>> {
        let (mut kept, now) = self.kept();
        let has_place = |kept: &Kept| kept.tasks.len() < self.most && kept.of(record.owner) < most;
        let has_place = has_place(&kept) || (kept.make_room(record.owner) && has_place(&kept));
        let bytes = kept.bytes.saturating_add(record.bytes());
        let has_room = has_place && bytes <= self.most_bytes;
        if has_room {
            *kept.by_owner.entry(record.owner).or_default() += 1;
            kept.bytes = bytes;
            kept.ends.insert((deadline(now, record.ttl), id));
            kept.tasks.insert(id, record);
            self.sweep(&mut kept);
        }
        ready(has_room)
    }

    fn load(&self, id: TaskId) -> BoxFuture<'_, Result<Option<TaskRecord>, Error>> {
        ready(self.kept().0.tasks.get(&id).cloned())
    }

    fn replace(&self, id: TaskId, before: u64, record: TaskRecord) -> BoxFuture<'_, Result<Replaced, Error>> {
        let (mut kept, _) = self.kept();
        let Kept { tasks, bytes, .. } = &mut *kept;
        let Some(known) = tasks.get_mut(&id).filter(|known| known.version == before) else {
            return ready(Replaced::Outdated);
        };
        let (old, new) = (known.bytes(), record.bytes());
        if new > old && bytes.saturating_add(new - old) > self.most_bytes {
            return ready(Replaced::NoRoom);
        }
        *bytes = *bytes + new - old;
        *known = record;
        ready(Replaced::Done)
    }
}

impl fmt::Debug for MemoryTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, most_bytes, .. } = self;
        f.debug_struct("MemoryTasks").field("most", most).field("most_bytes", most_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn raw(text: &str) -> Raw {
        Raw::parse(text.to_owned()).unwrap()
    }

    fn task() -> TaskRecord {
        TaskRecord::new(None, 1000, HOUR, Duration::from_secs(1))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_is_let_go_though_nobody_asks() {
        let store = MemoryTasks::new(10, usize::MAX);
        let alive = || Handle::current().metrics().num_alive_tasks();
        for _ in 0..2 {
            for hours in [1, 2] {
                let record = TaskRecord::new(None, 0, HOUR * hours, HOUR);
                assert!(store.create(TaskId::random(), record, 10).await.unwrap());
            }
            assert_eq!((store.count(), alive()), (2, 1));
            sleep(HOUR + Duration::from_secs(1)).await;
            assert_eq!((store.count(), alive()), (1, 1));
            sleep(HOUR).await;
            assert_eq!((store.count(), alive()), (0, 0));
        }
        assert!(store.create(TaskId::random(), task(), 10).await.unwrap());
        drop(store);
        tokio::task::yield_now().await;
        assert_eq!(alive(), 0, "it ends with its store");
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_are_kept_for_their_time_and_within_bounds() {
        let store = MemoryTasks::new(3, usize::MAX);
        let owned = |owner: u8| TaskRecord::new(Some([owner; 32]), 0, HOUR, HOUR);
        let create = async |owner| {
            let id = TaskId::random();
            store.create(id, owned(owner), 2).await.unwrap().then_some(id)
        };
        let first = create(1).await.unwrap();
        assert!(create(1).await.is_some() && create(1).await.is_none(), "two for each");
        assert!(create(2).await.is_some() && create(2).await.is_none(), "three for all");
        tokio::time::advance(HOUR - Duration::from_millis(1)).await;
        let mut record = store.load(first).await.unwrap().unwrap();
        assert!(record.cancel(1) && store.replace(first, 0, record.clone()).await.unwrap() == Replaced::Done);
        let again = store.replace(first, 0, record.clone()).await.unwrap();
        assert_eq!(again, Replaced::Outdated, "that version was put before");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(store.load(first).await.unwrap().is_none());
        assert_eq!(store.replace(first, 1, record).await.unwrap(), Replaced::Outdated);
        for _ in 0..2 {
            assert!(create(1).await.is_some() || create(2).await.is_some());
        }
    }

    /// Nothing is kept over the bound, and what makes room is never refused.
    #[tokio::test(start_paused = true)]
    async fn tasks_are_kept_within_their_bytes() {
        let store = MemoryTasks::new(100, 8 << 10);
        let (id, mut record) = (TaskId::random(), task());
        assert_eq!(record.bytes(), 1024);
        assert!(store.create(id, record.clone(), 100).await.unwrap());
        let spare = (8 << 10) - 1024;
        let text = |bytes: usize| "x".repeat(bytes - 256);
        assert!(record.say(text(1024 + spare + 1), 1));
        assert_eq!(store.replace(id, 0, record.clone()).await.unwrap(), Replaced::NoRoom);
        assert_eq!(store.load(id).await.unwrap().unwrap(), task());
        let mut record = task();
        assert!(record.say(text(1024 + spare), 1));
        assert_eq!(store.replace(id, 0, record.clone()).await.unwrap(), Replaced::Done);
        assert!(!store.create(TaskId::random(), task(), 100).await.unwrap(), "not even an empty one");
        assert!(record.say("short".into(), 1));
        assert_eq!(store.replace(id, 1, record.clone()).await.unwrap(), Replaced::Done);
        for _ in 0..7 {
            assert!(store.create(TaskId::random(), task(), 100).await.unwrap());
        }
        assert!(!store.create(TaskId::random(), task(), 100).await.unwrap());
        assert!(record.fail(ErrorObject::new(1, "no room"), 1));
        assert_eq!(store.replace(id, 2, record).await.unwrap(), Replaced::Done, "a failure has its room");
        tokio::time::advance(HOUR).await;
        assert!(store.create(TaskId::random(), task(), 100).await.unwrap());
    }

    /// Whatever is asked of the store first: nothing is left of them.
    #[tokio::test(start_paused = true)]
    async fn tasks_are_forgotten_when_their_time_is_over() {
        let lives = |millis| TaskRecord::new(Some([1; 32]), 0, Duration::from_millis(millis), HOUR);
        for asked in 0..3 {
            let store = MemoryTasks::new(100, usize::MAX);
            for millis in [30, 10, 20, 10] {
                assert!(store.create(TaskId::random(), lives(millis), 100).await.unwrap());
            }
            let kept = || {
                let kept = lock(&store.tasks);
                assert_eq!((kept.ends.len(), kept.bytes), (kept.tasks.len(), kept.tasks.len() * 1024));
                assert_eq!(kept.of(Some([1; 32])), kept.tasks.len());
                kept.tasks.len()
            };
            for (after, left) in [(9, 4), (1, 2), (9, 2), (1, 1), (10, 0)] {
                tokio::time::advance(Duration::from_millis(after)).await;
                let id = TaskId::random();
                match asked {
                    0 => assert!(store.load(id).await.unwrap().is_none()),
                    1 => assert_eq!(store.replace(id, 0, lives(1)).await.unwrap(), Replaced::Outdated),
                    _ => assert!(!store.create(id, lives(1), 0).await.unwrap()),
                }
                assert_eq!(kept(), left);
            }
            assert!(lock(&store.tasks).by_owner.is_empty());
        }
    }

    #[test]
    fn a_record_reads_back() {
        let mut record = task();
        record.ask("k", raw(r#"{"method":"m"}"#), 1001);
        record.answer([("k".to_owned(), raw("1"))].into(), 1002);
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<TaskRecord>(&text).unwrap(), record);
    }

    /// Records outlive the process that wrote them, and its version.
    #[test]
    fn a_record_stays_as_it_was_once_written() {
        let mut record = TaskRecord::new(Some([7; 32]), 1000, HOUR, Duration::from_millis(1500));
        assert!(record.hold(9000) && record.say("half".into(), 1001));
        for key in ["a", "b"] {
            assert!(record.ask(key, raw(r#"{"method":"m"}"#), 1002));
        }
        assert!(record.answer([("a".to_owned(), raw("1"))].into(), 1003));
        let mut completed = record.clone();
        assert!(completed.complete(raw(r#"{"content":[]}"#), 1004));
        let mut failed = record.clone();
        assert!(failed.fail(ErrorObject::new(-32603, "no"), 1004));
        let mut cancelled = record.clone();
        assert!(cancelled.cancel(1004));
        let mut written = serde_json::json!({
            "owner": vec![7u8; 32], "created": 1000, "updated": 1003, "ttl": { "secs": 3600, "nanos": 0 },
            "poll_interval": { "secs": 1, "nanos": 500_000_000 }, "version": 5, "renewals": 1, "held_until": 9000,
            "message": "half", "open": { "b": { "method": "m" } }, "answers": { "a": 1 }, "outcome": null,
        });
        let check = |record: &TaskRecord, written: &serde_json::Value| {
            assert_eq!(&serde_json::to_value(record).unwrap(), written);
            assert_eq!(&serde_json::from_str::<TaskRecord>(&written.to_string()).unwrap(), record);
        };
        check(&record, &written);
        for (member, value) in [("updated", 1004.into()), ("version", 6.into())] {
            written[member] = value;
        }
        (written["open"], written["answers"]) = (serde_json::json!({}), serde_json::json!({}));
        for (record, message, outcome) in [
            (completed, "half", serde_json::json!({ "result": { "content": [] } })),
            (failed, "no", serde_json::json!({ "error": { "code": -32603, "message": "no" } })),
            (cancelled, "half", "cancelled".into()),
        ] {
            (written["message"], written["outcome"]) = (message.into(), outcome);
            check(&record, &written);
        }
        // What a later version adds, and what an earlier one did not know.
        let read: TaskRecord = serde_json::from_str(r#"{"created":5,"later":{}}"#).unwrap();
        assert_eq!((read.created(), read.status(), read.version()), (5, TaskStatus::Working, 0));
    }
}
