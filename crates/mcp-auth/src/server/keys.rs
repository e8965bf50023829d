//! Keys and passwords that a server was given itself: for few callers who trust one another.
//!
//! Specification: *RFC 7617, The Basic Authentication Scheme*.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_core::BoxFuture;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{
    misconfigured::Misconfigured,
    validator::{Scheme, TokenError, Validator, Verified},
};

/// Secrets, by their SHA-256 alone: however long comparing takes, it tells nothing of them.
#[derive(Clone, Default)]
struct Secrets(Vec<([u8; 32], Verified)>);

impl Secrets {
    fn add(&mut self, secret: &[u8], verified: Verified) {
        self.0.push((Sha256::digest(secret).into(), verified));
    }

    /// All are compared, so that the time does not tell which.
    fn find(&self, secret: &[u8]) -> Option<Verified> {
        let digest: [u8; 32] = Sha256::digest(secret).into();
        let mut found = None;
        for (known, verified) in &self.0 {
            if bool::from(digest.ct_eq(known)) {
                found = Some(verified);
            }
        }
        found.cloned()
    }
}

/// Validates keys that callers send as bearer tokens. A key should be made of 128 random bits or more.
///
/// ```
/// use mcp_auth::{StaticKeys, Verified};
///
/// # let from_environment = |name: &str| name.to_owned();
/// let keys = StaticKeys::new().key(&from_environment("ADAS_KEY"), Verified::new("ada").scopes(["read", "write"]));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct StaticKeys(Secrets);

impl StaticKeys {
    /// No key, so that nobody comes in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in whoever has that key, as `verified`. The key itself is not kept. An empty one opens nothing.
    pub fn key(mut self, key: &str, verified: Verified) -> Self {
        if !key.is_empty() {
            self.0.add(key.as_bytes(), verified);
        }
        self
    }
}

impl Validator for StaticKeys {
    fn validate<'a>(&'a self, credentials: &'a str) -> BoxFuture<'a, Result<Verified, TokenError>> {
        let found = self.0.find(credentials.as_bytes());
        Box::pin(async move { found.ok_or(TokenError::invalid("the key is not known")) })
    }
}

/// Validates names and passwords. They are as safe as the connection: use `https`.
#[derive(Clone, Default)]
#[must_use]
pub struct BasicAuth(Secrets);

impl BasicAuth {
    /// No user, so that nobody comes in.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in whoever has that name and password, with these scopes. The id of the principal is the name.
    ///
    /// # Errors
    /// [`Misconfigured::User`] where the name is empty, has a colon, or is taken.
    pub fn user<S: AsRef<str>>(
        mut self,
        name: &str,
        password: &str,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Self, Misconfigured> {
        let is_taken = self.0.0.iter().any(|(_, verified)| verified.id == name);
        if name.is_empty() || name.contains(':') || is_taken {
            return Err(Misconfigured::User(name.to_owned()));
        }
        self.0.add(format!("{name}:{password}").as_bytes(), Verified::new(name).scopes(scopes));
        Ok(self)
    }
}

impl Validator for BasicAuth {
    fn scheme(&self) -> Scheme {
        Scheme::Basic
    }

    fn validate<'a>(&'a self, credentials: &'a str) -> BoxFuture<'a, Result<Verified, TokenError>> {
        let found = STANDARD.decode(credentials).ok().and_then(|pair| self.0.find(&pair));
        Box::pin(async move { found.ok_or(TokenError::invalid("the name or the password is wrong")) })
    }
}

impl fmt::Debug for StaticKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StaticKeys").field(&self.0.0.len()).finish()
    }
}

impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BasicAuth").field(&self.0.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_opens_for_its_owner_alone() {
        let keys = StaticKeys::new()
            .key("one", Verified::new("ada"))
            .key("two", Verified::new("bob"))
            .key("", Verified::new("x"));
        assert_eq!(keys.validate("one").await.unwrap().id, "ada");
        assert_eq!(keys.validate("two").await.unwrap().id, "bob");
        for wrong in ["", "on", "onee", "ONE"] {
            assert!(keys.validate(wrong).await.is_err(), "{wrong}");
        }
        assert_eq!(format!("{keys:?}"), "StaticKeys(2)");
    }

    #[tokio::test]
    async fn a_password_is_that_of_its_user() {
        let users = BasicAuth::new().user("ada", "a:b", ["read"]).unwrap().user("bob", "", [""; 0]).unwrap();
        let validate = async |pair: &str| users.validate(&STANDARD.encode(pair)).await.map(|verified| verified.id);
        assert_eq!(validate("ada:a:b").await.unwrap(), "ada");
        assert_eq!(validate("bob:").await.unwrap(), "bob");
        for wrong in ["ada:", "ada:a", "ada", "bob:a:b", ""] {
            assert!(validate(wrong).await.is_err(), "{wrong}");
        }
        assert!(users.validate("no base64!").await.is_err());
        assert!(users.clone().user("ada", "x", [""; 0]).is_err() && users.user("a:b", "x", [""; 0]).is_err());
    }
}
