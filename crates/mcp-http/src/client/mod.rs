//! Client path 4 of 5 (HTTP): each request is a POST. Before: `crates/mcp-core/src/client/modern/mod.rs` | `crates/mcp-core/src/client/legacy/mod.rs`. After: `crates/mcp-http/src/client/read.rs`.

mod cancel;
mod config;
mod events;
mod legacy;
mod read;
mod refused;
mod sse;
mod target;

#[cfg(fuzzing)]
pub(crate) use {legacy::fuzz as fuzz_stream, sse::fuzz as fuzz_events};

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::stream;
use mcp_core::{
    Blame, BoxFuture, Era, Error, ErrorKind,
    client::{Agreed, Inbox, Incoming, Outgoing, Replies, Transport},
    method::{Initialize, Listen, Method, notification},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use cancel::CancelOnDrop;
pub use config::Http;
use legacy::{Listening, OldAnswers, OldSse, Opening, Past, Resume, Session, may_be_old};
use read::{Answers, Reading};
use target::{Target, carries_session, drain};

/// What observers are told that the transport is.
const HTTP: &str = "http";

/// The transport that [`Http`] describes.
#[derive(Clone)]
pub struct HttpTransport(Arc<Endpoint>);

struct Endpoint {
    target: Arc<Target>,
    state: Mutex<State>,
    /// One for each call that may be under way.
    turns: Arc<Semaphore>,
    /// One for each stream of changes that may be listened to.
    listens: Arc<Semaphore>,
    /// Of all its sessions.
    past: Arc<Past>,
    closed: CancellationToken,
}

/// What is known of the connection; nothing, while there is none.
#[derive(Default)]
struct State {
    inbox: Option<Inbox>,
    session: Session,
    /// The session of a handshake that is not agreed on yet.
    begun: Option<Session>,
    /// What reads the stream for what belongs to no call.
    listening: Option<Listening>,
    /// The connection, where the server knows the transport of 2024-11-05 alone.
    old: Option<Arc<OldSse>>,
}

/// What a message is sent by.
struct Connection {
    inbox: Inbox,
    session: Session,
    old: Option<Arc<OldSse>>,
    opening: Option<Opening>,
}

/// URL, headers and session may all be secrets.
impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").finish_non_exhaustive()
    }
}

impl HttpTransport {
    fn new(target: Target, calls_at_once: usize) -> Self {
        let turns = Semaphore::new(calls_at_once.clamp(1, Semaphore::MAX_PERMITS));
        let listens = Semaphore::new(target.limits.subscriptions.min(Semaphore::MAX_PERMITS));
        Self(Arc::new(Endpoint {
            target: Arc::new(target),
            state: Mutex::default(),
            turns: Arc::new(turns),
            listens: Arc::new(listens),
            past: Arc::default(),
            closed: CancellationToken::new(),
        }))
    }
}

impl Transport for HttpTransport {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        let mut state = self.0.state();
        if let Some(begun) = state.begun.take() {
            drop(begun.end(&self.0.target));
        }
        // Calls are made in the session there was until another is agreed on: without one they would be refused as what they
        // are not, calls of no session.
        *state = State { inbox: Some(inbox), session: std::mem::take(&mut state.session), ..State::default() };
        Box::pin(std::future::ready(Ok(())))
    }

    fn request(&self, out: Outgoing) -> Replies {
        let asked = Asked { endpoint: self.0.clone(), stage: Stage::Unsent(out), turn: None };
        Replies::new(stream::unfold(asked, |mut asked| async move { Some((asked.next().await?, asked)) }))
    }

    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.0.tell(&out).await })
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn kind(&self) -> &'static str {
        HTTP
    }

    fn agreed(&self, to: &Agreed) {
        let mut state = self.0.state();
        if let Some(begun) = state.begun.take() {
            state.session = begun;
        }
        state.session.revision = Some(to.revision);
        let Some(inbox) = state.inbox.clone() else { return };
        if state.old.is_some() {
            return;
        }
        state.listening = legacy::listen(&self.0.target, state.session.clone(), inbox, &self.0.past);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let state = std::mem::take(&mut *self.0.state());
            self.0.closed.cancel();
            drop((state.listening, state.old));
            for session in state.begun.into_iter().chain([state.session]) {
                if let Some(ending) = session.end(&self.0.target) {
                    // It has nothing to say, and nobody aborts it.
                    drop(ending.await);
                }
            }
        })
    }
}

/// A request, and how far it is.
struct Asked {
    endpoint: Arc<Endpoint>,
    stage: Stage,
    turn: Option<Turn>,
}

/// What a request has that is under way.
struct Turn {
    cancel: CancelOnDrop,
    _turn: OwnedSemaphorePermit,
}

enum Stage {
    Unsent(Outgoing),
    Reading(Answers),
    Waiting(OldAnswers),
    Done,
}

