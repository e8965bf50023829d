//! A client that logs in.

mod discovery;
mod error;
mod login;
mod pkce;
mod refresh;
mod registration;
mod scopes;
mod store;
mod tokens;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use mcp_core::{
    BoxFuture, Error, ErrorKind, Secrets,
    client::{Credentials, Refusal, Target},
};
use url::Url;

use self::{
    discovery::{Discovered, discover},
    login::{Login, Opener},
    refresh::{Refreshed, keep, refresh},
    registration::ClientRegistration,
    scopes::Scopes,
};
pub use self::{
    error::AuthError,
    store::{ClientCredentials, FileStore, Grant, Key, MemoryStore, StoreLock, TokenStore},
};
use crate::{challenge::Wanted, fetch::Fetch, resource::canonical};

/// The credentials of a user who logs in: found, registered for, refreshed and stepped up as servers want it.
///
/// It is shared by all clones, and may serve transports to several servers; each has tokens of its own. Nothing is sent to a
/// server before it has asked for it.
///
/// Specification: *Authorization*.
#[derive(Clone)]
pub struct OAuth(Arc<Inner>);

struct Inner {
    registration: ClientRegistration,
    opener: Opener,
    store: Arc<dyn TokenStore>,
    patience: Duration,
    servers: Mutex<HashMap<String, Arc<Server>>>,
}

/// An MCP server that credentials are for.
struct Server {
    endpoint: Url,
    /// What requests carry right now.
    current: Mutex<Option<Grant>>,
    /// Held by whoever sees to better credentials.
    renewing: tokio::sync::Mutex<Renewing>,
}

#[derive(Default)]
struct Renewing {
    fetch: Option<Fetch>,
    found: Option<Discovered>,
    scopes: Scopes,
}

/// What a user says about logins.
#[must_use = "it does nothing until it is built"]
pub struct OAuthBuilder(Inner);

impl OAuth {
    /// Credentials for a client of that name, which users read when they log in. `opener` shows a URL to the user, as by opening
    /// a browser; what it returns is not waited for longer than for the login.
    pub fn builder<F>(name: impl Into<String>, opener: impl Fn(Url) -> F + Send + Sync + 'static) -> OAuthBuilder
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let opener = move |url| -> BoxFuture<'static, Result<(), Error>> { Box::pin(opener(url)) };
        OAuthBuilder(Inner {
            registration: ClientRegistration { name: name.into(), ..ClientRegistration::default() },
            opener: Arc::new(opener),
            store: Arc::new(MemoryStore::default()),
            patience: Duration::from_secs(300),
            servers: Mutex::default(),
        })
    }

    /// Has credentials for the server at `endpoint` before it asks for any: those that are kept, or those of a login.
    ///
    /// # Errors
    /// When there is no way to log in, or the login fails.
    pub async fn log_in(&self, endpoint: &str) -> Result<(), Error> {
        let server = self.0.server(endpoint)?;
        self.renew(server, None, Wanted::default(), Need::Token).await.map(drop)
    }

    /// Sees to better credentials, in a task of its own: a login takes longer than a call may, and goes on when the call that
    /// began it has ended.
    async fn renew(
        &self,
        server: Arc<Server>,
        refused: Option<String>,
        wanted: Wanted,
        need: Need,
    ) -> Result<Vec<(String, String)>, Error> {
        let inner = Arc::clone(&self.0);
        let renewing = tokio::spawn(async move { inner.renew(&server, refused, wanted, need).await });
        let grant = renewing.await.map_err(|error| AuthError::Local(error.to_string()))??;
        Ok(bearer(&grant))
    }
}

impl OAuthBuilder {
    /// What the authorization server of that issuer knows the client by. It is told to no other.
    pub fn client(mut self, issuer: impl Into<String>, client: ClientCredentials) -> Self {
        self.0.registration.known.push((issuer.into(), client));
        self
    }

    /// The URL of the client's metadata, for authorization servers that read such. It must be `https` with a path; what is
    /// there must have `http://127.0.0.1/callback` among its redirect URIs, for any port.
    pub fn client_id_document(mut self, url: impl Into<String>) -> Self {
        self.0.registration.document = Some(url.into());
        self
    }

    /// Where logins are kept. Default: in memory.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// How long a user may take to log in. Default: 5 minutes.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.0.patience = patience;
        self
    }

    /// The credentials.
    ///
    /// # Errors
    /// When the URL of the client's metadata is not one that may be.
    pub fn build(self) -> Result<OAuth, Error> {
        if let Some(document) = &self.0.registration.document {
            let is_fit = Url::parse(document).is_ok_and(|url| url.scheme() == "https" && url.path().len() > 1);
            if !is_fit {
                let message = "the URL of the client's metadata must be https, with a path";
                return Err(Error::new(ErrorKind::InvalidParams, message));
            }
        }
        Ok(OAuth(Arc::new(self.0)))
    }
}

/// It holds secrets.
impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").finish_non_exhaustive()
    }
}

