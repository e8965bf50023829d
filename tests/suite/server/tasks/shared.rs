//! One store, and two processes that share it: any of them answers for a task, and one outlives the other.

use std::sync::atomic::{AtomicBool, AtomicU64};

use mcp_core::{
    BoxFuture, Error, ErrorKind,
    store::{MemoryTasks, Replaced, TaskId, TaskRecord, TaskStore},
};
use mcp_test::RawClient;
use tokio::{runtime, time::Instant};

use super::*;
use crate::server::rounds::answers;

const LEASE: Duration = Duration::from_secs(15);

/// What processes share.
#[derive(Debug)]
struct Inner {
    kept: MemoryTasks,
    clock: Arc<Clock>,
}

/// One that goes with the test's, or stands still where it is not set.
#[derive(Debug)]
struct Clock {
    start: Instant,
    ticks: bool,
    set: AtomicU64,
}

impl Clock {
    fn passed(&self) -> Duration {
        let ticked = if self.ticks { self.start.elapsed() } else { Duration::ZERO };
        ticked + Duration::from_millis(self.set.load(Ordering::SeqCst))
    }
}

/// What one of them has of it.
#[derive(Debug, Clone)]
struct Shared {
    inner: Arc<Inner>,
    /// The process does not reach the store any more.
    is_cut: Arc<AtomicBool>,
    /// The next change panics.
    panics: Arc<AtomicBool>,
}

impl Shared {
    fn new(ticks: bool) -> Self {
        let clock = Arc::new(Clock { start: Instant::now(), ticks, set: AtomicU64::new(0) });
        let told = clock.clone();
        let kept = MemoryTasks::new(100, usize::MAX).with_clock(move || told.start + told.passed());
        Self { inner: Arc::new(Inner { kept, clock }), is_cut: Arc::default(), panics: Arc::default() }
    }

    fn pass(&self, millis: u128) {
        self.inner.clock.set.fetch_add(millis.try_into().unwrap(), Ordering::SeqCst);
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Another process.
    fn process(&self) -> Self {
        Self { inner: self.inner.clone(), is_cut: Arc::default(), panics: Arc::default() }
    }

    fn server(&self, tools: impl IntoIterator<Item = Tool>) -> Server {
        builder(Limits::default(), tools).task_store(self.clone()).build()
    }

    fn reached(&self) -> Result<&MemoryTasks, Error> {
        let is_cut = self.is_cut.load(Ordering::SeqCst);
        if is_cut { Err(Error::new(ErrorKind::TransportError, "out of reach")) } else { Ok(&self.inner.kept) }
    }
}

impl TaskStore for Shared {
    fn create(&self, id: TaskId, record: TaskRecord, most: usize) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move { self.reached()?.create(id, record, most).await })
    }

    fn load(&self, id: TaskId) -> BoxFuture<'_, Result<Option<TaskRecord>, Error>> {
        Box::pin(async move { self.reached()?.load(id).await })
    }

    fn replace(&self, id: TaskId, before: u64, record: TaskRecord) -> BoxFuture<'_, Result<Replaced, Error>> {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "as the test wants it");
        Box::pin(async move { self.reached()?.replace(id, before, record).await })
    }

    fn lease(&self) -> Option<Duration> {
        Some(LEASE)
    }

    fn now(&self) -> u64 {
        self.inner.clock.passed().as_millis().try_into().unwrap()
    }
}

fn tools() -> [Tool; 2] {
    [Tool::new("waits", waits).task(), Tool::new("asks", asks).task()]
}

/// Two servers over one store.
fn two() -> (Shared, Server, Server) {
    let store = Shared::new(true);
    let (one, other) = (store.server(tools()), store.process().server(tools()));
    (store, one, other)
}

const LOST: &str = "The process that ran this task is lost";

fn is_lost(task: &Value) -> bool {
    task["status"] == "failed" && task["error"] == json!({ "code": -32603, "message": LOST })
}

#[tokio::test(start_paused = true)]
async fn a_task_is_answered_and_cancelled_through_any_process() {
    let (_, one, other) = two();
    let id = begin(&one, "asks").await;
    let asking = until(&other, &id, "input_required").await;
    assert_eq!(open_questions(&asking), ["who"]);
    update(&other, &id, answers(&[("who", "Ada")])).await;
    sleep(LEASE / 3 + Duration::from_millis(10)).await;
    assert_eq!(text(&get(&other, &id).await), "Ada");

    let id = begin(&one, "waits").await;
    sleep(LEASE * 4).await;
    assert_eq!(get(&other, &id).await["status"], "working", "it is held");
    assert_eq!(Seen::counts(&one), (2, 1));
    assert_eq!(cancel(&other, &id).await["result"]["resultType"], "complete");
    sleep(LEASE / 3 + Duration::from_millis(10)).await;
    assert_eq!(Seen::counts(&one), (2, 2), "its handler was dropped");
    assert_eq!(get(&one, &id).await["status"], "cancelled");
}

