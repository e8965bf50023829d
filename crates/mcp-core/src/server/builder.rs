use std::sync::Arc;

use mcp_jsonrpc::Raw;
use tower::{BoxError, Layer, Service};

use crate::{
    Error, Exchange, Limits, Prompt, PromptRegistry, Reply, Resource, ResourceRegistry, ResourceTemplate, Revision,
    Revisions, Server, TemplateRegistry, Tool, ToolRegistry,
    head::meta_key,
    observer::{Observer, Observers},
    server::{
        Core, Inner,
        layers::{self, BuildStack, Stack},
    },
    types::Implementation,
};

/// A [`Server`] in the making.
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder {
    info: Implementation,
    tells_its_name: bool,
    instructions: Option<String>,
    revisions: Revisions,
    limits: Limits,
    tools: Vec<Tool>,
    prompts: Vec<Prompt>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    layers: Vec<Box<dyn BuildStack>>,
    observers: Observers,
}

impl ServerBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            tells_its_name: true,
            instructions: None,
            revisions: Revisions::default(),
            limits: Limits::default(),
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            layers: Vec::new(),
            observers: Observers::default(),
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
        self.limits = limits.at_least_one();
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
    /// When two tools, prompts, resources or templates have one name, one has none, or no revision is accepted; [`try_build`](Self::try_build) returns that
    /// as an error.
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
    /// As [`Registry::add`](crate::Registry::add); and when no revision is accepted.
    pub fn try_build(self) -> Result<Server, Error> {
        self.revisions.check()?;
        let (tools, prompts) = (ToolRegistry::default(), PromptRegistry::default());
        let (resources, templates) = (ResourceRegistry::default(), TemplateRegistry::default());
        tools.add(self.tools)?;
        prompts.add(self.prompts)?;
        resources.add(self.resources)?;
        templates.add(self.templates)?;
        let server_info = Raw::encode(&self.info).ok().filter(|_| self.tells_its_name);
        let core = Arc::new(Core {
            server_info: server_info.map(|info| format!(r#""{}":{}"#, meta_key::SERVER_INFO, info.as_str())),
            info: self.info,
            instructions: self.instructions,
            revisions: self.revisions,
            limits: self.limits,
            observers: self.observers,
            tools,
            prompts,
            resources,
            templates,
        });
        let stack = Stack::new(&core, self.layers);
        Ok(Server::new(Inner { core, stack }))
    }
}
