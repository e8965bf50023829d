//! How a client becomes one of an authorization server.
//!
//! Specification: *Client Registration*; *RFC 7591*.

use mcp_core::Secrets;
use serde::Deserialize;
use serde_json::json;

use super::{discovery::ServerMetadata, error::AuthError, store::ClientCredentials, tokens::OAuthError};
use crate::fetch::Fetch;

/// What a user says about registration. What comes first here is tried first.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientRegistration {
    /// What the client is called, for users to read.
    pub(super) name: String,
    /// Each with the issuer that knows it.
    pub(super) known: Vec<(String, ClientCredentials)>,
    /// The URL of a Client ID Metadata Document.
    pub(super) document: Option<String>,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl ClientRegistration {
    /// What the server knows the client by without being asked.
    pub(super) fn of(&self, server: &ServerMetadata) -> Option<ClientCredentials> {
        let known = self.known.iter().find(|(issuer, _)| *issuer == server.issuer).map(|(_, client)| client.clone());
        let document = self.document.as_ref().filter(|_| server.client_id_metadata_document_supported);
        known.or_else(|| document.map(ClientCredentials::public))
    }

    /// Registers the client for logins that end at `redirect_uri`.
    pub(super) async fn register(
        &self,
        fetch: &Fetch,
        server: &ServerMetadata,
        redirect_uri: &str,
    ) -> Result<ClientCredentials, AuthError> {
        let Some(endpoint) = &server.registration_endpoint else {
            let message = "the authorization server registers nobody by itself: register the client there, and give its \
                           id to `OAuthBuilder::client`";
            return Err(AuthError::Registration(message.to_owned()));
        };
        let about = json!({
            "client_name": self.name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        });
        let answer = fetch.post(endpoint, "application/json", &[], about.to_string()).await?;
        if !answer.is_success() {
            let words = answer
                .json::<OAuthError>()
                .map_or_else(|| format!("status {}", answer.status), |e| e.words(&Secrets::default()));
            return Err(AuthError::Registration(words));
        }
        let registered: Registered =
            answer.json().ok_or_else(|| AuthError::Registration("the answer is no registration".to_owned()))?;
        Ok(ClientCredentials {
            id: registered.client_id,
            secret: registered.client_secret,
            method: registered.token_endpoint_auth_method,
            redirect_uri: Some(redirect_uri.to_owned()),
        })
    }
}
