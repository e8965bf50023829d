//! Client path 4 of 5 (HTTP, back): what comes back for a POST. Before: `crates/mcp-http/src/client/mod.rs`. After: `crates/mcp-core/src/client/result.rs`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::BytesMut;
use eventsource_stream::{EventStreamError, Eventsource};
use futures_util::{StreamExt, stream, stream::BoxStream};
use http::header;
use mcp_core::{
    Blame, Error, ErrorKind, Limits,
    client::{Inbox, Incoming},
    method::notification,
};
use mcp_jsonrpc::{Bytes, DecodeLimits, Inbound, Members, Message, Notification, RequestId, decode};
use reqwest::Response;

/// Notifications, and the response behind them.
pub(super) type ReplyStream = BoxStream<'static, Result<Incoming, Error>>;

/// Reads a reply to the request `id`: JSON, or events. An error status with a JSON-RPC error is a reply like any other.
pub(super) async fn replies(
    response: Response,
    id: Option<RequestId>,
    inbox: Inbox,
    limits: &Limits,
) -> Result<ReplyStream, Error> {
    match media_type(&response).as_str() {
        "text/event-stream" if response.status().is_success() => Ok(events(response, id, inbox, limits)),
        "application/json" => {
            let status = response.status();
            let body = body(response, limits.message_bytes).await?;
            match one(body.clone(), id.as_ref(), limits) {
                Ok(incoming) => Ok(stream::iter([Ok(incoming)]).boxed()),
                Err(error) if status.is_success() => Err(error),
                Err(_) => Err(unexpected(status.as_u16(), "application/json", &body)),
            }
        }
        _ => Err(refused(response, limits).await),
    }
}

fn media_type(response: &Response) -> String {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The one message that a JSON body is.
fn one(body: Bytes, id: Option<&RequestId>, limits: &Limits) -> Result<Incoming, Error> {
    match decode(body, &limits.decode()) {
        // An error about a request that the server could not read has no id, and can only be about this one.
        Inbound::One(Message::Response(response)) if response.id.is_none() || response.id.as_ref() == id => {
            Ok(Incoming::Response(response))
        }
        Inbound::One(Message::Response(_)) => Err(invalid("the reply answers another request")),
        Inbound::Malformed(malformed) => Err(invalid(&format!("the reply is no message: {}", malformed.error.message))),
        _ => Err(invalid("the reply is no response")),
    }
}

/// The events of a stream that concern the request; all others go into the inbox.
fn events(response: Response, id: Option<RequestId>, inbox: Inbox, limits: &Limits) -> ReplyStream {
    let (most, limits) = (limits.message_bytes, limits.decode());
    let unread = Arc::new(AtomicUsize::new(0));
    let chunks = response.bytes_stream().map({
        let unread = unread.clone();
        move |chunk| {
            let chunk = chunk.map_err(Failure::Transport)?;
            // Counted up to the next event: one that never ends must not fill the memory.
            let held = unread.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            if held > most.saturating_add(chunk.len()) { Err(Failure::TooLong(most)) } else { Ok(chunk) }
        }
    });
    let events = chunks.eventsource().then(move |event| {
        unread.store(0, Ordering::Relaxed);
        let (id, inbox, limits) = (id.clone(), inbox.clone(), limits.clone());
        async move {
            match event {
                // The first event of a resumable stream has an id and no data.
                Ok(event) if event.data.is_empty() => None,
                Ok(event) => sort(Bytes::from(event.data), id.as_ref(), &inbox, &limits).await,
                Err(error) => Some(Err(failed(error))),
            }
        }
    });
    events.filter_map(std::future::ready).boxed()
}

async fn sort(
    data: Bytes,
    id: Option<&RequestId>,
    inbox: &Inbox,
    limits: &DecodeLimits,
) -> Option<Result<Incoming, Error>> {
    match decode(data, limits) {
        Inbound::One(Message::Response(response)) if response.id.is_none() || response.id.as_ref() == id => {
            Some(Ok(Incoming::Response(response)))
        }
        Inbound::One(Message::Notification(notification)) if notification.method == notification::PROGRESS => {
            is_about(&notification, id).then(|| Ok(Incoming::Notification(notification)))
        }
        Inbound::One(Message::Response(response)) => {
            tracing::debug!(id = ?response.id, "an answer to another request was dropped");
            None
        }
        Inbound::One(message) => {
            inbox.deliver(message).await;
            None
        }
        _ => Some(Err(invalid("an event is no message"))),
    }
}

/// A request's progress token is its id.
fn is_about(progress: &Notification, id: Option<&RequestId>) -> bool {
    let token = progress.params.as_ref().and_then(|params| {
        let members = Members::scan(params.as_str(), &["progressToken"]).ok()?;
        RequestId::parse_shared(params.slice(members.get(0)?), usize::MAX).ok()
    });
    token.as_ref() == id
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the connection failed")]
    Transport(#[source] reqwest::Error),
    #[error("an event is longer than {0} bytes")]
    TooLong(usize),
}

fn failed(error: EventStreamError<Failure>) -> Error {
    match error {
        EventStreamError::Transport(Failure::Transport(error)) => {
            Error::caused(ErrorKind::TransportError, "the stream failed", error.without_url())
        }
        other => invalid(&format!("the stream is not one of events: {other}")),
    }
}

/// Why a response is no reply, in words: status, type, and how its body begins.
pub(super) async fn refused(response: Response, limits: &Limits) -> Error {
    let (status, kind) = (response.status().as_u16(), media_type(&response));
    let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(location) = location.filter(|_| (300..400).contains(&status)) {
        let message = format!("the server answered {status} and points to {location}, which is not followed");
        return Error::new(ErrorKind::TransportError, message).with_status(status);
    }
    let body = body(response, limits.message_bytes).await.unwrap_or_default();
    unexpected(status, &kind, &body)
}

fn unexpected(status: u16, kind: &str, body: &[u8]) -> Error {
    const EXCERPT: usize = 200;
    let excerpt = String::from_utf8_lossy(&body[..body.len().min(EXCERPT)]);
    let message = format!("the server answered {status} with {kind:?}: {excerpt:?}");
    match status {
        401 => Error::new(ErrorKind::Unauthorized, message),
        200..300 => Error::new(ErrorKind::ProtocolInvalid, message),
        _ => Error::new(ErrorKind::TransportError, message).blaming(Blame::Peer),
    }
    .with_status(status)
}

async fn body(mut response: Response, most: usize) -> Result<Bytes, Error> {
    let failed = |error: reqwest::Error| {
        Error::caused(ErrorKind::TransportError, "the reply could not be read to its end", error.without_url())
    };
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > most {
            return Err(invalid(&format!("the reply is longer than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
}
