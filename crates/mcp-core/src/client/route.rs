//! What the server sends on its own: no reply comes this way, but the transports put requests and notifications here.

use std::sync::{Arc, OnceLock};

use mcp_jsonrpc::{Bytes, ErrorObject, Message, Request, code, encode};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::timeout,
};

use crate::{
    Era, Error, ErrorKind, Limits, Revision,
    client::{Inbox, Outgoing, Transport},
    method::{Method, Ping},
    observer::{ConnectionEvent, Direction, Observed, Observers, Outcome, Role},
};

/// The task that answers the server, for as long as this lives.
pub(crate) struct Router {
    task: JoinHandle<()>,
    agreed: Arc<OnceLock<Revision>>,
}

impl Router {
    pub(crate) fn start(transport: Arc<dyn Transport>, inbox: Inbox, limits: &Limits) -> Self {
        let agreed = Arc::default();
        let task = tokio::spawn(route(transport, inbox, limits.clone(), Arc::clone(&agreed)));
        Self { task, agreed }
    }

    /// What is spoken from now on.
    pub(crate) fn agreed(&self, revision: Revision) {
        // It is told once.
        let _ = self.agreed.set(revision);
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn route(transport: Arc<dyn Transport>, inbox: Inbox, limits: Limits, agreed: Arc<OnceLock<Revision>>) {
    let mut answers = JoinSet::new();
    let (observers, connection) =
        (&inbox.observers, ConnectionEvent { role: Role::Client, transport: transport.kind() });
    while let Some(message) = inbox.next().await {
        let revision = agreed.get().copied();
        match message {
            // A modern server asks nothing, and a modern client answers nothing.
            Message::Request(request) if revision.is_none_or(|revision| revision.era() == Era::Legacy) => {
                // A server that is slow to take one answer is given the next all the same, within bounds.
                while answers.len() >= limits.in_flight {
                    answers.join_next().await;
                }
                while answers.try_join_next().is_some() {}
                let observed =
                    observers.observed(|| Observed::incoming(request.method.clone(), request.id.clone(), connection));
                let (frame, outcome) = answer(&request);
                observers.answered(observed, || outcome);
                let out = Outgoing { frame, id: None, method: None, name: None, revision, mirrored: Vec::new() };
                answers.spawn(send(transport.clone(), out, limits.clone(), observers.clone()));
            }
            Message::Notification(notification) => {
                observers.notification(connection, Direction::Incoming, &notification.method);
                tracing::debug!(method = &*notification.method, "a notification was ignored");
            }
            _ => tracing::debug!("a request of a server that may ask nothing was ignored"),
        }
    }
}

async fn send(transport: Arc<dyn Transport>, out: Outgoing, limits: Limits, observers: Observers) {
    let connection = ConnectionEvent { role: Role::Client, transport: transport.kind() };
    match timeout(limits.request_timeout, transport.send(out)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => observers.error(connection, || error),
        Err(_) => observers.error(connection, || Error::new(ErrorKind::Timeout, "an answer was not taken in time")),
    }
}

fn answer(request: &Request) -> (Bytes, Outcome) {
    if Ping::is(request) {
        return (encode::result(&request.id, b"{}"), Outcome::Completed);
    }
    let error = ErrorObject::new(code::METHOD_NOT_FOUND, "Method not found");
    (encode::error(Some(&request.id), &error), Outcome::Error { code: error.code })
}
