//! What the server sends on its own: no reply comes this way, but the transports put requests and notifications here.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, OnceLock},
};

use mcp_jsonrpc::{Bytes, ErrorObject, Message, Notification, Raw, Request, RequestId, code, encode};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Era, Error, ErrorKind, Limits, Revision,
    client::{
        Inbox, ListenEnd, Outgoing, Transport,
        attention::Attention,
        call::Caller,
        hearing::{Listening, subject},
        input::{Handlers, InputRequest},
        remote::{Passing, Question, Whose},
        renewal::WeakClient,
        transport::Lost,
    },
    contained::contained,
    head::cancelled,
    method::{Method, Ping, notification},
    observer::{ConnectionEvent, Direction, Observed, Observers, Outcome, Role},
    types::LogMessage,
};

/// Whoever hears what the server only tells.
#[derive(Clone, Default)]
pub(crate) struct Hearing {
    pub(super) log: Option<Arc<dyn Fn(LogMessage) + Send + Sync>>,
    pub(super) elicited: Option<Arc<dyn Fn(String) + Send + Sync>>,
    /// What extensions have, by their names.
    pub(super) others: HashMap<String, Arc<Hear>>,
}

/// What hears the notifications of a name.
type Hear = dyn Fn(Option<Raw>) + Send + Sync;

/// The task that answers the server, for as long as this lives.
pub(crate) struct Router {
    task: AbortOnDropHandle<()>,
    inbox: Inbox,
    agreed: Arc<OnceLock<(Revision, WeakClient)>>,
}

impl Router {
    pub(crate) fn start(caller: &Caller, handlers: Handlers, hearing: Hearing, listening: Arc<Listening>) -> Self {
        let inbox = Inbox::observed(&caller.limits, caller.observers.clone());
        let agreed = Arc::default();
        let routing = Routing {
            transport: caller.transport.clone(),
            inbox: inbox.clone(),
            limits: caller.limits.clone(),
            agreed: Arc::clone(&agreed),
            handlers: Arc::new(handlers),
            passing: caller.passing.clone(),
            hearing,
            listening,
            running: JoinSet::new(),
            by_id: HashMap::new(),
            waiting: VecDeque::new(),
            attention: caller.attention.clone(),
            is_lost: false,
        };
        Self { task: AbortOnDropHandle::new(tokio::spawn(routing.run())), inbox, agreed }
    }

