//! What was lost and is begun anew: sessions that a legacy server has forgotten, and connections.
//!
//! Specification: *2025-11-25, Transports, Session Management*.

use std::sync::{Arc, Weak, atomic::Ordering};

use mcp_jsonrpc::Response;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    Era, Error, ErrorKind,
    client::{
        Backoff, CallOptions, ListenEnd,
        api::{Client, Inner},
        call::Ask,
        connect,
    },
    deadline::deadline,
    method::{Method, SetLevel, Subscribe},
    types::{ResourceParams, SetLevelParams},
};

/// How beginning anew went so far.
#[derive(Debug, Default)]
pub(super) struct Renewing {
    /// Why it was given up last.
    why: String,
    /// How many tries there were since a connection lasted.
    tries: usize,
    /// When it last succeeded.
    succeeded: Option<Instant>,
}

impl Client {
    /// What was lost is begun anew, once for all calls that find it so, and the call made again: the server has not looked
    /// at it.
    pub(super) async fn respond<M: Method>(
        &self,
        ask: &Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Response, Error> {
        let until = deadline(Instant::now(), options.timeout.unwrap_or(self.limits().request_timeout));
        let mut was_forgotten = false;
        loop {
            timeout_at(until, self.settled()).await.map_err(|_| self.too_late())?;
            let sessions = self.0.sessions.load(Ordering::Acquire);
            match self.0.caller.respond::<M>(self.speech(), ask, options).await {
                Err(error) if self.may_come_back(&error) && !was_forgotten => {
                    // A server that forgets each session at once is asked for no third one.
                    was_forgotten = error.kind() == ErrorKind::NotInitialized;
                    timeout_at(until, self.renewed(sessions)).await.map_err(|_| self.too_late())??;
                }
                outcome => return outcome,
            }
        }
    }

    pub(super) fn may_come_back(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::NotInitialized => self.revision().era() == Era::Legacy,
            ErrorKind::TransportClosed => error.is_safe_to_retry() && self.recovers(),
            _ => false,
        }
    }

    /// Whether a connection that is lost is opened anew.
    pub(super) fn recovers(&self) -> bool {
        !self.0.closed.is_cancelled() && self.0.caller.transport.recovery().is_some()
    }

    fn too_late(&self) -> Error {
        let what = if self.recovers() { "connection" } else { "session" };
        Error::new(ErrorKind::Timeout, format!("no new {what} began in time")).unsent()
    }

    /// Waits while something is begun anew: before the handshake, nothing else is said.
    pub(super) async fn settled(&self) {
        if self.0.is_renewing.load(Ordering::Acquire) {
            drop(self.0.renewing.lock().await);
        }
    }

    /// In a task of its own: a caller that leaves leaves nothing behind that is begun by half.
    pub(super) async fn renewed(&self, seen: u64) -> Result<(), Error> {
        let renewing = tokio::spawn(self.weak().renewed(seen));
        renewing.await.unwrap_or_else(|_| Err(Error::not_connected()))
    }

    /// One try.
    async fn renew(&self) -> Result<(), Error> {
        let Inner { caller, settings, router, listening, closed, .. } = &*self.0;
        self.0.is_renewing.store(true, Ordering::Release);
        let renewed = connect::renew(caller, settings, router.inbox(), self.revision()).await;
        self.0.is_renewing.store(false, Ordering::Release);
        renewed?;
        if closed.is_cancelled() {
            caller.transport.close().await;
            return Err(Error::not_connected());
        }
        self.0.sessions.fetch_add(1, Ordering::AcqRel);
        self.0.is_up.store(true, Ordering::SeqCst);
        if router.inbox().is_lost() && self.recovers() {
            // Lost again before it was up, which the router took for a try that failed.
            self.weak().renew();
        } else {
            router.inbox().found();
        }
        listening.begin_anew();
        self.tell_again().await;
        listening.everything_changed();
        Ok(())
    }

