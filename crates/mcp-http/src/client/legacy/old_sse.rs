//! The transport of 2024-11-05: what is posted to one path is answered on a stream that another one gives.
//!
//! Specification: *2024-11-05, Transports, HTTP with SSE*; *2025-11-25, Transports, Backwards Compatibility*.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mcp_core::{
    Error, ErrorKind, Limits,
    client::{Inbox, Incoming, Outgoing, about_request},
    method::notification,
};
use mcp_jsonrpc::{Bytes, Message, RequestId, Response};
use reqwest::{StatusCode, Url};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Session,
    stream::{Opened, open},
};
use crate::client::{
    HTTP,
    events::{Ended, Events},
    read::messages,
    refused::{invalid, refused},
    target::{Target, drain},
};

/// A connection of that transport.
pub(in crate::client) struct OldSse {
    /// Where messages are posted to.
    messages: Url,
    waiting: Arc<Waiting>,
    _reading: AbortOnDropHandle<()>,
}

/// Who waits for what.
#[derive(Default)]
struct Waiting(Mutex<Table>);

#[derive(Default)]
struct Table {
    waiters: HashMap<RequestId, Sender<Incoming>>,
    /// Nothing will come any more.
    is_over: bool,
}

/// How much progress may wait to be heard; the answer has room beside it.
const HEARD: usize = 64;

/// Whether a server that refuses a handshake like that may know the old transport alone.
pub(in crate::client) fn may_be_old(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 404 | 405)
}

impl OldSse {
    /// Connects to a server of that kind; nothing where it is none.
    ///
    /// # Errors
    /// When it looks like one, and says something that cannot be followed.
    pub(in crate::client) async fn connect(target: &Arc<Target>, inbox: Inbox) -> Result<Option<Self>, Error> {
        let found = timeout(target.limits.probe_timeout, find(target)).await;
        let Ok(Some((events, named))) = found else { return Ok(None) };
        let messages = endpoint(&target.url, &named)?;
        let waiting = Arc::<Waiting>::default();
        let reader = Reader { inbox, waiting: Arc::clone(&waiting), limits: target.limits.clone() };
        let reading = AbortOnDropHandle::new(tokio::spawn(reader.run(events)));
        Ok(Some(Self { messages, waiting, _reading: reading }))
    }

    /// Posts a request, whose answer comes on the stream.
    pub(in crate::client) async fn ask(&self, target: &Target, out: &Outgoing) -> Result<OldAnswers, Error> {
        let id = out.id.clone().ok_or_else(|| invalid("a request without an id"))?;
        let (sender, receiver) = channel(HEARD + 1);
        self.waiting.add(id.clone(), sender)?;
        // From here on, whatever happens, nobody waits who is gone.
        let answers = OldAnswers { id, receiver, waiting: Arc::clone(&self.waiting) };
        self.tell(target, out).await?;
        Ok(answers)
    }

    /// Posts what has no answer. The body of the response says nothing.
    pub(in crate::client) async fn tell(&self, target: &Target, out: &Outgoing) -> Result<(), Error> {
        let answer = target.post_to(self.messages.clone(), out, &Session::default()).await?;
        if !answer.response.status().is_success() {
            return Err(refused(answer).await);
        }
        drain(answer.response);
        Ok(())
    }
}

impl Drop for OldSse {
    fn drop(&mut self) {
        self.waiting.end();
    }
}

/// The stream, and where it says to post to, which is the first that it says. An event without data says nothing.
async fn find(target: &Target) -> Option<(Box<Events>, Bytes)> {
    let Opened::Stream(mut events) = open(target, &Session::default(), None).await else { return None };
    loop {
        match events.next().await {
            Ok(event) if *event.kind == *b"endpoint" => return Some((events, event.data)),
            Ok(event) if event.data.is_empty() => {}
            _ => return None,
        }
    }
}

/// What is named may hold a secret, and is not shown. Credentials go to their own origin only.
fn endpoint(url: &Url, named: &[u8]) -> Result<Url, Error> {
    let named = std::str::from_utf8(named).ok().and_then(|named| url.join(named.trim()).ok());
    let mut endpoint = named.ok_or_else(|| invalid("the endpoint that the server names is no URL"))?;
    if endpoint.origin() != url.origin() {
        return Err(invalid("the endpoint that the server names is of another origin"));
    }
    // These cannot fail for a URL that has a host.
    let _ = endpoint.set_username(url.username());
    let _ = endpoint.set_password(url.password());
    Ok(endpoint)
}