    /// Where transports put what comes in.
    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// From now on this is spoken, and whatever comes is the client's.
    pub(crate) fn agreed(&self, revision: Revision, client: WeakClient) {
        // It is told once.
        let _ = self.agreed.set((revision, client));
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

struct Routing {
    transport: Arc<dyn Transport>,
    inbox: Inbox,
    limits: Limits,
    agreed: Arc<OnceLock<(Revision, WeakClient)>>,
    handlers: Arc<Handlers>,
    passing: Arc<Passing>,
    hearing: Hearing,
    listening: Arc<Listening>,
    /// The questions that are being answered, and the answers that are being sent.
    running: JoinSet<Option<RequestId>>,
    by_id: HashMap<RequestId, AbortHandle>,
    /// Those that wait for their turn, and whose they are.
    waiting: VecDeque<(Request, Option<Whose>)>,
    attention: Arc<Attention>,
    is_lost: bool,
}

enum Event {
    Message(Message, Option<RequestId>),
    Answered(Option<RequestId>),
    Lost(Lost),
    Found,
}

impl Routing {
    async fn run(mut self) {
        while let Some(event) = self.next().await {
            match event {
                Event::Message(Message::Request(request), about) => self.on_request(request, about),
                Event::Message(Message::Notification(notification), _) => self.on_notification(&notification),
                Event::Message(..) => tracing::debug!("a response to no request was dropped"),
                Event::Answered(id) => self.on_answered(id),
                Event::Lost(lost) => self.on_lost(lost),
                Event::Found => self.on_found(),
            }
        }
    }

    async fn next(&mut self) -> Option<Event> {
        // A server that takes no answers is read no further.
        let takes_answers = self.running.len() < self.by_id.len() + self.limits.in_flight;
        tokio::select! {
            biased;
            Some(done) = self.running.join_next() => Some(Event::Answered(done.unwrap_or(None))),
            message = self.inbox.take(), if takes_answers => message.map(|(message, about)| Event::Message(message, about)),
            lost = self.inbox.until_lost(), if !self.is_lost => Some(Event::Lost(lost)),
            () = self.inbox.until_found(), if self.is_lost => Some(Event::Found),
        }
    }

    /// A question takes as long as its user; what the protocol itself asks never waits behind one.
    fn on_request(&mut self, request: Request, about: Option<RequestId>) {
        // Asked at once: when its turn comes, other calls may be under way.
        let (revision, whose) = (self.revision(), self.passing.whose(about.as_ref()));
        if revision.is_some_and(|revision| revision.era() == Era::Modern) {
            tracing::debug!("a request of a server that may ask nothing was ignored");
        } else if Ping::is(&request) {
            self.reply(&request, Ok(Raw::empty_object()));
        } else if self.by_id.contains_key(&request.id) {
            self.reply(&request, Err(ErrorObject::new(code::INVALID_REQUEST, "the id is in use")));
        } else if self.by_id.len() < self.limits.in_flight {
            self.answer(request, whose);
        } else if self.has_room_for(&request) {
            self.waiting.push_back((request, whose));
        } else {
            self.reply(&request, Err(ErrorObject::new(code::INTERNAL_ERROR, "too many requests")));
        }
    }

    fn has_room_for(&self, request: &Request) -> bool {
        let held: usize = self.waiting.iter().map(|(request, _)| request.size()).sum();
        self.waiting.len() < self.limits.waiting && held + request.size() <= self.limits.queue_bytes
    }

    /// A question is answered by whoever's the call is that it is about.
    fn answer(&mut self, request: Request, whose: Option<Whose>) {
        let (handlers, sending, id) = (self.handlers.clone(), self.sending(), request.id.clone());
        let (observed, attention) = (self.observed(&request), self.attention.clone());
        let running = self.running.spawn(async move {
            let _held = attention.hold();
            let revision = sending.revision.unwrap_or(Revision::LATEST_LEGACY);
            let answer = match whose {
                Some(Whose::Ours) => handlers.answer(&request.method, request.params.as_ref(), revision).await,
                None => Err(unaskable(UNCLEAR)),
                Some(Whose::Nobody) => Err(unaskable("whoever made the call cannot be asked")),
                Some(Whose::Call(asker)) => {
                    let asked = InputRequest { method: request.method.to_string(), params: request.params.clone() };
                    Question::put(asked, &asker).await
                }
            };
            let answer = answer.map_err(|error| object(&request.method, error));
            sending.observers.answered(observed, || outcome(&answer));
            sending.send(frame(&request.id, answer)).await;
            Some(request.id)
        });
        self.by_id.insert(id, running);
    }

    fn reply(&mut self, request: &Request, answer: Result<Raw, ErrorObject>) {
        let sending = self.sending();
        sending.observers.answered(self.observed(request), || outcome(&answer));
        let frame = frame(&request.id, answer);
        self.running.spawn(async move {
            sending.send(frame).await;
            None
        });
    }

    fn on_answered(&mut self, id: Option<RequestId>) {
        if let Some(id) = id {
            self.by_id.remove(&id);
        } else {
            // What was cancelled does not say which it was.
            self.by_id.retain(|_, running| !running.is_finished());
        }
        if self.by_id.len() < self.limits.in_flight
            && let Some((request, whose)) = self.waiting.pop_front()
        {
            self.answer(request, whose);
        }
    }

    fn on_notification(&mut self, notification: &Notification) {
        let connection = connection(&*self.transport);
        self.inbox.observers.notification(connection, Direction::Incoming, &notification.method);
        let params = notification.params.as_ref();
        match &*notification.method {
            notification::CANCELLED => self.on_cancelled(notification),
            notification::MESSAGE => self.hearing.log(params),
            notification::ELICITED => self.on_elicited(params),
            method => match subject(notification) {
                Some(subject) => self.listening.heard(&subject),
                None => self.hearing.other(method, params),
            },
        }
    }

    /// Specification: *Cancellation*.
    fn on_cancelled(&mut self, notification: &Notification) {
        let Some(id) = cancelled(notification, self.limits.id_bytes) else { return };
        self.waiting.retain(|(request, _)| request.id != id);
        if let Some(running) = self.by_id.remove(&id) {
            running.abort();
        }
    }

    /// Servers may name what nobody was sent to; that is nobody's news.
    ///
    /// Specification: *2025-11-25, Elicitation, Completion Notifications*.
    fn on_elicited(&self, params: Option<&Raw>) {
        let id = params.and_then(|params| params.member("elicitationId")?.to_string_value().ok());
        if let Some(id) = id.filter(|id| self.handlers.visits.complete(id)) {
            self.hearing.elicited(id.to_string());
        }
    }

    fn on_lost(&mut self, Lost { error, in_order }: Lost) {
        self.is_lost = true;
        // Whoever asked is gone; elsewhere each question came with a call of its own.
        if self.transport.is_shared() || error.kind() == ErrorKind::NotInitialized {
            self.running.abort_all();
            self.by_id.clear();
            self.waiting.clear();
        }
        let may_recover = self.transport.recovery().is_some();
        match self.agreed.get() {
            Some((_, client)) if error.kind() == ErrorKind::NotInitialized => client.renew(),
            // A server that has no use for idle clients is left alone until somebody has a use for it.
            Some(_) if may_recover && in_order && !self.listening.hub.is_heard() => {}
            Some((_, client)) if may_recover => client.renew(),
            Some(_) => self.listening.end(ListenEnd::Lost(error)),
            // The client may yet try another way.
            None => {}
        }
    }

    fn on_found(&mut self) {
        self.is_lost = false;
        self.listening.begin_anew();
        self.listening.everything_changed();
    }

    fn revision(&self) -> Option<Revision> {
        self.agreed.get().map(|(revision, _)| *revision)
    }

    fn sending(&self) -> Sending {
        let revision = self.revision();
        let (transport, observers) = (self.transport.clone(), self.inbox.observers.clone());
        Sending { transport, observers, limits: self.limits.clone(), revision }
    }

    fn observed(&self, request: &Request) -> Option<Observed> {
        let connection = connection(&*self.transport);
        let incoming = || Observed::incoming(request.method.clone(), request.id.clone(), connection);
        self.inbox.observers.observed(incoming)
    }
}

impl Hearing {
    fn log(&self, params: Option<&Raw>) {
        let message = params.and_then(|params| params.decode().ok());
        if let (Some(hear), Some(message)) = (&self.log, message) {
            tell(|| hear(message));
        }
    }

    fn other(&self, method: &str, params: Option<&Raw>) {
        match self.others.get(method) {
            Some(hear) => tell(|| hear(params.cloned())),
            // Its method is the server's word, and may be anything.
            None => tracing::debug!("a notification that nobody hears of was ignored"),
        }
    }

    fn elicited(&self, id: String) {
        if let Some(hear) = &self.elicited {
            tell(|| hear(id));
        }
    }
}

/// A panic of the user's must not end the task that answers the server.
fn tell(hear: impl FnOnce()) {
    if contained(hear).is_err() {
        tracing::error!("what hears of a notification panicked");
    }
}

/// What it takes to send one answer.
struct Sending {
    transport: Arc<dyn Transport>,
    observers: Observers,
    limits: Limits,
    revision: Option<Revision>,
}

impl Sending {
    async fn send(&self, frame: Bytes) {
        let revision = self.revision;
        let out = Outgoing { frame, id: None, method: None, name: None, revision, mirrored: Vec::new() };
        let connection = connection(&*self.transport);
        match timeout(self.limits.request_timeout, self.transport.send(out)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.observers.error(connection, || error),
            Err(_) => {
                self.observers.error(connection, || Error::new(ErrorKind::Timeout, "an answer was not taken in time"));
            }
        }
    }
}

fn connection(transport: &dyn Transport) -> ConnectionEvent {
    ConnectionEvent { role: Role::Client, transport: transport.kind() }
}

fn frame(id: &RequestId, answer: Result<Raw, ErrorObject>) -> Bytes {
    match answer {
        Ok(result) => encode::result(id, result.as_bytes()),
        Err(error) => encode::error(Some(id), &error),
    }
}

fn outcome(answer: &Result<Raw, ErrorObject>) -> Outcome {
    match answer {
        Ok(_) => Outcome::Completed,
        Err(error) => Outcome::Error { code: error.code },
    }
}

const UNCLEAR: &str = "several calls are under way, and the question does not say which of them it is about";

fn unaskable(why: &'static str) -> Error {
    Error::from_object(ErrorObject::new(code::INTERNAL_ERROR, why))
}

/// What the server is told: what a handler has for it, and of all else only that it failed.
fn object(method: &str, error: Error) -> ErrorObject {
    match error.object() {
        Some(object) => object.clone(),
        None => {
            tracing::warn!(method, ?error, "a question of the server could not be answered");
            ErrorObject::new(code::INTERNAL_ERROR, "Internal error")
        }
    }
}
