//! Client path 1 of 5: what a user calls. After: `crates/mcp-core/src/client/call.rs`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use mcp_jsonrpc::{ByteString, Raw, Response, code};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};

use crate::{
    Blame, BoxFuture, Era, Error, ErrorKind, Limits, MirrorPlan, Revision, Tool,
    client::{
        Agreed, CallOptions, ClientBuilder, IntoTransport, ListenEnd, Outgoing, Verdict,
        call::{Ask, Caller, Speech},
        connect::{self, Connected},
        input::{InputRequired, visits_required},
        listen::Listening,
        remote::{self, Passing, Whose},
        result::{self, Answer},
        route::Router,
    },
    hub::Subject,
    lock::lock,
    mcp_code,
    method::{
        CallTool, Complete, Discover, Empty, GetPrompt, Method, Ping, ReadResource, SetLevel, Subscribe, notification,
    },
    observer::{Direction, Opened},
    types::{
        CallToolParams, CallToolResult, CompleteParams, Completion, GetPromptParams, GetPromptResult, Implementation,
        LogLevel, ReadResourceResult, ResourceParams, ServerCapabilities, SetLevelParams, ToolDefinition,
    },
};

/// A client that is connected to a server, of whichever era. Cloning is cheap, and all clones share one connection,
/// which ends with the last of them.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    caller: Caller,
    connected: Connected,
    /// How it was connected, and would have to be again.
    settings: ClientBuilder,
    router: Router,
    listening: Arc<Listening>,
    /// How often the session was begun anew, and whoever does so.
    sessions: AtomicU64,
    renewing: AsyncMutex<()>,
    /// What stands for a connection where there is none, as over HTTP. None once it is closed.
    opened: Mutex<Option<Opened>>,
    /// What the tools of the last list mirror, by name; those that mirror nothing are not in it.
    plans: ArcSwap<HashMap<String, MirrorPlan>>,
}