/// What comes back for one request.
pub(in crate::client) struct OldAnswers {
    id: RequestId,
    receiver: Receiver<Incoming>,
    waiting: Arc<Waiting>,
}

impl OldAnswers {
    /// What comes next; nothing once the stream ended.
    pub(in crate::client) async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        self.receiver.recv().await.map(Ok)
    }
}

impl Drop for OldAnswers {
    fn drop(&mut self) {
        self.waiting.lock().waiters.remove(&self.id);
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: RequestId, waiter: Sender<Incoming>) -> Result<(), Error> {
        let mut table = self.lock();
        if table.is_over {
            return Err(Error::new(ErrorKind::TransportClosed, "the server ended its stream of events"));
        }
        table.waiters.insert(id, waiter);
        Ok(())
    }

    fn answer(&self, response: Response) {
        let waiter = response.id.as_ref().and_then(|id| self.lock().waiters.remove(id));
        match waiter {
            // There is always room for it.
            Some(waiter) => drop(waiter.try_send(Incoming::Response(response))),
            None => tracing::debug!("an answer to no pending request was dropped"),
        }
    }

    /// A slow listener loses progress, and delays nobody.
    fn progress(&self, message: mcp_jsonrpc::Notification, id_bytes: usize) {
        let Some(token) = about_request(&message, id_bytes) else { return };
        let waiter = self.lock().waiters.get(&token).cloned();
        if let Some(waiter) = waiter.filter(|waiter| waiter.capacity() > 1) {
            drop(waiter.try_send(Incoming::Notification(message)));
        }
    }

    /// Whoever waits learns that nothing will come.
    fn end(&self) {
        let mut table = self.lock();
        table.is_over = true;
        table.waiters.clear();
    }
}

/// Reads the stream to its end.
struct Reader {
    inbox: Inbox,
    waiting: Arc<Waiting>,
    limits: Limits,
}

impl Reader {
    async fn run(self, mut events: Box<Events>) {
        loop {
            match events.next().await {
                Ok(event) if event.is_message() => self.sort(event.data).await,
                Ok(_) => {}
                Err(ended) => {
                    self.waiting.end();
                    return self.tell(ended);
                }
            }
        }
    }

    fn tell(&self, ended: Ended) {
        let error = match ended {
            Ended::InOrder => Error::new(ErrorKind::TransportClosed, "the server ended its stream of events"),
            Ended::Cut(error) | Ended::Unreadable(error) => error,
        };
        self.inbox.error(HTTP, &error);
        self.inbox.lost(error);
    }

    async fn sort(&self, data: Bytes) {
        let messages = match messages(data, None, &self.limits) {
            Ok(messages) => messages,
            Err(error) => return self.inbox.error(HTTP, &error),
        };
        for message in messages {
            match message {
                Message::Response(response) => self.waiting.answer(response),
                Message::Notification(message) if message.method == notification::PROGRESS => {
                    self.waiting.progress(message, self.limits.id_bytes);
                }
                message => self.inbox.deliver(message).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_of_the_same_origin_and_keeps_its_credentials() {
        let url = Url::parse("https://user:secret@host/a/sse").unwrap();
        for (named, expected) in [
            ("/messages?s=1", Ok("https://user:secret@host/messages?s=1")),
            ("messages", Ok("https://user:secret@host/a/messages")),
            ("?s=1", Ok("https://user:secret@host/a/sse?s=1")),
            (" https://host:443/m\n", Ok("https://user:secret@host/m")),
            ("https://mallory@host/m", Ok("https://user:secret@host/m")),
            ("//other/m", Err("another origin")),
            ("http://host/m", Err("another origin")),
            ("https://host:8443/m", Err("another origin")),
            ("https://host@other/m", Err("another origin")),
            ("file:///etc/passwd", Err("another origin")),
            ("http://[", Err("no URL")),
        ] {
            match (endpoint(&url, named.as_bytes()), expected) {
                (Ok(endpoint), Ok(expected)) => assert_eq!(endpoint.as_str(), expected, "{named}"),
                (Err(error), Err(expected)) => {
                    assert!(error.to_string().contains(expected), "{named}: {error}");
                    assert!(!error.to_string().contains("other/"), "{named}: {error}");
                }
                (outcome, _) => panic!("{named}: {outcome:?}"),
            }
        }
    }
}
