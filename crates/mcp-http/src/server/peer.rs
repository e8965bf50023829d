//! Who is at the other end of an HTTP request: the one place where what layers in front have made sure of is read.

use std::sync::Arc;

use http::request::Parts;
use mcp_core::{
    Fault, MirrorPlan, Principal,
    jsonrpc::Raw,
    server::{Context, Peer, RequestHead},
};

use crate::server::mirror;

/// The peer of a request: its head, and the [`Principal`] among its extensions.
pub(super) fn of(parts: Parts) -> (Peer, Arc<Head>) {
    let principal = parts.extensions.get::<Principal>().cloned();
    let head = Arc::new(Head(parts));
    (Peer::new().principal(principal).head(head.clone()), head)
}

/// The head of an HTTP request, as handlers see it.
pub(super) struct Head(pub(super) Parts);

/// Headers may be secret, and so may a query.
impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (method, path) = (&self.0.method, self.0.uri.path());
        f.debug_struct("Head").field("method", method).field("path", &path).finish_non_exhaustive()
    }
}

impl RequestHead for Head {
    fn header(&self, name: &str) -> Option<&str> {
        self.0.headers.get(name)?.to_str().ok()
    }

    fn mirrors(&self, plan: &MirrorPlan, arguments: Option<&Raw>) -> Result<(), Fault> {
        mirror::arguments(&self.0.headers, plan, arguments)
    }
}

/// The HTTP request that a call came in, with its URI, headers and extensions; `None` on other wires.
///
/// ```
/// use mcp_core::{Context, ToolError};
///
/// async fn language(context: Context) -> Result<String, ToolError> {
///     let parts = mcp_http::request_parts(&context);
///     let language = parts.and_then(|parts| parts.headers.get("accept-language"));
///     Ok(language.and_then(|value| value.to_str().ok()).unwrap_or("en").to_owned())
/// }
/// ```
#[must_use]
pub fn request_parts(context: &Context) -> Option<&Parts> {
    let head: &dyn std::any::Any = context.request_head()?;
    head.downcast_ref::<Head>().map(|head| &head.0)
}