/// It holds secrets.
impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder").finish_non_exhaustive()
    }
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A token that is good.
    Token,
    /// More scopes.
    Scopes,
}

impl Credentials for OAuth {
    fn headers<'a>(
        &'a self,
        target: &'a Target<'a>,
        refusal: Option<&'a Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Error>> {
        Box::pin(async move {
            let server = self.0.server(target.endpoint)?;
            let Some(refusal) = refusal else {
                return match server.current() {
                    Some(grant) if tokens::is_over(&grant) && grant.refresh_token.is_some() => {
                        self.renew(server, Some(grant.access_token), Wanted::default(), Need::Token).await
                    }
                    Some(grant) => Ok(bearer(&grant)),
                    None => Ok(Vec::new()),
                };
            };
            let wanted = Wanted::parse(refusal.challenges);
            let refused = sent(refusal);
            match refusal.status {
                403 if wanted.is_insufficient_scope() => self.renew(server, refused, wanted, Need::Scopes).await,
                401 if refusal.before < 2 => self.renew(server, refused, wanted, Need::Token).await,
                _ => Err(AuthError::Refused.into()),
            }
        })
    }
}

fn bearer(grant: &Grant) -> Vec<(String, String)> {
    vec![("authorization".to_owned(), format!("Bearer {}", grant.access_token))]
}

/// The token that was refused.
fn sent(refusal: &Refusal<'_>) -> Option<String> {
    let header = refusal.sent.iter().find(|(name, _)| name == "authorization");
    header.and_then(|(_, value)| value.strip_prefix("Bearer ")).map(str::to_owned)
}

/// The same error, whose scopes a server may have made of the token.
fn without(error: AuthError, token: Option<&str>) -> AuthError {
    let AuthError::InsufficientScope { missing } = error else { return error };
    let mut sent = Secrets::default();
    token.iter().for_each(|token| sent.add(token));
    AuthError::InsufficientScope { missing: missing.iter().map(|scope| sent.mask(scope).into_owned()).collect() }
}

impl Server {
    fn current(&self) -> Option<Grant> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Grant>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn server(&self, endpoint: &str) -> Result<Arc<Server>, Error> {
        let url = Url::parse(endpoint);
        let url = url.map_err(|error| Error::caused(ErrorKind::InvalidParams, "the server's URL is none", error))?;
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.entry(canonical(&url)).or_insert_with(|| {
            Arc::new(Server { endpoint: url, current: Mutex::default(), renewing: tokio::sync::Mutex::default() })
        });
        Ok(Arc::clone(server))
    }

    /// One at a time for a server: whoever comes later finds what the first one got.
    async fn renew(
        &self,
        server: &Server,
        refused: Option<String>,
        wanted: Wanted,
        need: Need,
    ) -> Result<Grant, Error> {
        let mut renewing = server.renewing.lock().await;
        if let Some(current) = server.current()
            && refused.as_deref() != Some(current.access_token.as_str())
        {
            return Ok(current);
        }
        let outcome = self.renew_now(server, &mut renewing, refused.as_deref(), &wanted, need).await;
        match &outcome {
            Ok(grant) => *server.lock() = Some(grant.clone()),
            // What was found may be what was wrong.
            Err(_) => renewing.found = None,
        }
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
        let Renewing { fetch, found, scopes } = renewing;
        let fetch = match fetch {
            Some(fetch) => fetch,
            None => fetch.insert(Fetch::beside(&server.endpoint).map_err(AuthError::from)?),
        };
        let found = match found {
            Some(found) => found,
            None => found.insert(discover(fetch, &server.endpoint, &wanted.resource_metadata).await?),
        };
        let key = Key::new(&found.server.issuer, &found.resource);
        let _lock = self.store.lock(&key).await?;
        let held = match need {
            Need::Token => match refresh(fetch, found, &*self.store, refused).await? {
                Refreshed::Newer(grant) => {
                    scopes.add(&grant.scopes);
                    return Ok(grant);
                }
                Refreshed::Over(held) => held,
            },
            Need::Scopes => {
                let kept = self.store.load(&key).await?;
                if let Some(kept) = &kept
                    && refused != Some(kept.access_token.as_str())
                {
                    scopes.add(&kept.scopes);
                    return Ok(kept.clone());
                }
                let held = kept.or_else(|| server.current());
                let stepped = scopes.step_up(wanted, held.as_ref().map_or(&[][..], |held| &held.scopes), found);
                stepped.map_err(|error| without(error, refused))?;
                held
            }
        };
        if let Some(held) = &held {
            scopes.add(&held.scopes);
        }
        let login = Login {
            fetch,
            found,
            registration: &self.registration,
            opener: &self.opener,
            patience: self.patience,
            scopes: scopes.of_login(wanted, found),
            client: held.as_ref().map(|held| held.client.clone()),
        };
        let grant = login.run().await?;
        // Others may have logged in or out meanwhile.
        keep(&*self.store, &key, held.as_ref(), &grant).await?;
        tracing::debug!(issuer = found.server.issuer, "logged in");
        Ok(grant)
    }
}
