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
    future::{AbortHandle, Abortable, Aborted, abortable},
    stream::FuturesUnordered,
};
use mcp_jsonrpc::Raw;
use serde::Serialize;
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    Blame, BoxFuture, Client, Error, ErrorKind,
    client::{CallOptions, Subscription, call::Ask, input::InputRequest, result, rounds::Outcome},
    method::{CallTool, CancelTask, GetTask, UpdateTask},
    shown::Elided,
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
        (patience, at_most): (Duration, Duration),
    ) -> BoxFuture<'_, Result<Raw, Error>> {
        let mut driver = Driver::new(self.task(task.task_id.clone()), patience);
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
    /// As [`Client::call_raw`]; [`ErrorKind::RequestCancelled`] where it was called off. A server that does not answer is asked
    /// again a few times.
    pub async fn wait(&self) -> Result<CallToolResult, Error> {
        let mut driver = Driver::new(self.clone(), self.client.limits().request_timeout);
        let task = driver.look().await?;
        result::decode::<CallTool>(&driver.run(task).await?)
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
    /// How long each request about it may take.
    patience: Duration,
    /// When it was looked at last.
    looked: Instant,
    /// Changes, once the server was asked for them and agreed.
    changes: Option<Subscription>,
    has_asked: bool,
    /// Whether it is called off if this ends before.
    cancels: bool,
}

/// How often to ask where the server does not say, and the bounds of what it says.
const INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(60);

/// How often to ask where the server tells of changes by itself.
const SELDOM: Duration = Duration::from_secs(30);

/// How often a server is asked again that does not answer.
const TRIES: u32 = 5;

impl Driver {
    fn new(task: TaskHandle, patience: Duration) -> Self {
        Self { task, patience, looked: Instant::now(), changes: None, has_asked: false, cancels: false }
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
                failure = questions.failure() => return Err(failure),
                next = self.next(&task) => next?,
            };
        }
    }

    /// How the task is, once it is worthwhile to look again.
    async fn next(&mut self, task: &Task) -> Result<Task, Error> {
        let interval = task.poll_interval_ms.map_or(INTERVAL, Duration::from_millis).clamp(SHORTEST, LONGEST);
        if let Some(changes) = &mut self.changes {
            let change = timeout(interval.max(SELDOM), changes.next()).await;
            if matches!(change, Ok(None)) {
                self.changes = None;
            }
        }
        // However often it changes.
        sleep_until(self.looked + interval).await;
        self.listen().await;
        self.look().await
    }

    async fn look(&mut self) -> Result<Task, Error> {
        let task = patiently(|| self.task.asked_with(CallOptions::new().timeout(self.patience))).await;
        self.looked = Instant::now();
        task
    }

    /// Has the server tell of changes, if it does: once for each task that takes long enough.
    async fn listen(&mut self) {
        if std::mem::replace(&mut self.has_asked, true) {
            return;
        }
        let listening = self.task.client.listen(NotificationFilter::new().task(&self.task.id)).await;
        self.changes = listening.ok().filter(|changes| !changes.acknowledged().task_ids.is_empty());
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let (true, Ok(runtime)) = (self.cancels, Handle::try_current()) {
            let task = self.task.clone();
            runtime.spawn(async move { task.cancel().await });
        }
    }
}

/// What a task wants to know, and who is being asked.
struct Questions {
    task: TaskHandle,
    patience: Duration,
    /// Those that are being answered at once.
    turns: Arc<Semaphore>,
    /// Each is answered once, however often it is seen, and no more once it is not open.
    asked: HashMap<String, AbortHandle>,
    answering: FuturesUnordered<Abortable<BoxFuture<'static, Result<(), Error>>>>,
}

impl Questions {
    fn of(task: &TaskHandle, patience: Duration) -> Self {
        let turns = Arc::new(Semaphore::new(task.client.limits().in_flight));
        let (asked, answering) = Default::default();
        Self { task: task.clone(), patience, turns, asked, answering }
    }

    /// Sees which are open now.
    fn see(&mut self, task: &Task) -> Result<(), Error> {
        let closed = self.asked.iter().filter(|(key, _)| !task.input_requests.contains_key(*key));
        closed.for_each(|(_, answering)| answering.abort());
        for (key, request) in &task.input_requests {
            if self.asked.contains_key(key) {
                continue;
            }
            let asked = request.decode().map_err(|error| {
                let message = "what a task wants to know does not have its shape";
                Error::caused(ErrorKind::ProtocolInvalid, message, error).blaming(Blame::Peer)
            })?;
            let (answering, handle) = abortable(self.answering(key.clone(), asked));
            self.asked.insert(key.clone(), handle);
            self.answering.push(answering);
        }
        Ok(())
    }

    fn answering(&self, key: String, asked: InputRequest) -> BoxFuture<'static, Result<(), Error>> {
        let (task, patience, turns) = (self.task.clone(), self.patience, self.turns.clone());
        Box::pin(async move {
            let _turn = turns.acquire().await;
            let (handlers, revision) = (&task.client.0.settings.handlers, task.client.revision());
            let answer = handlers.answer(&asked.method, asked.params.as_ref(), revision).await?;
            let answers = BTreeMap::from([(key, answer)]);
            patiently(|| task.told_with(answers.clone(), CallOptions::new().timeout(patience))).await
        })
    }

    /// Has them answered, until one cannot be.
    async fn failure(&mut self) -> Error {
        loop {
            match self.answering.next().await {
                Some(Ok(Err(failure))) => return failure,
                Some(Ok(Ok(())) | Err(Aborted)) => {}
                None => return pending().await,
            }
        }
    }
}

/// Asks again where the server does not answer: for what is harmless to ask twice.
async fn patiently<T, Fut>(ask: impl Fn() -> Fut) -> Result<T, Error>
where
    Fut: Future<Output = Result<T, Error>>,
{
    let mut tries = 1;
    loop {
        match ask().await {
            Err(error) if error.blame() == Blame::Transport && tries < TRIES => {
                tries += 1;
                sleep(INTERVAL).await;
            }
            outcome => return outcome,
        }
    }
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
