//! Server path 1 of 11 (HTTP): a POST is read and becomes one message. After: `crates/mcp-jsonrpc/src/decode/mod.rs`.
//!
//! Steps 2 to 4 are called from here; `respond.rs` beside this file calls 5 to 10 with what they made.

use std::{
    future::{Future, ready},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    BoxError,
    body::{Body, HttpBody},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, poll_immediate};
use http::{HeaderMap, HeaderValue, StatusCode, Version, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use mcp_core::{Arrival, BoxFuture, Era, Exchange, Limits, Reply, Revision, server::Peer};
use mcp_jsonrpc::{Inbound, Malformed, Message};
use tokio::time::{error::Elapsed, timeout};

use crate::{
    headers::MCP_PROTOCOL_VERSION,
    server::{
        Sessions,
        accept_header::{self, Wanted},
        endpoint::Endpoint,
        legacy, mirror,
        peer::{self, Head},
        refusal::Refusal,
        reply, respond, single,
    },
};

/// Answers a POST; `sessions` are those that it may belong to.
///
/// Specification: *Streamable HTTP, Sending Messages*.
pub(super) async fn post(endpoint: &Endpoint, sessions: Option<&Sessions>, parts: Parts, body: Body) -> Response {
    let wanted = match wanted(endpoint, &parts) {
        Ok(wanted) => wanted,
        Err(why) => return Refusal::from(why).answer(None),
    };
    if let Err(refusal) = readable(&parts.headers) {
        return refusal.answer(None);
    }
    let asks_first = parts.headers.contains_key(header::EXPECT);
    match read(body, endpoint.server.limits(), asks_first).await {
        Ok(body) => answer(endpoint, sessions, parts, wanted, body).await,
        Err(refusal) => refusal.answer(None),
    }
}

/// No future here holds an exchange, or what only sessions need: each is moved as a whole, several times a request.
fn answer<'a>(
    endpoint: &'a Endpoint,
    sessions: Option<&'a Sessions>,
    parts: Parts,
    wanted: Wanted,
    body: Bytes,
) -> impl Future<Output = Response> {
    match begin(endpoint, sessions, parts, wanted, body) {
        Begun::Done(response) => Either::Left(ready(response)),
        Begun::Call(exchange) => Either::Right(Either::Left(respond::respond(endpoint, wanted, exchange))),
        Begun::Session(answer) => Either::Right(Either::Right(answer)),
    }
}

/// What a message comes to.
#[expect(clippy::large_enum_variant, reason = "it is matched where it is returned, and kept nowhere")]
enum Begun<'a> {
    /// It is answered.
    Done(Response),
    /// A call that belongs to no session.
    Call(Exchange),
    /// What a session has to answer.
    Session(BoxFuture<'a, Response>),
}

fn begin<'a>(
    endpoint: &'a Endpoint,
    sessions: Option<&'a Sessions>,
    parts: Parts,
    wanted: Wanted,
    body: Bytes,
) -> Begun<'a> {
    let server = &endpoint.server;
    let (peer, head) = peer::of(parts);
    let version = single::text(&head.0.headers, &MCP_PROTOCOL_VERSION);
    let arrival = Arrival::http(version).of(&peer);
    let arrival = if sessions.is_some() { arrival.joining() } else { arrival };
    Begun::Done(match (server.decode(body), sessions) {
        (Inbound::One(Message::Request(request)), _) => {
            let exchange = server.accept(request, arrival).and_then(|exchange| {
                let refused = |fault| server.refuse(&exchange, fault);
                mirror::check(&head.0.headers, &exchange).map_err(refused).map(|()| exchange)
            });
            match (exchange, sessions) {
                (Ok(exchange), Some(sessions)) if exchange.revision().era() == Era::Legacy => {
                    return Begun::Session(Box::pin(legacy::request(sessions, head, peer, wanted, exchange)));
                }
                (Ok(exchange), _) => return Begun::Call(exchange),
                (Err(reply), _) => respond::at_once(server, wanted, &reply),
            }
        }
        (Inbound::One(message), Some(sessions)) => {
            return Begun::Session(Box::pin(legacy::message(sessions, head, peer, message)));
        }
        (Inbound::One(message @ Message::Notification(_)), None) => {
            server.heed(&message, &arrival);
            match server.check_version(version) {
                Ok(()) => accepted(),
                Err(fault) => reply::reply(server, &Reply::refusal(None, Revision::LATEST, fault)),
            }
        }
        (Inbound::One(_), None) => Refusal::NoSessionForResponse.answer(None),
        (Inbound::Batch(items), Some(sessions)) => {
            return Begun::Session(Box::pin(legacy::batch(sessions, head, peer, wanted, items)));
        }
        (Inbound::Batch(items), None) => return Begun::Session(Box::pin(batch(endpoint, head, peer, wanted, items))),
        (Inbound::Malformed(malformed), _) => reply::reply(server, &server.malformed(malformed, &arrival)),
        _ => accepted(),
    })
}

