//! Tasks that are kept elsewhere: by stores that take their time, that fail, and that others write to.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU32},
};

use mcp_core::{
    BoxFuture, Error, ErrorKind,
    store::{MemoryTasks, Replaced, TaskId, TaskRecord, TaskStatus, TaskStore},
};
use mcp_test::RawClient;

use super::*;
use crate::server::rounds::answers;

/// A store with moods.
#[derive(Debug, Clone)]
pub(super) struct Moody(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kept: MemoryTasks,
    /// How long each step takes, in milliseconds, and how long after it a change takes to say what came of it.
    pause: AtomicU32,
    lateness: AtomicU32,
    is_down: AtomicBool,
    /// How many of the next changes come too late.
    losses: AtomicU32,
    /// How often anything was tried.
    tries: AtomicU32,
    created: Mutex<Vec<TaskId>>,
}

impl Moody {
    pub(super) fn new() -> Self {
        let (pause, lateness, is_down, losses, tries, created) = Default::default();
        let kept = MemoryTasks::new(100, usize::MAX);
        Self(Arc::new(Inner { kept, pause, lateness, is_down, losses, tries, created }))
    }

    pub(super) fn is_down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::SeqCst);
    }

    fn lose(&self, count: u32) {
        self.0.losses.store(count, Ordering::SeqCst);
    }

    /// The task that was created.
    pub(super) async fn only(&self) -> TaskRecord {
        let created = self.0.created.lock().unwrap().clone();
        assert_eq!(created.len(), 1);
        self.0.kept.load(created[0]).await.unwrap().unwrap()
    }

    pub(super) fn pause(&self, millis: u32) {
        self.0.pause.store(millis, Ordering::SeqCst);
    }

    pub(super) fn late(&self, millis: u32) {
        self.0.lateness.store(millis, Ordering::SeqCst);
    }

    pub(super) fn tries(&self) -> u32 {
        self.0.tries.load(Ordering::SeqCst)
    }

    async fn pass(&self) -> Result<(), Error> {
        self.0.tries.fetch_add(1, Ordering::SeqCst);
        match self.0.pause.load(Ordering::SeqCst) {
            0 => {}
            pause => sleep(Duration::from_millis(pause.into())).await,
        }
        let is_down = self.0.is_down.load(Ordering::SeqCst);
        if is_down { Err(Error::new(ErrorKind::TransportError, "the secret store is down")) } else { Ok(()) }
    }

    pub(super) fn server(&self, tools: impl IntoIterator<Item = Tool>) -> Server {
        builder(Limits::default(), tools).task_store(self.clone()).build()
    }
}

impl TaskStore for Moody {
    fn create(&self, id: TaskId, record: TaskRecord, most: usize) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            self.pass().await?;
            self.0.created.lock().unwrap().push(id);
            self.0.kept.create(id, record, most).await
        })
    }

    fn load(&self, id: TaskId) -> BoxFuture<'_, Result<Option<TaskRecord>, Error>> {
        Box::pin(async move {
            self.pass().await?;
            self.0.kept.load(id).await
        })
    }

    fn replace(&self, id: TaskId, before: u64, record: TaskRecord) -> BoxFuture<'_, Result<Replaced, Error>> {
        Box::pin(async move {
            self.pass().await?;
            let left = self.0.losses.load(Ordering::SeqCst);
            if left > 0 {
                self.0.losses.store(left - 1, Ordering::SeqCst);
                return Ok(Replaced::Outdated);
            }
            let replaced = self.0.kept.replace(id, before, record).await;
            match self.0.lateness.load(Ordering::SeqCst) {
                0 => {}
                late => sleep(Duration::from_millis(late.into())).await,
            }
            replaced
        })
    }
}

/// Nobody knows its id, so nothing of it runs, and what is kept of it says that it is over.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_its_task_is_made_leaves_none_behind() {
    let store = Moody::new();
    let server = store.server([Tool::new("waits", waits).task()]);
    store.pause(1000);
    let mut client = RawClient::modern(server.clone());
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "waits", "_meta": meta() } })).await;
    sleep(Duration::from_millis(500)).await;
    client.say(crate::server::cancel(1)).await;
    client.silence().await.unwrap();
    let created = store.0.created.lock().unwrap().clone();
    for id in &created {
        assert_eq!(store.0.kept.load(*id).await.unwrap().unwrap().status(), TaskStatus::Cancelled);
    }
    assert_eq!((Seen::counts(&server), created.len()), ((0, 0), 1));
    // The same over a connection that is lost.
    drop(client);
    let call = tokio::time::timeout(Duration::from_millis(500), call(&server, None, "waits")).await;
    assert!(call.is_err());
    sleep(HOUR / 2).await;
    let last = *store.0.created.lock().unwrap().last().unwrap();
    assert_eq!(store.0.kept.load(last).await.unwrap().unwrap().status(), TaskStatus::Cancelled);
    assert_eq!(Seen::counts(&server), (0, 0));
}

