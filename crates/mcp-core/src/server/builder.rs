use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use mcp_jsonrpc::Raw;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service};

use crate::{
    Context, Error, Exchange, Fault, Limits, Prompt, Registry, Reply, Resource, ResourceTemplate, Revision, Revisions,
    Server, Tool,
    head::meta_key,
    hub::{Hub, Subject},
    method::Method,
    observer::{Observer, Observers},
    server::{
        Core, Extensions, Inner, Introduction, ServerExtension, StateKeys,
        extension_methods::{ExtensionMethod, ExtensionMethods},
        introduction::Introducer,
        layers::{self, BuildStack, Stack},
        registry::Filter,
        task::Tasks,
    },
    store::{MemoryTasks, TaskStore},
    types::{CacheHints, Implementation, check_extensions},
};

/// A [`Server`] in the making.
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    info: Implementation,
    tells_its_name: bool,
    instructions: Option<String>,
    introducer: Option<Introducer>,
    cache: CacheHints,
    logging: bool,
    state: Extensions,
    revisions: Revisions,
    limits: Limits,
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    tool_filter: Option<Filter<Tool>>,
    prompt_filter: Option<Filter<Prompt>>,
    resource_filter: Option<Filter<Resource>>,
    template_filter: Option<Filter<ResourceTemplate>>,
    layers: Vec<Box<dyn BuildStack>>,
    observers: Observers,
    state_keys: Option<StateKeys>,
    extensions: BTreeMap<String, Raw>,
    methods: Vec<ExtensionMethod>,
    task_store: Option<Box<dyn TaskStore>>,
}

