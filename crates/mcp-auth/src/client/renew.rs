//! Better credentials for one server, by one task at a time.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use mcp_core::Error;
use url::Url;

use super::{
    Inner,
    asking::Asking,
    discovery::{Discovered, discover},
    dpop::{Nonce, ProofKey},
    error::AuthError,
    refresh::{Refreshed, forgotten, keep, refresh},
    scopes::Scopes,
    store::{Grant, Key, TokenStore},
};
use crate::{challenge::Wanted, fetch::Fetch, lock::lock};

/// An MCP server that credentials are for.
pub(super) struct Server {
    endpoint: Url,
    /// What requests carry right now.
    current: Mutex<Option<Grant>>,
    /// What the server wants in proofs.
    pub(super) nonce: Nonce,
    /// How often it was seen to better credentials.
    rounds: AtomicU64,
    /// Held by whoever sees to them.
    renewing: tokio::sync::Mutex<Renewing>,
}

#[derive(Default)]
struct Renewing {
    fetch: Option<Fetch>,
    found: Option<Discovered>,
    scopes: Scopes,
    /// What the authorization server wants in proofs.
    nonce: Nonce,
    /// Why the last round brought no token.
    failed: Option<AuthError>,
}

/// What is wanted better than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// A token that is good.
    Token,
    /// More scopes.
    Scopes,
}

impl Server {
    pub(super) fn new(endpoint: Url) -> Self {
        Self {
            endpoint,
            current: Mutex::default(),
            nonce: Nonce::default(),
            rounds: AtomicU64::default(),
            renewing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn current(&self) -> Option<Grant> {
        lock(&self.current).clone()
    }
}

impl Inner {
    /// One at a time for a server: whoever comes meanwhile takes what the first one got, be it an error.
    pub(super) async fn renew(
        &self,
        server: &Server,
        refused: Option<String>,
        wanted: Wanted,
        need: Need,
    ) -> Result<Grant, Error> {
        let before = server.rounds.load(SeqCst);
        let mut renewing = server.renewing.lock().await;
        if let Some(current) = server.current()
            && refused.as_deref() != Some(current.access_token.as_str())
        {
            return Ok(current);
        }
        if let Some(failed) = renewing.failed.as_ref().filter(|_| server.rounds.load(SeqCst) != before) {
            return Err(failed.clone().into());
        }
        let outcome = self.renew_now(server, &mut renewing, refused.as_deref(), &wanted, need).await;
        match &outcome {
            Ok(grant) => *lock(&server.current) = Some(grant.clone()),
            // What was found may be what was wrong.
            Err(_) => renewing.found = None,
        }
        // Another call may need other scopes, and so another answer.
        renewing.failed = outcome.as_ref().err().filter(|_| need == Need::Token).and_then(AuthError::of).cloned();
        server.rounds.fetch_add(1, SeqCst);
        outcome
    }

    async fn renew_now(
        &self,
        server: &Server,
        renewing: &mut Renewing,
        refused: Option<&str>,
        wanted: &Wanted,
        need: Need,
    ) -> Result<Grant, Error> {
        let Renewing { fetch, found, scopes, nonce, failed: _ } = renewing;
        let fetch = match fetch {
            Some(fetch) => fetch,
            None => fetch.insert(Fetch::beside(&server.endpoint).map_err(AuthError::from)?),
        };
        let known = found.take();
        let found = found.insert(match known {
            Some(known) if need == Need::Scopes => known,
            known => self.find(fetch, server, wanted, known).await?,
        });
        let key = Key::new(&found.server.issuer, &found.resource);
        let _lock = self.store.lock(&key).await?;
        let mut asking = Asking {
            fetch,
            found,
            registration: &self.registration,
            nonce,
            proof_key: None,
            scopes: Vec::new(),
            before: None,
        };
        let tried = match need {
            Need::Token => refresh(&mut asking, &*self.store, &key, refused).await?,
            Need::Scopes => {
                let step_up =
                    |held: &[String]| scopes.step_up(wanted, held, found).map_err(|error| error.without(refused));
                lacking(&*self.store, &key, refused, step_up).await?
            }
        };
        let held = match tried {
            Refreshed::Newer(grant) => {
                scopes.add(&grant.scopes);
                return Ok(grant);
            }
            Refreshed::Over(held) => held,
        };
        if let Some(held) = &held {
            scopes.add(&held.scopes);
        }
        asking.proof_key = proof_key(found, wanted, held.as_ref())?;
        asking.scopes = scopes.of_login(&self.scopes, wanted, found, self.flow.has_user());
        asking.before = held.as_ref().map(|held| held.client.clone());
        self.obtain(&asking, &key, held).await
    }

    /// Finds the authorization server. One that is `known` may not be the one any more, as the server has refused its token; it
    /// counts where nobody says anything else at the moment.
    async fn find(
        &self,
        fetch: &Fetch,
        server: &Server,
        wanted: &Wanted,
        known: Option<Discovered>,
    ) -> Result<Discovered, AuthError> {
        let found = discover(fetch, &self.registration, &server.endpoint, &wanted.resource_metadata).await;
        match (found, known) {
            (Err(AuthError::Server(_)), Some(known)) => Ok(known),
            (found, _) => found,
        }
    }

    /// Comes by tokens anew, and keeps them in place of `held`.
    async fn obtain(&self, asking: &Asking<'_>, key: &Key, held: Option<Grant>) -> Result<Grant, Error> {
        let grant = match self.flow.run(asking, self.patience).await {
            Ok(grant) => grant,
            Err(failed) => {
                if let Some(held) = held.filter(|_| failed.is("invalid_client")) {
                    forgotten(&*self.store, key, &held).await?;
                }
                return Err(failed.into());
            }
        };
        // Others may have logged in or out meanwhile.
        keep(&*self.store, key, held.as_ref(), &grant).await?;
        tracing::debug!(issuer = key.issuer, "logged in");
        Ok(grant)
    }
}

/// What is kept, which lacks scopes, as `step_up` is told; unless somebody has stored something newer.
async fn lacking(
    store: &dyn TokenStore,
    key: &Key,
    refused: Option<&str>,
    step_up: impl FnOnce(&[String]) -> Result<(), AuthError>,
) -> Result<Refreshed, Error> {
    match store.load(key).await? {
        Some(kept) if refused != Some(kept.access_token.as_str()) => Ok(Refreshed::Newer(kept)),
        kept => {
            step_up(kept.as_ref().map_or(&[], |kept| &kept.scopes))?;
            Ok(Refreshed::Over(kept))
        }
    }
}

/// What a token is to be bound to, where both servers know how. What was bound once stays so, to the same key, whatever a
/// challenge says.
fn proof_key(found: &Discovered, wanted: &Wanted, held: Option<&Grant>) -> Result<Option<ProofKey>, AuthError> {
    let kept = held.and_then(|held| held.proof_key.clone());
    let takes_dpop = found.takes_dpop || wanted.is_dpop || kept.is_some();
    match (takes_dpop, found.server.knows_dpop()) {
        (true, true) => kept.map_or_else(ProofKey::generate, Ok).map(Some),
        (_, false) if found.requires_dpop => {
            let message =
                "the server takes tokens that are bound to a key alone, and the authorization server gives none";
            Err(AuthError::Discovery(message.to_owned()))
        }
        _ => Ok(None),
    }
}
