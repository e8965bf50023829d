//! How a client shows at an endpoint of an authorization server who it is.
//!
//! Specification: *RFC 6749, Client Authentication*; *RFC 7523, Using JWTs for Client Authentication*; *RFC 8414,
//! token_endpoint_auth_methods_supported*.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_core::Secrets;
use url::form_urlencoded::{self, Serializer};

use super::{discovery::ServerMetadata, error::AuthError, signing::ClientKey, store::ClientCredentials};

/// In the words of RFC 7591.
pub(super) const NONE: &str = "none";
pub(super) const BASIC: &str = "client_secret_basic";
pub(super) const POST: &str = "client_secret_post";
pub(super) const PRIVATE_KEY_JWT: &str = "private_key_jwt";

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A form that is sent, and the headers beside it.
pub(super) struct Request {
    pub(super) head: Vec<(&'static str, String)>,
    pub(super) form: String,
}

/// The parameters that are nobody else's to read.
const SECRET: [&str; 9] = [
    "actor_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "device_code",
    "refresh_token",
    "subject_token",
];

impl Request {
    /// What the server gets that errors must not repeat.
    pub(super) fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        self.head.iter().for_each(|(_, value)| secrets.add_header(value));
        let parameters = form_urlencoded::parse(self.form.as_bytes());
        parameters.filter(|(name, _)| SECRET.contains(&&**name)).for_each(|(_, value)| secrets.add(&value));
        secrets
    }
}

/// Who asks, and whom.
#[derive(Clone, Copy)]
pub(super) struct Identity<'a> {
    pub(super) server: &'a ServerMetadata,
    pub(super) client: &'a ClientCredentials,
    pub(super) key: Option<&'a ClientKey>,
}

impl Identity<'_> {
    /// A request with these parameters that shows who asks.
    ///
    /// # Errors
    /// When the client has not got what its method takes.
    pub(super) fn request(&self, parameters: &[(&str, &str)]) -> Result<Request, AuthError> {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(parameters);
        let mut head = Vec::new();
        let client = self.client;
        match self.method() {
            NONE => drop(form.append_pair("client_id", &client.id)),
            BASIC => head.push(("authorization", basic(&client.id, self.secret()?))),
            POST => drop(form.append_pair("client_id", &client.id).append_pair("client_secret", self.secret()?)),
            PRIVATE_KEY_JWT => {
                let assertion = self.key()?.assertion(&client.id, &self.server.issuer)?;
                form.append_pair("client_assertion_type", ASSERTION_TYPE).append_pair("client_assertion", &assertion);
            }
            other => {
                let message =
                    format!("it is to show who it is by `{}`, which is not known here", mcp_core::shown(other));
                return Err(AuthError::Registration(message));
            }
        }
        Ok(Request { head, form: form.finish() })
    }

    /// The method that the client was registered for, or else the best of those that both sides know. A server that does not
    /// say what it knows knows `client_secret_basic`.
    fn method(&self) -> &str {
        let offers = |method: &str| match &self.server.token_endpoint_auth_methods_supported {
            Some(methods) => methods.iter().any(|other| other == method),
            None => method == BASIC,
        };
        match (&self.client.method, &self.client.secret) {
            (Some(method), _) => method,
            (None, _) if self.key.is_some() && offers(PRIVATE_KEY_JWT) => PRIVATE_KEY_JWT,
            (None, Some(_)) if offers(BASIC) => BASIC,
            (None, Some(_)) => POST,
            (None, None) => NONE,
        }
    }

    fn secret(&self) -> Result<&str, AuthError> {
        self.client.secret.as_deref().ok_or_else(|| {
            AuthError::Registration(
                "it is to show who it is by a secret: give that to `OAuthBuilder::client`".to_owned(),
            )
        })
    }

    fn key(&self) -> Result<&ClientKey, AuthError> {
        self.key.ok_or_else(|| {
            AuthError::Registration("it is to sign who it is: give its key to `OAuthBuilder::client_key`".to_owned())
        })
    }
}

/// Specification: *RFC 6749, Client Password*: each half is encoded as in a form.
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::SigningAlgorithm;

    fn server(methods: Option<&[&str]>) -> ServerMetadata {
        let mut server = ServerMetadata::named("https://as.example");
        server.token_endpoint_auth_methods_supported = methods.map(|all| all.iter().map(|&one| one.into()).collect());
        server
    }

    fn method(client: &ClientCredentials, key: Option<&ClientKey>, methods: Option<&[&str]>) -> String {
        Identity { server: &server(methods), client, key }.method().to_owned()
    }

    #[test]
    fn basic_credentials_are_encoded_before_they_are_joined() {
        assert_eq!(basic("a:b", "p&+ x"), format!("Basic {}", STANDARD.encode("a%3Ab:p%26%2B+x")));
    }

    #[test]
    fn a_client_shows_who_it_is_in_the_best_way_that_both_sides_know() {
        let key = ClientKey::from_pem(SigningAlgorithm::EdDsa, include_str!("../../tests/keys/eddsa.pem")).unwrap();
        let (public, secret) = (ClientCredentials::public("id"), ClientCredentials::secret("id", "secret"));
        let mut registered = secret.clone();
        registered.method = Some(POST.to_owned());
        for (client, key, methods, expected) in [
            (&public, None, None, NONE),
            (&public, None, Some(&[BASIC][..]), NONE),
            (&public, Some(&key), None, NONE),
            (&public, Some(&key), Some(&[PRIVATE_KEY_JWT]), PRIVATE_KEY_JWT),
            (&secret, Some(&key), Some(&[BASIC, PRIVATE_KEY_JWT]), PRIVATE_KEY_JWT),
            (&secret, None, None, BASIC),
            (&secret, None, Some(&[POST, BASIC]), BASIC),
            (&secret, None, Some(&[POST]), POST),
            (&registered, None, Some(&[BASIC]), POST),
        ] {
            assert_eq!(method(client, key, methods), expected, "{client:?} {methods:?}");
        }
    }

    #[test]
    fn what_a_method_takes_and_is_not_there_is_named() {
        let server = server(None);
        for (method, expected) in
            [(BASIC, "OAuthBuilder::client`"), (POST, "secret"), (PRIVATE_KEY_JWT, "client_key"), ("tls", "`tls`")]
        {
            let client = ClientCredentials { method: Some(method.to_owned()), ..ClientCredentials::public("id") };
            let refused = Identity { server: &server, client: &client, key: None }.request(&[]);
            let error = refused.err().unwrap().to_string();
            assert!(error.contains(expected), "{method}: {error}");
        }
    }

    #[test]
    fn a_signed_client_is_named_in_what_it_signs_alone() {
        let key = ClientKey::from_pem(SigningAlgorithm::EdDsa, include_str!("../../tests/keys/eddsa.pem")).unwrap();
        let (server, client) = (server(Some(&[PRIVATE_KEY_JWT])), ClientCredentials::public("id"));
        let request = Identity { server: &server, client: &client, key: Some(&key) }.request(&[("a", "b")]).unwrap();
        assert!(request.head.is_empty());
        let names: Vec<_> =
            form_urlencoded::parse(request.form.as_bytes()).map(|(name, _)| name.into_owned()).collect();
        assert_eq!(names, ["a", "client_assertion_type", "client_assertion"]);
    }
}
