//! Calls that a server answers with a task: the client comes back for the result, and answers what the task asks meanwhile.
//!
//! Specification: *Tasks extension*.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    future::pending,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, abortable},
    stream::FuturesUnordered,
};
use mcp_jsonrpc::{Raw, code};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, sleep_until, timeout, timeout_at},
};

use crate::{
    Blame, BoxFuture, Client, Error, ErrorKind,
    client::{CallOptions, Subscription, call::Ask, input::InputRequest, result, rounds::Outcome},
    deadline::deadline,
    method::{CallTool, CancelTask, GetTask, UpdateTask},
    shown::{Elided, misfit},
    store::TaskStatus,
    types::{CallToolResult, NotificationFilter, Task, TaskParams, UpdateTaskParams},
};

/// What a tool's call came to at first.
#[derive(Debug)]
#[non_exhaustive]
pub enum Called {
    /// Its result.
    Done(CallToolResult),
    /// A task, which is to be come back for.
    Task(TaskHandle),
}

/// A task of a server. Its [id](Self::id) is all there is to keep of it: with it the same client, or another one after a
/// restart, goes on where this one was ([`Client::task`]). Dropping the handle changes nothing.
///
/// Where nobody is known by name, whoever has the id has the task, so `Debug` does not show it whole.
#[derive(Clone)]
pub struct TaskHandle {
    client: Client,
    id: String,
}

impl Client {
    /// The task of that id, which [`call_as_task`](Self::call_as_task) gave once.
    #[must_use]
    pub fn task(&self, id: impl Into<String>) -> TaskHandle {
        TaskHandle { client: self.clone(), id: id.into() }
    }

    /// Calls a tool, and waits for its result only where the server does not make a task of the call. The client must have
    /// said that it knows what a task is ([`ClientBuilder::tasks`](crate::ClientBuilder::tasks)).
    ///
    /// ```
    /// use mcp_core::client::Called;
    ///
    /// # async fn example(client: mcp_core::Client) -> Result<(), mcp_core::Error> {
    /// let result = match client.call_as_task("render", serde_json::json!({ "frames": 9000 })).await? {
    ///     Called::Task(task) => {
    ///         println!("come back for {}", task.id());
    ///         task.wait().await?
    ///     }
    ///     Called::Done(result) => result,
    ///     _ => return Ok(()),
    /// };
    /// println!("{}", result.to_text());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn call_as_task(&self, name: &str, arguments: impl Serialize) -> Result<Called, Error> {
        self.call_as_task_with(name, arguments, CallOptions::new()).await
    }

    /// The same, with options. They are about the call, and not about what follows.
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn call_as_task_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        mut options: CallOptions,
    ) -> Result<Called, Error> {
        let params = self.tool_call(name, &arguments, &mut options)?;
        match self.outcome_of::<CallTool>(Ask::named(&params, name), &mut options).await? {
            Outcome::Complete(result) => result::decode::<CallTool>(&result).map(Called::Done),
            Outcome::Task(task) => Ok(Called::Task(self.task(task.task_id))),
        }
    }

    /// Drives a task that a call has become to its end; it is called off if that is given up, as it is after `at_most`. Boxed, as
    /// asking for a task is a call too.
    pub(super) fn driven(
        &self,
        task: Task,
        (each, at_most): (Duration, Duration),
    ) -> BoxFuture<'_, Result<Raw, Error>> {
        let mut driver = Driver::new(self.task(task.task_id.clone()), Patience { each, all: at_most });
        driver.cancels = true;
        Box::pin(async move {
            let run = async {
                // What a task has come to is not told with its beginning.
                let task = if task.status.is_terminal() { driver.look().await? } else { task };
                driver.run(task).await
            };
            timeout(at_most, run).await.unwrap_or_else(|_| {
                let after = at_most.as_millis();
                let message = format!("the task did not come to its end within {after} ms; it is called off");
                Err(Error::new(ErrorKind::Timeout, message))
            })
        })
    }
}

impl TaskHandle {
    /// What names the task, to be kept.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How far it is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidParams`] where the server does not have it, or not any more; otherwise as any call.
    pub async fn get(&self) -> Result<Task, Error> {
        self.asked_with(CallOptions::new()).await
    }

    async fn asked_with(&self, mut options: CallOptions) -> Result<Task, Error> {
        let params = TaskParams { task_id: self.id.clone() };
        self.client.ask_with::<GetTask>(Ask::named(&params, &self.id), &mut options).await
    }

