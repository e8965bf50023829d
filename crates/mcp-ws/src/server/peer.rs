//! Who is at the other end of a socket: the one place where what layers in front have made sure of is read.

use std::sync::Arc;

use http::request::Parts;
use mcp_core::{
    Principal,
    server::{Context, Peer, RequestHead},
};

/// The peer of the socket that an upgrade opens: the upgrade's head, and the [`Principal`] among its extensions.
pub(super) fn of(parts: &Parts) -> Peer {
    let principal = parts.extensions.get::<Principal>().cloned();
    Peer::new().principal(principal).head(Arc::new(Head(parts.clone())))
}

/// The head of an upgrade, as handlers see it.
struct Head(Parts);

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
}

/// The upgrade that a call's socket began with, with its URI, headers and extensions; `None` on other wires.
#[must_use]
pub fn request_parts(context: &Context) -> Option<&Parts> {
    let head: &dyn std::any::Any = context.request_head()?;
    head.downcast_ref::<Head>().map(|head| &head.0)
}
