//! Server path 5 of 11 (without layers): the server itself; `Server::call` hands an exchange on. Before: `crates/mcp-core/src/server/modern/mod.rs` | `crates/mcp-core/src/server/legacy/mod.rs`. After: `crates/mcp-core/src/server/dispatch.rs`.

mod accept;
mod ask;
mod batch;
mod blocking;
mod builder;
mod completer;
mod connection;
mod context;
mod crypto;
mod dispatch;
mod exchange;
mod extension_methods;
mod extensions;
mod features;
mod form;
mod inflight;
mod input;
mod introduction;
mod keys;
mod layers;
mod legacy;
#[cfg(feature = "log-layer")]
mod log_layer;
mod modern;
mod mount;
#[cfg(all(test, mcp_loom))]
mod orders;
mod outlet;
mod peer;
mod prompt;
mod registry;
mod reply;
mod resource;
mod stream;
pub(crate) mod task;
mod template;
mod tool;

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    task::{Context as TaskContext, Poll},
};

pub use accept::Arrival;
pub use ask::Ask;
pub use blocking::BlockingHandler;
pub use builder::ServerBuilder;
pub use connection::{serve, serve_peer, serve_until};
pub use context::{Context, Told};
pub use exchange::Exchange;
use extension_methods::ExtensionMethods;
pub use extension_methods::ServerExtension;
pub use extensions::Extensions;
pub use form::{Form, Question, form, form_schema};
use futures_util::FutureExt;
pub use input::InputRequired;
use introduction::Introducer;
pub use introduction::Introduction;
pub use layers::InnerService;
use layers::Stack;
pub use legacy::{Aside, Change, Session};
#[cfg(feature = "log-layer")]
pub use log_layer::LogLayer;
use modern::Subscriptions;
use task::Tasks;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use mcp_jsonrpc::{Bytes, Inbound, Malformed, Message, Notification, Raw, Request, RequestId, Response, decode};
pub use modern::StateKeys;
pub use mount::Mount;
pub use peer::{Peer, Principal, RequestHead};
pub use prompt::{IntoPromptResult, Prompt, PromptArguments};
pub use registry::{Listed, PromptRegistry, Registry, ResourceRegistry, TemplateRegistry, ToolRegistry};
pub use reply::Reply;
pub use resource::{IntoResourceResult, Resource};
pub use stream::{CallEvent, CallStream};
pub use template::ResourceTemplate;
pub use tool::{Arguments, IntoToolResult, Json, Tool, ToolHandler};

use crate::{
    BoxFuture, Era, Error, Fault, Limits, Revisions, head,
    hub::{Hub, Subject},
    method::CoreMethod,
    observer::{ConnectionEvent, Direction, Observed, Observers, Opened, Outcome, Role, Watch},
    types::{CacheHint, CacheHints, Implementation, ServerCapabilities, TASKS},
};

/// A server: tools, prompts and resources, and what answers for them. Cloning is cheap, and all clones are one server.
///
/// It knows no wire. Transports hand it what they carry, and so can you: [`handle`](Self::handle) takes bytes,
/// [`dispatch`](Self::dispatch) a request.
///
/// ```
/// # use mcp_core::{Server, Tool, ToolError, implementation};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// async fn now() -> Result<&'static str, ToolError> { Ok("noon") }
///
/// let server = Server::builder(implementation!()).tool(Tool::new("now", now)).build();
/// let reply = server.handle(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"now"}}"#).await.unwrap();
/// assert_eq!(reply, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"noon"}]}}"#);
/// # });
/// ```
///
/// Its tasks end with the last of the clones, but for those that exchanges have, and so handlers.
#[derive(Clone)]
pub struct Server(
    Arc<Inner>,
    #[expect(dead_code, reason = "it does what it is for when it is dropped")] Option<Arc<DropGuard>>,
);

struct Inner {
    core: Arc<Core>,
    stack: Stack,
}