    /// Tells it what it wants to know, by the keys of its [`input_requests`](Task::input_requests). [`wait`](Self::wait) does
    /// that by itself.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn update(&self, answers: BTreeMap<String, Raw>) -> Result<(), Error> {
        self.told_with(answers, CallOptions::new()).await
    }

    async fn told_with(&self, answers: BTreeMap<String, Raw>, mut options: CallOptions) -> Result<(), Error> {
        let params = UpdateTaskParams { task_id: self.id.clone(), input_responses: answers };
        self.client.ask_with::<UpdateTask>(Ask::named(&params, &self.id), &mut options).await.map(drop)
    }

    /// Calls it off. It may come to another end all the same.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn cancel(&self) -> Result<(), Error> {
        let params = TaskParams { task_id: self.id.clone() };
        self.client.ask_with::<CancelTask>(Ask::named(&params, &self.id), &mut CallOptions::new()).await.map(drop)
    }

    /// Waits for its result, however long that takes, and answers what it asks with the client's handlers. A handler is dropped
    /// where its answer is not wanted any more, as the task has ended, or has taken the question back. Whoever stops waiting
    /// leaves the task as it is.
    ///
    /// # Errors
    /// As [`Client::call_raw`]; [`ErrorKind::RequestCancelled`] where it was called off. A server that does not answer, or
    /// fails (-32603), is asked again, ever more seldom, for [`Limits::request_timeout_max`](crate::Limits).
    pub async fn wait(&self) -> Result<CallToolResult, Error> {
        let limits = self.client.limits();
        let patience = Patience { each: limits.request_timeout, all: limits.request_timeout_max };
        let mut driver = Driver::new(self.clone(), patience);
        let task = driver.look().await?;
        result::decode::<CallTool>(&driver.run(task).await?)
    }

    /// The same, and reads the result as [`Client::call`] does.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`ErrorKind::HandlerFailed`] with the tool's own words when it failed.
    pub async fn wait_for<T: DeserializeOwned + 'static>(&self) -> Result<T, Error> {
        result::success("the tool", &self.wait().await?)
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle").field("id", &Elided(&self.id)).finish_non_exhaustive()
    }
}

/// Whoever waits for a task.
struct Driver {
    task: TaskHandle,
    patience: Patience,
    /// When it was looked at last.
    looked: Instant,
    changes: Changes,
    /// Whether it is called off if this ends before.
    cancels: bool,
}

/// How long a server is waited for.
#[derive(Clone, Copy)]
struct Patience {
    /// With each request about a task.
    each: Duration,
    /// While no request is answered.
    all: Duration,
}

/// What a server tells of a task by itself.
enum Changes {
    /// It was not asked yet.
    Unasked,
    /// It has not answered yet.
    Asked(BoxFuture<'static, Result<Subscription, Error>>),
    Told(Subscription),
    /// Nothing, or nothing any more.
    Untold,
}

/// How often to ask where the server does not say, and how often at most.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(50);

/// How often to ask where the server tells of changes by itself.
const SELDOM: Duration = Duration::from_secs(30);

/// How many questions a task may have.
const QUESTIONS: usize = 1000;

impl Driver {
    fn new(task: TaskHandle, patience: Patience) -> Self {
        Self { task, patience, looked: Instant::now(), changes: Changes::Unasked, cancels: false }
    }

    async fn run(&mut self, mut task: Task) -> Result<Raw, Error> {
        let mut questions = Questions::of(&self.task, self.patience);
        loop {
            if task.status.is_terminal() {
                self.cancels = false;
                return outcome(task);
            }
            questions.see(&task)?;
            // While the user thinks, the task may end.
            task = tokio::select! {
                biased;
                (key, failure) = questions.failure() => self.unless_asked(&key, failure).await?,
                next = self.next(&task) => next?,
            };
        }
    }

    /// How the task is, unless it still waits for an answer that failed.
    async fn unless_asked(&mut self, key: &str, failure: Error) -> Result<Task, Error> {
        let task = self.look().await?;
        let waits = !task.status.is_terminal() && task.input_requests.contains_key(key);
        if waits { Err(failure) } else { Ok(task) }
    }

    /// How the task is, once it is worthwhile to look again.
    async fn next(&mut self, task: &Task) -> Result<Task, Error> {
        let interval = task.poll_interval_ms.map_or(INTERVAL, Duration::from_millis).max(SHORTEST);
        // However often it changes.
        let due = deadline(self.looked, interval);
        match &mut self.changes {
            Changes::Unasked => self.changes = self.ask_for_changes(),
            Changes::Asked(answer) => {
                if let Ok(answer) = timeout_at(due, answer).await {
                    self.changes = Changes::of(answer);
                }
            }
            Changes::Told(changes) => {
                if let Ok(None) = timeout(interval.max(SELDOM), changes.next()).await {
                    self.changes = Changes::Untold;
                }
            }
            Changes::Untold => {}
        }
        sleep_until(due).await;
        self.look().await
    }

    async fn look(&mut self) -> Result<Task, Error> {
        let options = || CallOptions::new().timeout(self.patience.each);
        let task = patiently(&self.task.client, self.patience, || self.task.asked_with(options())).await;
        self.looked = Instant::now();
        task
    }

