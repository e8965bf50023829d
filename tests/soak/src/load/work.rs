//! What a visitor does, and what must come of it.

use std::{sync::Arc, time::Duration};

use mcp_suite::{
    Era, Error, ErrorKind,
    client::{CallOptions, Called, Changed},
    types::{CompleteParams, NotificationFilter},
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::visitor::Visitor;
use crate::tally::Outcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Add,
    Echo,
    Big,
    Count,
    Sleep,
    Fail,
    Panic,
    Unknown,
    Read,
    Template,
    Missing,
    Prompt,
    Complete,
    List,
    Ping,
    Register,
    Ask,
    AskTwice,
    Sample,
    AskAll,
    Reconnect,
    Cancel,
    Drop,
    Hang,
    Listen,
    Task,
    TaskThatAsks,
    CancelTask,
    ForgetTask,
}

impl Work {
    /// What can be done wherever.
    const ALWAYS: &[Self] = &[
        Self::Add,
        Self::Add,
        Self::Add,
        Self::Echo,
        Self::Echo,
        Self::Big,
        Self::Count,
        Self::Sleep,
        Self::Fail,
        Self::Panic,
        Self::Unknown,
        Self::Read,
        Self::Template,
        Self::Missing,
        Self::Prompt,
        Self::Complete,
        Self::List,
        Self::Ping,
        Self::Reconnect,
        Self::Cancel,
        Self::Drop,
    ];
    /// What waits for something that is not told again where a connection is lost, or leaves something behind then.
    const UNCUT: &[Self] = &[Self::Hang, Self::Listen, Self::Register];
    const ASKING: &[Self] = &[Self::Ask, Self::AskTwice, Self::Sample, Self::AskAll];
    /// What only the modern era has.
    const TASKS: &[Self] = &[Self::Task, Self::TaskThatAsks, Self::CancelTask, Self::ForgetTask];

    pub(super) fn any(era: Era, is_cut: bool) -> Self {
        let uncut = if is_cut { &[] } else { Self::UNCUT };
        let tasks = if era == Era::Modern { Self::TASKS } else { &[] };
        let all = [Self::ALWAYS, Self::ASKING, uncut, tasks].concat();
        all[fastrand::usize(..all.len())]
    }

    /// Under which name it is counted.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Add | Self::Echo | Self::Sleep | Self::Reconnect => "calls",
            Self::Big => "large results",
            Self::Count => "calls with progress",
            Self::Fail | Self::Panic | Self::Unknown | Self::Missing => "calls that fail",
            Self::Read | Self::Template => "resources",
            Self::Prompt => "prompts",
            Self::Complete => "completions",
            Self::List | Self::Ping => "lists and pings",
            Self::Register => "changes of the lists",
            Self::Ask | Self::AskTwice | Self::AskAll => "elicitation",
            Self::Sample => "sampling",
            Self::Cancel | Self::Drop | Self::Hang => "calls that are given up",
            Self::Listen => "subscriptions",
            Self::Task | Self::TaskThatAsks | Self::CancelTask | Self::ForgetTask => "tasks",
        }
    }

    pub(super) async fn done_by(self, visitor: &Visitor) -> Outcome {
        self.run(visitor).await.unwrap_or_else(|error| visitor.judge(error))
    }

    async fn run(self, visitor: &Visitor) -> Result<Outcome, Error> {
        match self {
            Self::Add => add(visitor).await,
            Self::Echo => echo(visitor).await,
            Self::Big => big(visitor).await,
            Self::Count => count(visitor).await,
            Self::Sleep => text(visitor, "sleep", json!({ "ms": 5 }), "slept 5 ms").await,
            Self::Fail => fails(visitor, "fail", ErrorKind::HandlerFailed, "on purpose").await,
            Self::Panic => fails(visitor, "panic", ErrorKind::InternalError, "").await,
            Self::Unknown => fails(visitor, "no such tool", ErrorKind::InvalidParams, "").await,
            Self::Read => read(visitor, "test://static-text", "This is the content of the static text resource.").await,
            Self::Template => template(visitor).await,
            Self::Missing => {
                Ok(unless_cut(visitor, visitor.client.read_resource("test://none").await, ErrorKind::NotFound, ""))
            }
            Self::Prompt => prompt(visitor).await,
            Self::Complete => complete(visitor).await,
            Self::List => list(visitor).await,
            Self::Ping => visitor.client.ping().await.map(|()| Outcome::Answered),
            Self::Register => register(visitor).await,
            Self::Ask => text(visitor, "question", json!({}), format!("Hello, {}!", visitor.name)).await,
            Self::AskTwice => {
                let said = format!("{} likes blue", visitor.name);
                text(visitor, "test_input_required_result_multi_round", json!({}), said).await
            }
            Self::AskAll => {
                let said = format!("{0} on Generate a greeting {0} with 2 root(s)", visitor.name);
                text(visitor, "test_input_required_result_multiple_inputs", json!({}), said).await
            }
            Self::Sample => {
                let said = format!("LLM response: {} on what", visitor.name);
                text(visitor, "test_sampling", json!({ "prompt": "what" }), said).await
            }
            Self::Reconnect => {
                let said = "Reconnection test completed successfully. If you received this, the client properly \
                            reconnected after stream closure.";
                text(visitor, "test_reconnection", json!({}), said).await
            }
            Self::Cancel => cancel(visitor).await,
            Self::Drop => Ok(drop_it(visitor).await),
            Self::Hang => hang(visitor).await,
            Self::Listen => listen(visitor).await,
            Self::Task => {
                let arguments = json!({ "seconds": 0.02, "label": visitor.name });
                text(visitor, "slow_compute", arguments, format!("{} took 0.02 s", visitor.name)).await
            }
            Self::TaskThatAsks => text(visitor, "multi_input", json!({}), format!("{} says true", visitor.name)).await,
            Self::CancelTask => cancel_task(visitor).await,
            Self::ForgetTask => forget_task(visitor).await,
        }
    }
}

