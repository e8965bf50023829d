use std::error::Error as StdError;

use mcp_core::{Blame, Error, ErrorKind, Secrets};
use thiserror::Error;

use crate::fetch::FetchError;

/// Why there are no credentials for a request. It is the cause of the [`mcp_core::Error`] that ends the request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The server wants scopes that a login did not bring.
    #[error("the server wants the scopes `{}`, which the authorization server did not give: log in with an account that may have them", missing.join(" "))]
    InsufficientScope {
        /// Those that are missing.
        missing: Vec<String>,
    },
    /// The server refuses what was logged in for, and did not say what it wants.
    #[error("the server refuses the credentials that were just given: ask whoever runs it what they lack")]
    Refused,
    /// The server does not say how to log in, or not in a way that can be trusted.
    #[error("there is no way to log in: {0}")]
    Discovery(String),
    /// The authorization server does not offer PKCE by S256, without which a code could be stolen.
    #[error("the authorization server does not offer PKCE by S256: it has to, before anybody logs in there")]
    NoPkce,
    /// There is no way to become a client of the authorization server.
    #[error("the client cannot be registered: {0}")]
    Registration(String),
    /// The user, or the authorization server, said no.
    #[error("the authorization server refused: {0}")]
    Denied(String),
    /// What came back from the login was not the answer to it.
    #[error("the login's answer cannot be trusted: {0}")]
    Mismatch(&'static str),
    /// The user did not log in within the time for it.
    #[error("nobody logged in within {0} s")]
    TooLate(u64),
    /// The authorization server could not be asked, or answered what cannot be read.
    #[error("the authorization server failed: {0}")]
    Server(String),
    /// Logins cannot be kept, or read again.
    #[error("the store for logins failed: {0}")]
    Store(String),
    /// This machine cannot do what a login takes.
    #[error("this machine cannot log in: {0}")]
    Local(String),
}

impl AuthError {
    /// The one that caused an error, where one did.
    #[must_use]
    pub fn of(error: &Error) -> Option<&Self> {
        let mut cause: Option<&(dyn StdError + 'static)> = error.source();
        while let Some(error) = cause {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            cause = error.source();
        }
        None
    }

    /// The same, where the server made no scopes of the token that it refused.
    pub(super) fn without(self, token: Option<&str>) -> Self {
        let Self::InsufficientScope { missing } = self else { return self };
        let mut sent = Secrets::default();
        token.iter().for_each(|token| sent.add(token));
        Self::InsufficientScope { missing: missing.iter().map(|scope| sent.mask(scope).into_owned()).collect() }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::InsufficientScope { .. } | Self::Denied(_) | Self::TooLate(_) => Blame::Caller,
            Self::Store(_) | Self::Local(_) => Blame::Local,
            _ => Blame::Peer,
        }
    }
}

impl From<FetchError> for AuthError {
    fn from(error: FetchError) -> Self {
        let words = error.to_string();
        match error {
            FetchError::NoUrl(_) | FetchError::Untrusted(_) => Self::Discovery(words),
            FetchError::Failed(_) | FetchError::TooLong => Self::Server(words),
            FetchError::Local(_) => Self::Local(words),
        }
    }
}

impl From<AuthError> for Error {
    fn from(error: AuthError) -> Self {
        let blame = error.blame();
        let kind =
            if matches!(error, AuthError::Server(_)) { ErrorKind::TransportError } else { ErrorKind::Unauthorized };
        Self::caused(kind, error.to_string(), error).blaming(blame)
    }
}
