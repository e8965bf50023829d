//! Client path 4 of 5 (HTTP, back): what comes back for a POST. Before: `crates/mcp-http/src/client/mod.rs`. After: `crates/mcp-core/src/client/result.rs`.

use std::time::Duration;

use bytes::BytesMut;
use futures_util::{StreamExt, stream, stream::BoxStream};
use http::header;
use mcp_core::{
    Blame, Error, ErrorKind, Limits, Revision,
    client::{Inbox, Incoming, about_request},
    method::notification,
};
use mcp_jsonrpc::{Bytes, Inbound, Message, RequestId, decode};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::sse::EventDecoder;

/// Notifications, and the response behind them.
pub(super) type ReplyStream = BoxStream<'static, Result<Incoming, Error>>;

/// What the replies of a request are read by.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) id: Option<RequestId>,
    pub(super) revision: Option<Revision>,
    pub(super) inbox: Inbox,
    pub(super) limits: Limits,
}

/// Reads the replies: JSON, or events. An error status with a JSON-RPC error is a reply like any other.
pub(super) async fn replies(response: Response, reading: Reading) -> Result<ReplyStream, Error> {
    match media_type(&response).as_str() {
        "text/event-stream" if response.status().is_success() => Ok(events(response, reading)),
        "application/json" if !is_about_now(response.status()) => {
            let (status, challenges) = (response.status(), challenges(&response));
            let body = body(response, reading.limits.message_bytes).await?;
            let is_answered = |incoming: &[Incoming]| incoming.iter().any(|one| matches!(one, Incoming::Response(_)));
            match reading.sort(body.clone()).await {
                Ok(incoming) if is_answered(&incoming) => Ok(stream::iter(incoming.into_iter().map(Ok)).boxed()),
                Ok(_) if status.is_success() => Err(invalid("the reply does not answer the request")),
                Err(error) if status.is_success() => Err(error),
                _ => Err(unexpected(status.as_u16(), "application/json", &body).with_challenges(challenges)),
            }
        }
        _ => Err(refused(response).await),
    }
}

/// What a proxy or a busy server says is about neither the request nor its method, whatever the body is.
fn is_about_now(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}

fn media_type(response: &Response) -> String {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The replies among the events of a stream.
fn events(response: Response, reading: Reading) -> ReplyStream {
    let decoder = EventDecoder::new(reading.limits.message_bytes);
    let events = stream::unfold((response, decoder), |(mut response, mut decoder)| async move {
        loop {
            if let Some(event) = decoder.next_message() {
                let event = event.map_err(|error| invalid(&error.to_string()));
                return Some((event, (response, decoder)));
            }
            match response.chunk().await {
                Ok(chunk) => decoder.feed(&chunk?),
                Err(error) => return Some((Err(failed("the stream failed", error)), (response, decoder))),
            }
        }
    });
    let sorted = events.then(move |event| {
        let reading = reading.clone();
        async move {
            match event {
                Ok(data) => reading.sort(data).await,
                Err(error) => Err(error),
            }
        }
    });
    sorted
        .flat_map(|sorted| match sorted {
            Ok(incoming) => stream::iter(incoming.into_iter().map(Ok).collect::<Vec<_>>()),
            Err(error) => stream::iter(vec![Err(error)]),
        })
        .boxed()
}

impl Reading {
    /// What of `data` is about the request; all else goes into the inbox.
    async fn sort(&self, data: Bytes) -> Result<Vec<Incoming>, Error> {
        let messages = match decode(data, &self.limits.decode()) {
            Inbound::One(message) => vec![message],
            Inbound::Batch(items) if self.revision.is_some_and(Revision::has_batches) => {
                items.into_iter().flatten().collect()
            }
            Inbound::Malformed(malformed) => {
                return Err(invalid(&format!("the reply is no message: {}", malformed.error.message)));
            }
            _ => return Err(invalid("the reply is an array, which this revision does not have")),
        };
        let mut incoming = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                // An error about a request that the server could not read has no id, and can only be about this one.
                Message::Response(response) if response.id.is_none() || response.id == self.id => {
                    incoming.push(Incoming::Response(response));
                }
                Message::Response(response) => {
                    tracing::debug!(id = ?response.id, "an answer to another request was dropped");
                }
                Message::Notification(notification) => match about_request(&notification, self.limits.id_bytes) {
                    about if about.is_some() && about == self.id => {
                        incoming.push(Incoming::Notification(notification));
                    }
                    None if notification.method != notification::PROGRESS => {
                        self.inbox.deliver(Message::Notification(notification)).await;
                    }
                    _ => tracing::debug!("a notification about another request was dropped"),
                },
                message => self.inbox.deliver(message).await,
            }
        }
        Ok(incoming)
    }
}

/// Why a response is no reply, in words: status, type, and how its body begins.
pub(super) async fn refused(response: Response) -> Error {
    let (status, kind) = (response.status().as_u16(), media_type(&response));
    let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(location) = location.filter(|_| (300..400).contains(&status)) {
        let message = format!("the server answered {status} and points to {location}, which is not followed");
        return Error::new(ErrorKind::TransportError, message).with_status(status);
    }
    let challenges = challenges(&response);
    unexpected(status, &kind, &beginning(response).await).with_challenges(challenges)
}

/// Whether the server wants credentials, or better ones: then that is the answer, whatever the body says.
pub(super) fn wants_credentials(response: &Response) -> bool {
    let status = response.status();
    status == StatusCode::UNAUTHORIZED
        || (status == StatusCode::FORBIDDEN && response.headers().contains_key(header::WWW_AUTHENTICATE))
}

/// The values of `WWW-Authenticate`, one a line.
fn challenges(response: &Response) -> Vec<String> {
    let lines = response.headers().get_all(header::WWW_AUTHENTICATE);
    lines.iter().map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect()
}

/// How a body begins that may never end.
async fn beginning(mut response: Response) -> BytesMut {
    const PATIENCE: Duration = Duration::from_millis(250);
    let mut begun = BytesMut::new();
    while let Ok(Ok(Some(chunk))) = timeout(PATIENCE, response.chunk()).await {
        begun.extend_from_slice(&chunk[..chunk.len().min(EXCERPT)]);
        if begun.len() >= EXCERPT {
            break;
        }
    }
    begun
}

/// How much of a body an error shows, in bytes.
const EXCERPT: usize = 200;

fn unexpected(status: u16, kind: &str, body: &[u8]) -> Error {
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
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed("the reply was cut", error))? {
        if body.len() + chunk.len() > most {
            return Err(invalid(&format!("the reply is longer than {most} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The URL may hold a secret; what happened is in the causes.
pub(super) fn failed(what: &str, error: reqwest::Error) -> Error {
    Error::caused(ErrorKind::TransportError, what, error.without_url())
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
}
