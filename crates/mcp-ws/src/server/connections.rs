use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::socket::Verdict;

/// The connections of one layer, or the sockets that may become some: how many there are.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: AtomicUsize,
    emptied: Notify,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Admitted(Arc<Connections>);

/// Why there is no further one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAdmitted {
    Full(usize),
    Stopping,
}

impl Connections {
    pub(super) fn admit(self: &Arc<Self>, most: usize, stop: &CancellationToken) -> Result<Admitted, NotAdmitted> {
        if stop.is_cancelled() {
            return Err(NotAdmitted::Stopping);
        }
        // It counts until it is dropped, admitted or not.
        let admitted = Admitted(self.clone());
        if self.open.fetch_add(1, Ordering::SeqCst) < most { Ok(admitted) } else { Err(NotAdmitted::Full(most)) }
    }

    /// Whether it is one of these.
    pub(super) fn has(self: &Arc<Self>, admitted: &Admitted) -> bool {
        Arc::ptr_eq(self, &admitted.0)
    }

    /// Waits until there is none.
    pub(super) async fn ended(&self) {
        loop {
            let mut emptied = std::pin::pin!(self.emptied.notified());
            // From here on nothing is missed, so looking comes after.
            emptied.as_mut().enable();
            if self.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.emptied.notify_waiters();
        }
    }
}

/// What it is closed with, where the upgrade has come about.
impl From<NotAdmitted> for Verdict {
    fn from(why: NotAdmitted) -> Self {
        match why {
            NotAdmitted::Full(_) => Self::FULL,
            NotAdmitted::Stopping => Self::STOPPING,
        }
    }
}

impl std::fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(most) => write!(f, "there are {most} connections already, and no more are taken"),
            Self::Stopping => f.write_str("the server is stopping"),
        }
    }
}
