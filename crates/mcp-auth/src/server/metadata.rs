//! What a server says of itself to clients that want in.
//!
//! Specification: *Authorization Server Discovery, Protected Resource Metadata*; *RFC 9728*.

use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;

use super::misconfigured::Misconfigured;

pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The protected resource metadata of a server (RFC 9728).
///
/// ```
/// use mcp_auth::ResourceMetadata;
///
/// let metadata = ResourceMetadata::new("https://mcp.example.com/mcp")
///     .authorization_server("https://as.example.com")
///     .scopes(["files:read"])
///     .name("Files");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[must_use]
pub struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl ResourceMetadata {
    /// Of the server whose endpoint clients know by this URL: what tokens must be for, to the letter.
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers: Vec::new(),
            scopes_supported: Vec::new(),
            bearer_methods_supported: ["header"],
            more: Map::new(),
        }
    }

    /// Adds an authorization server, by its issuer. Without any, the document is not served.
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Sets the scopes that clients ask for where nothing tells them better: the fewest that make the server useful, and
    /// never `offline_access`.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes_supported = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the name that users read.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with("resource_name", name.into())
    }

    /// Sets the page that developers read.
    pub fn documentation(self, url: impl Into<String>) -> Self {
        self.with("resource_documentation", url.into())
    }

    /// Sets any other member. The members that have a method of their own are left as they are.
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        if !["resource", "authorization_servers", "scopes_supported", "bearer_methods_supported"].contains(&member) {
            self.more.insert(member.to_owned(), value.into());
        }
        self
    }

    /// The resource, as it was given.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    pub(super) fn is_served(&self) -> bool {
        !self.authorization_servers.is_empty()
    }

    pub(super) fn url(&self) -> Result<Url, Misconfigured> {
        let refused = || Misconfigured::Resource(self.resource.clone());
        let url = Url::parse(&self.resource).map_err(|_| refused())?;
        let is_plain = url.query().is_none() && url.fragment().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
        if is_plain && is_web { Ok(url) } else { Err(refused()) }
    }
}

/// The path at which the metadata of the resource at `path` is.
pub(super) fn path_of(path: &str) -> String {
    format!("{WELL_KNOWN}{}", path.trim_end_matches('/'))
}
