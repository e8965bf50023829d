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
        None => open(sessions, &live, &[]).await,
    }
}

/// A stream for what belongs to no request, which begins with what was missed on another.
async fn open(sessions: &Sessions, live: &Arc<Live>, missed: &[LoggedEvent]) -> Response {
    match live.open_standalone(missed, sessions.limits()).await {
        Ok((channel, number)) => listen(sessions, live, &channel, Reader::new(sessions, live, &channel, number)).await,
        Err(TooMany) => {
            let most = sessions.limits().session_streams;
            Refusal::TooManyStreams(most).answer(None)
        }
    }
}

/// Goes on with a stream, in the place of whoever reads it now. Where nothing is known of it, nothing was missed.
async fn resume(sessions: &Sessions, live: &Arc<Live>, stream: StreamId, seq: u64) -> Response {
    // First, so that nothing comes between what was missed and what comes from now on.
    let found = live.find(stream).map(|(channel, is_standalone)| (channel.attach(), channel, is_standalone));
    let missed = match sessions.log().after(live.id, stream, seq).await {
        Ok(missed) => missed,
        Err(error) => {
            tracing::warn!(?error, "the events of a stream could not be looked up");
            None
        }
    };
    let Some((number, channel, is_standalone)) = found else {
        return match missed {
            // The call is over, or runs elsewhere.
            Some(missed) if !live::is_standalone(stream) => sse::response(reader::rest(stream, missed)),
            missed => open(sessions, live, &missed.unwrap_or_default()).await,
        };
    };
    let reader = Reader::new(sessions, live, &channel, number);
    // Nobody has seen more than was sent.
    let seen = seq.min(channel.last().await);
    let reader = reader.behind(seen, missed.unwrap_or_default());
    if is_standalone { listen(sessions, live, &channel, reader).await } else { sse::response(reader.into_events()) }
}

/// What found nobody to read it goes out first.
async fn listen(sessions: &Sessions, live: &Arc<Live>, channel: &Arc<Channel>, reader: Reader) -> Response {
    let unsent = channel.catch_up(sessions.log(), || live.next_unsent()).await;
    sse::response(reader.after(unsent).standalone().into_events())
}
