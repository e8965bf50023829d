//! A connection that outlives its socket, as `Session` of one side has it.

use std::{
    fmt, io,
    sync::{Arc, atomic::AtomicU64},
    task::{Context, Poll},
};

use crate::socket::{
    ledger::{Hello, Ledger, Window},
    link::Link,
};

/// A socket, and what its peer said first on it.
pub(crate) type Renewed<S> = (Link<S>, Hello);

/// How one side comes by its next socket.
pub(crate) trait Renewal<S>: Send {
    /// The socket was lost; `hello` is what this side will say on the next.
    fn lost(&mut self, hello: Hello);

    /// The next socket, and what its peer said first on it. It is asked while there is a socket, too: a peer may come with
    /// a new one before the end of the old one is noticed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Renewed<S>>>;

    /// What this side is still to say first on a socket that it has got.
    fn answer(&self, hello: Hello) -> Option<Hello>;
}

pub(crate) struct Resume<S> {
    pub(super) ledger: Ledger,
    pub(super) token: String,
    pub(super) renewal: Box<dyn Renewal<S>>,
    /// The longest message.
    pub(super) most: usize,
    /// How often anything was taken, over all sockets.
    pub(super) writes: Arc<AtomicU64>,
    /// How much of that is the socket's of the moment.
    pub(super) counted: u64,
    /// A beat has come at which the peer is told what was taken.
    pub(super) is_beat: bool,
}

impl<S> Resume<S> {
    pub(crate) fn new(own: Window, theirs: Window, token: String, most: usize, renewal: Box<dyn Renewal<S>>) -> Self {
        let ledger = Ledger::new(own, theirs);
        Self { ledger, token, renewal, most, writes: Arc::default(), counted: 0, is_beat: false }
    }

    /// What this side says first on a socket.
    pub(crate) fn hello(&self) -> Hello {
        self.ledger.hello(&self.token)
    }
}

impl<S> fmt::Debug for Resume<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resume").finish_non_exhaustive()
    }
}
