//! What tells a process to end: SIGTERM and Ctrl-C.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears of them. From its making on, they no longer end the process by themselves.
pub(crate) struct Signals {
    #[cfg(unix)]
    kinds: [Signal; 2],
    #[cfg(windows)]
    ctrl_c: tokio::signal::windows::CtrlC,
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

#[cfg(windows)]
impl Signals {
    pub(crate) fn hear() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(|ctrl_c| Self { ctrl_c })
    }

    pub(crate) async fn next(&mut self) {
        let _ = self.ctrl_c.recv().await;
    }
}
