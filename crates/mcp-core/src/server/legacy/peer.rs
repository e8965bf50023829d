//! Questions to the client of a legacy session: requests of the server's own, and what waits for their answers.

use std::{
    sync::{
        Mutex, MutexGuard, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use mcp_jsonrpc::{Bytes, ErrorObject, Message, Notification, Raw, Request, RequestId, Response};
use tokio::{sync::oneshot, time::timeout};

use crate::{
    ToolError, lock::lock, method::notification, pending::Pending, server::outlet::Outlet, shown, shown::Size,
};

type Answer = Result<Raw, ErrorObject>;

/// A message to a legacy client that has no stream of a call to go on. `Debug` says how long it is, and not what is in it.
#[derive(Clone)]
#[non_exhaustive]
pub enum Aside {
    /// A question, which is of use only where somebody hears it soon.
    Question(Bytes),
    /// What may wait until somebody listens.
    Notice(Bytes),
}

impl std::fmt::Debug for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Question(frame) => f.debug_tuple("Question").field(&Size(frame)).finish(),
            Self::Notice(frame) => f.debug_tuple("Notice").field(&Size(frame)).finish(),
        }
    }
}

/// Takes such messages; false if they can go nowhere.
type TakeAside = Box<dyn Fn(Aside) -> bool + Send + Sync>;

/// The questions of one session that wait for their answers.
#[derive(Default)]
pub(crate) struct Questions {
    pending: Mutex<Pending<oneshot::Sender<Answer>>>,
    next: AtomicU64,
    /// What makes ids those of this process, since a session may go on in another: made for the first question.
    nonce: OnceLock<u64>,
    aside: OnceLock<TakeAside>,
}

impl Questions {
    /// Says where messages go that have no stream of a call to go on.
    pub(super) fn set_aside(&self, aside: TakeAside) {
        // It is said once, by whoever holds the session.
        let _ = self.aside.set(aside);
    }

    /// Takes an answer; false if nobody waits for it, or not any more.
    pub(super) fn settle(&self, response: Response) -> bool {
        let waiter = response.id.and_then(|id| self.pending().settle(&id));
        waiter.is_some_and(|waiter| waiter.send(response.outcome).is_ok())
    }

    /// Nobody waits any more.
    pub(super) fn close(&self) {
        drop(self.pending().close());
    }

    fn pending(&self) -> MutexGuard<'_, Pending<oneshot::Sender<Answer>>> {
        lock(&self.pending)
    }

    fn send(&self, outlet: &Outlet, frame: Bytes, aside: fn(Bytes) -> Aside) -> bool {
        outlet.must_say(frame.clone()) || self.aside.get().is_some_and(|take| take(aside(frame)))
    }

    fn next_id(&self) -> RequestId {
        let nonce = self.nonce.get_or_init(|| {
            let mut bytes = [0; 8];
            // Without random numbers ids are still those of this session.
            let _ = getrandom::fill(&mut bytes);
            u64::from_be_bytes(bytes)
        });
        format!("{nonce:x}-{}", self.next.fetch_add(1, Ordering::Relaxed)).as_str().into()
    }

    /// Asks, and waits for the answer. Dropping the future takes the question back.
    pub(super) async fn ask(
        &self,
        outlet: &Outlet,
        method: &'static str,
        params: Option<Raw>,
        patience: Duration,
    ) -> Result<Raw, ToolError> {
        let id = self.next_id();
        let (waiter, answer) = oneshot::channel();
        if !self.pending().begin(id.clone(), waiter) {
            return Err(ToolError::new("The client is gone"));
        }
        let mut asked = Asked { questions: self, outlet, id: Some(id.clone()) };
        let frame = Message::Request(Request::new(id, method, params)).encode();
        if !self.send(outlet, frame, Aside::Question) {
            asked.id = None;
            return Err(ToolError::new("The client listens to no questions of the server"));
        }
        let outcome = timeout(patience, answer).await;
        match outcome {
            Ok(Ok(answer)) => {
                asked.id = None;
                answer.map_err(|error| {
                    ToolError::new(format!("The client refused `{method}`: {}", shown(&error.message)))
                })
            }
            Ok(Err(_)) => {
                asked.id = None;
                Err(ToolError::new("The client is gone"))
            }
            Err(_) => Err(ToolError::new(format!("The client did not answer within {} s", patience.as_secs()))),
        }
    }
}

/// A question that is taken back when this is dropped, unless it was answered.
struct Asked<'a> {
    questions: &'a Questions,
    outlet: &'a Outlet,
    id: Option<RequestId>,
}

/// Specification: *Cancellation*.
impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        if self.questions.pending().settle(&id).is_none() {
            return;
        }
        let params = Raw::encode(&serde_json::json!({ "requestId": id })).ok();
        let notification = Notification::new(notification::CANCELLED, params);
        self.questions.send(self.outlet, Message::Notification(notification).encode(), Aside::Notice);
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
    }
}