/// It fails so, or because its connection is lost.
fn unless_cut<T: std::fmt::Debug>(
    visitor: &Visitor,
    result: Result<T, Error>,
    kind: ErrorKind,
    words: &str,
) -> Outcome {
    match result {
        Err(error) if visitor.is_cut && error.kind() != kind => visitor.judge(error),
        result => Outcome::fails(result, kind, words),
    }
}

async fn fails(visitor: &Visitor, tool: &str, kind: ErrorKind, words: &str) -> Result<Outcome, Error> {
    let result = visitor.client.call::<Value>(tool, json!({ "message": "on purpose" })).await;
    Ok(unless_cut(visitor, result, kind, words))
}

async fn text(visitor: &Visitor, tool: &str, arguments: Value, expected: impl Into<String>) -> Result<Outcome, Error> {
    let result = visitor.client.call_raw(tool, arguments).await?;
    // An answer that was on its way when its connection was cut is not sent again.
    if visitor.is_cut && result.is_error && result.to_text().contains("did not answer within") {
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::is(result.to_text(), expected))
}

async fn add(visitor: &Visitor) -> Result<Outcome, Error> {
    let (a, b) = (fastrand::i32(..), fastrand::i32(..));
    let sum: i64 = visitor.client.call("add", json!({ "a": a, "b": b })).await?;
    Ok(Outcome::so(sum == i64::from(a) + i64::from(b), (a, b, sum)))
}

/// Small ones mostly, and some that take many reads.
async fn echo(visitor: &Visitor) -> Result<Outcome, Error> {
    let length = if fastrand::u8(..8) == 0 { 100_000 } else { fastrand::usize(..500) };
    let letter = || fastrand::choice(['a', 'é', '"', '\n', '😀']);
    let said: String = std::iter::from_fn(letter).take(length).collect();
    let heard = visitor.client.call_raw("echo", json!({ "text": said })).await?.to_text();
    Ok(Outcome::so(heard == said, (heard.len(), said.len())))
}

async fn big(visitor: &Visitor) -> Result<Outcome, Error> {
    let bytes = fastrand::usize(50_000..300_000);
    let text = visitor.client.call_raw("big", json!({ "bytes": bytes })).await?.to_text();
    Ok(Outcome::so(text.len() == bytes && text.bytes().all(|byte| byte == b'x'), (bytes, text.len())))
}

async fn count(visitor: &Visitor) -> Result<Outcome, Error> {
    let n = fastrand::u32(1..30);
    let (mut last, order) = (0.0, CancellationToken::new());
    let broken = order.clone();
    let options = CallOptions::new().on_progress(move |step| {
        if step.progress <= last || step.progress > f64::from(n) {
            broken.cancel();
        }
        last = step.progress;
    });
    let result = visitor.client.call_with::<u32>("count", json!({ "n": n, "ms": fastrand::u32(..2) }), options).await?;
    Ok(Outcome::so(result == n && !order.is_cancelled(), (n, result)))
}

async fn read(visitor: &Visitor, uri: &str, expected: &str) -> Result<Outcome, Error> {
    let contents = visitor.client.read_resource(uri).await?.contents;
    let text = contents.first().and_then(|contents| contents.as_text()).unwrap_or_default().to_owned();
    Ok(Outcome::is(text, expected))
}

async fn template(visitor: &Visitor) -> Result<Outcome, Error> {
    let id = fastrand::u32(..);
    let text = json!({ "id": id.to_string(), "templateTest": true, "data": format!("Data for ID: {id}") });
    read(visitor, &format!("test://template/{id}/data"), &text.to_string()).await
}

