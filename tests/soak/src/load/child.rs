//! Servers that are child processes: some end in good order, some die in the middle of a call.

use std::sync::Arc;

use futures_util::future::join;
use mcp_suite::{Client, Era, Error, ErrorKind, Revision, stdio::Child};
use serde_json::json;

use super::{Field, think, visitor};
use crate::tally::Outcome;

pub(super) async fn visits(field: Arc<Field>, era: Era) {
    while field.goes_on() {
        visit(&field, era).await;
        think().await;
    }
}

async fn visit(field: &Field, era: Era) {
    let (name, at) = (format!("parent {}", field.number()), format!("stdio, {era:?}"));
    let revision = match era {
        Era::Modern => Revision::LATEST,
        _ => Revision::V2025_11_25,
    };
    let mut client = None;
    field
        .attempt("connect", &at, async {
            match start(&name, revision).await {
                Ok(started) => {
                    client = Some(started);
                    Outcome::Answered
                }
                Err(error) => error.into(),
            }
        })
        .await;
    let Some(client) = client else { return };
    for _ in 0..fastrand::u32(1..20) {
        let said = format!("Hello, {name}!");
        field.attempt("calls", &at, echoes(&client)).await;
        field.attempt("elicitation", &at, greets(&client, said)).await;
        think().await;
    }
    if fastrand::bool() {
        field.attempt("children that are killed", &at, dies(&client)).await;
    }
    field
        .attempt("disconnect", &at, async {
            client.disconnect().await;
            Outcome::Answered
        })
        .await;
}

async fn start(name: &str, revision: Revision) -> Result<Client, Error> {
    let failed = |error| Error::caused(ErrorKind::TransportError, "this program is not found", error);
    let program = std::env::current_exe().map_err(failed)?;
    visitor::builder(name, revision).connect(Child::new(program).arg("stdio")).await
}

async fn echoes(client: &Client) -> Outcome {
    let said = fastrand::u64(..).to_string();
    match client.call_raw("echo", json!({ "text": said })).await {
        Ok(result) => Outcome::is(result.to_text(), said),
        Err(error) => error.into(),
    }
}

async fn greets(client: &Client, said: String) -> Outcome {
    match client.call_raw("question", ()).await {
        Ok(result) => Outcome::is(result.to_text(), said),
        Err(error) => error.into(),
    }
}

/// The call that kills it fails, and so does one that runs beside it.
async fn dies(client: &Client) -> Outcome {
    let beside = client.call_raw("sleep", json!({ "ms": 15_000 }));
    let (killing, beside) = join(client.call_raw("die", ()), beside).await;
    let fails = |result| Outcome::fails(result, ErrorKind::TransportClosed, "");
    match (fails(killing), fails(beside)) {
        (Outcome::Failed, outcome) | (outcome, _) => outcome,
    }
}
