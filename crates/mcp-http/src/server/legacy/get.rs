use std::sync::Arc;

use axum::response::Response;
use http::request::Parts;
use mcp_core::store::{LoggedEvent, StreamId};

use super::{
    Sessions,
    channel::Channel,
    live::{self, Live, TooMany},
    post,
    reader::{self, Reader},
};
use crate::{
    headers::LAST_EVENT_ID,
    server::{accept_header, peer, refusal::Refusal, single, sse},
};

/// Answers a GET: a stream for what belongs to no request, or the rest of one that was lost.
///
/// Specification: *2025-11-25, Transports, Listening for Messages from the Server; Resumability and Redelivery*.
pub(crate) async fn get(sessions: &Sessions, parts: Parts) -> Response {
    if !accept_header::wanted(&parts.headers).is_ok_and(accept_header::Wanted::may_stream) {
        return Refusal::NoEventStream.answer(None);
    }
    let (peer, head) = peer::of(parts);
    let headers = &head.0.headers;
    let last = single::text(headers, &LAST_EVENT_ID).and_then(LoggedEvent::parse_id);
    let live = match post::within(sessions, headers, &peer).await {
        Ok(live) => live,
        Err(refusal) => return refusal.answer(None),
    };
    match last {
        Some((stream, seq)) => resume(sessions, &live, stream, seq).await,
        None => open(sessions, &live, Vec::new()).await,
    }
}

/// A stream for what belongs to no request, which begins with what was missed on another.
async fn open(sessions: &Sessions, live: &Arc<Live>, missed: Vec<LoggedEvent>) -> Response {
    match live.open_standalone(sessions.limits()).await {
        Ok((channel, number)) => {
            listen(sessions, live, &channel, Reader::new(sessions, live, &channel, number), missed).await
        }
        Err(TooMany) => too_many(sessions),
    }
}

/// Goes on with a stream, in the place of whoever reads it now. Where nothing is known of it, nothing was missed.
async fn resume(sessions: &Sessions, live: &Arc<Live>, stream: StreamId, seq: u64) -> Response {
    // First, so that nothing comes between what was missed and what comes from now on.
    let rejoined = match live.rejoin(stream, sessions.limits()).await {
        Ok(rejoined) => rejoined,
        Err(TooMany) => return too_many(sessions),
    };
    // Before anything else is waited for: where the client leaves meanwhile, nobody reads.
    let rejoined = rejoined.map(|(channel, number)| (Reader::new(sessions, live, &channel, number), channel));
    let missed = match sessions.log().after(live.id, stream, seq).await {
        Ok(missed) => missed,
        Err(error) => {
            tracing::warn!(?error, "the events of a stream could not be looked up");
            None
        }
    };
    let Some((reader, channel)) = rejoined else {
        return match missed {
            // The call is over, or runs elsewhere.
            Some(missed) if !live::is_standalone(stream) => sse::response(reader::rest(stream, missed)),
            missed => open(sessions, live, missed.unwrap_or_default()).await,
        };
    };
    // Nobody has seen more than was sent.
    let seen = seq.min(channel.replay(missed.unwrap_or_default()).await);
    let reader = reader.behind(seen);
    if live::is_standalone(stream) {
        return listen(sessions, live, &channel, reader, Vec::new()).await;
    }
    sse::response(reader.into_events())
}

/// What was missed elsewhere goes out first, and what found nobody to read it.
async fn listen(
    sessions: &Sessions,
    live: &Live,
    channel: &Channel,
    reader: Reader,
    missed: Vec<LoggedEvent>,
) -> Response {
    let mut missed = missed.into_iter().map(|event| event.frame);
    channel.catch_up(sessions.log(), || missed.next().or_else(|| live.next_unsent())).await;
    sse::response(reader.into_events())
}

fn too_many(sessions: &Sessions) -> Response {
    Refusal::TooManyStreams(sessions.limits().session_streams).answer(None)
}
