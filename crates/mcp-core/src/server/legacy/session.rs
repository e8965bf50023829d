use std::{
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use mcp_jsonrpc::{Bytes, Raw};

use crate::{
    Revision, Server,
    lock::lock,
    server::hub::{Listener, Subject},
    store::SessionRecord,
    types::LogLevel,
};

/// What a legacy client and the server keep between requests: on a shared wire one per connection, over HTTP one per
/// session id. Transports hold it, and requests borrow it.
#[derive(Debug, Default)]
pub struct Session(OnceLock<Agreed>);

/// What there is of a session once `initialize` has been answered.
#[derive(Debug)]
struct Agreed {
    handshake: Handshake,
    listener: Listener,
    /// The client is ready to be told of changes.
    is_ready: AtomicBool,
    log_level: Mutex<LogLevel>,
}

/// A notification of something that has changed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Change {
    /// Its method.
    pub method: &'static str,
    /// The message.
    pub frame: Bytes,
}

/// The lists that a record names, in its order.
const LISTS: [Subject; 3] = [Subject::Tools, Subject::Prompts, Subject::Resources];

/// What a legacy client and the server agreed on.
#[derive(Debug, Clone)]
pub(crate) struct Handshake {
    /// The revision that both speak.
    pub(crate) revision: Revision,
    /// Who the client says it is.
    pub(crate) client_info: Raw,
    /// What the client can do.
    pub(crate) capabilities: Raw,
}

impl Session {
    /// One before its handshake.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One whose handshake was kept somewhere; `None` if it is of no revision that `server` accepts.
    #[must_use]
    pub fn restore(server: &Server, record: &SessionRecord) -> Option<Self> {
        let revision = server.revisions().find(&record.revision)?;
        let SessionRecord { client_info, capabilities, lists, subscriptions, .. } = record.clone();
        let listener = server.0.core.hub.listener();
        let lists = LISTS.into_iter().zip(lists).filter(|(_, is_told_of)| *is_told_of).map(|(list, _)| list);
        let resources = subscriptions.into_iter().map(|uri| Subject::Resource(uri.into()));
        lists.chain(resources).for_each(|subject| listener.listen(subject));
        let session = Self::new();
        session.agree(Handshake { revision, client_info, capabilities }, listener);
        session.set_log_level(record.log_level);
        if record.is_ready {
            session.ready();
        }
        Some(session)
    }

    /// What is to be kept of it, for whoever it belongs to; `None` before the handshake.
    #[must_use]
    pub fn record(&self, principal: Option<[u8; 32]>) -> Option<SessionRecord> {
        let Agreed { handshake, listener, is_ready, log_level } = self.0.get()?;
        Some(SessionRecord {
            revision: handshake.revision.to_string(),
            client_info: handshake.client_info.clone(),
            capabilities: handshake.capabilities.clone(),
            principal,
            is_ready: is_ready.load(Ordering::Relaxed),
            log_level: *lock(log_level),
            lists: LISTS.map(|list| listener.listens(&list)),
            subscriptions: listener.uris(),
        })
    }

    /// The revision that was agreed on, once `initialize` has been answered.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.handshake().map(|handshake| handshake.revision)
    }

    /// It is over: nothing is told any more.
    pub fn end(&self) {
        if let Some(agreed) = self.0.get() {
            agreed.listener.close();
        }
    }

    /// What was agreed on, once `initialize` has been answered.
    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.0.get().map(|agreed| &agreed.handshake)
    }

    /// Keeps what was agreed on; false if something was before. `listener` hears of the lists that the client was told of.
    pub(super) fn agree(&self, handshake: Handshake, listener: Listener) -> bool {
        let (is_ready, log_level) = (AtomicBool::new(false), Mutex::new(LogLevel::Info));
        self.0.set(Agreed { handshake, listener, is_ready, log_level }).is_ok()
    }

    /// The client has said `notifications/initialized`; before the handshake that means nothing.
    pub fn ready(&self) {
        if let Some(agreed) = self.0.get() {
            agreed.is_ready.store(true, Ordering::SeqCst);
            agreed.listener.wake();
        }
    }

    /// Whether there may be changes to tell of.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.get().is_some_and(|agreed| agreed.is_ready.load(Ordering::Relaxed))
    }

    /// Whether something has changed that the client is to be told of, once it is ready. One at a time can wait for it.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(agreed) = self.0.get() else { return Poll::Pending };
        let changed = agreed.listener.poll_changed(cx);
        if agreed.is_ready.load(Ordering::SeqCst) { changed } else { Poll::Pending }
    }

    /// The notification of something that has changed, which counts as told herewith.
    pub fn next_change(&self) -> Option<Change> {
        let subject = self.0.get()?.listener.next()?;
        Some(Change { method: subject.method(), frame: subject.notification() })
    }

    /// Who hears of changes for the client, once `initialize` has been answered.
    pub(super) fn listener(&self) -> Option<&Listener> {
        self.0.get().map(|agreed| &agreed.listener)
    }

    /// From which level on the client wants log messages: `info` until it says so.
    pub(super) fn log_level(&self) -> LogLevel {
        self.0.get().map_or(LogLevel::Info, |agreed| *lock(&agreed.log_level))
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        if let Some(agreed) = self.0.get() {
            *lock(&agreed.log_level) = level;
        }
    }
}
