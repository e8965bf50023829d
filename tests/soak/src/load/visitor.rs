//! Visitors that behave: clients that connect, do this and that, several things at once, and leave.

use std::sync::Arc;

use futures_util::future::join_all;
use mcp_suite::{
    Client, ClientBuilder, Era, Error, Limits, Revision, implementation,
    types::{CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Root},
};
use serde_json::json;

use super::{Field, PATIENCE, think, wire::Wire, work::Work};
use crate::tally::Outcome;

/// One visit after the other.
pub(super) async fn visits(field: Arc<Field>, wire: Wire, era: Era) {
    while field.goes_on() {
        visit(&field, wire, era).await;
    }
}

/// A client and who it is.
pub(super) struct Visitor {
    pub(super) client: Client,
    pub(super) name: String,
    /// Whether its connection may be lost at any time.
    pub(super) is_cut: bool,
}

impl Visitor {
    /// What an error that was not asked for comes to.
    pub(super) fn judge(&self, error: Error) -> Outcome {
        if self.is_cut { Outcome::where_wires_are_cut(error) } else { error.into() }
    }
}

async fn visit(field: &Field, wire: Wire, era: Era) {
    let name = format!("visitor {}", field.number());
    let Some(revision) = fastrand::choice(wire.revisions(era)) else { return };
    let at = format!("{}, {revision}", wire.name());
    let mut visitor = None;
    field
        .attempt("connect", &at, async {
            match wire.connect(field, builder(&name, revision)).await {
                Ok(client) => {
                    visitor = Some(Visitor { client, name: name.clone(), is_cut: wire.is_cut() });
                    Outcome::Answered
                }
                Err(error) if wire.is_cut() => Outcome::where_wires_are_cut(error),
                Err(error) => error.into(),
            }
        })
        .await;
    match visitor {
        Some(visitor) => stay(field, &at, visitor).await,
        None => think().await,
    }
}

async fn stay(field: &Field, at: &str, visitor: Visitor) {
    for _ in 0..fastrand::u32(3..30) {
        if !field.goes_on() {
            break;
        }
        let era = visitor.client.revision().era();
        let works = (0..fastrand::u32(1..5)).map(|_| Work::any(era, visitor.is_cut));
        join_all(works.map(|work| field.attempt(work.name(), at, work.done_by(&visitor)))).await;
        think().await;
    }
    // Some leave without a word, and their sessions expire.
    if fastrand::bool() {
        field
            .attempt("disconnect", at, async {
                visitor.client.disconnect().await;
                Outcome::Answered
            })
            .await;
    }
}

/// A client that can be asked anything, and says who it is.
pub(super) fn builder(name: &str, revision: Revision) -> ClientBuilder {
    let (user, model, root) = (name.to_owned(), name.to_owned(), name.replace(' ', "-"));
    Client::builder(implementation!())
        .revisions([revision])
        // A machine that does other things as well may be slow, and is no legacy server for that.
        .limits(Limits::default().probe_timeout(PATIENCE))
        .tasks()
        .on_elicit(move |question| answer(question, user.clone()))
        .on_sample(move |question| say(question, model.clone()))
        .on_roots(move || list(root.clone()))
}

async fn answer(question: ElicitParams, name: String) -> Result<ElicitResult, Error> {
    let message = question.message.as_str();
    ElicitResult::accept(match message {
        _ if message.contains("color") => json!({ "color": "blue" }),
        _ if message.ends_with("name?") || message == "Who are you?" => json!({ "name": name }),
        _ => json!({ "confirm": true }),
    })
}

async fn say(question: CreateMessageParams, name: String) -> Result<CreateMessageResult, Error> {
    let asked = question.messages.first().and_then(|message| message.content.first()?.as_text().map(str::to_owned));
    Ok(CreateMessageResult::new("a model", format!("{name} on {}", asked.unwrap_or_default())))
}

async fn list(name: String) -> Result<Vec<Root>, Error> {
    Ok(vec![Root::new(format!("file:///{name}")), Root::new("file:///all")])
}