async fn prompt(visitor: &Visitor) -> Result<Outcome, Error> {
    let arguments = json!({ "arg1": visitor.name, "arg2": "two" });
    let messages = visitor.client.get_prompt("test_prompt_with_arguments", arguments).await?.messages;
    let text: String = messages.iter().filter_map(|message| message.content.as_text()).collect();
    Ok(Outcome::is(text, format!("Prompt with arguments: arg1='{}', arg2='two'", visitor.name)))
}

async fn complete(visitor: &Visitor) -> Result<Outcome, Error> {
    let params = CompleteParams::template("test://template/{id}/data", "id", "12");
    let values = visitor.client.complete(params).await?.values;
    Ok(Outcome::so(values == ["12", "123"], values))
}

async fn list(visitor: &Visitor) -> Result<Outcome, Error> {
    let tools = visitor.client.tools().await?;
    let has = |name: &str| tools.iter().any(|tool| tool.definition().name == name);
    Ok(Outcome::so(has("add") && has("hang"), tools.len()))
}

/// Adds a tool of its own, calls it, and takes it away again.
async fn register(visitor: &Visitor) -> Result<Outcome, Error> {
    let name = format!("{}-{}", visitor.name.replace(' ', "-"), fastrand::u64(..));
    let client = &visitor.client;
    client.call_raw("register", json!({ "name": name })).await?;
    let said = client.call_raw(&name, ()).await?.to_text();
    client.call_raw("unregister", json!({ "name": name })).await?;
    Ok(Outcome::is(said, format!("this is {name}")))
}

/// Gives up a call that runs.
async fn cancel(visitor: &Visitor) -> Result<Outcome, Error> {
    let token = CancellationToken::new();
    let options = CallOptions::new().cancel_with(token.clone());
    let given_up = async {
        sleep(Duration::from_millis(fastrand::u64(..30))).await;
        token.cancel();
    };
    let call = visitor.client.call_raw_with("sleep", json!({ "ms": 15_000 }), options);
    let (result, ()) = tokio::join!(call, given_up);
    match result {
        Err(error) if error.kind() == ErrorKind::RequestCancelled => Ok(Outcome::Cancelled),
        Err(error) => Err(error),
        Ok(result) => Ok(Outcome::Wrong(format!("it was not cancelled: {}", result.to_text()))),
    }
}

/// The same by leaving it.
async fn drop_it(visitor: &Visitor) -> Outcome {
    let call = visitor.client.call_raw("count", json!({ "n": 10_000, "ms": 1 }));
    match timeout(Duration::from_millis(fastrand::u64(..30)), call).await {
        Err(_) => Outcome::Cancelled,
        Ok(Err(error)) => visitor.judge(error),
        Ok(Ok(result)) => Outcome::Wrong(format!("it was not given up: {}", result.to_text())),
    }
}

/// The same, once it is known to run.
async fn hang(visitor: &Visitor) -> Result<Outcome, Error> {
    let runs = Arc::new(Notify::new());
    let told = runs.clone();
    let options = CallOptions::new().on_progress(move |_| told.notify_one());
    tokio::select! {
        ended = visitor.client.call_raw_with("hang", (), options) => Err(ended.err().unwrap_or_else(Error::not_connected)),
        () = runs.notified() => Ok(Outcome::Cancelled),
    }
}

async fn listen(visitor: &Visitor) -> Result<Outcome, Error> {
    let uri = format!("test://template/{}/data", fastrand::u64(..));
    let mut changes = visitor.client.listen(NotificationFilter::new().resource(&uri)).await?;
    let was_heard: bool = visitor.client.call("touch", json!({ "uri": uri })).await?;
    let heard = changes.next().await;
    if fastrand::bool() {
        changes.close().await;
    }
    Ok(Outcome::so(was_heard && heard == Some(Changed::Resource(uri)), heard))
}

async fn cancel_task(visitor: &Visitor) -> Result<Outcome, Error> {
    match visitor.client.call_as_task("slow_compute", json!({ "seconds": 15 })).await? {
        Called::Task(task) => {
            task.cancel().await?;
            Ok(match task.wait().await {
                Err(error) if error.kind() == ErrorKind::RequestCancelled => Outcome::Cancelled,
                Err(error) => visitor.judge(error),
                Ok(result) => Outcome::Wrong(format!("it was not cancelled: {}", result.to_text())),
            })
        }
        done => Ok(Outcome::Wrong(format!("{done:?} is no task"))),
    }
}

/// Begins a task that nobody comes back for.
async fn forget_task(visitor: &Visitor) -> Result<Outcome, Error> {
    let (tool, arguments) = match fastrand::bool() {
        true => ("slow_compute", json!({ "seconds": 0.5, "label": "x".repeat(fastrand::usize(..2000)) })),
        false => ("confirm_delete", json!({ "filename": "a file" })),
    };
    let called = visitor.client.call_as_task(tool, arguments).await?;
    Ok(Outcome::so(matches!(called, Called::Task(_)), called))
}
