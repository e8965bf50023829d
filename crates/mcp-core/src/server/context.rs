use std::{
    future::{Future, IntoFuture},
    sync::{Arc, Mutex},
};

use mcp_jsonrpc::{Bytes, Raw, RequestId, encode};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    BoxFuture, Exchange, Fault, Revision, Server, ToolError,
    head::ProgressToken,
    lock::lock,
    method::notification,
    server::{Principal, RequestHead, keys::Keys, outlet::Outlet},
    types::{ClientCapabilities, ClientCapability, Implementation, LogLevel, LogMessage, TraceContext},
};

/// What a handler knows of the call that it answers, and what it can say while it runs. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    exchange: Exchange,
    ended: CancellationToken,
    /// The last progress told, which the next one must exceed.
    progress: Mutex<f64>,
    /// What it has asked, and done once.
    keys: Keys,
}

impl Context {
    pub(crate) fn new(exchange: Exchange) -> (Self, Guard) {
        let (ended, progress) = (CancellationToken::new(), Mutex::new(f64::NEG_INFINITY));
        let inner = Inner { exchange, ended, progress, keys: Keys::default() };
        let context = Self(Arc::new(inner));
        (context.clone(), Guard(context))
    }

    /// One that belongs to no handler, and says things for it.
    #[cfg(feature = "log-layer")]
    pub(crate) fn to_log(exchange: Exchange) -> Self {
        Self::new(exchange).0
    }

    /// The request that is answered, as filters and layers see it.
    #[must_use]
    pub fn exchange(&self) -> &Exchange {
        &self.0.exchange
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    /// The revision that the request speaks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.exchange.revision
    }

    /// The request's id.
    #[must_use]
    pub fn request_id(&self) -> &RequestId {
        &self.0.exchange.id
    }

    /// The request's `_meta`, as it came in.
    #[must_use]
    pub fn meta(&self) -> Option<&Raw> {
        self.0.exchange.meta()
    }

    /// Who the client says it is. Not to be trusted.
    #[must_use]
    pub fn client_info(&self) -> Option<Implementation> {
        self.0.exchange.client_info()
    }

    /// What the client can do.
    #[must_use]
    pub fn client_capabilities(&self) -> ClientCapabilities {
        self.0.exchange.client_capabilities()
    }

    /// The settings of an extension, if the client has it.
    #[must_use]
    pub fn client_extension(&self, name: &str) -> Option<Raw> {
        self.client_capabilities().extensions.remove(name)
    }

    /// The settings of an extension, for handlers that cannot do without; where the client lacks it, the request is refused
    /// with -32021.
    ///
    /// # Errors
    /// When the client does not say that it has the extension.
    ///
    /// Specification: *Overview, Extensions; Error Codes*.
    pub fn require_client_extension(&self, name: &'static str) -> Result<Raw, ToolError> {
        let missing = || ToolError::faulty(Fault::MissingCapability(vec![ClientCapability::Extension(name)]));
        self.client_extension(name).ok_or_else(missing)
    }

    /// Goes on as a task, where the tool may ([`Tool::task_when_told`](crate::Tool::task_when_told)) and the client knows what
    /// that is: it is answered now, and comes back for the result. What was asked before was part of the call, what is asked
    /// afterwards is asked in place. Anywhere else it changes nothing; whether it has is what is returned.
    ///
    /// Where there is no room for a task, or its store fails, the call ends with that error, and the handler is dropped here.
    ///
    /// Specification: *Tasks extension, Task Creation*.
    pub async fn go_on_as_task(&self) -> bool {
        let Some(task) = &self.0.exchange.task else { return false };
        tokio::select! {
            biased;
            _ = task.become_task() => true,
            // It was refused, or its client is gone: what the handler has left running is not to wait for ever.
            () = self.cancelled() => false,
        }
    }

    /// Says how the task is that the call has become; nothing where it is none.
    ///
    /// # Errors
    /// When what is kept of the task cannot be changed.
    ///
    /// Specification: *Tasks extension, Tasks* (`statusMessage`).
    pub async fn task_message(&self, message: impl Into<String>) -> Result<(), ToolError> {
        let core = &self.server().0.core;
        match self.0.exchange.task.as_ref().and_then(|task| task.live()) {
            Some(live) => live.say(core, message.into()).await,
            None => Ok(()),
        }
    }

