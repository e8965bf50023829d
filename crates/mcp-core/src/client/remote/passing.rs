//! Calls that are made for others, and what a legacy server asks about them.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_jsonrpc::{Raw, RequestId};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::forward::Listener;
use crate::{Blame, Error, ErrorKind, ToolError, client::input::InputRequest, lock::lock};

/// Where the questions about one call go.
pub(crate) type Asker = mpsc::UnboundedSender<Question>;

/// The requests of one client that a legacy server may ask about, and those of them that are made for others.
#[derive(Debug)]
pub(crate) struct Passing {
    state: Mutex<State>,
    /// How long a server may still ask about a request that was given up.
    lingers: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// What the server may ask about.
    requests: HashMap<RequestId, Asked>,
    /// Those of them that were given up, and when, in that order.
    given_up: VecDeque<(Instant, RequestId)>,
    /// Calls that wait for whoever made them to come again.
    parked: HashMap<u64, Parked>,
}

/// What a server asks about a call.
#[derive(Debug)]
pub(crate) struct Question {
    pub(super) asked: InputRequest,
    answer: oneshot::Sender<Result<Raw, Error>>,
    /// Fires when the server does not want to know any more.
    pub(super) withdrawn: CancellationToken,
}

/// Whose a request is, and so the questions about it.
#[derive(Debug, Clone, Default)]
pub(crate) enum Whose {
    /// The client's own.
    #[default]
    Ours,
    /// Somebody's who is asked there.
    Call(Asker),
    /// Somebody's who cannot be asked.
    Nobody,
}

#[derive(Debug)]
struct Asked {
    whose: Whose,
    /// A question that names no request may be about this one.
    may_ask: bool,
}

impl Passing {
    pub(crate) fn new(lingers: Duration) -> Self {
        Self { state: Mutex::default(), lingers }
    }

    /// Questions about that request are `whose`, until what is returned is dropped.
    pub(crate) fn register(self: &Arc<Self>, id: RequestId, whose: Whose, may_ask: bool) -> Registered {
        lock(&self.state).requests.insert(id.clone(), Asked { whose, may_ask });
        Registered { passing: self.clone(), id, lingers: may_ask }
    }

    /// Whose a question is that came with the answer to `about`, or by itself; none if it may be more than one's. Callers
    /// are never mixed up by that, as long as a server asks only about what it works on.
    pub(crate) fn whose(&self, about: Option<&RequestId>) -> Option<Whose> {
        let mut state = lock(&self.state);
        state.forget_given_up(self.lingers);
        if let Some(id) = about {
            return Some(state.requests.get(id).map_or(Whose::Nobody, |asked| asked.whose.clone()));
        }
        let asking = state.requests.values().filter(|asked| asked.may_ask).map(|asked| &asked.whose);
        match asking.collect::<Vec<_>>().as_slice() {
            [one] => Some((*one).clone()),
            all if all.iter().all(|whose| matches!(whose, Whose::Ours)) => Some(Whose::Ours),
            _ => None,
        }
    }

    /// Takes note of a call that has begun: its number, which nobody guesses.
    pub(super) fn begin(self: &Arc<Self>, running: Running, patience: Duration, most: usize) -> Result<u64, ToolError> {
        let number = getrandom::u64().map_err(|_| ToolError::new("There is no randomness to number the call by"))?;
        if lock(&self.state).parked.len() >= most {
            return Err(ToolError::new("Too many calls wait for answers"));
        }
        self.park(number, running, patience);
        Ok(number)
    }

    /// The call of that number, if it was not given up.
    pub(super) fn hold(self: &Arc<Self>, number: u64, returns: Option<Duration>) -> Option<Held> {
        let Parked { running, .. } = lock(&self.state).parked.remove(&number)?;
        Some(Held { passing: self.clone(), number, running: Some(running), returns })
    }

    /// It waits for a while.
    fn park(self: &Arc<Self>, number: u64, running: Running, patience: Duration) {
        let passing = Arc::downgrade(self);
        let giving_up = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(patience).await;
            if let Some(passing) = passing.upgrade() {
                let given_up = lock(&passing.state).parked.remove(&number);
                drop(given_up);
            }
        }));
        lock(&self.state).parked.insert(number, Parked { running, _giving_up: giving_up });
    }
}

#[derive(Debug)]
struct Parked {
    running: Running,
    /// Gives it up after a while, for as long as it is parked.
    _giving_up: AbortOnDropHandle<()>,
}

impl State {
    /// A server that was told so long ago has stopped.
    fn forget_given_up(&mut self, lingers: Duration) {
        while let Some((since, id)) = self.given_up.front()
            && since.elapsed() >= lingers
        {
            self.requests.remove(id);
            self.given_up.pop_front();
        }
    }
}

/// A request that the server may ask about.
#[derive(Debug)]
#[must_use = "it ends when this is dropped"]
pub(crate) struct Registered {
    passing: Arc<Passing>,
    id: RequestId,
    lingers: bool,
}

impl Registered {
    /// The server does not work on it any more. One that is dropped without that may still be asked about for a while.
    pub(crate) fn over(mut self) {
        self.lingers = false;
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = lock(&self.passing.state);
        state.forget_given_up(self.passing.lingers);
        if self.lingers {
            state.given_up.push_back((Instant::now(), self.id.clone()));
        } else {
            state.requests.remove(&self.id);
        }
    }
}

impl Question {
    /// Asks, and waits for the answer. Dropping the future takes the question back.
    pub(crate) async fn put(asked: InputRequest, to: &Asker) -> Result<Raw, Error> {
        let ((answer, answered), withdrawn) = (oneshot::channel(), CancellationToken::new());
        let _withdrawn = withdrawn.clone().drop_guard();
        let gone = || Error::new(ErrorKind::HandlerFailed, "whoever made the call is gone").blaming(Blame::Caller);
        to.send(Self { asked, answer, withdrawn }).map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    pub(super) fn answer(self, answer: Result<Raw, Error>) {
        // A server that does not want to know any more needs no answer.
        let _ = self.answer.send(answer);
    }
}

/// A call that is made for somebody else. It is given up when this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) outcome: AbortOnDropHandle<Result<Raw, Error>>,
    pub(super) questions: mpsc::UnboundedReceiver<Question>,
    /// Who hears of its progress.
    pub(super) listener: Listener,
    /// How many questions there were, and those that have no answer yet.
    pub(super) asked: u64,
    pub(super) open: BTreeMap<u64, Question>,
}

impl Running {
    pub(super) fn new(
        call: impl Future<Output = Result<Raw, Error>> + Send + 'static,
        questions: mpsc::UnboundedReceiver<Question>,
        listener: Listener,
    ) -> Self {
        Self {
            outcome: AbortOnDropHandle::new(tokio::spawn(call)),
            questions,
            listener,
            asked: 0,
            open: BTreeMap::new(),
        }
    }
}

/// A call while somebody waits for it.
pub(super) struct Held {
    passing: Arc<Passing>,
    number: u64,
    running: Option<Running>,
    /// How long to wait for a caller that was asked to come again.
    returns: Option<Duration>,
}

impl Held {
    pub(super) fn running(&mut self) -> Option<&mut Running> {
        self.running.as_mut()
    }
}

/// A call with questions open waits for its caller to come again, where callers do; any other is given up.
impl Drop for Held {
    fn drop(&mut self) {
        let waits = self.running.take().filter(|running| !running.open.is_empty());
        if let (Some(running), Some(patience), Ok(_)) = (waits, self.returns, tokio::runtime::Handle::try_current()) {
            self.passing.park(self.number, running, patience);
        }
    }
}
