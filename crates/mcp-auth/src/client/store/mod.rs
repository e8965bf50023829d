//! Where logins are kept.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod lock;
mod memory;

use std::{collections::HashMap, fmt, sync::Arc};

use mcp_core::{BoxFuture, Error};
use serde::{Deserialize, Serialize};

#[cfg(feature = "keyring")]
pub use self::keyring::KeyringStore;
pub use self::{file::FileStore, memory::MemoryStore};
use super::dpop::ProofKey;

/// What a login is for: tokens of one authorization server are nothing to another, nor are those for one resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Key {
    /// The issuer that the authorization server is known by.
    pub issuer: String,
    /// The resource, as it was published.
    pub resource: String,
}

impl Key {
    /// That resource at that issuer.
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), resource: resource.into() }
    }
}

/// What a login brought.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// What requests carry.
    pub access_token: String,
    /// What brings the next access token.
    pub refresh_token: Option<String>,
    /// When the access token ends, in seconds since 1970, where that is known.
    pub expires_at: Option<u64>,
    /// The scopes that it has.
    pub scopes: Vec<String>,
    /// Who logged in.
    pub client: ClientCredentials,
    /// What the tokens are bound to, where to anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof_key: Option<ProofKey>,
}

impl Grant {
    /// The scheme of `Authorization` that the access token is shown by.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.proof_key.is_some() { "DPoP" } else { "Bearer" }
    }
}

/// What an authorization server knows a client by.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientCredentials {
    /// The client's name there.
    pub id: String,
    /// The client's secret, where it has one.
    pub secret: Option<String>,
    /// How the secret is sent, in the words of the registration.
    pub method: Option<String>,
    /// Where the user is sent back to, where the client was registered for that.
    pub redirect_uri: Option<String>,
}

impl ClientCredentials {
    /// A client without a secret.
    pub fn public(id: impl Into<String>) -> Self {
        Self { id: id.into(), secret: None, method: None, redirect_uri: None }
    }

    /// A client with a secret.
    pub fn secret(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { secret: Some(secret.into()), ..Self::public(id) }
    }
}

/// Tokens are secrets.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access_token: _, refresh_token, expires_at, scopes, client, proof_key: _ } = self;
        f.debug_struct("Grant")
            .field("scheme", &self.scheme())
            .field("can_refresh", &refresh_token.is_some())
            .field("expires_at", expires_at)
            .field("scopes", scopes)
            .field("client", client)
            .finish_non_exhaustive()
    }
}

/// What the client is known by may be one too.
impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials").field("has_secret", &self.secret.is_some()).finish_non_exhaustive()
    }
}

/// A lock that is held until this is dropped.
pub type StoreLock = Box<dyn Send>;

/// Where logins are kept, for one process or several.
pub trait TokenStore: Send + Sync + 'static {
    /// What is kept under that key.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>>;

    /// Puts `new` in place of `expected`, and only of that: false, and nothing done, where something else is kept.
    ///
    /// # Errors
    /// When it cannot be read or written.
    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>>;

    /// Waits until nobody else that uses the store refreshes what is kept under that key.
    ///
    /// # Errors
    /// When it cannot be locked.
    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>>;
}

impl<T: TokenStore + ?Sized> TokenStore for Arc<T> {
    fn load<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Grant>, Error>> {
        (**self).load(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        expected: Option<&'a Grant>,
        new: Option<Grant>,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        (**self).swap(key, expected, new)
    }

    fn lock<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<StoreLock, Error>> {
        (**self).lock(key)
    }
}

fn put(grants: &mut HashMap<Key, Grant>, key: &Key, new: Option<Grant>) {
    match new {
        Some(grant) => drop(grants.insert(key.clone(), grant)),
        None => drop(grants.remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn grant(token: &str) -> Grant {
        Grant {
            access_token: token.to_owned(),
            refresh_token: Some(format!("{token}-refresh")),
            expires_at: None,
            scopes: Vec::new(),
            client: ClientCredentials::secret("id", "SECRET"),
            proof_key: ProofKey::generate().ok(),
        }
    }

    pub(super) async fn swaps_what_is_expected(store: impl TokenStore) {
        let (key, other) = (Key::new("a", "b"), Key::new("a", "c"));
        let [one, two] = ["1", "2"].map(grant);
        assert!(store.swap(&key, None, Some(one.clone())).await.unwrap());
        assert!(!store.swap(&key, None, Some(two.clone())).await.unwrap());
        assert!(!store.swap(&key, Some(&two), None).await.unwrap());
        assert!(store.swap(&key, Some(&one), Some(two.clone())).await.unwrap());
        assert_eq!(store.load(&key).await.unwrap().as_ref(), Some(&two));
        assert_eq!(store.load(&other).await.unwrap(), None);
        assert!(store.swap(&key, Some(&two), None).await.unwrap());
        assert_eq!(store.load(&key).await.unwrap(), None);
    }

    #[test]
    fn nothing_shows_a_secret() {
        let shown = format!("{:?} {:?}", grant("SECRET"), MemoryStore::default());
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(shown.contains("DPoP"), "{shown}");
    }
}
