//! A client that comes by tokens, for a user or for itself.
//!
//! A transport asks `OAuth` for headers before each request, and again where they are refused. What is had is given at once;
//! anything else is the business of `renew.rs`, one at a time for a server: `discovery.rs` finds the authorization server,
//! `refresh.rs` tries what is kept, and one of the ways in `flow.rs` brings tokens anew. They all ask through `asking.rs`.

mod asking;
mod assertion;
mod authentication;
mod builder;
mod device;
mod discovery;
mod dpop;
mod error;
mod flow;
mod login;
mod loopback;
mod pkce;
mod refresh;
mod registration;
mod renew;
mod scopes;
mod signing;
mod store;
mod tokens;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_core::{
    BoxFuture, Error, ErrorKind,
    client::{Credentials, Refusal, Target},
};
use url::Url;

#[cfg(feature = "keyring")]
pub use self::store::KeyringStore;
pub use self::{
    assertion::IdentityProvider,
    builder::OAuthBuilder,
    device::DeviceCode,
    dpop::ProofKey,
    error::AuthError,
    signing::{ClientKey, SigningAlgorithm},
    store::{ClientCredentials, FileStore, Grant, Key, MemoryStore, StoreLock, TokenStore},
};
use self::{
    flow::Flow,
    registration::ClientRegistration,
    renew::{Need, Server},
};
use crate::{challenge::Wanted, lock::lock, resource::canonical};

/// The credentials of a client: found, registered for, come by, refreshed and stepped up as servers want it.
///
/// It is shared by all clones, and may serve transports to several servers; each has tokens of its own. Nothing is sent to a
/// server before it has asked for it. What an authorization server gave is told to no other.
///
/// Specification: *Authorization*.
#[derive(Clone)]
pub struct OAuth(Arc<Inner>);

struct Inner {
    flow: Flow,
    registration: ClientRegistration,
    scopes: Vec<String>,
    store: Arc<dyn TokenStore>,
    patience: Duration,
    servers: Mutex<HashMap<String, Arc<Server>>>,
}

impl OAuth {
    /// Has credentials for the server at `endpoint` before it asks for any: those that are kept, or new ones.
    ///
    /// # Errors
    /// When there is no way to come by any; [`AuthError::of`] says why.
    pub async fn log_in(&self, endpoint: &str) -> Result<(), Error> {
        let server = self.0.server(endpoint)?;
        self.renew(server, None, Wanted::default(), Need::Token).await.map(drop)
    }

    /// The extension of the protocol by which tokens are come by, where it is one: what a client declares by
    /// `ClientBuilder::extension`, with empty settings.
    ///
    /// Specification: *Authorization Extensions*.
    #[must_use]
    pub fn extension(&self) -> Option<&'static str> {
        self.0.flow.extension()
    }

    /// Sees to better credentials, in a task of its own: a login takes longer than a call may, and goes on when the call that
    /// began it has ended.
    async fn renew(
        &self,
        server: Arc<Server>,
        refused: Option<String>,
        wanted: Wanted,
        need: Need,
    ) -> Result<Grant, Error> {
        let inner = Arc::clone(&self.0);
        let renewing = tokio::spawn(async move { inner.renew(&server, refused, wanted, need).await });
        renewing.await.map_err(|error| AuthError::Local(error.to_string()))?
    }

    async fn first(&self, server: Arc<Server>, target: &Target<'_>) -> Result<Vec<(String, String)>, Error> {
        let Some(grant) = server.current() else { return Ok(Vec::new()) };
        if refresh::is_over(&grant) && (grant.refresh_token.is_some() || !self.0.flow.has_user()) {
            let over = Some(grant.access_token);
            let grant = self.renew(Arc::clone(&server), over, Wanted::default(), Need::Token).await?;
            return shown(&grant, &server, target);
        }
        shown(&grant, &server, target)
    }

    async fn better(
        &self,
        server: Arc<Server>,
        target: &Target<'_>,
        refusal: &Refusal<'_>,
    ) -> Result<Vec<(String, String)>, Error> {
        let wanted = Wanted::parse(refusal.challenges);
        let refused = sent(refusal);
        let need = match refusal.status {
            // The token is good, and the proof had not the nonce that the transport has told of meanwhile.
            401 if wanted.wants_nonce() => match server.current().filter(|grant| grant.proof_key.is_some()) {
                Some(grant) => return shown(&grant, &server, target),
                None => Need::Token,
            },
            401 if refusal.before < 2 => Need::Token,
            403 if wanted.is_insufficient_scope() => Need::Scopes,
            _ => return Err(AuthError::Refused.into()),
        };
        let grant = self.renew(Arc::clone(&server), refused, wanted, need).await?;
        shown(&grant, &server, target)
    }
}

/// It holds secrets.
impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").finish_non_exhaustive()
    }
}

impl Credentials for OAuth {
    fn headers<'a>(
        &'a self,
        target: &'a Target<'a>,
        refusal: Option<&'a Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Error>> {
        Box::pin(async move {
            let server = self.0.server(target.endpoint)?;
            match refusal {
                None => self.first(server, target).await,
                Some(refusal) => self.better(server, target, refusal).await,
            }
        })
    }

    fn nonce(&self, target: &Target<'_>, nonce: &str) {
        if let Ok(server) = self.0.server(target.endpoint) {
            server.nonce.set(nonce);
        }
    }
}

/// The headers by which a request shows a token.
fn shown(grant: &Grant, server: &Server, target: &Target<'_>) -> Result<Vec<(String, String)>, Error> {
    let (scheme, token) = (grant.scheme(), &grant.access_token);
    let mut headers = vec![("authorization".to_owned(), format!("{scheme} {token}"))];
    if let Some(key) = &grant.proof_key {
        let url = url(target.url)?;
        headers.push(("dpop".to_owned(), key.proof(target.method, &url, Some(token), &server.nonce)?));
    }
    Ok(headers)
}

/// The token that was refused.
fn sent(refusal: &Refusal<'_>) -> Option<String> {
    let header = refusal.sent.iter().find(|(name, _)| name == "authorization");
    header.and_then(|(_, value)| value.split_once(' ')).map(|(_, token)| token.to_owned())
}

fn url(text: &str) -> Result<Url, Error> {
    Url::parse(text).map_err(|error| Error::caused(ErrorKind::InvalidParams, "the server's URL is none", error))
}

impl Inner {
    fn server(&self, endpoint: &str) -> Result<Arc<Server>, Error> {
        let url = url(endpoint)?;
        let mut servers = lock(&self.servers);
        let server = servers.entry(canonical(&url)).or_insert_with(|| Arc::new(Server::new(url)));
        Ok(Arc::clone(server))
    }
}

#[cfg(fuzzing)]
pub(crate) fn fuzz_answers(data: &[u8]) {
    discovery::fuzz(data);
    registration::fuzz(data);
    device::fuzz(data);
    tokens::fuzz(data);
}

#[cfg(fuzzing)]
pub(crate) fn fuzz_redirects(data: &[u8]) {
    loopback::fuzz(data);
}
