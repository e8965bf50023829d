//! Tokens of which only their issuer knows what they are.
//!
//! Specification: *RFC 7662, OAuth 2.0 Token Introspection*.

use std::{fmt, sync::Mutex, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_core::BoxFuture;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::{sync::Semaphore, time::Instant};
use url::form_urlencoded::{self, byte_serialize};

use super::{
    claims::{Claims, Expected},
    jwt::{allowed, check_issuer},
    misconfigured::Misconfigured,
    recent::Recent,
    validator::{TokenError, Validator, Verified},
};
use crate::{
    clock::now,
    fetch::{Fetch, Network},
    lock::lock,
};

/// How many requests to the authorization server may be under way.
const MOST_ASKING: usize = 64;

/// Validates tokens by asking the authorization server about each (RFC 7662).
///
/// What it says of a good token is remembered, for 60 s and up to the token's end, of 10,000 tokens: so long does a token live
/// on that is revoked. The answer has to name this resource in `aud`, to say until when the token is good, and may have 64 KiB
/// and take 5 s. While the server cannot be asked, or 64 requests to it are under way, tokens that are not remembered are refused
/// with 503.
pub struct Introspection {
    issuer: String,
    endpoint: String,
    authorization: String,
    audiences: Vec<String>,
    fetch: Fetch,
    remember: Duration,
    known: Mutex<Recent<Claims>>,
    asking: Semaphore,
}

/// Builds an [`Introspection`].
#[derive(Clone)]
#[must_use = "nothing is checked before it is built"]
pub struct IntrospectionBuilder {
    issuer: String,
    endpoint: String,
    authorization: String,
    audiences: Vec<String>,
    network: Network,
    remember: Duration,
    most: usize,
}

impl Introspection {
    /// Tokens of `issuer` for `resource`, about which its `endpoint` is asked.
    pub fn builder(
        resource: impl Into<String>,
        issuer: impl Into<String>,
        endpoint: impl Into<String>,
    ) -> IntrospectionBuilder {
        IntrospectionBuilder {
            issuer: issuer.into(),
            endpoint: endpoint.into(),
            authorization: String::new(),
            audiences: vec![resource.into()],
            network: Network::default(),
            remember: Duration::from_secs(60),
            most: 10_000,
        }
    }

    async fn check(&self, token: &str) -> Result<Verified, TokenError> {
        let digest = Sha256::digest(token).into();
        let known = lock(&self.known).get(&digest, Instant::now()).cloned();
        let is_known = known.is_some();
        let claims = match known {
            Some(claims) => claims,
            None => self.ask(token).await?,
        };
        // Also of what is remembered, as its time may be over.
        let expected = Expected { audiences: &self.audiences, leeway: 0 };
        claims.check(&expected, now()).map_err(TokenError::invalid)?;
        if claims.0.get("iss").is_some_and(|issuer| *issuer != self.issuer.as_str()) {
            return Err(TokenError::invalid("the token is of another issuer"));
        }
        let id = claims.owner(&self.issuer).map_err(TokenError::invalid)?;
        if !is_known {
            lock(&self.known).insert(digest, claims.clone(), self.remember, Instant::now());
        }
        Ok(Verified { id, claims })
    }

    async fn ask(&self, token: &str) -> Result<Claims, TokenError> {
        const FAILED: TokenError = TokenError::unavailable("the authorization server cannot be asked at the moment");
        // Whoever makes tokens up must not have the server flooded, nor wait in a line without an end.
        let _asking = self.asking.try_acquire().map_err(|_| FAILED)?;
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let head = [("authorization", self.authorization.clone())];
        let head = if self.authorization.is_empty() { &head[..0] } else { &head[..] };
        let asked = self.fetch.post(&self.endpoint, "application/x-www-form-urlencoded", head, form).await;
        let answer = asked.inspect_err(|error| tracing::warn!(%error, "a token cannot be introspected"));
        let answer = answer.map_err(|_| FAILED)?;
        if !answer.is_success() {
            tracing::warn!(status = answer.status, "an authorization server does not introspect a token");
            return Err(FAILED);
        }
        let claims = answer.json().map(Claims).ok_or(FAILED)?;
        match claims.0.get("active") {
            Some(Value::Bool(true)) => Ok(claims),
            _ => Err(TokenError::invalid("the token is not active")),
        }
    }
}

impl Validator for Introspection {
    fn validate<'a>(&'a self, credentials: &'a str) -> BoxFuture<'a, Result<Verified, TokenError>> {
        Box::pin(self.check(credentials))
    }
}

impl IntrospectionBuilder {
    /// Sets who this server is to the authorization server: HTTP basic. Default: nobody in particular.
    pub fn client(mut self, id: &str, secret: &str) -> Self {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        self.authorization = format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))));
        self
    }

    /// Takes tokens for this audience too, compared to the letter. Default: the resource alone.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets where the endpoint may be. Default: [`Network::Public`].
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Sets for how long what was said of a token is remembered. Default: 60 s.
    pub fn remember(mut self, time: Duration) -> Self {
        self.remember = time;
        self
    }

    /// Sets of how many tokens it is; the oldest is forgotten for a further one. Default: 10,000.
    pub fn remembered(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// The validator. Nothing is asked for yet.
    ///
    /// # Errors
    /// [`Misconfigured`] where the issuer is none, or the endpoint may not be asked.
    pub fn build(self) -> Result<Introspection, Misconfigured> {
        check_issuer(&self.issuer)?;
        let fetch = Fetch::within(self.network).map_err(|error| Misconfigured::Local(error.to_string()))?;
        allowed(&fetch, &self.endpoint)?;
        Ok(Introspection {
            issuer: self.issuer,
            endpoint: self.endpoint,
            authorization: self.authorization,
            audiences: self.audiences,
            fetch,
            remember: self.remember,
            known: Mutex::new(Recent::new(self.most)),
            asking: Semaphore::new(MOST_ASKING),
        })
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl fmt::Debug for IntrospectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntrospectionBuilder").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
