//! Sessions that a legacy server has forgotten, and that are begun anew.
//!
//! Specification: *2025-11-25, Transports, Session Management*.

use std::sync::{Arc, Weak, atomic::Ordering};

use mcp_jsonrpc::Response;
use tokio::time::timeout;

use crate::{
    Era, Error, ErrorKind,
    client::{
        CallOptions, ListenEnd,
        api::{Client, Inner},
        call::Ask,
        connect,
    },
    method::{Method, SetLevel, Subscribe},
    types::{ResourceParams, SetLevelParams},
};

impl Client {
    /// A session that the server has forgotten is begun anew, once for all calls that find it so, and the call made again:
    /// the server has not looked at it.
    pub(super) async fn respond<M: Method>(
        &self,
        ask: &Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Response, Error> {
        let sessions = self.0.sessions.load(Ordering::Acquire);
        match self.0.caller.respond::<M>(self.speech(), ask, options).await {
            Err(error) if error.kind() == ErrorKind::NotInitialized && self.revision().era() == Era::Legacy => {
                let patience = options.timeout.unwrap_or(self.limits().request_timeout);
                let in_time = timeout(patience, self.renewed(sessions)).await;
                in_time.map_err(|_| Error::new(ErrorKind::Timeout, "no new session began in time"))??;
                self.0.caller.respond::<M>(self.speech(), ask, options).await
            }
            outcome => outcome,
        }
    }

    /// In a task of its own: a caller that leaves leaves no session behind that is begun by half.
    pub(super) async fn renewed(&self, seen: u64) -> Result<(), Error> {
        let client = self.clone();
        let renewing = tokio::spawn(async move { client.renew(seen).await });
        renewing.await.unwrap_or_else(|_| Err(Error::not_connected()))
    }

    async fn renew(&self, seen: u64) -> Result<(), Error> {
        let _renewing = self.0.renewing.lock().await;
        if self.0.sessions.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        let Inner { caller, settings, router, listening, .. } = &*self.0;
        if let Err(error) = connect::renew(caller, settings, router.inbox(), self.revision()).await {
            let message = format!("the server has forgotten the session, and begins no other: {error}");
            return Err(error.saying(message));
        }
        self.0.sessions.store(seen + 1, Ordering::Release);
        listening.begin_anew();
        router.inbox().found();
        let (uris, log_level) = listening.session();
        for uri in uris {
            self.tell_again::<Subscribe>(&ResourceParams { uri }).await;
        }
        if let Some(level) = log_level {
            self.tell_again::<SetLevel>(&SetLevelParams { level }).await;
        }
        listening.everything_changed();
        Ok(())
    }

    async fn tell_again<M: Method>(&self, params: &M::Params) {
        if let Err(error) = self.0.caller.call::<M>(self.speech(), params).await {
            self.0.caller.observers.failed(self.0.caller.connection(), &error);
        }
    }
}

/// A client that may be gone.
pub(super) struct WeakClient(pub(super) Weak<Inner>);

impl WeakClient {
    /// Begins the session anew that nobody was calling in when it was lost.
    pub(super) fn renew(&self) {
        let Some(client) = self.0.upgrade().map(Client) else { return };
        let seen = client.0.sessions.load(Ordering::Acquire);
        tokio::spawn(async move {
            if let Err(error) = client.renew(seen).await {
                client.0.listening.end(ListenEnd::Lost(Arc::new(error)));
            }
        });
    }
}
