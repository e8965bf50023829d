use std::sync::Arc;

use mcp_jsonrpc::Raw;

use crate::{
    Client, Error, Limits, Revision, Revisions,
    client::{
        IntoTransport, Verdict,
        cache::{Cache, ResponseCache},
        call::Caller,
        connect,
        hearing::Listening,
        input::{Handlers, handler},
        route::{Hearing, Router},
    },
    observer::{Observer, Observers},
    types::{
        CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Implementation, LogMessage, Root, TASKS,
        check_extensions,
    },
};

/// A [`Client`] in the making.
///
/// What a server may ask of this client follows from the handlers that are set: none, nothing. They are the same for
/// servers of both eras; a modern server's questions are answered while the call that led to them is awaited. A handler
/// that fails, or panics, fails the one call; a legacy server gets the error that the handler took from an
/// [`ErrorObject`](mcp_jsonrpc::ErrorObject) with [`Error::from_object`], and of any other only that there was one.
#[derive(Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    pub(super) info: Implementation,
    pub(super) revisions: Revisions,
    pub(super) handlers: Handlers,
    pub(super) verdict: Option<Verdict>,
    limits: Limits,
    observers: Observers,
    hearing: Hearing,
    cache: Option<Cache>,
}

impl ClientBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            revisions: Revisions::default(),
            handlers: Handlers::default(),
            verdict: None,
            limits: Limits::default(),
            observers: Observers::default(),
            hearing: Hearing::default(),
            cache: None,
        }
    }

    /// Speaks only these revisions. Default: all, the modern era being tried first.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = Revisions::of(revisions);
        self
    }

    /// Takes an earlier client's word ([`Client::verdict`]) for what the server speaks, instead of asking it again. Where the
    /// word is wrong by now, connecting or the first call fails with
    /// [`ErrorKind::ProtocolVersionMismatch`](crate::ErrorKind) or an error of the connection.
    pub fn verdict(mut self, verdict: Verdict) -> Self {
        self.verdict = Some(verdict);
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.within_reason();
        self
    }

    /// Tells `observer` what happens; those added before are told first.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }

    /// Lets servers ask the user with a form. Fields that an answer leaves out are filled in with the form's defaults, and an
    /// answer that does not have the form's schema is not sent (feature `validate`).
    ///
    /// ```
    /// use mcp_core::{Client, implementation, types::{ElicitParams, ElicitResult}};
    ///
    /// let builder = Client::builder(implementation!()).on_elicit(|question: ElicitParams| async move {
    ///     println!("{}", question.message);
    ///     ElicitResult::accept(serde_json::json!({ "name": "Ada" }))
    /// });
    /// ```
    ///
    /// Specification: *Elicitation*.
    pub fn on_elicit<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.handlers.form = handler(answer);
        self
    }

    /// Lets servers send the user to a web page. The user must see the whole URL and agree to it before it is opened
    /// ([`ElicitResult::agree`]), and nothing of it may be fetched before.
    ///
    /// Specification: *Elicitation, URL Mode*.
    pub fn on_elicit_url<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(ElicitParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.handlers.url = handler(answer);
        self
    }

    /// Lets servers have this client's model say something. There should be a human who can say no: then the handler fails
    /// with the object of code -1.
    ///
    /// Specification: *Sampling*.
    pub fn on_sample<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.handlers.sample = handler(answer);
        self
    }

    /// The same, with a model that calls the tools that the request brings along.
    ///
    /// Specification: *Sampling, Sampling with Tools*.
    pub fn on_sample_with_tools<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.handlers.samples_tools = true;
        self.on_sample(answer)
    }

    /// Tells servers the directories and files that are worked in. Where they change, [`Client::roots_changed`] says so.
    ///
    /// Specification: *Roots*.
    pub fn on_roots<F, Fut>(mut self, list: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Root>, Error>> + Send + 'static,
    {
        self.handlers.roots = handler(move |()| list());
        self
    }

    /// Lets servers ask whatever they like, about calls that are made for others: who made the call is asked, if it can be.
    /// For clients whose server is mounted into another ([`Server::mount`](crate::Server::mount)), or whose tools are added to
    /// one; a modern server is told with each call what its caller can be asked, so this is for legacy ones.
    ///
    /// A legacy server on a shared wire does not say which call its question is about. There it can ask only while one call
    /// is under way, this client's own included, and gets an error else. A call that found no answer is under way for another
    /// [`Limits::request_timeout`]: the server may not have stopped. The client's own questions are its own where no call of
    /// anybody else is under way.
    pub fn pass_questions(mut self) -> Self {
        self.handlers.passes = true;
        self
    }

    /// Lets servers answer calls with tasks, which this client comes back for: by itself where a call is awaited, or by its
    /// [handle](crate::client::TaskHandle) where it [is not](Client::call_as_task).
    ///
    /// Specification: *Tasks extension*.
    pub fn tasks(self) -> Self {
        self.extension(TASKS, Raw::empty_object())
    }

    /// Says that the client has an extension of the protocol, by its name (`com.example/weather`), with settings that are an
    /// object. What the server has is in [`Client::server_extension`]. Clients of the legacy era name none.
    ///
    /// Specification: *Overview, Extensions*.
    pub fn extension(mut self, name: impl Into<String>, settings: Raw) -> Self {
        self.handlers.extensions.insert(name.into(), settings);
        self
    }

    /// Hears what the server logs. It runs while messages are read, and must not block.
    ///
    /// A modern server logs where a call asks for it ([`CallOptions::log_level`](crate::client::CallOptions::log_level)), a
    /// legacy one after [`Client::set_log_level`].
    ///
    /// Specification: *Logging*.
    pub fn on_log(mut self, hear: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.hearing.log = Some(Arc::new(hear));
        self
    }

    /// Hears that what the user was sent to a web page for is done: the question's `elicitationId`. It must not block.
    ///
    /// Specification: *2025-11-25, Elicitation, Completion Notifications*.
    pub fn on_elicitation_complete(mut self, hear: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.hearing.elicited = Some(Arc::new(hear));
        self
    }

    /// Hears the notifications of that name, which an extension has: their parameters. It runs while messages are read, and
    /// must not block. What the protocol itself has for these comes to whoever else asks for it, and not here.
    pub fn on_notification(
        mut self,
        method: impl Into<String>,
        hear: impl Fn(Option<Raw>) + Send + Sync + 'static,
    ) -> Self {
        self.hearing.others.insert(method.into(), Arc::new(hear));
        self
    }

    /// Keeps answers for as long as the server says, and until it says that they have changed. `principal` names whoever the
    /// client calls for: what is private is not shown to another one. Default: nothing is kept.
    ///
    /// Specification: *Caching*.
    pub fn cache(mut self, cache: &ResponseCache, principal: impl Into<String>) -> Self {
        self.cache = Some(Cache::new(cache, principal.into()));
        self
    }

    /// Connects, and finds out what the server speaks.
    ///
    /// # Errors
    /// When no connection can be made, or the two sides have no revision in common, as when the client was given none; and
    /// when an extension's name has no prefix, or its settings are no object.
    pub async fn connect<T: IntoTransport>(self, transport: T) -> Result<Client, Error> {
        self.revisions.check()?;
        check_extensions(&self.handlers.extensions)?;
        let transport = Arc::new(transport.into_transport(&self.limits)?);
        let caller = Caller::new(transport, self.limits.clone(), self.observers.clone());
        let listening = Arc::new(Listening::new(self.cache.clone()));
        // The server may ask something before the handshake is over.
        let router = Router::start(&caller, self.handlers.clone(), self.hearing.clone(), listening.clone());
        match connect::connect(&caller, &self, router.inbox()).await {
            Ok(connected) => Ok(Client::new(caller, connected, router, listening, self)),
            Err(error) => {
                self.observers.failed(caller.connection(), &error);
                router.stop();
                caller.transport.close().await;
                Err(error)
            }
        }
    }

    pub(super) fn keeps(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("info", &self.info).field("limits", &self.limits).finish_non_exhaustive()
    }
}
