//! What every way to a token has to work with.

use super::{
    authentication::Identity,
    discovery::Discovered,
    dpop::{Nonce, ProofKey},
    error::AuthError,
    registration::{ClientRegistration, Use},
    store::{ClientCredentials, Grant},
    tokens::{Failed, TokenClient, Tokens},
};
use crate::{clock::now, fetch::Fetch};

/// A token that is asked for, for one resource at one authorization server.
pub(super) struct Asking<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) found: &'a Discovered,
    pub(super) registration: &'a ClientRegistration,
    /// What the authorization server wants in proofs.
    pub(super) nonce: &'a Nonce,
    /// What tokens are to be bound to, where to any.
    pub(super) proof_key: Option<ProofKey>,
    pub(super) scopes: Vec<String>,
    /// What the authorization server knew the client by before.
    pub(super) before: Option<ClientCredentials>,
}

impl Asking<'_> {
    /// What the authorization server knows the client by: what the user said, what was registered before, or what is
    /// registered now.
    pub(super) async fn client(&self, of: Use) -> Result<ClientCredentials, AuthError> {
        let server = &self.found.server;
        match self.registration.known(server).or_else(|| self.before.clone()) {
            Some(client) => Ok(client),
            None => self.registration.register(self.fetch, server, of, None).await,
        }
    }

    /// What asks the authorization server as that client.
    pub(super) fn as_client<'a>(&'a self, client: &'a ClientCredentials) -> TokenClient<'a> {
        let identity = Identity { server: &self.found.server, client, key: self.registration.key.as_ref() };
        TokenClient { fetch: self.fetch, identity, proof_key: self.proof_key.as_ref(), nonce: self.nonce }
    }

    /// Asks for tokens for the resource.
    pub(super) async fn grant(&self, client: &ClientCredentials, parameters: &[(&str, &str)]) -> Result<Grant, Failed> {
        let parameters = [parameters, &[("resource", &self.found.resource)]].concat();
        let tokens = self.as_client(client).tokens(&parameters).await?;
        Ok(self.read(tokens, client)?)
    }

    /// The same, for a grant that no user has agreed to scopes for.
    pub(super) async fn scoped_grant(
        &self,
        client: &ClientCredentials,
        parameters: &[(&str, &str)],
    ) -> Result<Grant, Failed> {
        let scope = self.scopes.join(" ");
        let scope: &[_] = if scope.is_empty() { &[] } else { &[("scope", scope.as_str())] };
        self.grant(client, &[parameters, scope].concat()).await
    }

    /// What is not said of scopes is as it was asked for.
    fn read(&self, tokens: Tokens, client: &ClientCredentials) -> Result<Grant, AuthError> {
        let given = tokens.scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
        Ok(Grant {
            proof_key: self.bound(&tokens.token_type)?,
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token,
            expires_at: tokens.expires_in.map(|seconds| now().saturating_add(seconds)),
            scopes: given.unwrap_or_else(|| self.scopes.clone()),
            client: self.registration.kept(&self.found.server, client),
        })
    }

    /// What a token of that type is bound to. A server may give one that is anybody's, where that is enough for the resource.
    fn bound(&self, token_type: &str) -> Result<Option<ProofKey>, AuthError> {
        let refused = |why: &str| Err(AuthError::Server(why.to_owned()));
        match &self.proof_key {
            Some(key) if token_type.eq_ignore_ascii_case("dpop") => Ok(Some(key.clone())),
            Some(_) if self.found.requires_dpop => {
                refused("it gave a token that is bound to no key, which the server wants")
            }
            _ if token_type.eq_ignore_ascii_case("bearer") => Ok(None),
            _ => refused("it gave a token of a type that was not asked for"),
        }
    }
}
