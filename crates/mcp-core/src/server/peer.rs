//! Who is at the other end, as far as a transport knows.

use std::{any::Any, fmt, sync::Arc};

use mcp_jsonrpc::Raw;

use crate::{Fault, MirrorPlan, server::crypto::Hash};

/// Who asks, as something in front of the server has made sure of: a token that was checked, a certificate.
///
/// Sessions, subscriptions and hidden entries go by it. Over HTTP and WebSocket it is what a layer has put into the
/// extensions of the request; on other wires [`serve_peer`](crate::server::serve_peer) takes it. Cloning is cheap.
#[derive(Clone)]
pub struct Principal(Arc<Identity>);

struct Identity {
    id: String,
    claims: Option<Raw>,
}

impl Principal {
    /// Who has that id, which nobody else may have: with more than one issuer, name the issuer in it.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Arc::new(Identity { id: id.into(), claims: None }))
    }

    /// The same, with what else is known, an object: the claims of a token.
    #[must_use]
    pub fn with_claims(self, claims: Raw) -> Self {
        Self(Arc::new(Identity { id: self.0.id.clone(), claims: Some(claims) }))
    }

    /// The SHA-256 of the id: what is kept of whom something belongs to.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Hash::default().with(self.id()).finish()
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// What else is known.
    #[must_use]
    pub fn claims(&self) -> Option<&Raw> {
        self.0.claims.as_ref()
    }
}

/// Who has the same id is the same, whatever a newer token says beside it.
impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Principal {}

/// Claims are nobody's business.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal").field("id", &self.0.id).finish_non_exhaustive()
    }
}

/// The head of the HTTP request that a message came in, or that its connection began with.
pub trait RequestHead: Any + fmt::Debug + Send + Sync {
    /// The header of that name, in any letter case, if it is text; the first where there are several.
    fn header(&self, name: &str) -> Option<&str>;

    /// Whether the headers say what `plan` has them say of a call's arguments. Only a transport that mirrors them has to
    /// know.
    ///
    /// # Errors
    /// The fault of a request whose headers say something else.
    fn mirrors(&self, plan: &MirrorPlan, arguments: Option<&Raw>) -> Result<(), Fault> {
        let _ = (plan, arguments);
        Ok(())
    }
}

/// Who is at the other end: nobody in particular, until it is said.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Peer {
    pub(crate) principal: Option<Principal>,
    pub(crate) head: Option<Arc<dyn RequestHead>>,
}

impl Peer {
    /// Nobody in particular.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says who it is.
    pub fn principal(mut self, principal: Option<Principal>) -> Self {
        self.principal = principal;
        self
    }

    /// Who it is.
    #[must_use]
    pub fn who(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Says with what HTTP request it came.
    pub fn head(mut self, head: Arc<dyn RequestHead>) -> Self {
        self.head = Some(head);
        self
    }
}
