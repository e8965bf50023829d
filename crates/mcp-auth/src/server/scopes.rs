//! What each tool, prompt and resource needs of its caller.
//!
//! Specification: *Authorization, Runtime Insufficient Scope Errors*.

use std::{
    collections::HashMap,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::Either;
use mcp_core::{
    Exchange, Fault, Prompt, Reply, Resource, ResourceTemplate, ServerBuilder, Tool,
    jsonrpc::{ErrorObject, code},
    server::InnerService,
    uri_template::{UriTemplate, UriTemplateError},
};
use tower_layer::Layer;
use tower_service::Service;

use super::claims::Claims;
use crate::clock::now;

/// How far clocks may differ, in seconds.
const LEEWAY: u64 = 60;

/// The scopes that tools, prompts and resources need beside those that everything needs.
///
/// A caller who lacks one does not see the thing in any list. Who asks for it all the same is told all scopes that it needs:
/// with HTTP by 403 and a challenge, on a WebSocket by an error with `scope` in its data. What has a rule is for callers
/// who are somebody; over stdio nobody is. A call on a socket is refused once the token that it was opened with is over.
///
/// ```
/// use mcp_auth::Scopes;
/// use mcp_core::{Server, implementation};
///
/// # fn example() -> Result<(), mcp_core::uri_template::UriTemplateError> {
/// let scopes = Scopes::new().tool("deploy", ["deploy"]).template("logs://{service}", ["logs:read"])?;
/// let server = scopes.guard(Server::builder(implementation!())).build();
/// # drop(server); Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "scopes are asked for once they guard a server"]
pub struct Scopes {
    tools: HashMap<String, Vec<String>>,
    prompts: HashMap<String, Vec<String>>,
    resources: HashMap<String, Vec<String>>,
    templates: Vec<(UriTemplate, Vec<String>)>,
}

impl Scopes {
    /// Nothing needs any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what the tool of that name needs.
    pub fn tool<S: Into<String>>(mut self, name: &str, scopes: impl IntoIterator<Item = S>) -> Self {
        self.tools.insert(name.to_owned(), owned(scopes));
        self
    }

    /// Sets what the prompt of that name needs.
    pub fn prompt<S: Into<String>>(mut self, name: &str, scopes: impl IntoIterator<Item = S>) -> Self {
        self.prompts.insert(name.to_owned(), owned(scopes));
        self
    }

    /// Sets what the resource of exactly that URI needs.
    pub fn resource<S: Into<String>>(mut self, uri: &str, scopes: impl IntoIterator<Item = S>) -> Self {
        self.resources.insert(uri.to_owned(), owned(scopes));
        self
    }

    /// Sets what every resource needs whose URI this template matches, and the template itself. A resource that several
    /// rules are about needs what all of them say.
    ///
    /// # Errors
    /// [`UriTemplateError`] says where `uri_template` is no template.
    pub fn template<S: Into<String>>(
        mut self,
        uri_template: &str,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, UriTemplateError> {
        self.templates.push((UriTemplate::parse(uri_template)?, owned(scopes)));
        Ok(self)
    }

    /// The server with these rules: its four filters, which take the place of others, and a layer.
    pub fn guard(self, server: ServerBuilder) -> ServerBuilder {
        let scopes = Arc::new(self);
        let [tools, prompts, resources, templates] = std::array::from_fn(|_| scopes.clone());
        server
            .tool_filter(move |exchange: &Exchange, tool: &Tool| tools.shows_tool(exchange, tool))
            .prompt_filter(move |exchange: &Exchange, prompt: &Prompt| prompts.shows_prompt(exchange, prompt))
            .resource_filter(move |exchange: &Exchange, resource: &Resource| {
                resources.shows_resource(exchange, resource)
            })
            .template_filter(move |exchange: &Exchange, template: &ResourceTemplate| {
                templates.shows_template(exchange, template)
            })
            .layer(Guarding(scopes))
    }

    /// Whether the caller has what a tool needs: for filters of your own.
    #[must_use]
    pub fn shows_tool(&self, exchange: &Exchange, tool: &Tool) -> bool {
        allows(exchange, self.tools.get(&*tool.definition().name).map_or(&[], Vec::as_slice))
    }

    /// Whether the caller has what a prompt needs.
    #[must_use]
    pub fn shows_prompt(&self, exchange: &Exchange, prompt: &Prompt) -> bool {
        allows(exchange, self.prompts.get(&*prompt.definition().name).map_or(&[], Vec::as_slice))
    }

    /// Whether the caller has what a resource needs.
    #[must_use]
    pub fn shows_resource(&self, exchange: &Exchange, resource: &Resource) -> bool {
        allows(exchange, &self.of_resource(&resource.definition().uri))
    }

    /// Whether the caller has what a template needs.
    #[must_use]
    pub fn shows_template(&self, exchange: &Exchange, template: &ResourceTemplate) -> bool {
        let source = &*template.definition().uri_template;
        let of_it = self.templates.iter().filter(|(rule, _)| rule.as_str() == source);
        of_it.into_iter().all(|(_, scopes)| allows(exchange, scopes))
    }

    fn of_resource(&self, uri: &str) -> Vec<String> {
        let exact = self.resources.get(uri).into_iter().flatten();
        let matching = self.templates.iter().filter(|(rule, _)| rule.matches(uri).is_some());
        let mut needed: Vec<String> = Vec::new();
        for scope in exact.chain(matching.flat_map(|(_, scopes)| scopes)) {
            if !needed.contains(scope) {
                needed.push(scope.clone());
            }
        }
        needed
    }

    /// Why a request is refused before it is looked at any further.
    fn refusal(&self, exchange: &Exchange) -> Option<Fault> {
        if has_expired(exchange) {
            let error = "The token that this connection was opened with has expired: open another one";
            return Some(Fault::Other(ErrorObject::new(code::INVALID_REQUEST, error)));
        }
        let needed = match exchange.method() {
            "tools/call" => self.tools.get(exchange.name()?)?.clone(),
            "prompts/get" => self.prompts.get(exchange.name()?)?.clone(),
            "resources/read" | "resources/subscribe" => self.of_resource(exchange.uri()?),
            _ => return None,
        };
        (!allows(exchange, &needed)).then_some(Fault::InsufficientScope(needed))
    }
}

fn owned<S: Into<String>>(scopes: impl IntoIterator<Item = S>) -> Vec<String> {
    scopes.into_iter().map(Into::into).collect()
}

fn allows(exchange: &Exchange, needed: &[String]) -> bool {
    needed.is_empty() || exchange.principal().and_then(Claims::of).is_some_and(|claims| claims.allow(needed))
}

fn has_expired(exchange: &Exchange) -> bool {
    let claims = exchange.principal().and_then(Claims::of);
    claims.is_some_and(|claims| claims.has_expired(now(), LEEWAY).unwrap_or(true))
}

/// The layer of [`Scopes::guard`].
struct Guarding(Arc<Scopes>);

#[derive(Clone)]
struct Guarded {
    scopes: Arc<Scopes>,
    inner: InnerService,
}

impl Layer<InnerService> for Guarding {
    type Service = Guarded;

    fn layer(&self, inner: InnerService) -> Guarded {
        Guarded { scopes: self.0.clone(), inner }
    }
}

impl Service<Exchange> for Guarded {
    type Response = Reply;
    type Error = <InnerService as Service<Exchange>>::Error;
    type Future = Either<<InnerService as Service<Exchange>>::Future, Ready<Result<Reply, Self::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        match self.scopes.refusal(&exchange) {
            Some(fault) => Either::Right(ready(Err(fault.into()))),
            None => Either::Left(self.inner.call(exchange)),
        }
    }
}
