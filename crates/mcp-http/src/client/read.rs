//! Client path 4 of 5 (HTTP, back): what comes back for a POST. Before: `crates/mcp-http/src/client/mod.rs`. After: `crates/mcp-core/src/client/result.rs`.

use std::{collections::VecDeque, sync::Arc};

use bytes::BytesMut;
use mcp_core::{
    Error, Limits, Revision,
    client::{Inbox, Incoming, about_request},
    method::notification,
};
use mcp_jsonrpc::{Bytes, Inbound, Message, RequestId, decode};
use reqwest::Response;

use super::{
    events::{Ended, Events},
    legacy::Resume,
    refused::{challenges, failed, invalid, is_about_now, media_type, refused, unexpected},
    target::{Answer, Target},
};

/// What the replies of a request are read by.
pub(super) struct Reading {
    pub(super) id: Option<RequestId>,
    pub(super) revision: Option<Revision>,
    pub(super) inbox: Inbox,
    pub(super) target: Arc<Target>,
}

/// Notifications, and the response behind them.
pub(super) struct Answers {
    /// What was read and is not handed on yet.
    ready: VecDeque<Incoming>,
    stream: Option<Box<Stream>>,
    reading: Reading,
}

/// The stream of a call: its events, over one connection or several.
struct Stream {
    events: Events,
    /// How it goes on when its connection ends; none in the modern era.
    resume: Option<Resume>,
}

/// Reads the replies: JSON, or events. An error status with a JSON-RPC error is a reply like any other.
pub(super) async fn replies(answer: Answer, reading: Reading, resume: Option<Resume>) -> Result<Answers, Error> {
    let status = answer.response.status();
    match media_type(&answer.response).as_str() {
        "text/event-stream" if status.is_success() => {
            let stream = Stream { events: Events::new(answer.response, &reading.target.limits), resume };
            Ok(Answers { ready: VecDeque::new(), stream: Some(Box::new(stream)), reading })
        }
        "application/json" if !is_about_now(status) => in_json(answer, reading).await,
        _ => Err(refused(answer).await),
    }
}

async fn in_json(answer: Answer, reading: Reading) -> Result<Answers, Error> {
    let Answer { response, sent } = answer;
    let (status, challenges) = (response.status(), challenges(&response));
    let body = body(response, reading.target.limits.message_bytes).await?;
    let is_answered = |incoming: &VecDeque<Incoming>| incoming.iter().any(|one| matches!(one, Incoming::Response(_)));
    match reading.sort(body.clone()).await {
        Ok(ready) if is_answered(&ready) => Ok(Answers { ready, stream: None, reading }),
        Ok(_) if status.is_success() => Err(invalid("the reply does not answer the request")),
        Err(error) if status.is_success() => Err(error),
        _ => {
            let error = unexpected(status.as_u16(), "application/json", &body, &sent.secrets());
            Err(error.with_challenges(challenges))
        }
    }
}

impl Answers {
    /// What comes next; nothing where the stream ended in order, and too early.
    pub(super) async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        loop {
            if let Some(incoming) = self.ready.pop_front() {
                return Some(Ok(incoming));
            }
            let sorted = match self.stream.as_mut()?.next().await? {
                Ok(data) => self.reading.sort(data).await,
                Err(error) => Err(error),
            };
            match sorted {
                Ok(ready) => self.ready = ready,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The response is there, and what else may come is of no interest.
    pub(super) fn finish(self) {
        if let Some(stream) = self.stream {
            stream.events.finish();
        }
    }
}

impl Stream {
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        loop {
            let ended = match self.events.next().await {
                Ok(event) => {
                    if let Some(resume) = &mut self.resume {
                        resume.heard(&event);
                    }
                    if event.is_message() {
                        return Some(Ok(event.data));
                    }
                    continue;
                }
                Err(ended) => ended,
            };
            match (ended, &mut self.resume) {
                (Ended::Unreadable(error), _) => return Some(Err(error)),
                (ended, Some(resume)) if resume.is_possible() => match resume.reconnect(&self.events, ended).await {
                    Ok(events) => self.events = events,
                    Err(error) => return Some(Err(error)),
                },
                (Ended::InOrder, _) => return None,
                (Ended::Cut(error), _) => return Some(Err(error)),
            }
        }
    }
}

impl Reading {
    /// What of `data` is about the request; all else goes into the inbox.
    async fn sort(&self, data: Bytes) -> Result<VecDeque<Incoming>, Error> {
        let mut incoming = VecDeque::new();
        for message in messages(data, self.revision, &self.target.limits)? {
            match message {
                // An error about a request that the server could not read has no id, and can only be about this one.
                Message::Response(response) if response.id.is_none() || response.id == self.id => {
                    incoming.push_back(Incoming::Response(response));
                }
                Message::Response(_) => {
                    tracing::debug!("an answer to another request was dropped");
                }
                Message::Notification(notification) => {
                    match about_request(&notification, self.target.limits.id_bytes) {
                        about if about.is_some() && about == self.id => {
                            incoming.push_back(Incoming::Notification(notification));
                        }
                        None if notification.method != notification::PROGRESS => {
                            self.inbox.deliver(Message::Notification(notification)).await;
                        }
                        _ => tracing::debug!("a notification about another request was dropped"),
                    }
                }
                message => match &self.id {
                    Some(id) => self.inbox.deliver_about(id, message).await,
                    None => self.inbox.deliver(message).await,
                },
            }
        }
        Ok(incoming)
    }
}

/// The messages that a body or an event holds: one, or several where the revision has batches.
pub(super) fn messages(data: Bytes, revision: Option<Revision>, limits: &Limits) -> Result<Vec<Message>, Error> {
    match decode(data, &limits.decode()) {
        Inbound::One(message) => Ok(vec![message]),
        Inbound::Batch(items) if revision.is_some_and(Revision::has_batches) => {
            Ok(items.into_iter().flatten().collect())
        }
        Inbound::Malformed(malformed) => Err(invalid(&format!("the reply is no message: {}", malformed.error.message))),
        _ => Err(invalid("the reply is an array, which this revision does not have")),
    }
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