impl Asked {
    /// What comes back next; after anything but a notification, nothing does.
    async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        let endpoint = Arc::clone(&self.endpoint);
        let item = tokio::select! {
            biased;
            () = endpoint.closed.cancelled() => Some(Err(Error::not_connected())),
            item = self.step() => item,
        };
        if !matches!(item, Some(Ok(Incoming::Notification(_)))) {
            self.end(matches!(item, Some(Ok(_))));
        }
        item
    }

    async fn step(&mut self) -> Option<Result<Incoming, Error>> {
        if let Stage::Unsent(out) = &self.stage {
            // A request that is given up before its turn was not sent, and needs no cancelling.
            let turn = match self.endpoint.turn(out).await {
                Ok(turn) => turn,
                Err(error) => return Some(Err(error)),
            };
            self.turn = Some(Turn { cancel: CancelOnDrop::new(&self.endpoint, out), _turn: turn });
            match self.endpoint.exchange(out).await {
                Ok(stage) => self.stage = stage,
                Err(error) => return Some(Err(error)),
            }
        }
        match &mut self.stage {
            Stage::Reading(answers) => answers.next().await,
            Stage::Waiting(answers) => answers.next().await,
            Stage::Unsent(_) | Stage::Done => None,
        }
    }

    fn end(&mut self, is_answered: bool) {
        if let Some(mut turn) = self.turn.take() {
            turn.cancel.disarm();
        }
        match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Reading(answers) if is_answered => answers.finish(),
            _ => {}
        }
    }
}

/// Whoever leaves without a word, or in the middle of a handshake, leaves no session behind.
impl Drop for Endpoint {
    fn drop(&mut self) {
        let state = std::mem::take(self.state.get_mut().unwrap_or_else(PoisonError::into_inner));
        state.begun.into_iter().chain([state.session]).for_each(|session| drop(session.end(&self.target)));
    }
}

impl Endpoint {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the connection right now, for that message.
    fn connection(&self, out: &Outgoing) -> Result<Connection, Error> {
        let state = self.state();
        let inbox = state.inbox.clone().ok_or_else(Error::not_connected)?;
        let opening = state.listening.as_ref().and_then(Listening::opening);
        let is_of_handshake = out.method.is_none() || out.calls(notification::INITIALIZED);
        let session = state.begun.as_ref().filter(|_| is_of_handshake).unwrap_or(&state.session).clone();
        Ok(Connection { inbox, session, old: state.old.clone(), opening })
    }

    /// Waits for a request's turn. A stream of changes stays for as long as somebody listens: calls would wait for it in
    /// vain, and so would another one.
    async fn turn(&self, out: &Outgoing) -> Result<OwnedSemaphorePermit, Error> {
        if !out.calls(Listen::NAME) {
            // It is never closed.
            return Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Error::not_connected());
        }
        Arc::clone(&self.listens).try_acquire_owned().map_err(|_| {
            let most = self.target.limits.subscriptions;
            let message =
                format!("this client listens to {most} streams already, as many as `Limits::subscriptions` allows");
            Error::new(ErrorKind::InvalidParams, message).blaming(Blame::Caller)
        })
    }

    async fn exchange(&self, out: &Outgoing) -> Result<Stage, Error> {
        let Connection { inbox, mut session, old, opening } = self.connection(out)?;
        if let Some(old) = old {
            return old.ask(&self.target, out).await.map(Stage::Waiting);
        }
        if let Some(opening) = opening {
            opening.wait().await;
        }
        let answer = self.target.post(out, &session).await?;
        let status = answer.response.status();
        if carries_session(out) && session.is_lost(&answer.response) {
            return Err(legacy::lost(answer.response));
        }
        let is_handshake = out.calls(Initialize::NAME);
        if is_handshake && status.is_success() {
            session = Session::begun(&answer.response);
            self.state().begun = Some(session.clone());
        }
        let is_modern = out.revision.is_some_and(|revision| revision.era() == Era::Modern);
        let resume = (!is_modern).then(|| Resume::new(&self.target, session));
        let target = Arc::clone(&self.target);
        let reading = Reading { id: out.id.clone(), revision: out.revision, inbox: inbox.clone(), target };
        match read::replies(answer, reading, resume).await {
            Err(refusal) if is_handshake && may_be_old(status) => self.fall_back(out, inbox, refusal).await,
            replies => replies.map(Stage::Reading),
        }
    }

    /// Shakes hands over the transport of 2024-11-05, if the server that would not do it otherwise has that.
    async fn fall_back(&self, out: &Outgoing, inbox: Inbox, refusal: Error) -> Result<Stage, Error> {
        let old = match OldSse::connect(&self.target, inbox).await {
            Ok(Some(old)) => Arc::new(old),
            Ok(None) => return Err(refusal),
            Err(error) => return Err(neither(&refusal, error)),
        };
        self.state().old = Some(Arc::clone(&old));
        old.ask(&self.target, out).await.map(Stage::Waiting)
    }

    /// Sends what has no answer. Whatever the body of the response is, nothing in it is one.
    async fn tell(&self, out: &Outgoing) -> Result<(), Error> {
        let Connection { session, old, .. } = self.connection(out)?;
        if let Some(old) = old {
            return old.tell(&self.target, out).await;
        }
        let answer = self.target.post(out, &session).await?;
        if answer.response.status().is_success() {
            drain(answer.response);
            Ok(())
        } else if carries_session(out) && session.is_lost(&answer.response) {
            Err(legacy::lost(answer.response))
        } else {
            Err(refused::refused(answer).await)
        }
    }
}

/// Neither transport worked, and the second not for want of trying.
fn neither(refusal: &Error, error: Error) -> Error {
    let message = format!("{refusal}; over HTTP+SSE, {error}");
    let neither = Error::caused(error.kind(), message, error).blaming(Blame::Peer);
    match refusal.status() {
        Some(status) => neither.with_status(status),
        None => neither,
    }
}