/// A task is answered for once it is kept, and not before.
#[tokio::test(start_paused = true)]
async fn whoever_is_told_of_a_task_finds_it() {
    let store = Moody::new();
    let server = store.server([Tool::new("waits", waits).task()]);
    store.pause(1000);
    let began = tokio::time::Instant::now();
    let id = begin(&server, "waits").await;
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    assert_eq!(get(&server, &id).await["status"], "working");
    open(&server);
    assert_eq!(text(&until(&server, &id, "completed").await), "done");
}

/// It is tried again, whoever else was first.
#[tokio::test(start_paused = true)]
async fn a_change_that_comes_too_late_is_made_again() {
    let store = Moody::new();
    let server = store.server([Tool::new("asks", asks).task()]);
    store.lose(63);
    let id = begin(&server, "asks").await;
    let task = until(&server, &id, "input_required").await;
    assert_eq!(open_questions(&task), ["who"]);
    store.lose(63);
    update(&server, &id, answers(&[("who", "Ada")])).await;
    store.lose(10);
    assert_eq!(text(&until(&server, &id, "completed").await), "Ada");

    let id = begin(&server, "asks").await;
    until(&server, &id, "input_required").await;
    store.lose(64);
    let refused = cancel(&server, &id).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert_eq!(get(&server, &id).await["status"], "input_required");
    store.lose(1);
    assert_eq!(cancel(&server, &id).await["result"]["resultType"], "complete");
    assert_eq!(get(&server, &id).await["status"], "cancelled");
}

/// The store's words stay here, and whoever asks later is served.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_an_internal_error() {
    let store = Moody::new();
    let server = store.server([Tool::new("waits", waits).task()]);
    let id = begin(&server, "waits").await;
    store.is_down(true);
    let params = json!({ "name": "waits", "taskId": id, "inputResponses": {} });
    for method in ["tools/call", "tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = request(&server, None, method, params.clone()).await;
        assert!(answer["error"]["code"] == -32603 && !answer.to_string().contains("secret"), "{answer}");
    }
    assert_eq!(Seen::counts(&server), (1, 0), "what could not be kept has not begun, and what runs goes on");
    store.is_down(false);
    assert_eq!(get(&server, &id).await["status"], "working");
}

/// What a task has come to is not lost with a store that is away for a while.
#[tokio::test(start_paused = true)]
async fn a_result_waits_for_its_store() {
    let store = Moody::new();
    let server = store.server([Tool::new("waits", waits).task()]);
    let (id, other) = (begin(&server, "waits").await, begin(&server, "waits").await);
    store.is_down(true);
    open(&server);
    open(&server);
    sleep(Duration::from_secs(600)).await;
    assert_eq!(Seen::counts(&server), (2, 2));
    store.is_down(false);
    assert_eq!(cancel(&server, &other).await["result"]["resultType"], "complete");
    assert_eq!(text(&until(&server, &id, "completed").await), "done");
    assert_eq!(get(&server, &other).await["status"], "cancelled");
    // Not longer than the task is kept.
    begin(&server, "waits").await;
    store.is_down(true);
    open(&server);
    sleep(HOUR + Duration::from_millis(10)).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

/// Where it cannot ask, or say how it is, the handler hears so and need not wait.
#[tokio::test(start_paused = true)]
async fn a_question_that_cannot_be_kept_fails() {
    async fn says(context: Context) -> Result<String, ToolError> {
        waits(context.clone()).await?;
        let said = context.task_message("half").await.is_err();
        let failure = name(&context, "who").await.unwrap_err();
        waits(context).await?;
        Ok(format!("{said} {failure}"))
    }
    let store = Moody::new();
    let server = store.server([Tool::new("says", says).task()]);
    let id = begin(&server, "says").await;
    store.is_down(true);
    open(&server);
    sleep(Duration::from_millis(1)).await;
    store.is_down(false);
    open(&server);
    let done = until(&server, &id, "completed").await;
    assert!(text(&done).starts_with("true ") && !text(&done).contains("secret"), "{done}");
}

/// A task that is answered is told of, or the stream ends with an error: its client has stopped to ask.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_ends_what_listens_to_its_tasks() {
    let store = Moody::new();
    let server = store.server([Tool::new("waits", waits).task()]);
    let id = begin(&server, "waits").await;
    let listen = json!({ "notifications": { "taskIds": [id] }, "_meta": meta() });
    let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen });
    let mut client = RawClient::modern(server.clone());
    store.is_down(true);
    client.say(&listen).await;
    assert_eq!(client.hear().await["error"]["code"], -32603);
    store.is_down(false);
    client.say(&listen).await;
    assert_eq!(client.hear().await["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(client.hear().await["params"]["status"], "working");
    // The change is kept, and cannot be read.
    store.pause(1000);
    open(&server);
    sleep(Duration::from_millis(2500)).await;
    store.is_down(true);
    let answer = client.hear().await;
    assert!(answer["error"]["code"] == -32603 && !answer.to_string().contains("secret"), "{answer}");
}
