//! What was lost and is begun anew: sessions that a legacy server has forgotten, and connections.
//!
//! Specification: *2025-11-25, Transports, Session Management*.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    task::Poll,
};

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
    failure: Option<Error>,
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
        let (start, given) = (Instant::now(), options.at_most);
        let (patience, at_most) = options.patience(self.limits());
        let (until, end) = (deadline(start, patience.min(at_most)), deadline(start, at_most));
        let mut was_forgotten = false;
        loop {
            timeout_at(until, self.settled()).await.map_err(|_| self.too_late())?;
            // All tries together have the time of one.
            options.at_most = Some(end.saturating_duration_since(Instant::now()));
            let sessions = self.0.sessions.load(Ordering::Acquire);
            match self.0.caller.respond::<M>(self.speech(), ask, options).await {
                Err(error) if self.may_come_back(&error) && !was_forgotten => {
                    // A server that forgets each session at once is asked for no third one.
                    was_forgotten = error.kind() == ErrorKind::NotInitialized;
                    timeout_at(until, self.renewed(sessions)).await.map_err(|_| self.too_late())??;
                }
                outcome => {
                    options.at_most = given;
                    return outcome;
                }
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

    /// Whether what was there at `session` is lost, and comes back.
    pub(super) fn has_lost(&self, session: u64) -> bool {
        let is_gone = self.0.router.inbox().is_lost() || self.0.sessions.load(Ordering::Acquire) != session;
        is_gone && self.recovers()
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
        if !self.recovers() {
            router.inbox().found();
        } else if router.inbox().is_lost() {
            // Lost again before it was up, which the router took for a try that failed.
            self.weak().renew();
        }
        listening.begin_anew();
        self.tell_again().await;
        Ok(())
    }

    /// Tells a legacy server what it knows no more. That is on its way when this is done; whether the server agrees, nobody
    /// who calls has to wait for.
    async fn tell_again(&self) {
        let client = self.clone();
        let mut telling = Box::pin(async move {
            client.told_again().await;
            client.0.listening.everything_changed();
        });
        if std::future::poll_fn(|cx| Poll::Ready(telling.as_mut().poll(cx))).await.is_pending() {
            tokio::spawn(telling);
        }
    }

    async fn told_again(&self) {
        if self.revision().era() == Era::Modern {
            return;
        }
        let (uris, log_level) = self.0.listening.session();
        let subscribing = uris.into_iter().map(|uri| async move {
            if let Err(error) = self.tell::<Subscribe>(&ResourceParams { uri: uri.clone() }).await {
                self.0.listening.refused(&uri, error);
            }
        });
        let log = async {
            if let Some(level) = log_level {
                // What failed was told to the observers.
                let _ = self.tell::<SetLevel>(&SetLevelParams { level }).await;
            }
        };
        futures_util::future::join(log, futures_util::future::join_all(subscribing)).await;
    }

    async fn tell<M: Method>(&self, params: &M::Params) -> Result<M::Result, Error> {
        let told = self.0.caller.call::<M>(self.speech(), params).await;
        told.inspect_err(|error| self.0.caller.observers.failed(self.0.caller.connection(), error))
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
            return Err(renewing.failure.as_ref().map_or_else(Error::not_connected, Error::again));
        }
        let Some(backoff) = client.0.caller.transport.recovery() else {
            return client.renew().await.map_err(|error| {
                let message = format!("the server has forgotten the session, and begins no other: {error}");
                error.saying(message)
            });
        };
        // What ended a stream need not have ended the connection.
        if !client.0.router.inbox().is_lost() {
            return Ok(());
        }
        drop(client);
        self.open_anew(backoff, renewing).await
    }

    /// Opens the connection anew, as often as may be. One that is lost again and again at once is not begun afresh each time.
    async fn open_anew(&self, backoff: Backoff, renewing: &mut Renewing) -> Result<(), Error> {
        if renewing.succeeded.is_none_or(|at| at.elapsed() >= backoff.most) {
            renewing.tries = 0;
        }
        let mut failure = Error::new(ErrorKind::TransportClosed, "it was lost again and again");
        for wait in backoff.waits().skip(renewing.tries) {
            sleep(wait).await;
            renewing.tries += 1;
            match self.client()?.renew().await {
                Ok(()) => {
                    renewing.succeeded = Some(Instant::now());
                    return Ok(());
                }
                Err(error) => failure = error,
            }
            if failure.is_final() {
                break;
            }
        }
        let message = format!("the connection was lost, and no other could be opened: {failure}");
        let failure = if failure.is_final() { failure } else { Error::new(ErrorKind::TransportClosed, "") };
        let failure = failure.saying(message).unsent();
        let error = failure.again();
        *renewing = Renewing { failure: Some(failure), ..Renewing::default() };
        self.client()?.0.given_up.fetch_add(1, Ordering::AcqRel);
        Err(error)
    }
}
