use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The connections of one layer: how many there are, and whether they are to end.
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

impl std::fmt::Display for NotAdmitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(most) => write!(f, "there are {most} connections already, and no more are taken"),
            Self::Stopping => f.write_str("the server is stopping"),
        }
    }
}