async fn batch(
    endpoint: &Endpoint,
    head: Arc<Head>,
    peer: Peer,
    wanted: Wanted,
    items: Vec<Result<Message, Malformed>>,
) -> Response {
    let server = &endpoint.server;
    let arrival = Arrival::http(single::text(&head.0.headers, &MCP_PROTOCOL_VERSION)).of(&peer);
    let status = if server.takes_batches(&arrival) { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    match server.answer_batch(items, arrival).await {
        Some(body) => respond::frame(server, wanted, status, body),
        None => accepted(),
    }
}

/// HTTP/1.0 has no chunks, so it gets no stream.
fn wanted(endpoint: &Endpoint, parts: &Parts) -> Result<Wanted, accept_header::NotAcceptable> {
    let wanted = accept_header::wanted(&parts.headers)?;
    if endpoint.streaming && parts.version != Version::HTTP_10 { Ok(wanted) } else { wanted.json_only() }
}

/// Compressed bodies are refused: what they inflate to could not be bounded before it is there.
pub(super) fn readable(headers: &HeaderMap) -> Result<(), Refusal> {
    if !accept_header::is_json(headers.get(header::CONTENT_TYPE)) {
        return Err(Refusal::NotJson);
    }
    let is_identity = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(is_identity) { Ok(()) } else { Err(Refusal::Compressed) }
}

/// Stops reading near the limit, whatever the headers claimed.
pub(super) async fn read(mut body: Body, limits: &Limits, asks_first: bool) -> Result<Bytes, Refusal> {
    let (most, patience) = (limits.message_bytes, limits.stall_timeout);
    let is_claimed = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > most;
    if is_claimed {
        if !asks_first {
            linger(body, most).await;
        }
        return Err(Refusal::TooLarge(most));
    }
    match in_time(patience, joined(Limited::new(&mut body, most))).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            linger(body, most).await;
            Err(Refusal::TooLarge(most))
        }
        Ok(Err(_)) => Err(Refusal::BrokenOff),
        Err(_) => Err(Refusal::TooSlow),
    }
}

/// A body of one part, as most are, stays the bytes it came in. Of more, none is kept beside what they make together: a
/// part may be one byte, and would hold far more.
async fn joined(mut body: Limited<&mut Body>) -> Result<Bytes, BoxError> {
    let mut whole = BytesMut::new();
    let mut first = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Some(part) = frame?.into_data().ok().filter(|part| !part.is_empty()) else { continue };
        if first.is_empty() && whole.is_empty() {
            first = part;
        } else {
            // What was claimed lies within the bound; memory that is not written to is not there.
            let claimed = usize::try_from(body.size_hint().lower()).unwrap_or_default();
            whole.reserve(first.len() + part.len() + claimed);
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&part);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// What `work` comes to within `patience`. No timer is made for what is there at once, as most bodies are.
async fn in_time<T>(patience: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = pin!(work);
    match poll_immediate(&mut work).await {
        Some(done) => Ok(done),
        None => timeout(patience, work).await,
    }
}

/// Reads some of what will not be used: a client that is still writing when the connection closes loses the answer.
async fn linger(body: Body, most: usize) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let mut rest = Limited::new(body, most);
    let read = async { while let Some(Ok(_)) = rest.frame().await {} };
    // However far it came, the answer goes out now.
    let _ = timeout(PATIENCE, read).await;
}

pub(super) fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures_util::stream;

    use super::*;

    /// A byte of a body, counted for as long as its memory is kept.
    struct Part(u8, Arc<AtomicUsize>);

    fn part(byte: u8, kept: &Arc<AtomicUsize>) -> Bytes {
        kept.fetch_add(1, Ordering::Relaxed);
        Bytes::from_owner(Part(byte, kept.clone()))
    }

    impl AsRef<[u8]> for Part {
        fn as_ref(&self) -> &[u8] {
            std::slice::from_ref(&self.0)
        }
    }

    impl Drop for Part {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn the_parts_of_a_body_are_not_kept_beside_it() {
        let kept = Arc::new(AtomicUsize::new(0));
        let of_parts = kept.clone();
        let parts = stream::iter((0..1000usize).map(move |at| {
            assert!(of_parts.load(Ordering::Relaxed) <= 1, "at part {at}");
            Ok::<_, BoxError>(part(b'a' + u8::try_from(at % 26).unwrap(), &of_parts))
        }));
        let body = read(Body::from_stream(parts), &Limits::default(), false).await.unwrap();
        assert_eq!((body.len(), &body[..3], &body[997..]), (1000, &b"abc"[..], &b"jkl"[..]));
    }

    #[tokio::test]
    async fn a_body_of_one_part_is_not_copied() {
        let part = Bytes::from_static(b"whole");
        for others in [vec![], vec![Bytes::new()]] {
            let parts = [vec![part.clone()], others].concat().into_iter().map(Ok::<_, BoxError>);
            let body = read(Body::from_stream(stream::iter(parts)), &Limits::default(), false).await.unwrap();
            assert_eq!((&*body, body.as_ptr() == part.as_ptr()), (&b"whole"[..], true));
        }
    }
}
