//! What tells a process to end: SIGTERM and Ctrl-C.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears of them. From its making on, they no longer end the process by themselves.
pub(crate) struct Signals {
    #[cfg(unix)]
    kinds: [Signal; 2],
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn hear() -> io::Result<Self> {
        Ok(Self { kinds: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.kinds;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn hear() -> io::Result<Self> {
        Ok(Self {})
    }

    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