    /// Has the server tell of changes, if it does: for a task that takes long enough.
    fn ask_for_changes(&self) -> Changes {
        let TaskHandle { client, id } = self.task.clone();
        Changes::Asked(Box::pin(async move { client.listen(NotificationFilter::new().task(id)).await }))
    }
}

impl Changes {
    fn of(answer: Result<Subscription, Error>) -> Self {
        match answer {
            Ok(changes) if !changes.acknowledged().task_ids.is_empty() => Self::Told(changes),
            _ => Self::Untold,
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let (true, Ok(runtime)) = (self.cancels, Handle::try_current()) {
            let task = self.task.clone();
            let leaving = &self.task.client.0.leaving;
            leaving.spawn_on(async move { task.cancel().await }, &runtime);
        }
    }
}

/// What a task wants to know, and who is being asked.
struct Questions {
    task: TaskHandle,
    patience: Patience,
    /// Those that are being answered at once.
    turns: Arc<Semaphore>,
    /// Each is asked once, however often it is seen, and no more once it is not open.
    asked: HashMap<String, AbortHandle>,
    answering: FuturesUnordered<BoxFuture<'static, Result<(), (String, Error)>>>,
}

impl Questions {
    fn of(task: &TaskHandle, patience: Patience) -> Self {
        let turns = Arc::new(Semaphore::new(task.client.limits().in_flight));
        let (asked, answering) = Default::default();
        Self { task: task.clone(), patience, turns, asked, answering }
    }

    /// Sees which are open now.
    fn see(&mut self, task: &Task) -> Result<(), Error> {
        let closed = self.asked.iter().filter(|(key, _)| !task.input_requests.contains_key(*key));
        closed.for_each(|(_, asking)| asking.abort());
        for (key, request) in &task.input_requests {
            if self.asked.contains_key(key) {
                continue;
            }
            if self.asked.len() >= QUESTIONS {
                let message = format!("a task wants to know more than {QUESTIONS} things");
                return Err(Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer));
            }
            let asked = request.decode().map_err(|error| {
                let message = format!("what a task wants to know does not have its shape: {}", misfit(&error));
                Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
            })?;
            let (asking, handle) = abortable(self.asking(asked));
            self.asked.insert(key.clone(), handle);
            self.answering.push(self.answering(key.clone(), asking));
        }
        Ok(())
    }

    /// Asks the user, or whoever knows.
    fn asking(&self, asked: InputRequest) -> BoxFuture<'static, Result<Raw, Error>> {
        let (task, turns) = (self.task.clone(), self.turns.clone());
        Box::pin(async move {
            let _turn = turns.acquire().await;
            let (handlers, revision) = (&task.client.0.settings.handlers, task.client.revision());
            handlers.answer(&asked.method, asked.params.as_ref(), revision).await
        })
    }

    /// Tells the task what was answered. It may then be seen to wait no more before it says that it has the answer.
    fn answering(
        &self,
        key: String,
        asking: Abortable<BoxFuture<'static, Result<Raw, Error>>>,
    ) -> BoxFuture<'static, Result<(), (String, Error)>> {
        let (task, patience) = (self.task.clone(), self.patience);
        Box::pin(async move {
            let Ok(answer) = asking.await else { return Ok(()) };
            let told = async {
                let answers = BTreeMap::from([(key.clone(), answer?)]);
                let options = || CallOptions::new().timeout(patience.each);
                patiently(&task.client, patience, || task.told_with(answers.clone(), options())).await
            };
            told.await.map_err(|error| (key.clone(), error))
        })
    }

    /// Has them answered, until one cannot be.
    async fn failure(&mut self) -> (String, Error) {
        loop {
            match self.answering.next().await {
                Some(Err(failure)) => return failure,
                Some(Ok(())) => {}
                None => return pending().await,
            }
        }
    }
}

/// Asks again, ever more seldom, where the server does not answer or fails: for what is harmless to ask twice.
async fn patiently<T, Fut>(client: &Client, patience: Patience, ask: impl Fn() -> Fut) -> Result<T, Error>
where
    Fut: Future<Output = Result<T, Error>>,
{
    let until = deadline(Instant::now(), patience.all);
    let mut pause = INTERVAL;
    loop {
        match ask().await {
            Err(error) if may_pass(client, &error) && Instant::now() < until => {
                sleep_until(until.min(Instant::now() + pause)).await;
                pause = (pause * 2).min(SELDOM);
            }
            outcome => return outcome,
        }
    }
}

/// Whether the same may be answered later.
fn may_pass(client: &Client, error: &Error) -> bool {
    let is_over = error.kind() == ErrorKind::TransportClosed && error.is_safe_to_retry() && !client.recovers();
    let has_failed = error.object().is_some_and(|object| object.code == code::INTERNAL_ERROR);
    has_failed || (error.blame() == Blame::Transport && !is_over)
}

fn outcome(task: Task) -> Result<Raw, Error> {
    let invalid =
        || Error::new(ErrorKind::ProtocolInvalid, "a task has ended and does not say how").blaming(Blame::Peer);
    match task.status {
        TaskStatus::Completed => task.result.ok_or_else(invalid),
        TaskStatus::Failed => Err(task.error.map_or_else(invalid, Error::from_object)),
        _ => Err(Error::new(ErrorKind::RequestCancelled, "the task was called off")),
    }
}
