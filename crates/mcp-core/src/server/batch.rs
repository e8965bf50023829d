//! Batches, which 2025-03-26 alone has: split before anything is accepted, their answers gathered.
//!
//! Specification: *2025-03-26, Overview, Batching*.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use mcp_jsonrpc::{Bytes, ErrorObject, Malformed, Message, RequestId, code, encode};

use crate::{
    Revision, Revisions,
    lock::lock,
    mailbox::Mailbox,
    method::{Initialize, Method},
    server::{Arrival, Server, outlet::Queued},
};

/// Whether an array is a batch here: in a session by what was agreed on, over HTTP by the header.
pub(super) fn is_taken(accepted: Revisions, arrival: &Arrival<'_>) -> bool {
    let agreed = arrival.session.and_then(|session| session.handshake()).map(|handshake| handshake.revision);
    let named = || match arrival.version_header {
        None if arrival.http => Some(Revision::WITHOUT_HEADER),
        header => header.and_then(Revision::parse),
    };
    agreed.or_else(named).is_some_and(|revision| revision.has_batches() && accepted.contains(revision))
}

/// The answer to an array where it is none.
pub(super) fn not_taken() -> Malformed {
    invalid(None, "a batch, which this revision does not have")
}

/// What may not stand in a batch.
pub(super) fn admit(message: Message) -> Result<Message, Malformed> {
    match message {
        Message::Request(request) if Initialize::is(&request) => {
            Err(invalid(Some(request.id), "`initialize` in a batch"))
        }
        message => Ok(message),
    }
}

fn invalid(id: Option<RequestId>, what: &str) -> Malformed {
    Malformed::new(id, ErrorObject::new(code::INVALID_REQUEST, format!("Invalid request: {what}")))
}

/// Answers a batch that came by itself, where nothing can cancel a part of it.
pub(super) async fn answer(
    server: &Server,
    items: Vec<Result<Message, Malformed>>,
    arrival: Arrival<'_>,
) -> Option<Bytes> {
    if !server.takes_batches(&arrival) {
        return Some(server.encode(&server.malformed(not_taken(), &arrival)));
    }
    let answers = join_all(items.into_iter().map(|item| answer_item(server, item, arrival.clone()))).await;
    let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
    (!answers.is_empty()).then(|| encode::batch(&answers))
}

async fn answer_item(server: &Server, item: Result<Message, Malformed>, arrival: Arrival<'_>) -> Option<Bytes> {
    let reply = match server.admit(item, &arrival) {
        Ok(Message::Request(request)) => server.answer(request, arrival).await,
        Ok(message) => {
            server.heed(&message, &arrival);
            return None;
        }
        Err(reply) => reply,
    };
    Some(server.encode(&reply))
}

/// The answers to a batch on a shared wire. Each of its requests holds a share; with the last one, answered or
/// cancelled, they leave as one array.
#[derive(Debug)]
pub(super) struct Gathering {
    outbox: Arc<Mailbox<Queued>>,
    answers: Mutex<Vec<Bytes>>,
}

impl Gathering {
    pub(super) fn new(outbox: Arc<Mailbox<Queued>>) -> Self {
        Self { outbox, answers: Mutex::default() }
    }

    pub(super) fn add(&self, answer: Bytes) {
        lock(&self.answers).push(answer);
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        let answers = std::mem::take(&mut *lock(&self.answers));
        if !answers.is_empty() {
            self.outbox.reply(encode::batch(&answers));
        }
    }
}
