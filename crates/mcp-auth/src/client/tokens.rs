//! What is sent to the endpoints that give tokens, and what comes back.
//!
//! Specification: *RFC 6749, Issuing an Access Token*; *RFC 9449, DPoP Access Token Request*.

use std::time::Duration;

use mcp_core::{Error, Secrets};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use super::{
    authentication::Identity,
    dpop::{Nonce, ProofKey},
    error::AuthError,
};
use crate::fetch::{Fetch, Fetched};

/// Tokens, as a server gives them.
#[derive(Deserialize)]
pub(super) struct Tokens {
    pub(super) access_token: String,
    pub(super) token_type: String,
    pub(super) refresh_token: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    pub(super) expires_in: Option<u64>,
    pub(super) scope: Option<String>,
    pub(super) issued_token_type: Option<String>,
}

/// Servers write seconds as text, or with a fraction; what is neither is as if they had said nothing.
fn seconds<'de, D: Deserializer<'de>>(source: D) -> Result<Option<u64>, D::Error> {
    let said = Option::<Value>::deserialize(source)?;
    let number = said.and_then(|said| said.as_f64().or_else(|| said.as_str()?.trim().parse().ok()));
    Ok(number
        .filter(|number| *number >= 0.0)
        .map(|number| Duration::try_from_secs_f64(number).map_or(u64::MAX, |it| it.as_secs())))
}

/// What a server says instead of tokens.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct OAuthError {
    pub(super) error: String,
    #[serde(default)]
    pub(super) error_description: String,
}

/// Why there are no tokens.
#[derive(Debug)]
pub(super) enum Failed {
    /// The server was asked, and said no.
    Refused(OAuthError),
    Other(Error),
}

impl Failed {
    /// Whether the server said no by that code.
    pub(super) fn is(&self, code: &str) -> bool {
        matches!(self, Self::Refused(refused) if refused.error == code)
    }
}

impl From<AuthError> for Failed {
    fn from(error: AuthError) -> Self {
        Self::Other(error.into())
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(refused) => refused.into_error().into(),
            Failed::Other(error) => error,
        }
    }
}

impl OAuthError {
    /// The same, where the server repeats nothing of what it was sent.
    pub(super) fn without(self, sent: &Secrets) -> Self {
        let mask = |text: String| sent.mask(&text).into_owned();
        Self { error: mask(self.error), error_description: mask(self.error_description) }
    }

    /// In words; what a server says is cut and made harmless.
    pub(super) fn words(&self) -> String {
        let (error, description) = (mcp_core::shown(&self.error), mcp_core::shown(&self.error_description));
        if description.is_empty() { error } else { format!("{error}: {description}") }
    }

    /// Whether another moment may have another answer.
    pub(super) fn is_about_now(&self) -> bool {
        matches!(self.error.as_str(), "server_error" | "temporarily_unavailable")
    }

    pub(super) fn into_error(self) -> AuthError {
        let words = self.words();
        match self.error.as_str() {
            _ if self.is_about_now() => AuthError::Server(words),
            "invalid_client" | "unauthorized_client" => AuthError::Registration(words),
            _ => AuthError::Denied(words),
        }
    }
}

/// What asks an authorization server, as one of its clients.
pub(super) struct TokenClient<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) identity: Identity<'a>,
    /// What tokens are to be bound to, where to any.
    pub(super) proof_key: Option<&'a ProofKey>,
    pub(super) nonce: &'a Nonce,
}

impl TokenClient<'_> {
    /// Asks for tokens, or whatever else a token endpoint gives.
    pub(super) async fn tokens(&self, parameters: &[(&str, &str)]) -> Result<Tokens, Failed> {
        self.post(&self.identity.server.token_endpoint, parameters).await
    }

    /// Asks an endpoint that is asked like the token endpoint. Where it wants a nonce in the proof, it gets that.
    pub(super) async fn post<T: DeserializeOwned>(&self, url: &str, parameters: &[(&str, &str)]) -> Result<T, Failed> {
        let (mut answer, mut sent) = self.post_once(url, parameters).await?;
        if answer.nonce.is_some() && refusal(&answer).is_some_and(|refused| refused.error == "use_dpop_nonce") {
            (answer, sent) = self.post_once(url, parameters).await?;
        }
        if answer.is_success() {
            let unread = || AuthError::Server("what it answered are no tokens".to_owned());
            return Ok(answer.json().ok_or_else(unread)?);
        }
        Err(match refusal(&answer) {
            Some(refused) => Failed::Refused(refused.without(&sent)),
            None => AuthError::Server(format!("it answered {} to a request for tokens", answer.status)).into(),
        })
    }

    /// The answer, and what errors must not repeat of the request.
    async fn post_once(&self, url: &str, parameters: &[(&str, &str)]) -> Result<(Fetched, Secrets), AuthError> {
        let mut request = self.identity.request(parameters)?;
        if let Some(key) = self.proof_key {
            request.head.push(("dpop", key.proof("POST", &self.fetch.allowed(url)?, None, self.nonce)?));
        }
        let sent = request.secrets();
        let answer = self.fetch.post(url, "application/x-www-form-urlencoded", &request.head, request.form).await?;
        answer.nonce.iter().for_each(|nonce| self.nonce.set(nonce));
        Ok((answer, sent))
    }
}

fn refusal(answer: &Fetched) -> Option<OAuthError> {
    if answer.is_success() || answer.status >= 500 { None } else { answer.json() }
}

/// What a token endpoint answers.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let _ = serde_json::from_slice::<Tokens>(data);
    if let Ok(refused) = serde_json::from_slice::<OAuthError>(data) {
        let words = Error::from(Failed::Refused(refused)).to_string();
        assert!(words.len() < 4096 && !words.contains(char::is_control), "{words:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_however_they_are_written() {
        for (said, expected) in [
            ("3600", Some(3600)),
            ("\"3600\"", Some(3600)),
            ("3599.9", Some(3599)),
            ("1e300", Some(u64::MAX)),
            ("0", Some(0)),
            ("-1", None),
            ("null", None),
            ("\"soon\"", None),
            ("\"NaN\"", None),
            ("[]", None),
        ] {
            let text = format!(r#"{{"access_token":"t","token_type":"Bearer","expires_in":{said}}}"#);
            assert_eq!(serde_json::from_str::<Tokens>(&text).unwrap().expires_in, expected, "{said}");
        }
    }

    #[test]
    fn what_a_server_says_is_cut_and_made_harmless() {
        let long = "x\n".repeat(100_000);
        fuzz(serde_json::json!({ "error": long, "error_description": long }).to_string().as_bytes());
        fuzz(br#"{"error":"invalid_scope","error_description":"no \u001b[31m"}"#);
        fuzz(br#"{"access_token":1}"#);
    }
}