impl Client {
    /// Connects with the defaults: any revision, the modern era first, and the name of this program.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn connect<T: IntoTransport>(transport: T) -> Result<Self, Error> {
        Self::builder(Implementation::of_this_program()).connect(transport).await
    }

    /// A client to be configured. [`implementation!`](crate::implementation) names it after the calling crate.
    pub fn builder(info: Implementation) -> ClientBuilder {
        ClientBuilder::new(info)
    }

    pub(super) fn new(
        caller: Caller,
        connected: Connected,
        router: Router,
        listening: Arc<Listening>,
        settings: ClientBuilder,
    ) -> Self {
        let revision = connected.verdict.revision;
        let opened = (!caller.transport.is_shared()).then(|| caller.observers.opened(caller.connection()));
        let client = Self(Arc::new(Inner {
            caller,
            connected,
            settings,
            router,
            listening,
            sessions: AtomicU64::new(0),
            renewing: AsyncMutex::default(),
            opened: Mutex::new(opened),
            plans: ArcSwap::default(),
        }));
        client.0.router.agreed(revision, WeakClient(Arc::downgrade(&client.0)));
        client.0.caller.transport.agreed(&Agreed::new(revision));
        client
    }

    /// The revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.verdict().revision
    }

    /// Who the server says it is.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.verdict().server_info.as_ref()
    }

    /// What the server offers.
    #[must_use]
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.verdict().capabilities
    }

    /// How to use the server, for a model.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.verdict().instructions.as_deref()
    }

    /// All of that, to be kept for the next client of the same server; see [`ClientBuilder::verdict`].
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.0.connected.verdict
    }

    /// The bounds that the client keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.caller.limits
    }

    pub(super) fn caller(&self) -> &Caller {
        &self.0.caller
    }

    pub(super) fn speech(&self) -> &Speech {
        &self.0.connected.speech
    }

    pub(super) fn passing(&self) -> &Arc<Passing> {
        &self.0.caller.passing
    }

    pub(super) fn listening(&self) -> &Arc<Listening> {
        &self.0.listening
    }

    /// Calls a tool and reads its result: the structured content if it fits `T`, else the text, as JSON if it parses.
    ///
    /// ```
    /// # async fn example(client: mcp_core::Client) -> Result<(), mcp_core::Error> {
    /// let sum: i64 = client.call("add", serde_json::json!({ "a": 2, "b": 5 })).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::HandlerFailed`] with the tool's own words when it failed; otherwise as [`call_raw`](Self::call_raw).
    pub async fn call<T: DeserializeOwned + 'static>(&self, name: &str, arguments: impl Serialize) -> Result<T, Error> {
        self.call_with(name, arguments, CallOptions::new()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_with<T: DeserializeOwned + 'static>(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: CallOptions,
    ) -> Result<T, Error> {
        let outcome = self.call_raw_with(name, arguments, options).await?;
        if outcome.is_error {
            return Err(failed(name, &outcome));
        }
        result::value(name, &outcome)
    }

    /// Calls a tool; its failure is a result too.
    ///
    /// # Errors
    /// When the server answers with an error, when no answer comes in time, when the connection fails, or when this client
    /// has no answer to what the server wants to know first. A call whose fate is not known is never sent twice.
    pub async fn call_raw(&self, name: &str, arguments: impl Serialize) -> Result<CallToolResult, Error> {
        self.call_raw_with(name, arguments, CallOptions::new()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn call_raw_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        mut options: CallOptions,
    ) -> Result<CallToolResult, Error> {
        let params = CallToolParams { name: name.to_owned(), arguments: arguments_of(&arguments)? };
        options.mirrored = self.mirrored(&params);
        self.request_with::<CallTool>(Ask::named(&params, name), &mut options).await
    }

    /// Fills in a prompt: its arguments are an object of strings, or unit where it has none.
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<GetPromptResult, Error> {
        self.get_prompt_with(name, arguments, CallOptions::new()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn get_prompt_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        mut options: CallOptions,
    ) -> Result<GetPromptResult, Error> {
        let arguments = arguments_of(&arguments)?.map(|raw| raw.decode()).transpose().map_err(|error| {
            Error::caused(ErrorKind::InvalidParams, "a prompt's arguments must be an object of strings", error)
        })?;
        let params = GetPromptParams { name: name.to_owned(), arguments: arguments.unwrap_or_default() };
        self.request_with::<GetPrompt>(Ask::named(&params, name), &mut options).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where the server has none of that URI; otherwise as [`call_raw`](Self::call_raw).
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        self.read_resource_with(uri, CallOptions::new()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`read_resource`](Self::read_resource).
    pub async fn read_resource_with(&self, uri: &str, mut options: CallOptions) -> Result<ReadResourceResult, Error> {
        let params = ResourceParams { uri: uri.to_owned() };
        let read = self.request_with::<ReadResource>(Ask::named(&params, uri), &mut options).await;
        read.map_err(|error| if is_about(&error, uri) { error.of_kind(ErrorKind::NotFound) } else { error })
    }

    /// Completes an argument of a prompt, or a variable of a resource template.
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn complete(&self, params: CompleteParams) -> Result<Completion, Error> {
        self.complete_with(params, CallOptions::new()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub async fn complete_with(&self, params: CompleteParams, mut options: CallOptions) -> Result<Completion, Error> {
        Ok(self.request_with::<Complete>(Ask::new(&params), &mut options).await?.completion)
    }

    /// Asks for log messages from that level on. A legacy server is told now; a modern one with each call from now on that
    /// does not say otherwise ([`CallOptions::log_level`]).
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Error> {
        if self.revision().era() == Era::Legacy {
            self.request::<SetLevel>(&SetLevelParams { level }).await?;
        }
        self.0.listening.keep_log_level(level);
        Ok(())
    }

    /// Tells a legacy server that what [`ClientBuilder::on_roots`] lists has changed. A modern one asks in every call.
    ///
    /// # Errors
    /// When it could not be sent within [`Limits::request_timeout`].
    pub async fn roots_changed(&self) -> Result<(), Error> {
        if self.revision().era() == Era::Modern {
            return Ok(());
        }
        let sessions = self.0.sessions.load(Ordering::Acquire);
        match self.tell_of_roots().await {
            Err(error) if error.kind() == ErrorKind::NotInitialized => {
                self.renewed(sessions).await?;
                self.tell_of_roots().await
            }
            outcome => outcome,
        }
    }

    async fn tell_of_roots(&self) -> Result<(), Error> {
        let caller = &self.0.caller;
        caller.observers.notification(caller.connection(), Direction::Outgoing, notification::ROOTS_CHANGED);
        let out = Outgoing::notification(notification::ROOTS_CHANGED, None, Some(self.revision()));
        let sent = timeout(self.limits().request_timeout, caller.transport.send(out)).await;
        sent.unwrap_or_else(|_| Err(Error::new(ErrorKind::Timeout, "the server did not take a notification in time")))
    }

    /// Asks the server whether it is alive: with `ping`, or in the modern era, which has none, with `server/discover`.
    ///
    /// # Errors
    /// As any call.
    pub async fn ping(&self) -> Result<(), Error> {
        match self.revision().era() {
            Era::Modern => self.request::<Discover>(&Empty::default()).await.map(drop),
            Era::Legacy => self.request::<Ping>(&Empty::default()).await.map(drop),
        }
    }

    /// Disconnects; calls that are pending fail. Doing it twice is doing it once.
    pub async fn disconnect(&self) {
        self.0.listening.end(ListenEnd::Local);
        self.0.router.stop();
        self.0.caller.transport.close().await;
        lock(&self.0.opened).take();
    }
}

/// What a call leads to.
impl Client {
    pub(crate) async fn request<M: Method>(&self, params: &M::Params) -> Result<M::Result, Error> {
        self.request_with::<M>(Ask::new(params), &mut CallOptions::new()).await
    }

    pub(super) async fn request_with<M: Method>(
        &self,
        ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<M::Result, Error> {
        result::decode::<M>(&self.result_of::<M>(ask, options).await?)
    }

    /// The result, as it came.
    pub(super) async fn result_of<M: Method>(
        &self,
        ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Raw, Error> {
        options.log_level = options.log_level.or_else(|| self.0.listening.log_level());
        match options.cancel.clone() {
            None => self.kept_or_asked::<M>(ask, options).await,
            Some(token) => tokio::select! {
                biased;
                () = token.cancelled() => Err(Error::new(ErrorKind::RequestCancelled, "the call was given up")),
                result = self.kept_or_asked::<M>(ask, options) => result,
            },
        }
    }

    /// An answer that is still good, or a new one.
    async fn kept_or_asked<M: Method>(&self, ask: Ask<'_, M::Params>, options: &mut CallOptions) -> Result<Raw, Error> {
        // Only answers of the modern era say how long they are good.
        let cache = self.0.settings.keeps().filter(|_| self.revision().era() == Era::Modern);
        let Some(cache) = cache else { return Ok(self.rounds::<M>(ask, options).await?.0) };
        let params = Raw::encode(ask.params).map_err(|error| {
            Error::caused(ErrorKind::InvalidParams, "the parameters cannot be written as JSON", error)
        })?;
        match cache.find(M::NAME, &params) {
            Some(Ok(kept)) => Ok(kept),
            Some(Err(asked)) => {
                let (result, rounds) = self.rounds::<M>(ask, options).await?;
                // What the user answered is not part of what was asked.
                if rounds == 0 {
                    cache.keep(asked, &result);
                }
                Ok(result)
            }
            None => Ok(self.rounds::<M>(ask, options).await?.0),
        }
    }

    /// Asks until the server wants to know nothing more: the result, and how often it did.
    async fn rounds<M: Method>(
        &self,
        mut ask: Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<(Raw, u32), Error> {
        let most = self.limits().input_rounds;
        for round in 0..=most {
            match self.round::<M>(&ask, options).await {
                Ok(Answer::Complete(result)) => return Ok((result, round)),
                Ok(Answer::InputRequired(asked)) => ask.input = self.answered(asked).await?,
                // Whoever else made the call is the one to be sent there, and gets the error.
                Err(error) if !matches!(options.whose, Whose::Ours) => return Err(error),
                Err(error) => self.visited(error, options.at_most).await?,
            }
        }
        let message = format!("the server wants to know still more after {most} rounds");
        Err(Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer))
    }

    /// One request and its answer. A server that misses headers has looked no further than these; what they should have
    /// been, its list says.
    pub(crate) async fn round<M: Method>(
        &self,
        ask: &Ask<'_, M::Params>,
        options: &mut CallOptions,
    ) -> Result<Answer, Error> {
        let mut outcome = self.respond::<M>(ask, options).await.and_then(|response| self.answer::<M>(response));
        let is_about_headers = outcome.as_ref().is_err_and(|error| self.is_about_headers(error));
        if M::NAME == CallTool::NAME && is_about_headers && self.mirrors_anew(ask.params, options).await {
            outcome = self.respond::<M>(ask, options).await.and_then(|response| self.answer::<M>(response));
        }
        outcome
    }

    fn answer<M: Method>(&self, response: Response) -> Result<Answer, Error> {
        result::answer::<M>(response, self.revision().era())
    }

    /// Lists the tools again; whether a call has other headers by that.
    async fn mirrors_anew(&self, params: &impl Serialize, options: &mut CallOptions) -> bool {
        let params = Raw::encode(params).and_then(|params| params.decode::<CallToolParams>());
        let patience = options.timeout.unwrap_or(self.limits().request_timeout);
        let listed = timeout(patience, self.listed_again()).await;
        let (Ok(params), Ok(Ok(_))) = (params, listed) else { return false };
        let mirrored = self.mirrored(&params);
        let before = std::mem::replace(&mut options.mirrored, mirrored);
        before != options.mirrored
    }

    /// Boxed, as listing is a request too. A list that was kept is the one that was wrong.
    fn listed_again(&self) -> BoxFuture<'_, Result<Vec<Tool>, Error>> {
        if let Some(cache) = self.0.settings.keeps() {
            cache.changed(&Subject::Tools);
        }
        Box::pin(self.tools())
    }

    /// Sends the user to the pages that have to be visited before the call can be made, where that is what an error says.
    async fn visited(&self, error: Error, patience: Option<Duration>) -> Result<(), Error> {
        let handlers = &self.0.settings.handlers;
        let is_legacy = self.revision().era() == Era::Legacy;
        let pages = visits_required(&error).filter(|_| is_legacy && handlers.url.is_some());
        let Some(pages) = pages else { return Err(error) };
        let patience = patience.unwrap_or(self.limits().request_timeout_max);
        match timeout(patience, handlers.visit(pages, self.revision())).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(failed)) => Err(failed),
            Ok(Ok(false)) | Err(_) => Err(error),
        }
    }

    async fn answered(&self, asked: InputRequired) -> Result<crate::client::input::Input, Error> {
        asked.answered(&self.0.settings.handlers, self.revision(), self.limits()).await
    }

    /// A session that the server has forgotten is begun anew, once for all calls that find it so, and the call made again:
    /// the server has not looked at it.
    async fn respond<M: Method>(&self, ask: &Ask<'_, M::Params>, options: &mut CallOptions) -> Result<Response, Error> {
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
    async fn renewed(&self, seen: u64) -> Result<(), Error> {
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

    pub(super) fn tool(&self, raw: &Raw) -> Option<Tool> {
        let read = raw.decode::<ToolDefinition>().map_err(|error| error.to_string());
        let tool = read.and_then(|definition| remote::tool(self, definition).map_err(|error| error.to_string()));
        tool.map_err(|error| {
            let name = raw.decode::<serde_json::Value>().ok().and_then(|tool| Some(tool["name"].as_str()?.to_owned()));
            tracing::warn!(tool = name.unwrap_or_default(), %error, "a tool's definition cannot be read; it is left out");
        })
        .ok()
    }

    pub(super) fn know_tools(&self, tools: &[Tool]) {
        let plans = tools.iter().filter(|tool| !tool.mirror.is_empty());
        let plans = plans.map(|tool| (tool.definition.name.clone(), tool.mirror.clone())).collect();
        self.0.plans.store(Arc::new(plans));
    }

    /// Shared wires have no headers, and the legacy era none that mirror.
    fn is_about_headers(&self, error: &Error) -> bool {
        let code = error.object().map(|object| object.code);
        let has_headers = self.revision().era() == Era::Modern && !self.0.caller.transport.is_shared();
        has_headers && code == Some(mcp_code::HEADER_MISMATCH)
    }

    /// Legacy servers know nothing of it.
    fn mirrored(&self, params: &CallToolParams) -> Vec<(ByteString, ByteString)> {
        match self.0.plans.load().get(&params.name) {
            Some(plan) if self.revision().era() == Era::Modern => plan.pairs(params.arguments.as_ref()),
            _ => Vec::new(),
        }
    }
}

/// A client that may be gone.
pub(super) struct WeakClient(Weak<Inner>);

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

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

/// Whether the server says that it does not have that resource, as the modern era does.
///
/// Specification: *Resources, Error Handling*.
fn is_about(error: &Error, uri: &str) -> bool {
    let object = error.object().filter(|object| object.code == code::INVALID_PARAMS);
    let named = object.and_then(|object| object.data.as_ref()?.member("uri")?.to_string_value().ok());
    named.is_some_and(|named| *named == *uri)
}

/// Arguments are an object; unit and `None` are none at all.
fn arguments_of(arguments: &impl Serialize) -> Result<Option<Raw>, Error> {
    let raw = Raw::encode(arguments)
        .map_err(|error| Error::caused(ErrorKind::InvalidParams, "the arguments cannot be written as JSON", error))?;
    match raw {
        raw if raw.is_null() => Ok(None),
        raw if raw.is_object() => Ok(Some(raw)),
        _ => Err(Error::new(ErrorKind::InvalidParams, "a tool's arguments must be an object").blaming(Blame::Caller)),
    }
}

/// The tool's own words, where it has any.
fn failed(name: &str, outcome: &CallToolResult) -> Error {
    let words = Some(outcome.to_text()).filter(|text| !text.trim().is_empty());
    let words = words.unwrap_or_else(|| format!("the tool `{name}` failed and did not say why"));
    Error::new(ErrorKind::HandlerFailed, words).blaming(Blame::Peer)
}
