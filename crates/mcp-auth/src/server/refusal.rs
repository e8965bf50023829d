//! Why a request is not let in: a status, a challenge, and a JSON-RPC error in words.
//!
//! Specification: *Authorization, Error Handling*; *RFC 6750, Error Codes*; *RFC 9449, The DPoP Authentication Scheme*.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use mcp_core::jsonrpc::{ErrorObject, code, encode};

use super::validator::TokenError;
use crate::challenge::Challenge;

pub(super) const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Malformed(&'static str),
    #[error("this server wants to know who asks: send credentials in the Authorization header")]
    NoCredentials,
    #[error("{0}")]
    Token(Cow<'static, str>),
    #[error("{0}")]
    Proof(&'static str),
    #[error("the proof must hold the nonce of the header DPoP-Nonce")]
    Nonce(String),
    #[error("this needs the scopes `{}`", .0.join(" "))]
    Scope(Vec<String>),
    #[error("{0}")]
    Unavailable(Cow<'static, str>),
}

impl From<TokenError> for Refusal {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid(why) => Self::Token(why),
            TokenError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::NoCredentials | Self::Token(_) | Self::Proof(_) | Self::Nonce(_) => StatusCode::UNAUTHORIZED,
            Self::Scope(_) => StatusCode::FORBIDDEN,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The error code for the challenge; none where nothing was wrong but that nothing was sent.
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Malformed(_) => Some("invalid_request"),
            Self::Token(_) => Some("invalid_token"),
            Self::Proof(_) => Some("invalid_dpop_proof"),
            Self::Nonce(_) => Some("use_dpop_nonce"),
            Self::Scope(_) => Some("insufficient_scope"),
            Self::NoCredentials | Self::Unavailable(_) => None,
        }
    }

    /// What is said of it in a challenge of the server's.
    fn explain(&self, challenge: Challenge) -> Challenge {
        let Some(code) = self.code() else { return challenge };
        let challenge = challenge.with("error", code).with("error_description", &self.to_string());
        match self {
            Self::Scope(needed) => challenge.with("scope", &needed.join(" ")),
            _ => challenge,
        }
    }

    /// The answer, with these challenges.
    pub(super) fn answer<B: From<String>>(&self, challenges: impl IntoIterator<Item = Challenge>) -> Response<B> {
        let error = ErrorObject::new(code::INVALID_REQUEST, self.to_string());
        let body = String::from_utf8_lossy(&encode::error(None, &error)).into_owned();
        let mut response = Response::new(B::from(body));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if !matches!(self, Self::Unavailable(_)) {
            challenge(headers, challenges.into_iter().map(|challenge| self.explain(challenge)));
        }
        if let Some(nonce) = self.nonce() {
            headers.insert(DPOP_NONCE, nonce);
        }
        response
    }

    fn nonce(&self) -> Option<HeaderValue> {
        match self {
            Self::Nonce(nonce) => HeaderValue::from_str(nonce).ok(),
            _ => None,
        }
    }
}

/// Puts challenges into an answer.
pub(super) fn challenge(headers: &mut http::HeaderMap, challenges: impl IntoIterator<Item = Challenge>) {
    for challenge in challenges {
        if let Ok(value) = HeaderValue::from_str(&challenge.to_string()) {
            headers.append(header::WWW_AUTHENTICATE, value);
        }
    }
}

/// What a challenge says of scopes that turned out to be missing while the call was looked at.
pub(super) fn missing(scopes: &[String], challenges: impl IntoIterator<Item = Challenge>) -> Vec<Challenge> {
    let refusal = Refusal::Scope(scopes.to_vec());
    challenges.into_iter().map(|challenge| refusal.explain(challenge)).collect()
}