/// What all exchanges share.
pub(crate) struct Core {
    info: Implementation,
    /// The `_meta` member that names the server, if it is told.
    server_info: Option<String>,
    instructions: Option<String>,
    introducer: Option<Introducer>,
    revisions: Revisions,
    limits: Limits,
    observers: Observers,
    cache: CacheHints,
    /// Whether handlers may tell the client what they have to say.
    logging: bool,
    state: Extensions,
    /// The extensions of the protocol that the application has, and their settings.
    extensions: BTreeMap<String, Raw>,
    /// The methods that these have.
    methods: ExtensionMethods,
    /// How many requests were accepted, and one.
    sequence: AtomicU64,
    hub: Arc<Hub>,
    subscriptions: Arc<Subscriptions>,
    tasks: Arc<Tasks>,
    /// Fires when nothing is to be told any more.
    stopping: CancellationToken,
    /// What seals the state of calls of several rounds.
    state_keys: StateKeys,
    /// Turns of handlers that block.
    blocking: Arc<Semaphore>,
    tools: ToolRegistry,
    prompts: PromptRegistry,
    resources: ResourceRegistry,
    templates: TemplateRegistry,
}

impl Core {
    /// Only what something backs is advertised: changes are told to sessions, and to whoever listens in the modern era.
    fn capabilities(&self, exchange: &Exchange) -> ServerCapabilities {
        let is_told = exchange.session.is_some() || exchange.revision.era() == Era::Modern;
        let offered = |method| self.offers(method).then(Raw::empty_object);
        let live = |method, what: &'static str| {
            let what = if is_told { what } else { "{}" };
            self.offers(method).then(|| Raw::assume_valid(what.into()))
        };
        ServerCapabilities {
            tools: live(CoreMethod::ListTools, r#"{"listChanged":true}"#),
            prompts: live(CoreMethod::ListPrompts, r#"{"listChanged":true}"#),
            resources: live(CoreMethod::ListResources, r#"{"subscribe":true,"listChanged":true}"#),
            completions: offered(CoreMethod::Complete),
            logging: offered(CoreMethod::SetLevel).filter(|_| is_told),
            extensions: self.extensions(exchange),
            ..ServerCapabilities::default()
        }
    }

    /// Tasks are of the modern era; what else is named is the application's to back.
    fn extensions(&self, exchange: &Exchange) -> BTreeMap<String, Raw> {
        let tasks = exchange.revision.era() == Era::Modern && self.offers(CoreMethod::GetTask);
        let tasks = tasks.then(|| (TASKS.to_owned(), Raw::empty_object()));
        self.extensions.clone().into_iter().chain(tasks).collect()
    }

    /// An introduction that is made for one client is kept for that one.
    fn discovery_hint(&self) -> CacheHint {
        if self.introducer.is_some() { self.cache.discover.privately() } else { self.cache.discover }
    }

    /// Whether something backs a method, for whoever asks. A client that was once told of tools gets an empty list when the
    /// last of them is gone, and so with the rest.
    fn offers(&self, method: CoreMethod) -> bool {
        match method {
            CoreMethod::Initialize | CoreMethod::Ping | CoreMethod::Discover => true,
            CoreMethod::ListTools | CoreMethod::CallTool => self.tools.was_used(),
            CoreMethod::ListPrompts | CoreMethod::GetPrompt => self.prompts.was_used(),
            CoreMethod::ListResources
            | CoreMethod::ListResourceTemplates
            | CoreMethod::ReadResource
            | CoreMethod::Subscribe
            | CoreMethod::Unsubscribe => self.resources.was_used() || self.templates.was_used(),
            CoreMethod::Listen => [CoreMethod::ListTools, CoreMethod::ListPrompts, CoreMethod::ListResources]
                .into_iter()
                .any(|list| self.offers(list)),
            CoreMethod::SetLevel => self.logging,
            CoreMethod::Complete => self.prompts.has_extras() || self.templates.has_extras(),
            CoreMethod::GetTask | CoreMethod::UpdateTask | CoreMethod::CancelTask => self.tools.has_extras(),
        }
    }
}

impl Server {
    /// A server to be configured. [`implementation!`](crate::implementation) names it after the calling crate.
    pub fn builder(info: Implementation) -> ServerBuilder {
        ServerBuilder::new(info)
    }

    fn new(inner: Inner) -> Self {
        let end_of_tasks = inner.core.tasks.stopping().drop_guard();
        Self(Arc::new(inner), Some(Arc::new(end_of_tasks)))
    }

    /// The same for what must not keep it from ending: a call, and what follows a remote server for it.
    fn passing(inner: Arc<Inner>) -> Self {
        Self(inner, None)
    }

    /// The tools, to be added to and removed from while the server runs.
    #[must_use]
    pub fn tools(&self) -> &ToolRegistry {
        &self.0.core.tools
    }

    /// The prompts, to be added to and removed from while the server runs.
    #[must_use]
    pub fn prompts(&self) -> &PromptRegistry {
        &self.0.core.prompts
    }

    /// The resources, to be added to and removed from while the server runs.
    #[must_use]
    pub fn resources(&self) -> &ResourceRegistry {
        &self.0.core.resources
    }

    /// The resource templates, to be added to and removed from while the server runs.
    #[must_use]
    pub fn templates(&self) -> &TemplateRegistry {
        &self.0.core.templates
    }

    /// Says that what a resource holds has changed: whether anybody is told, who has subscribed to exactly that URI.
    ///
    /// Any number of changes before a client has been told of the first are one to it.
    pub fn resource_updated(&self, uri: &str) -> bool {
        self.0.core.hub.changed(&Subject::Resource(uri.into()))
    }

    /// Ends all streams that modern clients listen to, now and from now on, in good order: for a server that stops.
    pub fn end_subscriptions(&self) {
        self.0.core.stopping.cancel();
    }

    /// Ends all tasks that run, now and from now on, for a server that stops: their handlers are dropped, and they have `failed`.
    /// Waits until that is kept, for [`Limits::shutdown_grace`] at most. So it is, without anybody who waits, when the last
    /// clone of the server is dropped; the runtime may then end before it is kept.
    pub async fn end_tasks(&self) {
        let ended = timeout(self.limits().shutdown_grace, self.0.core.tasks.end()).await;
        if ended.is_err() {
            tracing::error!("the end of a task could not be kept in time");
        }
    }

    /// The value of that type that the server was built with; see [`ServerBuilder::state`].
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.core.state.get()
    }

    /// The bounds that the server keeps.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.core.limits
    }

