//! Tokens that are good for the holder of a key alone, and proofs that the client is that.
//!
//! Specification: *RFC 9449*.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, ThumbprintHash},
};
use p256::{ecdsa::SigningKey, pkcs8::EncodePrivateKey as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use url::{Position, Url};

use super::{
    error::AuthError,
    pkce::secret,
    signing::{choose_provider, sign},
};
use crate::{clock::now, lock::lock};

/// The one algorithm of this client's proofs, as metadata names it.
pub(super) const ALGORITHM: &str = "ES256";

/// How long a nonce may be; a server that sends longer ones would have every request grow.
const LONGEST_NONCE: usize = 1024;

/// The private key that a token is bound to. It is made for a login, and kept with what the login brought.
///
/// Specification: *RFC 9449, Demonstrating Proof of Possession*.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProofKey(Arc<Parts>);

struct Parts {
    /// PKCS #8, in Base64.
    text: String,
    private: EncodingKey,
    public: Jwk,
}

#[derive(Serialize)]
struct Claims<'a> {
    jti: String,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
}

impl ProofKey {
    /// A key that nobody else has.
    pub(super) fn generate() -> Result<Self, AuthError> {
        let mut scalar = [0; 32];
        // Nearly every number is a key.
        loop {
            getrandom::fill(&mut scalar).map_err(|error| AuthError::Local(error.to_string()))?;
            if let Ok(key) = SigningKey::from_slice(&scalar) {
                let der = key.to_pkcs8_der().map_err(|error| AuthError::Local(error.to_string()))?;
                return Self::read(URL_SAFE_NO_PAD.encode(der.as_bytes()));
            }
        }
    }

    fn read(text: String) -> Result<Self, AuthError> {
        let unfit = || AuthError::Store("a key that is kept there is none".to_owned());
        let der = URL_SAFE_NO_PAD.decode(&text).map_err(|_| unfit())?;
        let private = EncodingKey::from_ec_der(&der);
        choose_provider();
        let mut public = Jwk::from_encoding_key(&private, Algorithm::ES256).map_err(|_| unfit())?;
        public.common.key_algorithm = None;
        Ok(Self(Arc::new(Parts { text, private, public })))
    }

    /// What a token is bound to (`jkt`).
    pub(super) fn thumbprint(&self) -> Result<String, AuthError> {
        let thumbprint = self.0.public.thumbprint(ThumbprintHash::SHA256);
        thumbprint.map_err(|error| AuthError::Local(error.to_string()))
    }

    /// That whoever sends this request holds the key, and the token where there is one.
    pub(super) fn proof(
        &self,
        method: &str,
        url: &Url,
        token: Option<&str>,
        nonce: &Nonce,
    ) -> Result<String, AuthError> {
        let target = target(url);
        let claims = Claims {
            jti: secret()?,
            htm: method,
            htu: &target,
            iat: now(),
            ath: token.map(|token| URL_SAFE_NO_PAD.encode(Sha256::digest(token))),
            nonce: nonce.get(),
        };
        let header = Header {
            typ: Some("dpop+jwt".to_owned()),
            jwk: Some(self.0.public.clone()),
            ..Header::new(Algorithm::ES256)
        };
        sign(&header, &claims, &self.0.private).map_err(|error| AuthError::Local(error.to_string()))
    }
}

/// A URL without query and fragment; the upgrade to a WebSocket is a request of HTTP.
fn target(url: &Url) -> String {
    let bare = &url[..Position::AfterPath];
    match bare.strip_prefix("ws") {
        Some(rest) => format!("http{rest}"),
        None => bare.to_owned(),
    }
}

impl TryFrom<String> for ProofKey {
    type Error = AuthError;

    fn try_from(text: String) -> Result<Self, AuthError> {
        Self::read(text)
    }
}

impl From<ProofKey> for String {
    fn from(key: ProofKey) -> Self {
        key.0.text.clone()
    }
}

impl PartialEq for ProofKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for ProofKey {}

/// It is a secret.
impl fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProofKey").finish_non_exhaustive()
    }
}

/// What a server wants to see in the next proof, where it wants anything.
#[derive(Default)]
pub(super) struct Nonce(Mutex<Option<String>>);

impl Nonce {
    /// The newest counts. One that no server has a reason to send is passed over.
    pub(super) fn set(&self, nonce: &str) {
        if !nonce.is_empty() && nonce.len() <= LONGEST_NONCE {
            *lock(&self.0) = Some(nonce.to_owned());
        }
    }

    fn get(&self) -> Option<String> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
    use serde_json::Value;

    use super::*;

    /// The claims of a proof, whose signature is that of the key in it.
    fn read(proof: &str) -> Value {
        let header = decode_header(proof).unwrap();
        assert_eq!((header.typ.as_deref(), header.alg), (Some("dpop+jwt"), Algorithm::ES256));
        let mut wanted = Validation::new(Algorithm::ES256);
        wanted.required_spec_claims.clear();
        decode(proof, &DecodingKey::from_jwk(&header.jwk.unwrap()).unwrap(), &wanted).unwrap().claims
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_proof_is_about_one_request_one_token_and_the_newest_nonce() {
        let (key, nonce) = (ProofKey::generate().unwrap(), Nonce::default());
        let claims = read(&key.proof("POST", &url("https://h/mcp?q=1#f"), None, &nonce).unwrap());
        assert_eq!((&claims["htm"], &claims["htu"]), (&"POST".into(), &"https://h/mcp".into()));
        assert!(claims.get("ath").is_none() && claims.get("nonce").is_none(), "{claims}");
        nonce.set("one");
        nonce.set("two");
        let again = read(&key.proof("GET", &url("wss://h/mcp"), Some("token"), &nonce).unwrap());
        assert_eq!((&again["htm"], &again["htu"]), (&"GET".into(), &"https://h/mcp".into()));
        assert_eq!(again["ath"], URL_SAFE_NO_PAD.encode(Sha256::digest("token")));
        assert_eq!(again["nonce"], "two");
        assert_ne!(claims["jti"], again["jti"]);
    }

    #[test]
    fn the_key_in_a_proof_is_public_and_the_one_that_was_kept() {
        let key = ProofKey::generate().unwrap();
        let kept: ProofKey = serde_json::from_str(&serde_json::to_string(&key).unwrap()).unwrap();
        assert_eq!(kept, key);
        assert_ne!(ProofKey::generate().unwrap(), key);
        let proof = kept.proof("POST", &url("https://h"), None, &Nonce::default()).unwrap();
        let shown = decode_header(&proof).unwrap().jwk.unwrap();
        assert_eq!(shown.thumbprint(ThumbprintHash::SHA256).unwrap(), key.thumbprint().unwrap());
        let shown = serde_json::to_value(&shown).unwrap();
        assert_eq!(shown.as_object().unwrap().keys().collect::<Vec<_>>(), ["crv", "kty", "x", "y"]);
    }

    #[test]
    fn what_is_kept_and_is_no_key_is_refused() {
        for text in ["\"\"", "\"AAAA\"", "\"=\"", "1"] {
            assert!(serde_json::from_str::<ProofKey>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_nonce_of_1024_bytes_is_taken_and_a_longer_one_is_not() {
        let nonce = Nonce::default();
        for (length, expected) in [(LONGEST_NONCE, Some(LONGEST_NONCE)), (LONGEST_NONCE + 1, Some(LONGEST_NONCE))] {
            nonce.set(&"n".repeat(length));
            assert_eq!(nonce.get().map(|nonce| nonce.len()), expected);
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        assert_eq!(format!("{:?}", ProofKey::generate().unwrap()), "ProofKey { .. }");
    }
}
