//! Tokens for what somebody else says of a user or a workload: no one logs in.
//!
//! Specification: *RFC 7523, Using JWTs as Authorization Grants*; *Enterprise-Managed Authorization*; *RFC 8693*.

use std::{fmt, sync::Arc};

use mcp_core::{BoxFuture, Error, ErrorKind};
use url::Url;

use super::{
    asking::Asking,
    authentication::Identity,
    discovery::{ServerMetadata, server_metadata},
    dpop::Nonce,
    error::AuthError,
    registration::Use,
    store::{ClientCredentials, Grant},
    tokens::{Failed, TokenClient},
};
use crate::fetch::Fetch;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const SAML2: &str = "urn:ietf:params:oauth:token-type:saml2";

/// What gives a JWT for the authorization server of an issuer.
pub(super) type Assertions = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, Error>> + Send + Sync>;

/// The identity provider of an organisation, which decides who of its users may use which MCP server by which client.
///
/// Specification: *Enterprise-Managed Authorization, Token Exchange*.
#[derive(Clone)]
pub struct IdentityProvider {
    issuer: String,
    token_endpoint: Option<String>,
    client: ClientCredentials,
    assertion_type: &'static str,
    assertions: Arc<dyn Fn() -> BoxFuture<'static, Result<String, Error>> + Send + Sync>,
}

impl IdentityProvider {
    /// The provider of that issuer, which knows the client by `client`. `id_token` gives the ID token of the user who is
    /// logged in, one that is good still; it is asked whenever an access token is needed.
    pub fn new<F>(
        issuer: impl Into<String>,
        client: ClientCredentials,
        id_token: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<String, Error>> + Send + 'static,
    {
        Self {
            issuer: issuer.into(),
            token_endpoint: None,
            client,
            assertion_type: ID_TOKEN,
            assertions: Arc::new(move || Box::pin(id_token())),
        }
    }

    /// What is given is a SAML 2.0 assertion, and no ID token.
    #[must_use]
    pub fn saml(mut self) -> Self {
        self.assertion_type = SAML2;
        self
    }

    /// Where the provider exchanges tokens. Default: where its metadata says.
    #[must_use]
    pub fn token_endpoint(mut self, url: impl Into<String>) -> Self {
        self.token_endpoint = Some(url.into());
        self
    }

    async fn metadata(&self, fetch: &Fetch) -> Result<ServerMetadata, AuthError> {
        if let Some(endpoint) = &self.token_endpoint {
            return Ok(ServerMetadata { token_endpoint: endpoint.clone(), ..ServerMetadata::named(&self.issuer) });
        }
        let absent = || AuthError::Discovery("the identity provider has no metadata".to_owned());
        server_metadata(fetch, &self.issuer).await?.ok_or_else(absent)
    }

    /// Exchanges what says who the user is for what the authorization server of the MCP server takes for that.
    async fn exchange(&self, asking: &Asking<'_>) -> Result<String, Failed> {
        let unfit = |error| Error::caused(ErrorKind::InvalidParams, "the identity provider's issuer is no URL", error);
        // The user names the provider, so that it may be in a network that the MCP server is not in.
        let fetch = Fetch::beside(&Url::parse(&self.issuer).map_err(unfit)?).map_err(AuthError::from)?;
        let (server, subject, nonce) = (self.metadata(&fetch).await?, (self.assertions)().await?, Nonce::default());
        let identity = Identity { server: &server, client: &self.client, key: asking.registration.key.as_ref() };
        let scope = asking.scopes.join(" ");
        let mut parameters = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", &asking.found.server.issuer),
            ("resource", &asking.found.resource),
            ("subject_token", &subject),
            ("subject_token_type", self.assertion_type),
        ];
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        let client = TokenClient { fetch: &fetch, identity, proof_key: None, nonce: &nonce };
        let exchanged = client.tokens(&parameters).await?;
        match exchanged.issued_token_type.as_deref() {
            Some(ID_JAG) => Ok(exchanged.access_token),
            _ => {
                Err(AuthError::Server("the identity provider gave something else than was asked for".to_owned()).into())
            }
        }
    }
}

/// It holds secrets.
impl fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdentityProvider").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Tokens for a user whom the organisation's identity provider knows.
pub(super) async fn managed(asking: &Asking<'_>, provider: &IdentityProvider) -> Result<Grant, Failed> {
    let client = asking.client(Use::Assertion).await?;
    let assertion = provider.exchange(asking).await?;
    asking.scoped_grant(&client, &[("grant_type", JWT_BEARER), ("assertion", &assertion)]).await
}

/// Tokens for a workload that its platform has given a name.
pub(super) async fn workload(asking: &Asking<'_>, assertions: &Assertions) -> Result<Grant, Failed> {
    let client = asking.client(Use::Assertion).await?;
    let assertion = assertions(asking.found.server.issuer.clone()).await?;
    asking.scoped_grant(&client, &[("grant_type", JWT_BEARER), ("assertion", &assertion)]).await
}