    /// The revisions that the server accepts.
    #[must_use]
    pub fn revisions(&self) -> Revisions {
        self.0.core.revisions
    }

    /// Answers one message that came by itself. Without a handshake and without `_meta`, it is taken as the newest
    /// legacy revision. A notification has no answer.
    pub async fn handle(&self, message: impl Into<Bytes>) -> Option<Bytes> {
        let arrival = Arrival::alone();
        match self.decode(message.into()) {
            Inbound::One(Message::Request(request)) => Some(self.encode(&self.answer(request, arrival).await)),
            Inbound::One(message) => {
                self.heed(&message, &arrival);
                None
            }
            Inbound::Batch(items) => self.answer_batch(items, arrival).await,
            Inbound::Malformed(malformed) => Some(self.encode(&self.malformed(malformed, &arrival))),
            _ => None,
        }
    }

    /// Answers one request that came by itself; see [`handle`](Self::handle).
    pub async fn dispatch(&self, request: Request) -> Response {
        let id = request.id.clone();
        let reply = self.answer(request, Arrival::alone()).await;
        Response::new(id, reply.into_outcome(self.0.core.server_info.as_deref()))
    }

    async fn answer(&self, request: Request, arrival: Arrival<'_>) -> Reply {
        match self.accept(request, arrival) {
            Ok(exchange) => self.call(exchange).await,
            Err(reply) => reply,
        }
    }
}

/// For those who write transports: a message takes the steps `decode`, [`accept`](Server::accept),
/// [`call`](Server::call) and [`encode`](Server::encode), and [`handle`](Server::handle) is all of them at once.
impl Server {
    /// Reads a message.
    #[must_use]
    pub fn decode(&self, frame: Bytes) -> Inbound {
        let limits = self.limits();
        if frame.len() > limits.message_bytes {
            return Inbound::Malformed(self.too_long(&frame));
        }
        decode(frame, &limits.decode())
    }

    /// The answer to a message over the limit, of which `start` is the beginning: with its id, if that stands there.
    #[must_use]
    pub fn too_long(&self, start: &[u8]) -> Malformed {
        Malformed::too_long(start, self.limits().message_bytes, &self.limits().decode())
    }

    /// Makes a request an exchange, or answers it with what is wrong.
    ///
    /// # Errors
    /// The reply to a request that is not to be served.
    pub fn accept(&self, request: Request, arrival: Arrival<'_>) -> Result<Exchange, Reply> {
        accept::accept(self, request, arrival)
    }

    /// The answer to an exchange that is refused after all.
    #[must_use]
    pub fn refuse(&self, exchange: &Exchange, fault: Fault) -> Reply {
        let reply = Reply::refusal(Some(exchange.id.clone()), exchange.revision, fault);
        let observed = self.0.core.observers.observed(|| Observed::exchange(exchange));
        self.0.core.observers.answered(observed, || reply.outcome());
        reply
    }

