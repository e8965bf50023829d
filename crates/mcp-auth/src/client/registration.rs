//! How a client becomes one of an authorization server.
//!
//! Specification: *Client Registration*; *RFC 7591*.

use serde::Deserialize;
use serde_json::json;

use super::{
    authentication::{BASIC, NONE, POST},
    discovery::ServerMetadata,
    error::AuthError,
    signing::ClientKey,
    store::ClientCredentials,
    tokens::OAuthError,
};
use crate::fetch::Fetch;

/// What a user says about registration. What comes first here is tried first.
#[derive(Clone, Default)]
pub(super) struct ClientRegistration {
    /// What the client is called, for users to read.
    pub(super) name: String,
    /// Each with the issuer that knows it.
    pub(super) known: Vec<(String, ClientCredentials)>,
    /// The URL of a Client ID Metadata Document.
    pub(super) document: Option<String>,
    /// What the client signs with.
    pub(super) key: Option<ClientKey>,
}

/// What a client is registered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Code,
    Device,
    Assertion,
    /// Clients that act for themselves are registered by people.
    ClientCredentials,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl Use {
    fn grant_types(self) -> &'static [&'static str] {
        match self {
            Self::Code => &["authorization_code", "refresh_token"],
            Self::Device => &["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
            Self::Assertion => &["urn:ietf:params:oauth:grant-type:jwt-bearer"],
            Self::ClientCredentials => &["client_credentials"],
        }
    }
}

impl ClientRegistration {
    /// Whether the user has a client of that issuer.
    pub(super) fn knows(&self, issuer: &str) -> bool {
        self.known.iter().any(|(known, _)| known == issuer)
    }

    /// What is kept of a client beside its tokens: of one that the user knows, no secret.
    pub(super) fn kept(&self, server: &ServerMetadata, client: &ClientCredentials) -> ClientCredentials {
        match self.known(server) {
            Some(known) if known.id == client.id => ClientCredentials::public(known.id),
            _ => client.clone(),
        }
    }

    /// What the server knows the client by without being asked.
    pub(super) fn known(&self, server: &ServerMetadata) -> Option<ClientCredentials> {
        let known = self.known.iter().find(|(issuer, _)| *issuer == server.issuer).map(|(_, client)| client.clone());
        let document = self.document.as_ref().filter(|_| server.client_id_metadata_document_supported);
        known.or_else(|| document.map(ClientCredentials::public))
    }

    /// Registers the client, for logins that end at `redirect_uri` where they end anywhere.
    pub(super) async fn register(
        &self,
        fetch: &Fetch,
        server: &ServerMetadata,
        of: Use,
        redirect_uri: Option<&str>,
    ) -> Result<ClientCredentials, AuthError> {
        let Some(endpoint) = server.registration_endpoint.as_ref().filter(|_| of != Use::ClientCredentials) else {
            let message = "the authorization server registers nobody by itself: register the client there, and give its \
                           id to `OAuthBuilder::client`";
            return Err(AuthError::Registration(message.to_owned()));
        };
        let mut about = json!({
            "client_name": self.name,
            "grant_types": of.grant_types(),
            "token_endpoint_auth_method": method(server),
            "application_type": "native",
        });
        if let Some(uri) = redirect_uri {
            about["redirect_uris"] = json!([uri]);
            about["response_types"] = json!(["code"]);
        }
        let answer = fetch.post(endpoint, "application/json", &[], about.to_string()).await?;
        if !answer.is_success() {
            let words = answer.json::<OAuthError>().map_or_else(|| format!("status {}", answer.status), |e| e.words());
            return Err(AuthError::Registration(words));
        }
        let registered: Registered =
            answer.json().ok_or_else(|| AuthError::Registration("the answer is no registration".to_owned()))?;
        Ok(ClientCredentials {
            id: registered.client_id,
            secret: registered.client_secret,
            method: registered.token_endpoint_auth_method,
            redirect_uri: redirect_uri.map(str::to_owned),
        })
    }
}

/// A client on a user's machine has no secret, unless the server takes none without.
fn method(server: &ServerMetadata) -> &'static str {
    let Some(methods) = &server.token_endpoint_auth_methods_supported else { return NONE };
    let offers = |method: &&str| methods.iter().any(|other| other == method);
    [NONE, BASIC, POST].into_iter().find(offers).unwrap_or(NONE)
}

/// What a registration endpoint answers.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let _ = serde_json::from_slice::<Registered>(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_registered_with_a_secret_only_where_none_is_not_enough() {
        for (methods, expected) in [
            (None, NONE),
            (Some(&["client_secret_basic", "none"][..]), NONE),
            (Some(&["client_secret_post", "client_secret_basic"]), BASIC),
            (Some(&["client_secret_post"]), POST),
            (Some(&["tls_client_auth"]), NONE),
        ] {
            let mut server = ServerMetadata::named("https://as.example");
            server.token_endpoint_auth_methods_supported =
                methods.map(|all| all.iter().map(|&one| one.to_owned()).collect());
            assert_eq!(method(&server), expected, "{methods:?}");
        }
        fuzz(br#"{"client_id":"a","client_secret":null}"#);
    }
}
