//! Client path 1 of 5: what a user calls. After: `crates/mcp-core/src/client/call.rs`.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwap;
use mcp_jsonrpc::{ByteString, Raw};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Blame, Era, Error, ErrorKind, MirrorPlan, Revision, Tool,
    client::{
        Agreed, CallOptions, ClientBuilder, IntoTransport, call::Caller, connect::Connected, remote, result,
        route::Router,
    },
    lock::lock,
    method::{
        CallTool, Complete, Empty, GetPrompt, ListPrompts, ListResourceTemplates, ListResources, ListTools, Method,
        Ping, ReadResource, SetLevel,
    },
    observer::Opened,
    types::{
        CallToolParams, CallToolResult, CompleteParams, Completion, GetPromptParams, GetPromptResult, Implementation,
        LogLevel, PaginatedParams, PromptDefinition, ReadResourceResult, ResourceDefinition, ResourceParams,
        ResourceTemplateDefinition, ServerCapabilities, SetLevelParams, ToolDefinition,
    },
};

/// A client that is connected to a server, of whichever era. Cloning is cheap, and all clones share one connection,
/// which ends with the last of them.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    caller: Caller,
    connected: Connected,
    router: Router,
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

    pub(super) fn new(caller: Caller, connected: Connected, router: Router) -> Self {
        router.agreed(connected.revision);
        caller.transport.agreed(&Agreed::new(connected.revision));
        let opened = (!caller.transport.is_shared()).then(|| caller.observers.opened(caller.connection()));
        Self(Arc::new(Inner { caller, connected, router, opened: Mutex::new(opened), plans: ArcSwap::default() }))
    }

    /// The revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.connected.revision
    }

    /// Who the server says it is.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.0.connected.server_info.as_ref()
    }

    /// What the server offers.
    #[must_use]
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.0.connected.capabilities
    }

    /// How to use the server, for a model.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.0.connected.instructions.as_deref()
    }

    /// The server's tools, as tools that can be added to a server of one's own; all pages of them.
    ///
    /// A definition that cannot be read costs only itself, and a warning; so does one with a bad `x-mcp-header`. What the
    /// others mirror is remembered, so that calls over HTTP carry the headers that the server wants.
    ///
    /// # Errors
    /// When the server fails, or its pages do not come to an end ([`Limits::max_pages`](crate::Limits)).
    pub async fn tools(&self) -> Result<Vec<Tool>, Error> {
        let mut tools = Vec::new();
        self.walk::<ListTools>(|page| {
            tools.extend(page.tools.iter().filter_map(|raw| self.tool(raw)));
            page.next_cursor
        })
        .await?;
        self.remember_plans(&tools);
        Ok(tools)
    }

    /// The server's prompts; all pages of them. A definition that cannot be read costs only itself, and a warning, and so
    /// with the other lists.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn prompts(&self) -> Result<Vec<PromptDefinition>, Error> {
        let mut prompts = Vec::new();
        self.walk::<ListPrompts>(|page| {
            prompts.extend(page.prompts.iter().filter_map(read_definition));
            page.next_cursor
        })
        .await?;
        Ok(prompts)
    }

    /// The server's resources; all pages of them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn resources(&self) -> Result<Vec<ResourceDefinition>, Error> {
        let mut resources = Vec::new();
        self.walk::<ListResources>(|page| {
            resources.extend(page.resources.iter().filter_map(read_definition));
            page.next_cursor
        })
        .await?;
        Ok(resources)
    }

    /// The server's resource templates; all pages of them.
    ///
    /// # Errors
    /// As [`tools`](Self::tools).
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplateDefinition>, Error> {
        let mut templates = Vec::new();
        self.walk::<ListResourceTemplates>(|page| {
            templates.extend(page.resource_templates.iter().filter_map(read_definition));
            page.next_cursor
        })
        .await?;
        Ok(templates)
    }

    /// Asks for one page after the other, until one names no further.
    async fn walk<M>(&self, mut take: impl FnMut(M::Result) -> Option<ByteString>) -> Result<(), Error>
    where
        M: Method<Params = PaginatedParams>,
    {
        let most = self.0.caller.limits.max_pages;
        let (mut cursor, mut seen) = (None, HashSet::new());
        loop {
            let page = self.call_method::<M>(&PaginatedParams { cursor }, None, CallOptions::new()).await?;
            match take(page) {
                None => return Ok(()),
                Some(next) if seen.len() + 1 < most && seen.insert(next.clone()) => cursor = Some(next),
                Some(_) => return Err(endless()),
            }
        }
    }

    /// Fills in a prompt: its arguments are an object of strings, or unit where it has none.
    ///
    /// # Errors
    /// When the server answers with an error, when no answer comes in time, or when the connection fails.
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<GetPromptResult, Error> {
        let arguments = arguments_of(&arguments)?.map(|raw| raw.decode()).transpose().map_err(|error| {
            Error::caused(ErrorKind::InvalidParams, "a prompt's arguments must be an object of strings", error)
        })?;
        let params = GetPromptParams { name: name.to_owned(), arguments: arguments.unwrap_or_default() };
        self.call_method::<GetPrompt>(&params, Some(name.into()), CallOptions::new()).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] where a legacy server has none of that URI; otherwise as [`get_prompt`](Self::get_prompt).
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        let params = ResourceParams { uri: uri.to_owned() };
        self.call_method::<ReadResource>(&params, Some(uri.into()), CallOptions::new()).await
    }

    /// Completes an argument of a prompt, or a variable of a resource template.
    ///
    /// # Errors
    /// As [`get_prompt`](Self::get_prompt).
    pub async fn complete(&self, params: CompleteParams) -> Result<Completion, Error> {
        Ok(self.call_method::<Complete>(&params, None, CallOptions::new()).await?.completion)
    }

    /// Asks a legacy server for log messages from that level on. In the modern era each call says so itself.
    ///
    /// # Errors
    /// As [`get_prompt`](Self::get_prompt).
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Error> {
        self.call_method::<SetLevel>(&SetLevelParams { level }, None, CallOptions::new()).await.map(drop)
    }

    fn tool(&self, raw: &Raw) -> Option<Tool> {
        let read = raw.decode::<ToolDefinition>().map_err(|error| error.to_string());
        let tool = read.and_then(|definition| remote::tool(self, definition).map_err(|error| error.to_string()));
        tool.map_err(|error| {
            let name = raw.decode::<serde_json::Value>().ok().and_then(|tool| Some(tool["name"].as_str()?.to_owned()));
            tracing::warn!(tool = name.unwrap_or_default(), %error, "a tool's definition cannot be read; it is left out");
        })
        .ok()
    }

    fn remember_plans(&self, tools: &[Tool]) {
        let plans = tools.iter().filter(|tool| !tool.mirror.is_empty());
        let plans = plans.map(|tool| (tool.definition.name.clone(), tool.mirror.clone())).collect();
        self.0.plans.store(Arc::new(plans));
    }

    /// Legacy servers know nothing of it.
    fn mirrored(&self, name: &str, arguments: Option<&Raw>) -> Vec<(ByteString, ByteString)> {
        match self.0.plans.load().get(name) {
            Some(plan) if self.revision().era() == Era::Modern => plan.pairs(arguments),
            _ => Vec::new(),
        }
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
        result::value(&outcome)
    }

    /// Calls a tool; its failure is a result too.
    ///
    /// # Errors
    /// When the server answers with an error, when no answer comes in time, or when the connection fails. A call is
    /// never sent twice.
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
        options: CallOptions,
    ) -> Result<CallToolResult, Error> {
        let arguments = arguments_of(&arguments)?;
        let options = options.mirroring(self.mirrored(name, arguments.as_ref()));
        let params = CallToolParams { name: name.to_owned(), arguments };
        self.call_method::<CallTool>(&params, Some(name.into()), options).await
    }

    /// Asks a legacy server whether it is alive. The modern era has no ping: every request is one.
    ///
    /// # Errors
    /// As any call.
    pub async fn ping(&self) -> Result<(), Error> {
        self.call_method::<Ping>(&Empty::default(), None, CallOptions::new()).await.map(drop)
    }

    async fn call_method<M: Method>(
        &self,
        params: &M::Params,
        name: Option<ByteString>,
        options: CallOptions,
    ) -> Result<M::Result, Error> {
        if !M::ERAS.contains(&self.revision().era()) {
            let message = format!("{} has no method `{}`", self.revision(), M::NAME);
            return Err(Error::new(ErrorKind::MethodNotFound, message).blaming(Blame::Caller));
        }
        self.0.caller.call::<M>(&self.0.connected.speech, params, name, options).await
    }

    /// Disconnects; calls that are pending fail. Doing it twice is doing it once.
    pub async fn disconnect(&self) {
        self.0.router.stop();
        self.0.caller.transport.close().await;
        lock(&self.0.opened).take();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

/// A definition that cannot be read costs only itself.
fn read_definition<T: DeserializeOwned>(raw: &Raw) -> Option<T> {
    raw.decode().map_err(|error| tracing::warn!(%error, "a definition cannot be read; it is left out")).ok()
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

fn endless() -> Error {
    Error::new(ErrorKind::ProtocolInvalid, "the server's pages repeat or do not end").blaming(Blame::Peer)
}
