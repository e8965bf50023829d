//! Keys that a client signs with, and what it signs with them.
//!
//! Specification: *RFC 7523, Using JWTs for Client Authentication*; *RFC 7515*.

use std::{fmt, sync::Arc};

use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    crypto::{CryptoProvider, rust_crypto},
    encode,
};
use mcp_core::{Error, ErrorKind};
use serde::Serialize;

use super::{error::AuthError, pkce::secret};
use crate::clock::now;

/// How long what a client signs of itself is good for, in seconds: as long as a request may take, and clocks may differ.
const LIFETIME: u64 = 60;

/// How a [`ClientKey`] signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SigningAlgorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// Ed25519.
    EdDsa,
}

/// The private key by which a client shows who it is, in place of a secret (`private_key_jwt`).
///
/// What is signed is for one authorization server, named by its issuer, and good for a minute.
///
/// Specification: *RFC 7523*; *OAuth Client Credentials, Client Authentication Methods*.
#[derive(Clone)]
pub struct ClientKey {
    algorithm: Algorithm,
    key: Arc<EncodingKey>,
    id: Option<String>,
}

#[derive(Serialize)]
struct Assertion<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: String,
    iat: u64,
    exp: u64,
}

impl ClientKey {
    /// The key of that PEM text, in the form of PKCS #8.
    ///
    /// # Errors
    /// When it is no private key, or none that signs that way.
    pub fn from_pem(algorithm: SigningAlgorithm, pem: &str) -> Result<Self, Error> {
        let (algorithm, key) = match algorithm {
            SigningAlgorithm::Es256 => (Algorithm::ES256, EncodingKey::from_ec_pem(pem.as_bytes())),
            SigningAlgorithm::Rs256 => (Algorithm::RS256, EncodingKey::from_rsa_pem(pem.as_bytes())),
            SigningAlgorithm::EdDsa => (Algorithm::EdDSA, EncodingKey::from_ed_pem(pem.as_bytes())),
        };
        let unfit =
            |_| Error::new(ErrorKind::InvalidParams, "the client's key is no private key in PKCS #8 that signs so");
        let key = Self { algorithm, key: Arc::new(key.map_err(unfit)?), id: None };
        // Whether a key fits shows when it signs.
        key.sign(&()).map_err(unfit)?;
        Ok(key)
    }

    /// The name that the authorization server knows the key by (`kid`).
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// That whoever holds the key is that client, told to the authorization server of that issuer.
    pub(super) fn assertion(&self, client_id: &str, issuer: &str) -> Result<String, AuthError> {
        let iat = now();
        let claims =
            Assertion { iss: client_id, sub: client_id, aud: issuer, jti: secret()?, iat, exp: iat + LIFETIME };
        self.sign(&claims).map_err(|error| AuthError::Local(error.to_string()))
    }

    fn sign(&self, claims: &impl Serialize) -> jsonwebtoken::errors::Result<String> {
        sign(&Header { kid: self.id.clone(), ..Header::new(self.algorithm) }, claims, &self.key)
    }
}

/// It is a secret.
impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKey").field("algorithm", &self.algorithm).field("id", &self.id).finish_non_exhaustive()
    }
}

/// Claims as a signed JWT.
pub(super) fn sign(
    header: &Header,
    claims: &impl Serialize,
    key: &EncodingKey,
) -> jsonwebtoken::errors::Result<String> {
    choose_provider();
    encode(header, claims, key)
}

/// `jsonwebtoken` panics where two of its providers are compiled in and nobody has chosen.
pub(super) fn choose_provider() {
    if CryptoProvider::try_get_default().is_none() {
        // Somebody else may have chosen at this moment, which is as good.
        let _ = rust_crypto::DEFAULT_PROVIDER.install_default();
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
    use serde_json::Value;

    use super::*;

    const ES256: &str = include_str!("../../tests/keys/es256.pem");
    const RS256: &str = include_str!("../../tests/keys/rs256.pem");
    const EDDSA: &str = include_str!("../../tests/keys/eddsa.pem");

    #[test]
    fn an_assertion_says_who_signs_it_and_for_whom() {
        for (algorithm, name, private, public) in [
            (SigningAlgorithm::Es256, Algorithm::ES256, ES256, include_str!("../../tests/keys/es256.pub.pem")),
            (SigningAlgorithm::Rs256, Algorithm::RS256, RS256, include_str!("../../tests/keys/rs256.pub.pem")),
            (SigningAlgorithm::EdDsa, Algorithm::EdDSA, EDDSA, include_str!("../../tests/keys/eddsa.pub.pem")),
        ] {
            let key = ClientKey::from_pem(algorithm, private).unwrap().id("key 1");
            let signed = key.assertion("client", "https://as.example/tenant").unwrap();
            let public = match algorithm {
                SigningAlgorithm::Es256 => DecodingKey::from_ec_pem(public.as_bytes()),
                SigningAlgorithm::Rs256 => DecodingKey::from_rsa_pem(public.as_bytes()),
                SigningAlgorithm::EdDsa => DecodingKey::from_ed_pem(public.as_bytes()),
            };
            let mut wanted = Validation::new(name);
            wanted.set_audience(&["https://as.example/tenant"]);
            wanted.set_issuer(&["client"]);
            let claims = decode::<Value>(&signed, &public.unwrap(), &wanted).unwrap().claims;
            assert_eq!(claims["sub"], "client");
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), LIFETIME);
            assert_eq!(decode_header(&signed).unwrap().kid.as_deref(), Some("key 1"));
        }
    }

    #[test]
    fn no_two_assertions_are_the_same() {
        let key = ClientKey::from_pem(SigningAlgorithm::EdDsa, EDDSA).unwrap();
        assert_ne!(key.assertion("client", "https://as").unwrap(), key.assertion("client", "https://as").unwrap());
    }

    #[test]
    fn a_key_that_does_not_fit_is_refused_without_being_shown() {
        for (algorithm, pem) in [
            (SigningAlgorithm::Es256, RS256),
            (SigningAlgorithm::Rs256, ES256),
            (SigningAlgorithm::EdDsa, ES256),
            (SigningAlgorithm::Es256, include_str!("../../tests/keys/es256.pub.pem")),
            (SigningAlgorithm::Es256, "SECRET"),
            (SigningAlgorithm::Es256, ""),
        ] {
            let error = ClientKey::from_pem(algorithm, pem).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidParams);
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        let shown = format!("{:?}", ClientKey::from_pem(SigningAlgorithm::Es256, ES256).unwrap());
        assert!(shown.starts_with("ClientKey { algorithm: ES256, id: None"), "{shown}");
    }
}
