//! Where a call's notifications go while it runs.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    mailbox::Mailbox,
    sync::atomic::{AtomicBool, Ordering},
};

/// Something queued on its way out of a connection or of one call's stream.
#[derive(Debug)]
pub(crate) struct Queued {
    /// Which call it belongs to; calls of one connection never share a number. None once nothing can cancel it.
    pub(crate) call: Option<u64>,
    pub(crate) kind: Kind,
    pub(crate) frame: Bytes,
}

/// What is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message.
    Message,
    /// Progress, whose place newer progress of the same call may take.
    Progress,
    /// No message, but the wish to end the connection and go on with the call.
    Disconnect,
}

impl Mailbox<Queued> {
    /// Queues an answer, or whatever else must not be lost, over what is queued already; false once nobody reads any more.
    pub(crate) fn reply(&self, frame: Bytes) -> bool {
        let bytes = frame.len();
        self.push(Queued { call: None, kind: Kind::Message, frame }, bytes)
    }
}

/// Where a call's notifications go.
#[derive(Debug, Clone, Default)]
pub(crate) enum Outlet {
    /// Nowhere: nobody can be told.
    #[default]
    None,
    /// Into the queue of a connection, or of the call's own stream.
    Mailbox {
        mailbox: Arc<Mailbox<Queued>>,
        call: Option<u64>,
        /// The call was given up: nothing of it is queued any more.
        over: Arc<AtomicBool>,
        /// Whether the client can come back for the answer, so that its connection need not be held.
        is_resumable: bool,
    },
}

impl Outlet {
    /// Queues a progress notification; where the queue is full it replaces the newest one of the same call.
    pub(crate) fn progress(&self, frame: Bytes) {
        self.offer(frame, Kind::Progress);
    }

    /// Queues a log message, or drops it where the queue is full.
    pub(crate) fn message(&self, frame: Bytes) {
        self.offer(frame, Kind::Message);
    }

    fn offer(&self, frame: Bytes, kind: Kind) {
        if let Self::Mailbox { mailbox, call, over, .. } = self {
            let bytes = frame.len();
            let is_older = |old: &Queued| kind == Kind::Progress && old.kind == kind && old.call == *call;
            let queued = Queued { call: *call, kind, frame };
            mailbox.offer(queued, bytes, is_older, || !over.load(Ordering::SeqCst));
        }
    }

    /// Queues what must not be lost; false where it can go nowhere.
    pub(crate) fn must_say(&self, frame: Bytes) -> bool {
        match self {
            Self::Mailbox { mailbox, call, over, .. } => {
                let bytes = frame.len();
                let queued = Queued { call: *call, kind: Kind::Message, frame };
                mailbox.push_wanted(queued, bytes, || !over.load(Ordering::SeqCst))
            }
            Self::None => false,
        }
    }

    /// Asks for the connection to be ended behind what is queued; false where the client could not come back.
    pub(crate) fn disconnect(&self) -> bool {
        match self {
            Self::Mailbox { mailbox, is_resumable: true, .. } => {
                mailbox.push(Queued { call: None, kind: Kind::Disconnect, frame: Bytes::new() }, 0)
            }
            _ => false,
        }
    }

    /// Waits until the queue has room.
    pub(crate) async fn room(&self) {
        // A handler that does nothing else would never pause, and what never pauses cannot be cancelled.
        tokio::task::coop::consume_budget().await;
        if let Self::Mailbox { mailbox, .. } = self {
            mailbox.room().await;
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Mailbox { .. })
    }
}
