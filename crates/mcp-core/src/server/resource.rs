use std::{future::Future, sync::Arc};

use mcp_jsonrpc::Raw;

use crate::{
    Blame, BoxFuture, Context, Error, ErrorKind, Revision, ToolError,
    server::registry::{Listed, check, describes_itself, since},
    shown,
    types::{CacheHint, ReadResourceResult, ResourceContents, ResourceDefinition},
};

/// A resource: what it says of itself, and what reads it.
///
/// ```
/// use mcp_core::{Context, Resource, ToolError};
///
/// async fn log(_: Context) -> Result<String, ToolError> { Ok(std::fs::read_to_string("app.log")?) }
///
/// let resource = Resource::new("file:///app.log", "log", log).mime_type("text/plain");
/// assert_eq!(resource.definition().uri, "file:///app.log");
/// ```
///
/// Specification: *Resources*.
#[derive(Clone)]
pub struct Resource {
    pub(crate) cache: CacheHint,
    definition: ResourceDefinition,
    pub(crate) handler: Arc<dyn ResourceHandler>,
}

/// A handler whose types are erased.
pub(crate) trait ResourceHandler: Send + Sync {
    fn read(&self, context: Context) -> BoxFuture<'static, Result<ReadResourceResult, ToolError>>;
}

impl<F, Fut, R> ResourceHandler for F
where
    F: Fn(Context) -> Fut + Send + Sync,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    R: IntoResourceResult,
{
    fn read(&self, context: Context) -> BoxFuture<'static, Result<ReadResourceResult, ToolError>> {
        let contents = self(context);
        Box::pin(async move { Ok(contents.await?.into_resource_result()) })
    }
}

/// What a resource may be read as: text, bytes, [`ResourceContents`], or several of them. What names no URI is that of the
/// resource, with its media type.
#[diagnostic::on_unimplemented(
    message = "a resource cannot be read as `{Self}`",
    note = "return a string, a `Vec<u8>`, `ResourceContents`, a `Vec<ResourceContents>` or a `ReadResourceResult`"
)]
pub trait IntoResourceResult: 'static {
    /// The result.
    fn into_resource_result(self) -> ReadResourceResult;
}

impl IntoResourceResult for ReadResourceResult {
    fn into_resource_result(self) -> ReadResourceResult {
        self
    }
}

impl IntoResourceResult for Vec<ResourceContents> {
    fn into_resource_result(self) -> ReadResourceResult {
        ReadResourceResult { contents: self, meta: None }
    }
}

impl IntoResourceResult for ResourceContents {
    fn into_resource_result(self) -> ReadResourceResult {
        vec![self].into_resource_result()
    }
}

impl IntoResourceResult for String {
    fn into_resource_result(self) -> ReadResourceResult {
        ResourceContents::text(self).into_resource_result()
    }
}

impl IntoResourceResult for &'static str {
    fn into_resource_result(self) -> ReadResourceResult {
        ResourceContents::text(self).into_resource_result()
    }
}

impl IntoResourceResult for Vec<u8> {
    fn into_resource_result(self) -> ReadResourceResult {
        ResourceContents::blob(self).into_resource_result()
    }
}

impl Resource {
    /// A resource that `handler` reads: an `async fn` of the [`Context`].
    pub fn new<F, Fut, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoResourceResult,
    {
        Self { cache: CacheHint::default(), definition: ResourceDefinition::new(uri, name), handler: Arc::new(handler) }
    }

    /// A resource that never changes: text, bytes, or contents.
    pub fn fixed<R: IntoResourceResult + Clone + Send + Sync>(
        uri: impl Into<String>,
        name: impl Into<String>,
        contents: R,
    ) -> Self {
        Self::new(uri, name, move |_| std::future::ready(Ok::<_, ToolError>(contents.clone())))
    }

    /// Sets its media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Sets its length in bytes, before any encoding.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.definition.size = Some(bytes);
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
}

/// A resource is linked to by naming it.
impl From<&Resource> for ResourceDefinition {
    fn from(resource: &Resource) -> Self {
        resource.definition.clone()
    }
}

/// Whether that may be a URI: strict clients refuse a whole list for a name or a path in the place of one. Its characters
/// beyond ASCII are let pass.
fn is_uri(text: &str) -> bool {
    has_scheme(text) && !text.chars().any(|char| char.is_whitespace() || char.is_control())
}

/// Whether it begins as a URI does.
pub(crate) fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

impl Listed for Resource {
    const KIND: &'static str = "resource";

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn prepared(self) -> Result<Self, Error> {
        check(Self::KIND, self.key(), &self.definition.name, self.definition.meta.as_ref())?;
        if is_uri(self.key()) {
            return Ok(self);
        }
        let message = format!(
            "the resource `{}`: that is no URI, which begins with a scheme and a colon and holds no spaces",
            shown(self.key())
        );
        Err(Error::new(ErrorKind::InvalidParams, message).blaming(Blame::Caller))
    }

    fn render(&self, revision: Revision) -> Raw {
        let mut shown = self.definition.clone();
        since(revision, Revision::V2025_06_18, &mut shown.title);
        since(revision, Revision::V2025_11_25, &mut shown.icons);
        since(revision, Revision::V2025_06_18, &mut shown.meta);
        Raw::encode(&shown).unwrap_or(Raw::empty_object())
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resource").field("uri", &self.definition.uri).finish_non_exhaustive()
    }
}

describes_itself!(Resource, ResourceDefinition);
