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
pub(crate) use sse::fuzz as fuzz_events;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::stream;
use mcp_core::{
    BoxFuture, Era, Error,
    client::{Agreed, Inbox, Incoming, Outgoing, Replies, Transport},
    method::{Initialize, Method},
};
use tokio::sync::watch;

use cancel::CancelOnDrop;
pub use config::Http;
use legacy::{AbortOnDrop, Resume, Session};
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
    /// Becomes true, once.
    closed: watch::Sender<bool>,
}

/// What is known of the connection; nothing, while there is none.
#[derive(Default)]
struct State {
    inbox: Option<Inbox>,
    session: Session,
    /// What reads the stream for what belongs to no call.
    listening: Option<AbortOnDrop>,
}

/// URL, headers and session may all be secrets.
impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").finish_non_exhaustive()
    }
}

impl HttpTransport {
    fn new(target: Target) -> Self {
        let endpoint =
            Endpoint { target: Arc::new(target), state: Mutex::default(), closed: watch::Sender::new(false) };
        Self(Arc::new(endpoint))
    }
}

impl Transport for HttpTransport {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        // What was known of a connection before is forgotten, and what it listened to ends.
        *self.0.state() = State { inbox: Some(inbox), ..State::default() };
        Box::pin(std::future::ready(Ok(())))
    }

    fn request(&self, out: Outgoing) -> Replies {
        let cancel = CancelOnDrop::new(&self.0, &out);
        let asked = Asked { endpoint: self.0.clone(), stage: Stage::Unsent(out), cancel };
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
        state.session.revision = Some(to.revision);
        let Some(inbox) = state.inbox.clone() else { return };
        state.listening = legacy::listen(&self.0.target, state.session.clone(), inbox);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let state = std::mem::take(&mut *self.0.state());
            self.0.closed.send_replace(true);
            drop(state.listening);
            state.session.end(&self.0.target).await;
        })
    }
}

/// A request, and how far it is.
struct Asked {
    endpoint: Arc<Endpoint>,
    stage: Stage,
    cancel: CancelOnDrop,
}

enum Stage {
    Unsent(Outgoing),
    Reading(Answers),
    Done,
}

impl Asked {
    /// What comes back next; after anything but a notification, nothing does.
    async fn next(&mut self) -> Option<Result<Incoming, Error>> {
        let item = tokio::select! {
            biased;
            () = self.endpoint.until_closed() => Some(Err(Error::not_connected())),
            item = self.stage.next(&self.endpoint) => item,
        };
        if !matches!(item, Some(Ok(Incoming::Notification(_)))) {
            self.cancel.disarm();
            let stage = std::mem::replace(&mut self.stage, Stage::Done);
            if let (Stage::Reading(answers), Some(Ok(_))) = (stage, &item) {
                answers.finish();
            }
        }
        item
    }
}

impl Stage {
    async fn next(&mut self, endpoint: &Endpoint) -> Option<Result<Incoming, Error>> {
        if let Self::Unsent(out) = self {
            match endpoint.exchange(out).await {
                Ok(answers) => *self = Self::Reading(answers),
                Err(error) => return Some(Err(error)),
            }
        }
        match self {
            Self::Reading(answers) => answers.next().await,
            Self::Unsent(_) | Self::Done => None,
        }
    }
}

impl Endpoint {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until_closed(&self) {
        // The sender is part of `self`, so it cannot be gone.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// What is known of the connection right now.
    fn connection(&self) -> Result<(Inbox, Session), Error> {
        let state = self.state();
        let inbox = state.inbox.clone().ok_or_else(Error::not_connected)?;
        Ok((inbox, state.session.clone()))
    }

    async fn exchange(&self, out: &Outgoing) -> Result<Answers, Error> {
        let (inbox, mut session) = self.connection()?;
        let response = self.target.post(out, &session).await?;
        if carries_session(out) && session.is_lost(&response) {
            return Err(legacy::lost(response));
        }
        if out.calls(Initialize::NAME) && response.status().is_success() {
            session = Session::begun(&response);
            self.state().session = session.clone();
        }
        let is_modern = out.revision.is_some_and(|revision| revision.era() == Era::Modern);
        let resume = (!is_modern).then(|| Resume::new(&self.target, session));
        let target = Arc::clone(&self.target);
        let reading = Reading { id: out.id.clone(), revision: out.revision, inbox, target };
        read::replies(response, reading, resume).await
    }

    /// Sends what has no answer. Whatever the body of the response is, nothing in it is one.
    async fn tell(&self, out: &Outgoing) -> Result<(), Error> {
        let (_, session) = self.connection()?;
        let response = self.target.post(out, &session).await?;
        if response.status().is_success() {
            drain(response);
            Ok(())
        } else if carries_session(out) && session.is_lost(&response) {
            Err(legacy::lost(response))
        } else {
            Err(refused::refused(response).await)
        }
    }
}
