use std::{
    sync::{Mutex, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use mcp_jsonrpc::{Bytes, Raw, Response};

use crate::{
    Revision, Server, ToolError,
    hub::{Listener, Subject},
    lock::lock,
    server::{
        legacy::peer::{Aside, Questions},
        outlet::Outlet,
    },
    shown::Size,
    store::SessionRecord,
    sync::atomic::{AtomicBool, Ordering},
    types::LogLevel,
};

/// What a legacy client and the server keep between requests: on a shared wire one per connection, over HTTP one per
/// session id. Transports hold it, and requests borrow it.
#[derive(Debug, Default)]
pub struct Session {
    agreed: OnceLock<Agreed>,
    questions: Questions,
}

/// What there is of a session once `initialize` has been answered.
#[derive(Debug)]
struct Agreed {
    handshake: Handshake,
    listener: Listener,
    /// The client is ready to be told of changes.
    is_ready: AtomicBool,
    log_level: Mutex<LogLevel>,
}

/// A notification of something that has changed. `Debug` says how long the message is, and not what is in it.
#[derive(Clone)]
#[non_exhaustive]
pub struct Change {
    /// Its method.
    pub method: &'static str,
    /// The message.
    pub frame: Bytes,
}

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Change").field("method", &self.method).field("frame", &Size(&self.frame)).finish()
    }
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
        let Agreed { handshake, listener, is_ready, log_level } = self.agreed.get()?;
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

    /// Whether the client has anything to be asked for.
    pub(crate) fn is_askable(&self) -> bool {
        self.handshake().is_some_and(|handshake| handshake.capabilities.as_str() != "{}")
    }

    /// Says where messages go that belong to no call, or to one that has no stream: false if nowhere. It may be asked from
    /// wherever a call is dropped.
    pub fn set_aside(&self, aside: impl Fn(Aside) -> bool + Send + Sync + 'static) {
        self.questions.set_aside(Box::new(aside));
    }

    /// Takes the client's answer to a question; false if nobody waits for it.
    pub fn settle(&self, response: Response) -> bool {
        self.questions.settle(response)
    }

    pub(crate) async fn ask(
        &self,
        outlet: &Outlet,
        method: &'static str,
        params: Option<Raw>,
        patience: Duration,
    ) -> Result<Raw, ToolError> {
        self.questions.ask(outlet, method, params, patience).await
    }

    /// It is over: nothing is told any more, and no question is answered.
    pub fn end(&self) {
        self.questions.close();
        if let Some(agreed) = self.agreed.get() {
            agreed.listener.close();
        }
    }

    /// What was agreed on, once `initialize` has been answered.
    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.agreed.get().map(|agreed| &agreed.handshake)
    }

    /// Keeps what was agreed on; false if something was before. `listener` hears of the lists that the client was told of.
    pub(super) fn agree(&self, handshake: Handshake, listener: Listener) -> bool {
        let (is_ready, log_level) = (AtomicBool::new(false), Mutex::new(LogLevel::Info));
        self.agreed.set(Agreed { handshake, listener, is_ready, log_level }).is_ok()
    }

    /// The client has said `notifications/initialized`; before the handshake that means nothing.
    pub fn ready(&self) {
        if let Some(agreed) = self.agreed.get() {
            agreed.is_ready.store(true, Ordering::SeqCst);
            agreed.listener.wake();
        }
    }

    /// Whether there may be changes to tell of.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.agreed.get().is_some_and(|agreed| agreed.is_ready.load(Ordering::Relaxed))
    }

    /// Whether something has changed that the client is to be told of, once it is ready. One at a time can wait for it.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(agreed) = self.agreed.get() else { return Poll::Pending };
        let changed = agreed.listener.poll_changed(cx);
        if agreed.is_ready.load(Ordering::SeqCst) { changed } else { Poll::Pending }
    }

    /// The notification of something that has changed, which counts as told herewith.
    pub fn next_change(&self) -> Option<Change> {
        let subject = self.agreed.get()?.listener.next()?;
        Some(Change { method: subject.method(), frame: subject.notification() })
    }

    /// Who hears of changes for the client, once `initialize` has been answered.
    pub(super) fn listener(&self) -> Option<&Listener> {
        self.agreed.get().map(|agreed| &agreed.listener)
    }

    /// From which level on the client wants log messages: `info` until it says so.
    pub(super) fn log_level(&self) -> LogLevel {
        self.agreed.get().map_or(LogLevel::Info, |agreed| *lock(&agreed.log_level))
    }

    pub(super) fn set_log_level(&self, level: LogLevel) {
        if let Some(agreed) = self.agreed.get() {
            *lock(&agreed.log_level) = level;
        }
    }
}