    /// What a legacy server was told, and knows no more.
    async fn tell_again(&self) {
        if self.revision().era() == Era::Modern {
            return;
        }
        let (uris, log_level) = self.0.listening.session();
        for uri in uris {
            self.tell::<Subscribe>(&ResourceParams { uri }).await;
        }
        if let Some(level) = log_level {
            self.tell::<SetLevel>(&SetLevelParams { level }).await;
        }
    }

    async fn tell<M: Method>(&self, params: &M::Params) {
        if let Err(error) = self.0.caller.call::<M>(self.speech(), params).await {
            self.0.caller.observers.failed(self.0.caller.connection(), &error);
        }
    }
}

/// A client that may be gone.
#[derive(Clone)]
pub(super) struct WeakClient(pub(super) Weak<Inner>);

impl WeakClient {
    pub(super) fn client(&self) -> Result<Client, Error> {
        self.0.upgrade().map(Client).ok_or_else(Error::not_connected)
    }

    /// Begins anew what nobody was calling in when it was lost; what was not up is somebody's try.
    pub(super) fn renew(&self) {
        let (Ok(client), weak) = (self.client(), self.clone()) else { return };
        if !client.0.is_up.swap(false, Ordering::SeqCst) {
            return;
        }
        let seen = client.0.sessions.load(Ordering::Acquire);
        tokio::spawn(async move {
            if let (Err(error), Ok(client)) = (weak.clone().renewed(seen).await, weak.client()) {
                client.0.listening.end(ListenEnd::Lost(Arc::new(error)));
            }
        });
    }

    /// Begins anew what was lost after `seen`, unless somebody else has. It holds no client while it waits.
    async fn renewed(self, seen: u64) -> Result<(), Error> {
        let (renewing, closed, given_up) = {
            let Inner { renewing, closed, given_up, .. } = &*self.client()?.0;
            (renewing.clone(), closed.clone(), given_up.load(Ordering::Acquire))
        };
        let renewed = async {
            let mut renewing = renewing.lock().await;
            self.renew_in_turn(seen, given_up, &mut renewing).await
        };
        tokio::select! {
            biased;
            () = closed.cancelled() => {
                if let Ok(client) = self.client() {
                    // What was just being opened.
                    client.0.caller.transport.close().await;
                }
                Err(Error::not_connected())
            }
            renewed = renewed => renewed,
        }
    }

    async fn renew_in_turn(&self, seen: u64, given_up: u64, renewing: &mut Renewing) -> Result<(), Error> {
        let client = self.client()?;
        if client.0.sessions.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        // Whoever waited for the same is told the same.
        if client.0.given_up.load(Ordering::Acquire) != given_up {
            return Err(Error::new(ErrorKind::TransportClosed, &renewing.why).unsent());
        }
        let Some(backoff) = client.0.caller.transport.recovery() else {
            return client.renew().await.map_err(|error| {
                let message = format!("the server has forgotten the session, and begins no other: {error}");
                error.saying(message)
            });
        };
        drop(client);
        self.open_anew(backoff, renewing).await
    }

    /// Opens the connection anew, as often as may be. One that is lost again and again at once is not begun afresh each time.
    async fn open_anew(&self, backoff: Backoff, renewing: &mut Renewing) -> Result<(), Error> {
        if renewing.succeeded.is_none_or(|at| at.elapsed() >= backoff.longest()) {
            renewing.tries = 0;
        }
        let mut why = "it was lost again and again".to_owned();
        for wait in backoff.waits().skip(renewing.tries) {
            sleep(wait).await;
            renewing.tries += 1;
            match self.client()?.renew().await {
                Ok(()) => {
                    renewing.succeeded = Some(Instant::now());
                    return Ok(());
                }
                Err(error) => why = error.to_string(),
            }
        }
        let why = format!("the connection was lost, and no other could be opened: {why}");
        let error = Error::new(ErrorKind::TransportClosed, &why).unsent();
        *renewing = Renewing { why, ..Renewing::default() };
        self.client()?.0.given_up.fetch_add(1, Ordering::AcqRel);
        Err(error)
    }
}