/// As a lock would have it that another panic has poisoned.
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_once_ends_no_lease() {
    let (store, one, other) = two();
    let id = begin(&one, "asks").await;
    until(&one, &id, "input_required").await;
    store.panics.store(true, Ordering::SeqCst);
    sleep(LEASE * 4).await;
    assert!(!store.panics.load(Ordering::SeqCst), "it has");
    update(&other, &id, answers(&[("who", "Ada")])).await;
    sleep(LEASE / 3 + Duration::from_millis(10)).await;
    assert_eq!(text(&get(&other, &id).await), "Ada");
}

/// Renewing is no change that anybody is told of.
#[tokio::test(start_paused = true)]
async fn whoever_listens_at_another_process_is_told_of_each_change_once() {
    let (_, one, other) = two();
    let id = begin(&one, "asks").await;
    until(&one, &id, "input_required").await;
    let listen = json!({ "notifications": { "taskIds": [id] }, "_meta": meta() });
    let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen });
    let mut clients = [RawClient::modern(one.clone()), RawClient::modern(other.clone())];
    for client in &mut clients {
        client.say(&listen).await;
        assert_eq!(client.hear().await["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(client.hear().await["params"]["status"], "input_required");
        sleep(LEASE * 3).await;
        client.silence().await.unwrap();
    }
    update(&other, &id, answers(&[("who", "Ada")])).await;
    for client in &mut clients {
        let mut told = client.hear().await;
        if told["params"]["status"] == "working" {
            told = client.hear().await;
        }
        assert_eq!(text(&told["params"]), "Ada");
        sleep(LEASE * 3).await;
        client.silence().await.unwrap();
    }
}

/// A process that comes back to its store finds that others have given it up.
#[tokio::test(start_paused = true)]
async fn a_task_whose_process_does_not_reach_the_store_has_failed() {
    let (store, one, other) = two();
    let id = begin(&one, "waits").await;
    let short = begin(&one, "waits").await;
    sleep(Duration::from_millis(1)).await;
    store.cut(true);
    sleep(LEASE / 3 * 2).await;
    assert_eq!(get(&other, &short).await["status"], "working");
    store.cut(false);
    sleep(LEASE / 3).await;
    store.cut(true);
    sleep(LEASE - Duration::from_secs(1)).await;
    assert_eq!(get(&other, &short).await["status"], "working", "it is held");
    sleep(LEASE).await;
    let lost = get(&other, &id).await;
    assert!(is_lost(&lost), "{lost}");
    open(&one);
    open(&one);
    sleep(Duration::from_secs(1)).await;
    store.cut(false);
    sleep(LEASE).await;
    assert_eq!(get(&one, &id).await, lost, "it stays so, whatever it came to");
    assert_eq!(text(&get(&other, &short).await), "done", "nobody has asked for it meanwhile");
    assert_eq!(Seen::counts(&one), (2, 2));
}

/// Whatever is asked first, and whoever listens.
#[test]
fn a_task_whose_process_is_lost_has_failed() {
    let runtime = || runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    for asked in ["tasks/get", "tasks/update", "tasks/cancel", "subscriptions/listen"] {
        let store = Shared::new(false);
        let (process, other) = (runtime(), store.process().server(tools()));
        let id = process.block_on(async {
            let id = begin(&store.server(tools()), "asks").await;
            until(&other, &id, "input_required").await;
            id
        });
        // The process ends here, and all that it ran with it.
        drop(process);
        runtime().block_on(async {
            store.pass(LEASE.as_millis() - 1);
            assert_eq!(get(&other, &id).await["status"], "input_required", "{asked}");
            let mut client = RawClient::modern(other.clone());
            if asked == "subscriptions/listen" {
                let listen = json!({ "notifications": { "taskIds": [id] }, "_meta": meta() });
                client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": asked, "params": listen })).await;
                client.hear().await;
                assert_eq!(client.hear().await["params"]["status"], "input_required");
                store.pass(1);
                assert!(is_lost(&client.hear().await["params"]));
            } else {
                store.pass(1);
                let params = json!({ "taskId": id, "inputResponses": answers(&[("who", "Ada")]) });
                let answer = request(&other, None, asked, params).await;
                assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
            }
            let lost = get(&other, &id).await;
            assert!(is_lost(&lost), "{asked}: {lost}");
        });
    }
}

/// Without a lease, what does not run in this process runs nowhere.
#[test]
fn a_task_whose_runtime_is_gone_has_failed() {
    let runtime = || runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let server = waiting();
    let gone = runtime();
    let id = gone.block_on(begin(&server, "waits"));
    drop(gone);
    let lost = runtime().block_on(get(&server, &id));
    assert!(is_lost(&lost), "{lost}");
}
