//! The stream for what belongs to no call: changes, and questions that a server asks on its own.

use std::{sync::Arc, time::Duration};

use mcp_core::{Era, Error, ErrorKind, client::Inbox};
use mcp_jsonrpc::{Bytes, Message};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Past, Session,
    cursor::{Cursor, random},
    stream::{Opened, open},
};
use crate::{
    client::{
        HTTP,
        events::{Ended, Events},
        read::messages,
        target::Target,
    },
    defaults::MAX_RETRY,
};

/// Listens for as long as what is returned lives, and as the server will have it. None in the modern era, which has no such
/// stream. A server of Streamable HTTP that speaks 2024-11-05 has no other place for what it tells.
///
/// Specification: *2025-11-25, Transports, Listening for Messages from the Server*.
pub(in crate::client) fn listen(
    target: &Arc<Target>,
    session: Session,
    inbox: Inbox,
    past: &Arc<Past>,
) -> Option<Listening> {
    let revision = session.revision?;
    let runtime = Handle::try_current().ok().filter(|_| revision.era() == Era::Legacy)?;
    let (answered, is_answered) = watch::channel(false);
    let (target, past, cursor) = (Arc::clone(target), Arc::clone(past), Cursor::default());
    let listener = Listener { target, session, inbox, past, cursor, is_lost: false, answered };
    let _task = AbortOnDropHandle::new(runtime.spawn(listener.run()));
    Some(Listening { opening: Opening { is_answered, since: Instant::now() }, _task })
}

/// The task that listens.
pub(in crate::client) struct Listening {
    opening: Opening,
    _task: AbortOnDropHandle<()>,
}

impl Listening {
    /// What calls wait for, while there is anything to wait for.
    pub(in crate::client) fn opening(&self) -> Option<Opening> {
        (!*self.opening.is_answered.borrow()).then(|| self.opening.clone())
    }
}

/// Whether the server has answered the first GET, be it with a refusal.
#[derive(Clone)]
pub(in crate::client) struct Opening {
    is_answered: watch::Receiver<bool>,
    since: Instant,
}

/// How long calls wait for the stream to be open.
const OPENING: Duration = Duration::from_secs(1);

impl Opening {
    /// Waits until it has. Many servers say on this stream what they have to ask about a call, and drop it where there is none
    /// yet; some answer only when they have something to say.
    pub(in crate::client) async fn wait(mut self) {
        // Where nobody listens any more, there is nothing to wait for.
        drop(timeout_at(self.since + OPENING, self.is_answered.wait_for(|answered| *answered)).await);
    }
}

struct Listener {
    target: Arc<Target>,
    session: Session,
    inbox: Inbox,
    past: Arc<Past>,
    cursor: Cursor,
    /// Whether the stream is refused, having been there, which the client knows.
    is_lost: bool,
    answered: watch::Sender<bool>,
}

impl Listener {
    async fn run(mut self) {
        loop {
            let opened = open(&self.target, &self.session, self.cursor.last()).await;
            self.answered.send_replace(true);
            let at_least = match opened {
                Opened::Stream(events) => {
                    self.past.has_stream();
                    if std::mem::take(&mut self.is_lost) {
                        self.inbox.found();
                    }
                    self.read(*events).await;
                    None
                }
                Opened::Refused(error) if !self.past.had_stream() => {
                    tracing::debug!(%error, "the server has no stream for what belongs to no call");
                    return;
                }
                Opened::Refused(error) if error.kind() == ErrorKind::NotInitialized => {
                    self.past.wait_to_renew().await;
                    return self.lost(error);
                }
                Opened::Refused(error) => {
                    self.refused(error);
                    None
                }
                Opened::Failed(error, wait) => {
                    tracing::debug!(%error, "the stream for what belongs to no call could not be opened");
                    wait
                }
            };
            let wait = self.cursor.wait(random()).max(at_least.unwrap_or_default());
            tokio::time::sleep(wait.min(MAX_RETRY)).await;
        }
    }

    /// The stream may come back yet, as for other credentials.
    fn refused(&mut self, error: Error) {
        if error.kind() != ErrorKind::Unauthorized && error.challenges().is_empty() {
            // It may be the place in it that the server does not know.
            self.cursor.forget();
        }
        if !std::mem::replace(&mut self.is_lost, true) {
            self.lost(error);
        }
    }

    /// Somebody may be listening who would wait in vain, and nobody be calling who would find out.
    fn lost(&self, error: Error) {
        self.inbox.error(HTTP, &error);
        self.inbox.lost(error);
    }

    async fn read(&mut self, mut events: Events) {
        let ended = loop {
            match events.next().await {
                Ok(event) => {
                    self.cursor.heard(&event);
                    if event.is_message() {
                        self.deliver(event.data).await;
                    }
                }
                Err(ended) => break ended,
            }
        };
        self.cursor.ended(events.decoder.retry());
        match ended {
            Ended::InOrder => {}
            Ended::Cut(error) => tracing::debug!(%error, "the stream for what belongs to no call was cut"),
            Ended::Unreadable(error) => self.inbox.error(HTTP, &error),
        }
    }

    async fn deliver(&self, data: Bytes) {
        let messages = match messages(data, self.session.revision, &self.target.limits) {
            Ok(messages) => messages,
            Err(error) => return self.inbox.error(HTTP, &error),
        };
        for message in messages {
            match message {
                // Answers come on the stream of their call, which is resumed where it was cut.
                Message::Response(_) => {
                    tracing::debug!("an answer on a stream of no call was dropped");
                }
                message => self.inbox.deliver(message).await,
            }
        }
    }
}