impl ServerBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            tells_its_name: true,
            instructions: None,
            introducer: None,
            cache: CacheHints::default(),
            logging: false,
            state: Extensions::default(),
            revisions: Revisions::default(),
            limits: Limits::default(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            tool_filter: None,
            prompt_filter: None,
            resource_filter: None,
            template_filter: None,
            layers: Vec::new(),
            observers: Observers::default(),
            state_keys: None,
            extensions: BTreeMap::new(),
            methods: Vec::new(),
            task_store: None,
        }
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a prompt.
    pub fn prompt(mut self, prompt: Prompt) -> Self {
        self.prompts.push(prompt);
        self
    }

    /// Adds a resource.
    pub fn resource(mut self, resource: Resource) -> Self {
        self.resources.push(resource);
        self
    }

    /// Adds a resource template.
    pub fn template(mut self, template: ResourceTemplate) -> Self {
        self.templates.push(template);
        self
    }

    /// Shows a tool only where `shows` says so: one that is hidden is not listed, and is unknown to whoever calls it.
    ///
    /// It is asked for each tool of each list, so it must be quick. A layer that has to look something up first puts what
    /// it found into [`Exchange::extensions_mut`].
    ///
    /// ```
    /// # use mcp_core::{Exchange, Server, Tool, implementation};
    /// let server = Server::builder(implementation!())
    ///     .tool_filter(|exchange: &Exchange, tool: &Tool| {
    ///         exchange.principal().is_some() || !tool.definition().name.starts_with("admin.")
    ///     })
    ///     .build();
    /// ```
    pub fn tool_filter(mut self, shows: impl Fn(&Exchange, &Tool) -> bool + Send + Sync + 'static) -> Self {
        self.tool_filter = Some(Arc::new(shows));
        self
    }

    /// Shows a prompt only where `shows` says so; see [`tool_filter`](Self::tool_filter).
    pub fn prompt_filter(mut self, shows: impl Fn(&Exchange, &Prompt) -> bool + Send + Sync + 'static) -> Self {
        self.prompt_filter = Some(Arc::new(shows));
        self
    }

    /// Shows a resource only where `shows` says so; see [`tool_filter`](Self::tool_filter).
    pub fn resource_filter(mut self, shows: impl Fn(&Exchange, &Resource) -> bool + Send + Sync + 'static) -> Self {
        self.resource_filter = Some(Arc::new(shows));
        self
    }

    /// Shows a resource template, and what it reads, only where `shows` says so; see [`tool_filter`](Self::tool_filter).
    pub fn template_filter(
        mut self,
        shows: impl Fn(&Exchange, &ResourceTemplate) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.template_filter = Some(Arc::new(shows));
        self
    }

    /// Says that the server has an extension of the protocol, by its name (`com.example/weather`), with settings that are an
    /// object. Handlers see what the client
    /// says of it in [`Context::client_extension`](crate::Context::client_extension), and tools can
    /// [need](Tool::needs) it. Tasks need not be named.
    ///
    /// Specification: *Overview, Extensions*.
    pub fn extension(mut self, name: impl Into<String>, settings: Raw) -> Self {
        self.extensions.insert(name.into(), settings);
        self
    }

    /// Answers a method of an extension with `handler`: an `async fn` of the [`Context`](crate::Context) and the parameters.
    ///
    /// Parameters that do not fit are -32602 with the field's name, absent ones are `{}`. They hold `_meta` too, which a type
    /// that denies unknown fields would not take. Of the result, `_meta` is joined with the server's own, and `resultType` is
    /// always `complete`.
    ///
    /// ```
    /// use mcp_core::{Context, Era, Fault, Server, implementation, jsonrpc::Raw, method::Method};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Greet { name: String }
    /// #[derive(Serialize, Deserialize)]
    /// struct Greeting { text: String }
    ///
    /// /// `greetings/greet`, which both sides name by this type.
    /// struct GreetMethod;
    ///
    /// impl Method for GreetMethod {
    ///     const NAME: &'static str = "greetings/greet";
    ///     const ERAS: &'static [Era] = &[Era::Modern];
    ///     type Params = Greet;
    ///     type Result = Greeting;
    /// }
    ///
    /// async fn greet(_: Context, Greet { name }: Greet) -> Result<Greeting, Fault> {
    ///     Ok(Greeting { text: format!("Hello, {name}") })
    /// }
    ///
    /// let server = Server::builder(implementation!())
    ///     .extension("com.example/greetings", Raw::empty_object())
    ///     .method::<GreetMethod, _>(greet)
    ///     .build();
    ///
    /// # async fn client(client: mcp_core::Client) -> Result<(), mcp_core::Error> {
    /// client.require_server_extension("com.example/greetings")?;
    /// let greeting = client.request::<GreetMethod>(&Greet { name: "Ada".into() }).await?;
    /// # drop(greeting); Ok(()) }
    /// ```
    pub fn method<M, Fut>(mut self, handler: impl Fn(Context, M::Params) -> Fut + Send + Sync + 'static) -> Self
    where
        M: Method,
        M::Result: Serialize,
        Fut: Future<Output = Result<M::Result, Fault>> + Send + 'static,
    {
        self.methods.push(ExtensionMethod::new::<M, Fut>(handler));
        self
    }

    /// Adds an extension of the protocol, with all that belongs to it.
    pub fn with(self, extension: impl ServerExtension) -> Self {
        extension.extend(self)
    }

    /// Keeps tasks there. Default: in the memory of this process, [`Limits::all_tasks`] of them within
    /// [`Limits::task_bytes`].
    pub fn task_store(mut self, store: impl TaskStore) -> Self {
        self.task_store = Some(Box::new(store));
        self
    }

    /// Makes a value known to all handlers, which get it with [`Context::state`](crate::Context::state): one of each type.
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.state.insert(state);
        self
    }

    /// Whether clients are told what handlers say with [`Context::log`](crate::Context::log), as far as they ask for it.
    /// Default: no.
    ///
    /// Specification: *Logging*.
    pub fn logging(mut self, logging: bool) -> Self {
        self.logging = logging;
        self
    }

    /// Sets for how long clients of the modern era may keep lists and the like.
    ///
    /// Specification: *Caching*.
    pub fn cache_hints(mut self, hints: CacheHints) -> Self {
        self.cache = hints;
        self
    }

    /// Sets the keys that seal what modern clients carry from one round of a call to the next. Default: a random key of this
    /// process, so that a call that asks its client goes on in no other.
    ///
    /// Specification: *Multi Round-Trip Requests, Security Considerations*.
    pub fn state_keys(mut self, keys: StateKeys) -> Self {
        self.state_keys = Some(keys);
        self
    }

    /// Makes what the server says of itself depend on who comes.
    ///
    /// ```
    /// # use mcp_core::{Exchange, Server, implementation, server::Introduction};
    /// let server = Server::builder(implementation!())
    ///     .introduce(|exchange: &Exchange, mut introduction: Introduction| {
    ///         if exchange.client_info().is_some_and(|client| client.name == "terse") {
    ///             introduction.instructions = Some("Call `add`.".into());
    ///         }
    ///         introduction
    ///     })
    ///     .build();
    /// ```
    pub fn introduce(
        mut self,
        introduce: impl Fn(&Exchange, Introduction) -> Introduction + Send + Sync + 'static,
    ) -> Self {
        self.introducer = Some(Arc::new(introduce));
        self
    }

    /// Says how to use the server, for a model.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Accepts only these revisions. Default: all.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.revisions = Revisions::of(revisions);
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.within_reason();
        self
    }

    /// Whether results of the modern era carry the server's name and version in `_meta`. Default: yes.
    ///
    /// Specification: *Overview, Per-response protocol fields*.
    pub fn tell_name(mut self, tell: bool) -> Self {
        self.tells_its_name = tell;
        self
    }

    /// Puts a `tower` layer between accepting a request and dispatching it, around those added before.
    ///
    /// A layer sees requests only. It refuses one by failing: a [`Fault`](crate::Fault) says with what, tower's own
    /// time-outs and shed loads are known, anything else is an internal error.
    ///
    /// ```
    /// # use mcp_core::{Fault, Exchange, Server, implementation};
    /// use tower::util::MapRequestLayer;
    ///
    /// let told = MapRequestLayer::new(|exchange: Exchange| {
    ///     println!("{} {}", exchange.revision(), exchange.method());
    ///     exchange
    /// });
    /// let server = Server::builder(implementation!()).layer(told).build();
    /// ```
    pub fn layer<L, S>(mut self, layer: L) -> Self
    where
        L: Layer<layers::InnerService, Service = S> + Send + 'static,
        S: Service<Exchange, Response = Reply> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
    {
        self.layers.push(Box::new(layer));
        self
    }

    /// Tells `observer` what happens; those added before are told first.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }

    /// The server.
    ///
    /// # Panics
    /// When something that was added is not valid, as [`Registry::add`](crate::Registry::add) says, or no revision is accepted;
    /// [`try_build`](Self::try_build) returns that as an error.
    #[must_use]
    pub fn build(self) -> Server {
        match self.try_build() {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        }
    }

    /// The server, or what is wrong with it.
    ///
    /// # Errors
    /// As [`Registry::add`](crate::Registry::add); when no revision is accepted; when two handlers answer one method; and when
    /// an extension's name has no prefix, or its settings are no object.
    pub fn try_build(self) -> Result<Server, Error> {
        self.revisions.check()?;
        check_extensions(&self.extensions)?;
        let hub = Arc::<Hub>::default();
        let tools = Registry::new(self.tool_filter, &hub, Subject::Tools);
        let prompts = Registry::new(self.prompt_filter, &hub, Subject::Prompts);
        let resources = Registry::new(self.resource_filter, &hub, Subject::Resources);
        let templates = Registry::new(self.template_filter, &hub, Subject::Resources);
        tools.add(self.tools)?;
        prompts.add(self.prompts)?;
        resources.add(self.resources)?;
        templates.add(self.templates)?;
        let in_memory =
            || Box::new(MemoryTasks::new(self.limits.all_tasks, self.limits.task_bytes)) as Box<dyn TaskStore>;
        let store = self.task_store.unwrap_or_else(in_memory);
        let server_info = Raw::encode(&self.info).ok().filter(|_| self.tells_its_name);
        let server_info = server_info.map(|info| format!(r#""{}":{}"#, meta_key::SERVER_INFO, info.as_str()));
        let named = server_info.as_ref().map_or(0, String::len);
        let tasks = Arc::new(Tasks::new(store, &hub, self.limits.message_bytes, named));
        let core = Arc::new(Core {
            server_info,
            info: self.info,
            instructions: self.instructions,
            introducer: self.introducer,
            revisions: self.revisions,
            blocking: Arc::new(Semaphore::new(self.limits.blocking)),
            limits: self.limits,
            observers: self.observers,
            cache: self.cache,
            logging: self.logging,
            state: self.state,
            extensions: self.extensions,
            methods: ExtensionMethods::new(self.methods)?,
            sequence: AtomicU64::new(1),
            hub,
            subscriptions: Arc::default(),
            tasks,
            stopping: CancellationToken::new(),
            state_keys: self.state_keys.unwrap_or_else(StateKeys::random),
            tools,
            prompts,
            resources,
            templates,
        });
        let stack = Stack::new(&core, self.layers);
        Ok(Server::new(Inner { core, stack }))
    }
}
