//! What a transport with one exchange a request reads notifications from.

use std::{sync::Arc, time::Duration};

use mcp_jsonrpc::Bytes;

use crate::{
    Exchange, Limits,
    mailbox::Mailbox,
    server::outlet::{Kind, Outlet, Queued},
    shown::Size,
};

/// The notifications of one call and the answer behind them, for a transport that gives each call a stream of its own.
///
/// Once it is dropped, the call's further notifications go nowhere.
#[derive(Debug)]
pub struct CallStream(Arc<Mailbox<Queued>>);

/// What comes on a call's stream. `Debug` says how long a message is, and not what is in it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEvent {
    /// A message.
    Frame(Bytes),
    /// The handler wants the connection to end, while the call goes on.
    Disconnect,
}

impl std::fmt::Debug for CallEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frame(frame) => f.debug_tuple("Frame").field(&Size(frame)).finish(),
            Self::Disconnect => f.write_str("Disconnect"),
        }
    }
}

impl CallEvent {
    fn of(queued: Queued) -> Self {
        if queued.kind == Kind::Disconnect { Self::Disconnect } else { Self::Frame(queued.frame) }
    }
}

impl CallStream {
    /// An empty stream.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self(Arc::new(Mailbox::new(limits)))
    }

    /// Sends the notifications of `exchange` into this stream. Before this, they go nowhere.
    pub fn attach(&self, exchange: &mut Exchange) {
        self.attach_as(exchange, false);
    }

    /// The same for a client that can lose its connection and come back for the answer.
    pub fn attach_resumable(&self, exchange: &mut Exchange) {
        self.attach_as(exchange, true);
    }

    fn attach_as(&self, exchange: &mut Exchange, is_resumable: bool) {
        exchange.outlet = Outlet::Mailbox { mailbox: self.0.clone(), call: None, over: Arc::default(), is_resumable };
    }

    /// Whether there is no frame now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Waits until frames have lain unread for all of `patience`.
    pub async fn stalled(&self, patience: Duration) {
        self.0.stalled(patience).await;
    }

    /// Waits until there is a frame.
    pub async fn ready(&self) {
        self.0.filled().await;
    }

    /// The next frame; `None` after the last. Dropping the future loses nothing.
    pub async fn next(&self) -> Option<Bytes> {
        loop {
            match self.next_event().await? {
                CallEvent::Frame(frame) => return Some(frame),
                CallEvent::Disconnect => {}
            }
        }
    }

    /// What comes next; `None` after the last. Dropping the future loses nothing.
    pub async fn next_event(&self) -> Option<CallEvent> {
        self.0.pop().await.map(CallEvent::of)
    }

    /// What is there now.
    #[must_use]
    pub fn try_next_event(&self) -> Option<CallEvent> {
        self.0.try_pop().map(CallEvent::of)
    }

    /// Ends the stream without an answer.
    pub fn close(&self) {
        self.0.close();
    }

    /// Puts the answer behind all notifications, and ends the stream.
    pub fn finish(&self, frame: Bytes) {
        self.0.reply(frame);
        self.0.close();
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        self.0.close();
    }
}
