//! Batches, which 2025-03-26 alone has: split before anything is accepted, their answers gathered.
//!
//! Specification: *2025-03-26, Overview, Batching*.

use futures_util::future::join_all;
use mcp_jsonrpc::{Bytes, ErrorObject, Malformed, Message, code, encode};

use crate::{
    Revision, Revisions,
    method::{Initialize, Method},
    server::{Arrival, Server, refusal},
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

pub(super) async fn answer(
    server: &Server,
    items: Vec<Result<Message, Malformed>>,
    arrival: Arrival<'_>,
) -> Option<Bytes> {
    if !server.takes_batches(&arrival) {
        return Some(server.encode(&refusal(invalid("a batch, which this revision does not have"))));
    }
    let answers = join_all(items.into_iter().map(|item| answer_item(server, item, arrival.clone()))).await;
    let answers: Vec<Bytes> = answers.into_iter().flatten().collect();
    (!answers.is_empty()).then(|| encode::batch(&answers))
}

async fn answer_item(server: &Server, item: Result<Message, Malformed>, arrival: Arrival<'_>) -> Option<Bytes> {
    let reply = match item {
        Ok(Message::Request(request)) if request.method == Initialize::NAME => {
            refusal(Malformed::new(Some(request.id), invalid("`initialize` in a batch").error))
        }
        Ok(Message::Request(request)) => server.answer(request, arrival).await,
        Ok(_) => return None,
        Err(malformed) => refusal(malformed),
    };
    Some(server.encode(&reply))
}

fn invalid(what: &str) -> Malformed {
    Malformed::new(None, ErrorObject::new(code::INVALID_REQUEST, format!("Invalid request: {what}")))
}
