//! Client path 1 of 5: what a user calls. After: `crates/mcp-core/src/client/call.rs`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use mcp_jsonrpc::{Raw, code};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::Mutex as AsyncMutex, time::timeout};
use tokio_util::task::TaskTracker;

use crate::{
    Blame, Era, Error, ErrorKind, Limits, MirrorPlan, Revision,
    client::{
        Agreed, CallOptions, CancellationToken, ClientBuilder, IntoTransport, ListenEnd, Outgoing, Verdict,
        call::{Ask, Caller, Speech},
        connect::Connected,
        hearing::Listening,
        remote::Passing,
        renewal::{Renewing, WeakClient},
        result,
        route::Router,
    },
    lock::lock,
    method::{CallTool, Complete, Discover, Empty, GetPrompt, Method, Ping, ReadResource, SetLevel, notification},
    observer::{Direction, Opened},
    shown,
    types::{
        CallToolParams, CallToolResult, CompleteParams, Completion, GetPromptParams, GetPromptResult, Implementation,
        LogLevel, ReadResourceResult, ResourceParams, ServerCapabilities, SetLevelParams,
    },
};

/// For how long disconnecting waits until the server has heard of calls that were given up.
const LEAVING: Duration = Duration::from_secs(1);

/// A client that is connected to a server, of whichever era. Cloning is cheap, and all clones share one connection,
/// which ends with the last of them.
#[derive(Clone)]
pub struct Client(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) caller: Caller,
    pub(super) connected: Connected,
    /// How it was connected, and would have to be again.
    pub(super) settings: ClientBuilder,
    pub(super) router: Router,
    pub(super) listening: Arc<Listening>,
    /// How often the session was begun anew, and whoever does so.
    pub(super) sessions: AtomicU64,
    pub(super) renewing: Arc<AsyncMutex<Renewing>>,
    pub(super) is_renewing: AtomicBool,
    /// Whether both sides agree, on the connection that there is.
    pub(super) is_up: AtomicBool,
    /// How often no connection could be opened in the place of a lost one.
    pub(super) given_up: AtomicU64,
    /// Fires when the client is disconnected.
    pub(super) closed: CancellationToken,
    /// What the server is still told of calls that were given up.
    pub(super) leaving: TaskTracker,
    /// What stands for a connection where there is none, as over HTTP. None once it is closed.
    pub(super) opened: Mutex<Option<Opened>>,
    /// What the tools of the last list mirror, by name; those that mirror nothing are not in it.
    pub(super) plans: ArcSwap<HashMap<String, MirrorPlan>>,
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
            renewing: Arc::default(),
            is_renewing: AtomicBool::new(false),
            is_up: AtomicBool::new(true),
            given_up: AtomicU64::new(0),
            closed: CancellationToken::new(),
            leaving: TaskTracker::new(),
            opened: Mutex::new(opened),
            plans: ArcSwap::default(),
        }));
        client.0.router.agreed(revision, client.weak());
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

    /// The settings of an extension, if the server has it.
    #[must_use]
    pub fn server_extension(&self, name: &str) -> Option<&Raw> {
        self.server_capabilities().extensions.get(name)
    }

    /// The same, for whoever cannot do without.
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotFound`] where the server does not say that it has the extension.
    pub fn require_server_extension(&self, name: &str) -> Result<&Raw, Error> {
        self.server_extension(name).ok_or_else(|| {
            let message = format!("the server does not have the extension `{}`", shown(name));
            Error::new(ErrorKind::MethodNotFound, message).blaming(Blame::Peer)
        })
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

    pub(super) fn weak(&self) -> WeakClient {
        WeakClient(Arc::downgrade(&self.0))
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
        result::success(format_args!("the tool `{name}`"), &outcome)
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
        let params = self.tool_call(name, &arguments, &mut options)?;
        self.ask_with::<CallTool>(Ask::named(&params, name), &mut options).await
    }

    /// What is sent, and what of it travels in headers too.
    pub(super) fn tool_call(
        &self,
        name: &str,
        arguments: &impl Serialize,
        options: &mut CallOptions,
    ) -> Result<CallToolParams, Error> {
        let params = CallToolParams { name: name.to_owned(), arguments: arguments_of(arguments)? };
        options.mirrored = self.mirrored(&params);
        Ok(params)
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
        self.ask_with::<GetPrompt>(Ask::named(&params, name), &mut options).await
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
        let read = self.ask_with::<ReadResource>(Ask::named(&params, uri), &mut options).await;
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
        Ok(self.ask_with::<Complete>(Ask::new(&params), &mut options).await?.completion)
    }

    /// Calls a method of an extension; what that may look like shows at
    /// [`ServerBuilder::method`](crate::ServerBuilder::method).
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotFound`] where the era that is spoken does not have it, or the server; otherwise as
    /// [`call_raw`](Self::call_raw).
    pub async fn request<M: Method>(&self, params: &M::Params) -> Result<M::Result, Error> {
        self.request_with::<M>(params, CallOptions::new()).await
    }

    /// The same, with options.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn request_with<M: Method>(
        &self,
        params: &M::Params,
        mut options: CallOptions,
    ) -> Result<M::Result, Error> {
        if !M::ERAS.contains(&self.revision().era()) {
            let message = format!("there is no `{}` in revision {}", M::NAME, self.revision());
            return Err(Error::new(ErrorKind::MethodNotFound, message).blaming(Blame::Caller));
        }
        self.ask_with::<M>(Ask::new(params), &mut options).await
    }

    /// Asks for log messages from that level on. A legacy server is told now; a modern one with each call from now on that
    /// does not say otherwise ([`CallOptions::log_level`]).
    ///
    /// # Errors
    /// As [`call_raw`](Self::call_raw).
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Error> {
        if self.revision().era() == Era::Legacy {
            self.ask::<SetLevel>(&SetLevelParams { level }).await?;
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
        self.settled().await;
        let sessions = self.0.sessions.load(Ordering::Acquire);
        match self.tell_of_roots().await {
            Err(error) if self.may_come_back(&error) => {
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
            Era::Modern => self.ask::<Discover>(&Empty::default()).await.map(drop),
            Era::Legacy => self.ask::<Ping>(&Empty::default()).await.map(drop),
        }
    }

    /// Disconnects; calls that are pending fail. Doing it twice is doing it once. Where calls that were given up have left
    /// tasks running, up to a second is spent on having the server cancel those.
    pub async fn disconnect(&self) {
        self.0.closed.cancel();
        self.0.listening.end(ListenEnd::Local);
        self.0.router.stop();
        self.0.leaving.close();
        // A server that does not answer by then has been asked.
        let _ = timeout(LEAVING, self.0.leaving.wait()).await;
        self.0.caller.transport.close().await;
        lock(&self.0.opened).take();
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
