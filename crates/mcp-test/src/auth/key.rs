//! Keys that sign.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, EncodingKey,
    crypto::sign,
    jwk::{Jwk, ThumbprintHash},
};
use serde_json::Value;

/// What stands in front of the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A key that signs tokens and proofs by `EdDSA`: an authorization server's, or a client's for DPoP.
#[derive(Clone)]
pub struct SigningKey {
    encoding: EncodingKey,
    jwk: Value,
    thumbprint: String,
}

impl SigningKey {
    /// Another key each time.
    ///
    /// # Panics
    /// When this machine has no random numbers.
    #[must_use]
    pub fn random() -> Self {
        let mut der = [0; 48];
        der[..16].copy_from_slice(&PKCS8);
        getrandom::fill(&mut der[16..]).unwrap_or_else(|error| panic!("no random numbers: {error}"));
        let encoding = EncodingKey::from_ed_der(&der);
        let jwk = Jwk::from_encoding_key(&encoding, Algorithm::EdDSA).unwrap_or_else(|error| panic!("no key: {error}"));
        let thumbprint =
            jwk.thumbprint(ThumbprintHash::SHA256).unwrap_or_else(|error| panic!("no thumbprint: {error}"));
        let jwk = serde_json::to_value(jwk).unwrap_or_else(|error| panic!("no JSON: {error}"));
        Self { encoding, jwk, thumbprint }
    }

    /// The public key, without a `kid`.
    #[must_use]
    pub fn jwk(&self) -> &Value {
        &self.jwk
    }

    /// Its SHA-256 thumbprint (RFC 7638).
    #[must_use]
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// A signed object with exactly that head, whatever it says, and these claims.
    ///
    /// # Panics
    /// When it cannot be signed, which does not happen.
    #[must_use]
    pub fn sign(&self, head: &Value, claims: &Value) -> String {
        let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encoded(head), encoded(claims));
        let signature = sign(signed.as_bytes(), &self.encoding, Algorithm::EdDSA);
        format!("{signed}.{}", signature.unwrap_or_else(|error| panic!("nothing was signed: {error}")))
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("thumbprint", &self.thumbprint).finish_non_exhaustive()
    }
}
