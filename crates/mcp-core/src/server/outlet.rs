//! Where a call's notifications go while it runs.

use std::sync::Arc;

use bytes::Bytes;

use crate::mailbox::Mailbox;

/// Something on its way out of a connection or of one call's stream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Which call it belongs to; calls of one connection never share a number.
    pub(crate) call: u64,
    pub(crate) kind: OutgoingKind,
    pub(crate) frame: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutgoingKind {
    /// How far a call is; a newer one makes an older one pointless.
    Progress,
    /// The answer; nothing comes after it.
    Reply,
}

/// Where a call's notifications go.
#[derive(Debug, Clone, Default)]
pub(crate) enum Outlet {
    /// Nowhere: nobody can be told.
    #[default]
    None,
    /// Into the queue of a connection, or of the call's own stream.
    Mailbox { mailbox: Arc<Mailbox<Outgoing>>, call: u64 },
}

impl Outlet {
    /// Queues a progress notification; where the queue is full it replaces the newest one of the same call.
    pub(crate) fn progress(&self, frame: Bytes) {
        if let Self::Mailbox { mailbox, call } = self {
            let (bytes, kind) = (frame.len(), OutgoingKind::Progress);
            mailbox.offer(Outgoing { call: *call, kind, frame }, bytes, |old| old.call == *call && old.kind == kind);
        }
    }

    /// Waits until the queue has room.
    pub(crate) async fn room(&self) {
        if let Self::Mailbox { mailbox, .. } = self {
            mailbox.room().await;
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Mailbox { .. })
    }
}