    /// The answer to what is no message.
    #[must_use]
    pub fn malformed(&self, malformed: Malformed, arrival: &Arrival<'_>) -> Reply {
        let error = || Error::from_object(malformed.error.clone());
        self.0.core.observers.error(arrival.connection(), error);
        Reply::malformed(malformed)
    }

    /// Takes notice of a message that is not answered: a notification, or a response that nobody waits for.
    pub fn heed(&self, message: &Message, arrival: &Arrival<'_>) {
        match message {
            Message::Notification(notification) => {
                self.0.core.observers.notification(arrival.connection(), Direction::Incoming, &notification.method);
            }
            _ => tracing::debug!("a response to no request was dropped"),
        }
    }

    /// Runs an exchange. It runs while the future is polled, and dropping the future cancels it.
    pub fn call(&self, mut exchange: Exchange) -> Answer {
        let watch = self.0.core.observers.observed(|| Observed::exchange(&exchange));
        let watch = watch.map(|observed| self.0.core.observers.start(observed));
        exchange.watch.clone_from(&watch);
        let answering = match &self.0.stack {
            Stack::Bare => Answering::Bare(dispatch::dispatch(&self.0.core, exchange)),
            Stack::Layered(service) => Answering::Layered(Stack::call(service, exchange)),
        };
        Answer { answering, watch }
    }

    /// Whether the version header of an HTTP message that is no request is one that this server accepts.
    ///
    /// # Errors
    /// The fault of a version that it does not.
    pub fn check_version(&self, version_header: Option<&str>) -> Result<(), Fault> {
        match version_header {
            Some(header) if self.revisions().find(header).is_none() => {
                Err(Fault::UnsupportedVersion { requested: header.into(), supported: self.revisions() })
            }
            _ => Ok(()),
        }
    }

    /// Whether an array of messages is a batch for whoever it came from.
    #[must_use]
    pub fn takes_batches(&self, arrival: &Arrival<'_>) -> bool {
        batch::is_taken(self.revisions(), arrival)
    }

    /// An item of a batch that was taken, or the answer to one that may not stand there. For transports that call what is
    /// in a batch one by one.
    ///
    /// # Errors
    /// The answer.
    pub fn admit(&self, item: Result<Message, Malformed>, arrival: &Arrival<'_>) -> Result<Message, Reply> {
        item.and_then(batch::admit).map_err(|malformed| self.malformed(malformed, arrival))
    }

    /// Answers a batch with an array, with nothing if it holds no requests, or with one error where batches are not
    /// taken.
    pub async fn answer_batch(&self, items: Vec<Result<Message, Malformed>>, arrival: Arrival<'_>) -> Option<Bytes> {
        batch::answer(self, items, arrival).await
    }

    /// The request that a `notifications/cancelled` names, if it does.
    #[must_use]
    pub fn cancelled(&self, notification: &Notification) -> Option<RequestId> {
        head::cancelled(notification, self.limits().id_bytes)
    }

    /// Tells observers that a connection, or what stands for one, is there. It is closed by what is returned.
    pub fn opened(&self, transport: &'static str) -> Opened {
        self.0.core.observers.opened(ConnectionEvent { role: Role::Server, transport })
    }

    /// Tells observers of a notification that goes out about no request.
    pub fn notified(&self, transport: &'static str, method: &str) {
        let connection = ConnectionEvent { role: Role::Server, transport };
        self.0.core.observers.notification(connection, Direction::Outgoing, method);
    }

    /// A reply as JSON text on one line.
    #[must_use]
    pub fn encode(&self, reply: &Reply) -> Bytes {
        reply.encode(self.0.core.server_info.as_deref())
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("name", &self.0.core.info.name).finish_non_exhaustive()
    }
}

/// A call that is being answered: what [`Server::call`] returns.
#[must_use = "a call runs only while it is polled"]
pub struct Answer {
    answering: Answering,
    watch: Option<Arc<Watch>>,
}

enum Answering {
    Bare(dispatch::Call),
    Layered(BoxFuture<'static, Reply>),
}

impl Future for Answer {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Reply> {
        let reply = std::task::ready!(match &mut self.answering {
            Answering::Bare(call) => call.poll_unpin(cx),
            Answering::Layered(future) => future.poll_unpin(cx),
        });
        if let Some(watch) = self.watch.take() {
            watch.complete(reply.outcome());
        }
        Poll::Ready(reply)
    }
}

/// What the handler has left running may know of the call for long; it is over now.
impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.complete(Outcome::Cancelled);
        }
    }
}
