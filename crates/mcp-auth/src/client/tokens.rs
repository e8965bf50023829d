//! What is sent to a token endpoint, and what comes back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_core::Secrets;
use serde::Deserialize;
use url::form_urlencoded;

use super::{
    discovery::Discovered,
    error::AuthError,
    store::{ClientCredentials, Grant},
};
use crate::fetch::{Fetch, FetchError};

#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    token_type: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

/// What a server says instead of tokens.
#[derive(Deserialize)]
pub(super) struct OAuthError {
    pub(super) error: String,
    #[serde(default)]
    pub(super) error_description: String,
}

/// Why there are no tokens.
pub(super) enum Failed {
    /// The code or the refresh token is no good, or no more.
    InvalidGrant,
    Other(AuthError),
}

impl From<AuthError> for Failed {
    fn from(error: AuthError) -> Self {
        Self::Other(error)
    }
}

impl From<FetchError> for Failed {
    fn from(error: FetchError) -> Self {
        Self::Other(error.into())
    }
}

impl OAuthError {
    /// In words; what a server says is cut and made harmless, and does not repeat what it was sent.
    pub(super) fn words(&self, sent: &Secrets) -> String {
        let harmless = |text: &str| mcp_core::shown(&sent.mask(text));
        let (error, description) = (harmless(&self.error), harmless(&self.error_description));
        if description.is_empty() { error } else { format!("{error}: {description}") }
    }
}

/// Asks for tokens. What is not said of scopes and the next refresh token is as `before` has it.
pub(super) async fn ask(
    fetch: &Fetch,
    found: &Discovered,
    client: &ClientCredentials,
    parameters: &[(&str, &str)],
    before: (&[String], Option<&str>),
) -> Result<Grant, Failed> {
    let (head, form) = request(found, client, parameters);
    let kind = "application/x-www-form-urlencoded";
    let answer = fetch.post(&found.server.token_endpoint, kind, &head, form).await?;
    if !answer.is_success() {
        return Err(match answer.json::<OAuthError>() {
            Some(error) if error.error == "invalid_grant" => Failed::InvalidGrant,
            Some(error) => AuthError::Server(error.words(&secrets(&head, client, parameters))).into(),
            None => AuthError::Server(format!("it answered {} to a request for tokens", answer.status)).into(),
        });
    }
    let tokens: Tokens = answer.json().ok_or_else(|| AuthError::Server("what it answered are no tokens".to_owned()))?;
    grant(tokens, client, before)
}

/// What the server gets that errors must not repeat.
fn secrets(head: &[(&str, String)], client: &ClientCredentials, parameters: &[(&str, &str)]) -> Secrets {
    let mut secrets = Secrets::default();
    head.iter().for_each(|(_, value)| secrets.add_header(value));
    client.secret.iter().for_each(|secret| secrets.add(secret));
    let is_secret = |name: &str| matches!(name, "code" | "code_verifier" | "refresh_token");
    parameters.iter().filter(|(name, _)| is_secret(name)).for_each(|(_, value)| secrets.add(value));
    secrets
}

/// The headers and the form that ask for tokens.
fn request(
    found: &Discovered,
    client: &ClientCredentials,
    parameters: &[(&str, &str)],
) -> (Vec<(&'static str, String)>, String) {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(parameters).append_pair("resource", &found.resource);
    let basic = client.secret.as_ref().filter(|_| is_basic(found, client)).map(|secret| basic(&client.id, secret));
    if basic.is_none() {
        form.append_pair("client_id", &client.id);
        form.extend_pairs(client.secret.iter().map(|secret| ("client_secret", secret)));
    }
    (basic.into_iter().map(|basic| ("authorization", basic)).collect(), form.finish())
}

fn grant(tokens: Tokens, client: &ClientCredentials, before: (&[String], Option<&str>)) -> Result<Grant, Failed> {
    if !tokens.token_type.eq_ignore_ascii_case("bearer") {
        return Err(AuthError::Server("it gave a token that is no bearer's".to_owned()).into());
    }
    let (scopes, refresh_token) = before;
    let given = tokens.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
    Ok(Grant {
        access_token: tokens.access_token,
        refresh_token: tokens.refresh_token.or_else(|| refresh_token.map(str::to_owned)),
        expires_at: tokens.expires_in.map(|seconds| now().saturating_add(seconds)),
        scopes: given.unwrap_or_else(|| scopes.to_vec()),
        client: client.clone(),
    })
}

/// A server that does not say what it knows knows `client_secret_basic`.
fn is_basic(found: &Discovered, client: &ClientCredentials) -> bool {
    match (&client.method, &found.server.token_endpoint_auth_methods_supported) {
        (Some(method), _) => method == "client_secret_basic",
        (None, Some(methods)) => methods.iter().any(|method| method == "client_secret_basic"),
        (None, None) => true,
    }
}

/// Specification: *RFC 6749, Client Password*: each half is encoded as in a form.
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// Whether a token has ended.
pub(super) fn is_over(grant: &Grant) -> bool {
    grant.expires_at.is_some_and(|end| end <= now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_are_encoded_before_they_are_joined() {
        assert_eq!(basic("a:b", "p&+ x"), format!("Basic {}", STANDARD.encode("a%3Ab:p%26%2B+x")));
    }
}
