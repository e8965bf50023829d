//! What makes sure of credentials, and what it finds.

use std::{borrow::Cow, future::Future};

use mcp_core::BoxFuture;
use thiserror::Error;

use super::claims::Claims;

/// Which credentials of the header `Authorization` a [`Validator`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// A token (RFC 6750); one that is bound to a key comes as `DPoP` (RFC 9449).
    Bearer,
    /// A name and a password, in base64 (RFC 7617).
    Basic,
}

/// Makes sure of credentials: whose they are, and what they allow.
///
/// It is asked for every request, so what is slow it has to remember. An `async` function of a token is one, too:
///
/// ```
/// use mcp_auth::{TokenError, Verified};
///
/// let validator = |token: String| async move {
///     match token.as_str() {
///         "let me in" => Ok(Verified::new("ada").scopes(["read"])),
///         _ => Err(TokenError::Invalid("unknown".into())),
///     }
/// };
/// # fn is_one(_: impl mcp_auth::Validator) {} is_one(validator);
/// ```
pub trait Validator: Send + Sync + 'static {
    /// What it takes. Default: [`Scheme::Bearer`].
    fn scheme(&self) -> Scheme {
        Scheme::Bearer
    }

    /// Whose these credentials are: what stands in the header behind the scheme, characters of a token68 only.
    ///
    /// # Errors
    /// [`TokenError`] says whether they are no good, or cannot be judged at the moment.
    fn validate<'a>(&'a self, credentials: &'a str) -> BoxFuture<'a, Result<Verified, TokenError>>;
}

impl<F, R> Validator for F
where
    F: Fn(String) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Verified, TokenError>> + Send + 'static,
{
    fn validate<'a>(&'a self, credentials: &'a str) -> BoxFuture<'a, Result<Verified, TokenError>> {
        Box::pin(self(credentials.to_owned()))
    }
}

/// Why credentials let nobody in. The words are told to whoever sent them, so they never hold any part of them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// They are no good: 401, `invalid_token`.
    #[error("{0}")]
    Invalid(Cow<'static, str>),
    /// Whether they are good cannot be told at the moment: 503.
    #[error("{0}")]
    Unavailable(Cow<'static, str>),
}

impl TokenError {
    pub(super) const fn invalid(why: &'static str) -> Self {
        Self::Invalid(Cow::Borrowed(why))
    }

    pub(super) const fn unavailable(why: &'static str) -> Self {
        Self::Unavailable(Cow::Borrowed(why))
    }
}

/// Whose credentials these are, and what is claimed of them. Handlers see it as
/// [`Context::principal`](mcp_core::Context::principal), with the claims as they are here.
#[derive(Debug, Clone)]
#[must_use]
pub struct Verified {
    pub(super) id: String,
    pub(super) claims: Claims,
}

impl Verified {
    /// Whoever has that id, which nobody else may have: it names the issuer where there are several.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), claims: Claims::default() }
    }

    /// Sets what may be done: the claim `scope`.
    pub fn scopes<S: AsRef<str>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes: Vec<_> = scopes.into_iter().map(|scope| scope.as_ref().to_owned()).collect();
        self.claim("scope", scopes.join(" "))
    }

    /// Sets until when, in seconds since 1970: the claim `exp`. It ends what a socket may do that was opened before.
    pub fn expires_at(self, seconds: u64) -> Self {
        self.claim("exp", seconds)
    }

    /// Sets the key that the token is bound to, by its SHA-256 thumbprint (RFC 7638): the claim `cnf.jkt`. The request has to
    /// prove that it has the key.
    pub fn bound_to(self, thumbprint: &str) -> Self {
        self.claim("cnf", serde_json::json!({ "jkt": thumbprint }))
    }

    /// Sets any other claim, for handlers to read.
    pub fn claim(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.claims.0.insert(name.to_owned(), value.into());
        self
    }
}