    /// Who asks, if something in front of the server has made sure of it.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.0.exchange.principal()
    }

    /// Who asks, for handlers that cannot do without.
    ///
    /// # Errors
    /// When nothing in front of the server has made sure of it.
    pub fn require_principal(&self) -> Result<&Principal, ToolError> {
        self.principal().ok_or_else(|| ToolError::new("This needs to know who asks, and nobody has made sure of it"))
    }

    /// The HTTP request that this one came in, or that its connection began with; `None` on other wires.
    #[must_use]
    pub fn request_head(&self) -> Option<&dyn RequestHead> {
        self.0.exchange.request_head()
    }

    /// The call's place among all that the server has accepted, from 1 on: for logs, where request ids come again.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.0.exchange.sequence
    }

    /// The trace that the request is part of.
    #[must_use]
    pub fn trace_context(&self) -> TraceContext {
        TraceContext::of(self.meta())
    }

    /// What a layer has put into [`Exchange::extensions_mut`].
    #[must_use]
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.exchange.extensions.get()
    }

    /// The value of that type that the server was built with.
    ///
    /// ```
    /// # use mcp_core::{Context, Server, Tool, ToolError, implementation};
    /// struct Greeting(String);
    ///
    /// async fn greet(context: Context) -> Result<String, ToolError> {
    ///     Ok(context.state::<Greeting>()?.0.clone())
    /// }
    ///
    /// let builder = Server::builder(implementation!()).tool(Tool::new("greet", greet));
    /// let server = builder.state(Greeting("Good day".into())).build();
    /// ```
    ///
    /// # Errors
    /// When it was built with none, which is told to the log by its type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, ToolError> {
        self.server().state().ok_or_else(|| {
            tracing::error!(
                state = std::any::type_name::<T>(),
                "a handler needs a state that the server was not given"
            );
            ToolError::new("The server was not set up with what this needs")
        })
    }

    /// The server that answers: to change what it offers, or to say that a resource was updated.
    #[must_use]
    pub fn server(&self) -> &Server {
        self.0.exchange.server()
    }

    /// Whether the call is over; see [`cancelled`](Self::cancelled). For loops that block, as in [`Tool::blocking`](crate::Tool::blocking).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Waits until the call is over: answered, timed out, or given up by the client.
    ///
    /// The handler's own future is dropped then, so this is for what it has spawned.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.0.ended.clone().cancelled_owned()
    }

    /// Tells the client how far the call is, if it asked to be told; it is queued at once.
    ///
    /// `progress` must grow from one call to the next; what does not is left out. Where the client reads slower than
    /// this is called, newer progress replaces what is still queued; await what is returned to wait for room
    /// instead.
    ///
    /// Specification: *Progress*.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl Into<String>) -> Told {
        if let Some(token) = self.0.exchange.progress_token().filter(|_| self.outlet().is_open()) {
            self.tell(token, progress, total, message.into());
        }
        Told(self.clone())
    }

    /// Tells the client something, if the server was built with [`logging`](crate::ServerBuilder::logging) and the client
    /// wants messages of that level; it is queued at once. `logger` names the part of the server that speaks, and may be
    /// empty. It must hold no secrets.
    ///
    /// Where the client reads slower than this is called, messages are dropped; await what is returned to wait for
    /// room instead.
    ///
    /// Specification: *Logging*.
    pub fn log(&self, level: LogLevel, logger: &str, data: impl Serialize) -> Told {
        if self.logs(level)
            && let Ok(data) = Raw::encode(&data)
        {
            let logger = Some(logger.to_owned()).filter(|logger| !logger.is_empty());
            self.tell_client(notification::MESSAGE, &LogMessage { level, logger, data }, Outlet::message);
        }
        Told(self.clone())
    }

    /// Whether the client wants log messages of that level.
    #[must_use]
    pub fn logs(&self, level: LogLevel) -> bool {
        self.outlet().is_open() && self.0.exchange.log_level.is_some_and(|least| level >= least)
    }

    /// Sends a notification of an extension, where the method that is answered [has some](crate::method::Method::NOTIFIES);
    /// anywhere else it does nothing. It is queued at once. `params` is an object.
    ///
    /// Where the client reads slower than this is called, notifications are dropped; await what is returned to wait for
    /// room instead.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Told {
        if self.0.exchange.notifies() && self.outlet().is_open() {
            self.tell_client(method, &params, Outlet::message);
        }
        Told(self.clone())
    }

    /// Ends the connection that the answer would go on, while the call goes on: the client comes back for the answer after a
    /// while. For calls that take longer than what lies between lets a connection live.
    ///
    /// It does nothing, and is false, where no client comes back: on wires other than HTTP, without a session, before
    /// 2025-11-25, and where the client takes no event stream.
    ///
    /// Specification: *2025-11-25, Transports, Sending Messages to the Server* (polling).
    pub fn disconnect(&self) -> bool {
        self.0.exchange.outlet.disconnect()
    }

    /// Where to tell the client something. What is a task has been answered, and tells nothing but how it is.
    ///
    /// Specification: *Tasks extension, Task Status Notifications*.
    fn outlet(&self) -> &Outlet {
        static NOWHERE: Outlet = Outlet::None;
        let is_task = self.0.exchange.task.as_ref().is_some_and(|task| task.live().is_some());
        if is_task { &NOWHERE } else { &self.0.exchange.outlet }
    }

    fn tell_client(&self, method: &str, params: &impl Serialize, queue: impl FnOnce(&Outlet, Bytes)) {
        if let Ok(params) = Raw::encode(params) {
            if let Some(watch) = &self.0.exchange.watch {
                watch.notification(method);
            }
            queue(self.outlet(), encode::notification(method, Some(&params)));
        }
    }

    fn tell(&self, token: &ProgressToken, progress: f64, total: Option<f64>, message: String) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            progress_token: &'a ProgressToken,
            progress: f64,
            #[serde(skip_serializing_if = "Option::is_none")]
            total: Option<f64>,
            #[serde(skip_serializing_if = "String::is_empty")]
            message: String,
        }
        // Held while queueing, so that two threads cannot queue in the wrong order.
        let mut last = lock(&self.0.progress);
        if !progress.is_finite() || progress <= *last {
            return;
        }
        *last = progress;
        let total = total.filter(|total| total.is_finite());
        let params = Params { progress_token: token, progress, total, message };
        self.tell_client(notification::PROGRESS, &params, Outlet::progress);
    }
}

/// What [`Context::progress`] and [`Context::log`] return. What is told is queued already; awaiting this waits until the client's queue has
/// room for more.
#[derive(Debug)]
pub struct Told(Context);

impl IntoFuture for Told {
    type Output = ();
    type IntoFuture = BoxFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.outlet().room().await })
    }
}

/// Fires the context's cancellation token when the call is over, however it ends.
#[derive(Debug)]
pub(crate) struct Guard(Context);

impl Guard {
    pub(crate) async fn during<F: Future>(self, future: F) -> F::Output {
        let _guard = self;
        future.await
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.ended.cancel();
    }
}
