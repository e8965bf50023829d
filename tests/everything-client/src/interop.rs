//! The client as one peer of an interop run; `tests/interop/README.md` has the command line and the lines printed.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use mcp_suite::{
    Client, Era, Revision,
    client::{CallOptions, IntoTransport},
    http::Http,
    implementation,
    stdio::Child,
    ws::Ws,
};
use serde_json::{Value, json};

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
    let client = Client::builder(implementation!()).revisions(revisions).connect(transport).await?;
    println!("{}", json!({ "revision": client.revision().as_str() }));
    let names: Vec<String> = client.tools().await?.iter().map(|tool| tool.definition().name.clone()).collect();
    println!("{}", json!({ "tools": names }));
    for wanted in calls {
        println!("{}", call(&client, wanted).await);
    }
    client.disconnect().await;
    Ok(())
}

async fn call(client: &Client, wanted: &Value) -> Value {
    let tool = wanted["tool"].as_str().unwrap_or_default();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&steps);
    let options = CallOptions::new()
        .on_progress(move |step| told.lock().unwrap_or_else(PoisonError::into_inner).push(step.progress));
    match client.call_raw_with(tool, &wanted["arguments"], options).await {
        Ok(result) => {
            let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
            json!({ "tool": tool, "text": result.to_text(), "failed": result.is_error, "progress": *steps })
        }
        Err(error) => json!({ "tool": tool, "error": error.to_string() }),
    }
}
