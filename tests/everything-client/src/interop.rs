//! The client as one peer of an interop run; `tests/interop/README.md` has the command line and the lines printed.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use mcp_suite::{
    Client, Era, Limits, Revision,
    client::{CallOptions, Changed, IntoTransport},
    http::Http,
    implementation,
    stdio::Child,
    types::{ElicitParams, ElicitResult, NotificationFilter, ResourceBody},
    ws::Ws,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Connects to `target`, lists the tools, makes the calls, and disconnects; what came of each goes to stdout.
pub(crate) async fn run(era: &str, calls: &str, wire: &str, target: &[&str]) -> Result<(), Box<dyn Error>> {
    let revisions = revisions(era).ok_or_else(|| format!("no era `{era}`"))?;
    let calls: Vec<Value> = serde_json::from_str(calls)?;
    match (wire, target) {
        ("http", [url]) => visit(Http::new(*url), revisions, &calls).await,
        ("ws", [url]) => visit(Ws::new(*url), revisions, &calls).await,
        ("stdio", [program, arguments @ ..]) => visit(Child::new(program).args(arguments), revisions, &calls).await,
        _ => Err(format!("no wire `{wire}` to {target:?}").into()),
    }
}

fn revisions(era: &str) -> Option<Vec<Revision>> {
    let of = |era| Revision::ALL.iter().copied().filter(|revision| revision.era() == era).collect();
    match era {
        "modern" => Some(of(Era::Modern)),
        "legacy" => Some(of(Era::Legacy)),
        "either" => Some(Revision::ALL.to_vec()),
        _ => None,
    }
}

async fn visit(transport: impl IntoTransport, revisions: Vec<Revision>, calls: &[Value]) -> Result<(), Box<dyn Error>> {
    // A peer may take long to start; the probe is sent before it reads.
    let limits = Limits::default().probe_timeout(Duration::from_secs(30));
    let builder = Client::builder(implementation!()).revisions(revisions).limits(limits).on_elicit(answer);
    let client = builder.connect(transport).await?;
    println!("{}", json!({ "revision": client.revision().as_str() }));
    println!("{}", json!({ "tools": names(&client).await? }));
    for wanted in calls {
        println!("{}", make(&client, wanted).await);
    }
    client.disconnect().await;
    Ok(())
}

/// The user is Ada, and has nothing else to say.
async fn answer(question: ElicitParams) -> Result<ElicitResult, mcp_suite::Error> {
    match question.message.as_str() {
        "What is your name?" => ElicitResult::accept(json!({ "name": "Ada" })),
        _ => Ok(ElicitResult::decline()),
    }
}

async fn names(client: &Client) -> Result<Vec<String>, mcp_suite::Error> {
    Ok(client.tools().await?.iter().map(|tool| tool.definition().name.clone()).collect())
}

/// Makes one call, and says what came of it.
async fn make(client: &Client, wanted: &Value) -> Value {
    let word = |member: &str| wanted[member].as_str();
    let (kind, name) = ["tool", "resource", "prompt", "question", "cancel", "change"]
        .into_iter()
        .find_map(|kind| Some((kind, word(kind)?)))
        .unwrap_or_default();
    let arguments = &wanted["arguments"];
    let outcome = match kind {
        "tool" => call(client, name, arguments).await,
        "resource" => read(client, name).await,
        "prompt" => get(client, name, arguments).await,
        "question" => call(client, name, &json!({})).await,
        "cancel" => cancel(client, name, word("then").unwrap_or_default()).await,
        "change" => change(client, name, arguments).await,
        _ => Err(format!("no such call: {wanted}").into()),
    };
    let mut line = outcome.unwrap_or_else(|error| json!({ "error": error.to_string() }));
    line[kind] = name.into();
    line
}

type Outcome = Result<Value, Box<dyn Error>>;

async fn call(client: &Client, tool: &str, arguments: &Value) -> Outcome {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&steps);
    let options = CallOptions::new()
        .on_progress(move |step| told.lock().unwrap_or_else(PoisonError::into_inner).push(step.progress));
    let result = client.call_raw_with(tool, arguments, options).await?;
    let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(json!({ "text": result.to_text(), "failed": result.is_error, "progress": *steps }))
}

async fn read(client: &Client, uri: &str) -> Outcome {
    let contents = client.read_resource(uri).await?.contents;
    let texts = contents.iter().map(|contents| match &contents.body {
        ResourceBody::Text(text) => text.as_str(),
        _ => "(no text)",
    });
    Ok(json!({ "text": texts.collect::<String>() }))
}

async fn get(client: &Client, prompt: &str, arguments: &Value) -> Outcome {
    let messages = client.get_prompt(prompt, arguments).await?.messages;
    Ok(json!({ "text": messages.iter().filter_map(|message| message.content.as_text()).collect::<String>() }))
}

/// Gives the call up, by dropping it, once it is known to run.
async fn cancel(client: &Client, tool: &str, then: &str) -> Outcome {
    let runs = Arc::new(Notify::new());
    let told = Arc::clone(&runs);
    let options = CallOptions::new().on_progress(move |_| told.notify_one());
    tokio::select! {
        ended = client.call_raw_with(tool, (), options) => return Err(format!("{tool} has ended: {ended:?}").into()),
        () = runs.notified() => {}
    }
    Ok(json!({ "text": client.call_raw(then, ()).await?.to_text() }))
}

async fn change(client: &Client, tool: &str, arguments: &Value) -> Outcome {
    let before = names(client).await?;
    let mut changes = client.listen(NotificationFilter::new().tools()).await?;
    let result = client.call_raw(tool, arguments).await?;
    if result.is_error {
        return Err(result.to_text().into());
    }
    let heard = changes.next().await;
    if heard != Some(Changed::Tools) {
        return Err(format!("{heard:?} was heard").into());
    }
    changes.close().await;
    let added: Vec<String> = names(client).await?.into_iter().filter(|name| !before.contains(name)).collect();
    Ok(json!({ "text": added.join(" ") }))
}
