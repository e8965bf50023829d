//! What a server makes of proofs of possession, by other code than the client's.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, jwk::ThumbprintHash};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The proofs that were seen, and what the next ones have to hold.
#[derive(Default)]
pub(super) struct Proofs {
    /// The nonce that proofs must have, where they must.
    pub(super) nonce: Option<String>,
    /// How often a proof lacked it.
    pub(super) without_nonce: usize,
    seen: HashSet<String>,
}

impl Proofs {
    /// The thumbprint of the key that signed a proof of such a request; the nonce, where the proof lacks that.
    pub(super) fn judge(
        &mut self,
        proof: Option<&str>,
        method: &str,
        target: &str,
        token: Option<&str>,
    ) -> Result<String, Option<String>> {
        let proof = proof.expect("a proof comes with the request");
        let header = decode_header(proof).unwrap();
        assert_eq!(header.typ.as_deref(), Some("dpop+jwt"));
        let key = header.jwk.expect("a proof has its key");
        let mut wanted = Validation::new(Algorithm::ES256);
        wanted.required_spec_claims.clear();
        let claims = decode::<Value>(proof, &DecodingKey::from_jwk(&key).unwrap(), &wanted).unwrap().claims;
        assert_eq!((claims["htm"].as_str(), claims["htu"].as_str()), (Some(method), Some(target)));
        assert_eq!(
            claims["ath"].as_str().map(str::to_owned),
            token.map(|token| URL_SAFE_NO_PAD.encode(Sha256::digest(token)))
        );
        assert!(self.seen.insert(claims["jti"].as_str().unwrap().to_owned()), "a proof is shown once");
        if claims["nonce"].as_str() != self.nonce.as_deref() {
            self.without_nonce += 1;
            return Err(self.nonce.clone());
        }
        Ok(key.thumbprint(ThumbprintHash::SHA256).unwrap())
    }

    /// How many proofs were seen.
    pub(super) fn count(&self) -> usize {
        self.seen.len()
    }
}
