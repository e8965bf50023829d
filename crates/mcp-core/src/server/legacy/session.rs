use std::{
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use mcp_jsonrpc::Raw;

use crate::{
    Revision,
    lock::lock,
    server::hub::{Listener, Subject},
    types::LogLevel,
};

/// What a legacy client and the server keep between requests: on a shared wire one per connection.
#[derive(Debug, Default)]
pub(crate) struct Session(OnceLock<Agreed>);

/// What there is of a session once `initialize` has been answered.
#[derive(Debug)]
struct Agreed {
    handshake: Handshake,
    listener: Listener,
    /// The client is ready to be told of changes.
    is_ready: AtomicBool,
    log_level: Mutex<LogLevel>,
}

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
    pub(crate) fn ready(&self) {
        if let Some(agreed) = self.0.get() {
            agreed.is_ready.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there may be changes to tell of.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.get().is_some_and(|agreed| agreed.is_ready.load(Ordering::Relaxed))
    }

    /// Whether something has changed that the client is to be told of.
    pub(crate) fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.get().map_or(Poll::Pending, |agreed| agreed.listener.poll_changed(cx))
    }

    /// What has changed and is now told.
    pub(crate) fn next_change(&self) -> Option<Subject> {
        self.0.get()?.listener.next()
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
