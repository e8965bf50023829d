//! What a transport with one exchange a request reads notifications from.

use std::{sync::Arc, time::Duration};

use mcp_jsonrpc::Bytes;

use crate::{
    Exchange, Limits,
    mailbox::Mailbox,
    server::outlet::{Outlet, Queued},
};

/// The notifications of one call and the answer behind them, for a transport that gives each call a stream of its own.
///
/// Once it is dropped, the call's further notifications go nowhere.
#[derive(Debug)]
pub struct CallStream(Arc<Mailbox<Queued>>);

impl CallStream {
    /// An empty stream.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self(Arc::new(Mailbox::new(limits)))
    }

    /// Sends the notifications of `exchange` into this stream. Before this, they go nowhere.
    pub fn attach(&self, exchange: &mut Exchange) {
        exchange.outlet = Outlet::Mailbox { mailbox: self.0.clone(), call: None, over: Arc::default() };
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
        self.0.pop().await.map(|queued| queued.frame)
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
