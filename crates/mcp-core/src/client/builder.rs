use std::sync::Arc;

use crate::{
    Client, Error, Limits, Revision, Revisions,
    client::{Inbox, IntoTransport, call::Caller, connect, route::Router},
    observer::{Observer, Observers},
    types::{ClientCapabilities, Implementation},
};

/// A [`Client`] in the making.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    pub(super) info: Implementation,
    pub(super) revisions: Revisions,
    pub(super) capabilities: ClientCapabilities,
    limits: Limits,
    observers: Observers,
}

impl ClientBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            revisions: Revisions::default(),
            capabilities: ClientCapabilities::default(),
            limits: Limits::default(),
            observers: Observers::default(),
        }
    }

    /// Speaks only these revisions. Default: all, the modern era being tried first.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = Revisions::of(revisions);
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.at_least_one();
        self
    }

    /// Tells `observer` what happens; those added before are told first.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }

    /// Connects, and finds out what the server speaks.
    ///
    /// # Errors
    /// When no connection can be made, or the two sides have no revision in common, as when the client was given none.
    pub async fn connect<T: IntoTransport>(self, transport: T) -> Result<Client, Error> {
        self.revisions.check()?;
        let transport = Arc::new(transport.into_transport(&self.limits)?);
        let caller = Caller::new(transport, self.limits.clone(), self.observers.clone());
        let inbox = Inbox::observed(&self.limits, self.observers.clone());
        // The server may ask something before the handshake is over.
        let router = Router::start(caller.transport.clone(), inbox.clone(), &self.limits);
        match connect::connect(&caller, &self, &inbox).await {
            Ok(connected) => Ok(Client::new(caller, connected, router)),
            Err(error) => {
                self.observers.failed(caller.connection(), &error);
                router.stop();
                caller.transport.close().await;
                Err(error)
            }
        }
    }
}
