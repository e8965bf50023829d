use std::{future::Future, sync::Arc};

use mcp_jsonrpc::Raw;

use crate::{
    Blame, BoxFuture, Context, Error, ErrorKind, Exchange, Revision, ToolError,
    server::{
        IntoResourceResult, PromptArguments,
        completer::Completers,
        registry::{Listed, check, describes_itself, since},
    },
    types::{CacheHint, Completion, ReadResourceResult, ResourceTemplateDefinition},
    uri_template::{UriTemplate, Variables},
};

/// A family of resources: what their URIs look like, and what reads them.
///
/// Where several templates fit a URI, the most specific one reads it; a resource of exactly that URI comes before all.
///
/// ```
/// use mcp_core::{Context, ResourceTemplate, ToolError, uri_template::Variables};
///
/// async fn user(_: Context, variables: Variables) -> Result<String, ToolError> {
///     match variables.get("id") {
///         Some("1") => Ok(r#"{"name":"Ada"}"#.into()),
///         _ => Err(ToolError::not_found()),
///     }
/// }
///
/// let template = ResourceTemplate::new("users:///{id}", "user", user).mime_type("application/json");
/// assert_eq!(template.definition().uri_template, "users:///{id}");
/// ```
///
/// Specification: *Resources, Resource Templates*.
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) cache: CacheHint,
    definition: ResourceTemplateDefinition,
    /// Or what is wrong with it, which is told when it is added.
    pub(crate) template: Result<UriTemplate, String>,
    pub(crate) handler: Arc<dyn TemplateHandler>,
    pub(crate) completers: Completers,
    filter: Option<Arc<UriFilter>>,
}

/// Whether whoever asks sees what fits a template.
type UriFilter = dyn Fn(&Exchange, &Variables) -> bool + Send + Sync;

/// A handler whose types are erased.
pub(crate) trait TemplateHandler: Send + Sync {
    fn read(&self, context: Context, variables: Variables)
    -> BoxFuture<'static, Result<ReadResourceResult, ToolError>>;
}

impl<F, Fut, R> TemplateHandler for F
where
    F: Fn(Context, Variables) -> Fut + Send + Sync,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoResourceResult,
{
    fn read(
        &self,
        context: Context,
        variables: Variables,
    ) -> BoxFuture<'static, Result<ReadResourceResult, ToolError>> {
        let contents = self(context, variables);
        Box::pin(async move { Ok(contents.await?.into_resource_result()) })
    }
}

impl ResourceTemplate {
    /// A template whose resources `handler` reads: an `async fn` of the [`Context`] and the [`Variables`]. It answers with
    /// [`ToolError::not_found`] where nothing stands behind a URI that fits.
    pub fn new<F, Fut, R>(uri_template: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context, Variables) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoResourceResult,
    {
        let definition = ResourceTemplateDefinition {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            icons: None,
            mime_type: None,
            annotations: None,
            meta: None,
        };
        let template = UriTemplate::parse(&definition.uri_template).map_err(|error| error.to_string());
        Self {
            cache: CacheHint::default(),
            definition,
            template,
            handler: Arc::new(handler),
            completers: Completers::default(),
            filter: None,
        }
    }

    /// Shows what fits only where `shows` says so: whoever does not see it can neither read it nor listen to it. It must be
    /// quick; see [`ServerBuilder::tool_filter`](crate::ServerBuilder::tool_filter).
    #[must_use]
    pub fn filter(mut self, shows: impl Fn(&Exchange, &Variables) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(shows));
        self
    }

    pub(crate) fn shows(&self, exchange: &Exchange, variables: &Variables) -> bool {
        self.filter.as_ref().is_none_or(|shows| shows(exchange, variables))
    }

    /// Sets the media type of all its resources.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Sets for how long clients of the modern era may keep what was read. Default: not at all.
    ///
    /// Specification: *Caching*.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }

    /// Sets the hints on audience, priority and age: [`Annotations`](crate::types::Annotations), or an object as it stands on
    /// the wire.
    #[must_use]
    pub fn annotate(mut self, hints: impl Into<Raw>) -> Self {
        self.definition.annotations = Some(hints.into());
        self
    }

    /// Completes a variable while it is typed: `complete` gets the [`Context`], what stands there, and the
    /// variables that are filled in.
    ///
    /// Specification: *Completion*.
    #[must_use]
    pub fn complete<F, Fut>(mut self, variable: impl Into<String>, complete: F) -> Self
    where
        F: Fn(Context, String, PromptArguments) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Completion, ToolError>> + Send + 'static,
    {
        self.completers.add(variable.into(), complete);
        self
    }
}

impl Listed for ResourceTemplate {
    const KIND: &'static str = "resource template";

    fn key(&self) -> &str {
        &self.definition.uri_template
    }

    fn prepared(self) -> Result<Self, Error> {
        check(Self::KIND, self.key(), &self.definition.name, self.definition.meta.as_ref())?;
        match &self.template {
            Ok(_) => Ok(self),
            Err(why) => {
                let message = format!("the resource template `{}` is no good: {why}", crate::shown(self.key()));
                Err(Error::new(ErrorKind::InvalidParams, message).blaming(Blame::Caller))
            }
        }
    }

    fn has_extras(&self) -> bool {
        !self.completers.is_empty()
    }

    fn render(&self, revision: Revision) -> Raw {
        let mut shown = self.definition.clone();
        since(revision, Revision::V2025_06_18, &mut shown.title);
        since(revision, Revision::V2025_11_25, &mut shown.icons);
        since(revision, Revision::V2025_06_18, &mut shown.meta);
        Raw::encode(&shown).unwrap_or(Raw::empty_object())
    }
}

impl std::fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceTemplate").field("uri_template", &self.definition.uri_template).finish_non_exhaustive()
    }
}

describes_itself!(ResourceTemplate, ResourceTemplateDefinition);
