//! What a user says of a client's credentials.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_core::{BoxFuture, Error, ErrorKind};
use url::Url;

use super::{
    ClientCredentials, ClientKey, DeviceCode, IdentityProvider, Inner, MemoryStore, OAuth, TokenStore, flow::Flow,
    registration::ClientRegistration,
};

/// How long a user may take to log in, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a user says about credentials.
#[must_use = "it does nothing until it is built"]
pub struct OAuthBuilder(Inner);

impl OAuth {
    /// Credentials of a user, for a client of that name, which users read when they log in. `opener` shows a URL to the user,
    /// as by opening a browser; what it returns is not waited for longer than for the login.
    ///
    /// Specification: *Authorization, Authorization Flow Steps*.
    pub fn builder<F>(name: impl Into<String>, opener: impl Fn(Url) -> F + Send + Sync + 'static) -> OAuthBuilder
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let opener = move |url| -> BoxFuture<'static, Result<(), Error>> { Box::pin(opener(url)) };
        OAuthBuilder::new(name, Flow::Code(Arc::new(opener)))
    }

    /// Credentials of a user who logs in on another device, as this one has no browser. `show` shows what the user needs for
    /// that; the login goes on when it is done.
    ///
    /// Specification: *RFC 8628*.
    pub fn device<F>(name: impl Into<String>, show: impl Fn(DeviceCode) -> F + Send + Sync + 'static) -> OAuthBuilder
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let show = move |code| -> BoxFuture<'static, Result<(), Error>> { Box::pin(show(code)) };
        OAuthBuilder::new(name, Flow::Device(Arc::new(show)))
    }

    /// Credentials of a client that acts for itself, as a service does. It shows who it is by what [`OAuthBuilder::client`]
    /// and [`OAuthBuilder::client_key`] say.
    ///
    /// Specification: *OAuth Client Credentials*; *RFC 6749, Client Credentials Grant*.
    pub fn client_credentials() -> OAuthBuilder {
        OAuthBuilder::new("", Flow::ClientCredentials)
    }

    /// Credentials of a workload that has no secret, but a platform that says who it is. `assertion` gives that as a JWT for
    /// the authorization server whose issuer it is called with; it is asked whenever an access token is needed.
    ///
    /// Specification: *RFC 7523, Using JWTs as Authorization Grants*.
    pub fn workload<F>(assertion: impl Fn(String) -> F + Send + Sync + 'static) -> OAuthBuilder
    where
        F: Future<Output = Result<String, Error>> + Send + 'static,
    {
        let assertion = move |issuer| -> BoxFuture<'static, Result<String, Error>> { Box::pin(assertion(issuer)) };
        OAuthBuilder::new("", Flow::Workload(Arc::new(assertion)))
    }

    /// Credentials of a user of an organisation, whose identity provider decides what the user may use.
    ///
    /// Specification: *Enterprise-Managed Authorization*.
    pub fn managed(name: impl Into<String>, provider: IdentityProvider) -> OAuthBuilder {
        OAuthBuilder::new(name, Flow::Managed(provider))
    }
}

impl OAuthBuilder {
    fn new(name: impl Into<String>, flow: Flow) -> Self {
        Self(Inner {
            flow,
            registration: ClientRegistration { name: name.into(), ..ClientRegistration::default() },
            scopes: Vec::new(),
            store: Arc::new(MemoryStore::default()),
            patience: PATIENCE,
            servers: Mutex::default(),
        })
    }

    /// What the authorization server of that issuer knows the client by. It is told to no other.
    pub fn client(mut self, issuer: impl Into<String>, client: ClientCredentials) -> Self {
        self.0.registration.known.push((issuer.into(), client));
        self
    }

    /// What the client signs who it is with, at authorization servers that know its public key.
    pub fn client_key(mut self, key: ClientKey) -> Self {
        self.0.registration.key = Some(key);
        self
    }

    /// The URL of the client's metadata, for authorization servers that read such. It must be `https` with a path; what is
    /// there must have `http://127.0.0.1/callback` among its redirect URIs, for any port.
    ///
    /// Specification: *Client Registration, Client ID Metadata Documents*.
    pub fn client_id_document(mut self, url: impl Into<String>) -> Self {
        self.0.registration.document = Some(url.into());
        self
    }

    /// Scopes that tokens are asked for with, beside those that servers want. Default: none.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.0.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Where tokens are kept. Default: in memory.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// How long a user may take to log in. Default: 5 minutes.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.0.patience = patience;
        self
    }

    /// The credentials.
    ///
    /// # Errors
    /// When the URL of the client's metadata is not one that may be.
    pub fn build(self) -> Result<OAuth, Error> {
        if let Some(document) = &self.0.registration.document {
            let is_fit = Url::parse(document).is_ok_and(|url| url.scheme() == "https" && url.path().len() > 1);
            if !is_fit {
                let message = "the URL of the client's metadata must be https, with a path";
                return Err(Error::new(ErrorKind::InvalidParams, message));
            }
        }
        Ok(OAuth(Arc::new(self.0)))
    }
}

/// It holds secrets.
impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_id_document_is_https_with_a_path() {
        for (url, expected) in [
            ("https://app.example/client.json", true),
            ("https://app.example/", false),
            ("http://app.example/client.json", false),
            ("client.json", false),
        ] {
            let built = OAuth::client_credentials().client_id_document(url).build();
            assert_eq!(built.is_ok(), expected, "{url}");
        }
    }
}
