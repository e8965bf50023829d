//! Signed objects, and the keys that they are verified with. Nothing in an object says where a key is looked for.
//!
//! Specification: *RFC 7515, JWS Compact Serialization*; *RFC 7517, JWK Format*; *RFC 8725*.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, crypto,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, ThumbprintHash},
};
use serde::Deserialize;
use serde_json::Value;

/// What is taken unless a server says otherwise. Whoever holds a key for these can check and not sign, so there is no `HS256`.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// The fewest bytes of an RSA modulus: 2048 bits.
const FEWEST_RSA_BYTES: usize = 256;
/// The most: 4096 bits, as more costs more than a request may.
const MOST_RSA_BYTES: usize = 512;

/// The head of a signed object. `jku`, `x5u` and `x5c` are not even read: a key from there would be the sender's own.
#[derive(Deserialize)]
pub(super) struct Head {
    pub(super) alg: String,
    pub(super) typ: Option<String>,
    pub(super) kid: Option<String>,
    /// What must be understood, of which nothing is.
    crit: Option<Value>,
    /// The key, which only proofs of its possession bring along.
    pub(super) jwk: Option<Value>,
}

impl Head {
    /// Whether its type is this, without regard to case and to the `application/` in front that may be left out.
    pub(super) fn is(&self, kind: &str) -> bool {
        let plain = |text: &str| {
            let text = text.to_ascii_lowercase();
            text.strip_prefix("application/").map_or(text.clone(), str::to_owned)
        };
        self.typ.as_deref().is_some_and(|typ| plain(typ) == plain(kind))
    }

    /// Its algorithm, if that is one of these.
    pub(super) fn algorithm(&self, allowed: &[Algorithm]) -> Option<Algorithm> {
        allowed.iter().copied().find(|&algorithm| name(algorithm) == self.alg)
    }
}

/// An algorithm's name on the wire.
pub(super) fn name(algorithm: Algorithm) -> String {
    format!("{algorithm:?}")
}

/// A signed object whose signature nobody has looked at.
pub(super) struct Jws<'a> {
    pub(super) head: Head,
    pub(super) payload: Vec<u8>,
    signed: &'a str,
    signature: &'a str,
}

impl<'a> Jws<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (head, payload) = signed.split_once('.')?;
        let head: Head = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(head).ok()?).ok()?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        head.crit.is_none().then_some(Self { head, payload, signed, signature })
    }

    /// Whether `key` has signed it by that algorithm.
    pub(super) fn is_signed_by(&self, key: &Key, algorithm: Algorithm) -> bool {
        key.fits(algorithm)
            && crypto::verify(self.signature, self.signed.as_bytes(), &key.decoding, algorithm).unwrap_or(false)
    }
}

/// A public key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) kid: Option<String>,
    fits: Vec<Algorithm>,
    decoding: DecodingKey,
    /// Its SHA-256 thumbprint (RFC 7638).
    pub(super) thumbprint: String,
}

impl Key {
    /// The key that `jwk` is; nothing where it is for encryption, shared, too weak, or of a kind that is not known.
    pub(super) fn read(jwk: &Value) -> Option<Self> {
        if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let jwk: Jwk = serde_json::from_value(jwk.clone()).ok()?;
        let mut fits = fitting(&jwk.algorithm)?;
        if let Some(only) = jwk.common.key_algorithm {
            fits.retain(|&algorithm| name(algorithm) == only.to_string());
        }
        let decoding = DecodingKey::from_jwk(&jwk).ok()?;
        let thumbprint = jwk.thumbprint(ThumbprintHash::SHA256).ok()?;
        (!fits.is_empty()).then_some(Self { kid: jwk.common.key_id, fits, decoding, thumbprint })
    }

    /// Whether it may verify by that algorithm: that of its own kind, and the one it names where it names one.
    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        self.fits.contains(&algorithm)
    }
}

fn fitting(parameters: &AlgorithmParameters) -> Option<Vec<Algorithm>> {
    Some(match parameters {
        AlgorithmParameters::RSA(key) => {
            let modulus = URL_SAFE_NO_PAD.decode(&key.n).ok()?;
            let bytes = modulus.len() - modulus.iter().take_while(|&&byte| byte == 0).count();
            (FEWEST_RSA_BYTES..=MOST_RSA_BYTES).contains(&bytes).then_some(())?;
            ALGORITHMS[3..].to_vec()
        }
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 if have(32, [&key.x, &key.y]) => vec![Algorithm::ES256],
            EllipticCurve::P384 if have(48, [&key.x, &key.y]) => vec![Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 && have(32, [&key.x]) => {
            vec![Algorithm::EdDSA]
        }
        _ => return None,
    })
}

/// Whether each is that many bytes. What verifies takes it for granted, and panics where it is not so.
fn have<const N: usize>(bytes: usize, coordinates: [&String; N]) -> bool {
    coordinates.iter().all(|text| URL_SAFE_NO_PAD.decode(text).is_ok_and(|decoded| decoded.len() == bytes))
}

#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(jws) = Jws::parse(&text) {
        let key = jws.head.jwk.as_ref().and_then(Key::read);
        let signed = key.zip(jws.head.algorithm(&ALGORITHMS)).map(|(key, by)| jws.is_signed_by(&key, by));
        let _ = (signed, jws.head.is("at+jwt"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_of_another_length_than_its_curve_has_is_none() {
        let of = |length: usize| URL_SAFE_NO_PAD.encode(vec![9; length]);
        for length in [0, 1, 31, 33, 64] {
            let key = json!({ "kty": "OKP", "crv": "Ed25519", "x": of(length) });
            assert!(Key::read(&key).is_none(), "{length}");
            let head = URL_SAFE_NO_PAD.encode(json!({ "alg": "EdDSA", "jwk": key }).to_string());
            fuzz(format!("{head}..{}", of(64)).as_bytes());
        }
        for (curve, wrong) in [("P-256", 31), ("P-256", 33), ("P-384", 47), ("P-384", 32)] {
            let key = json!({ "kty": "EC", "crv": curve, "x": of(wrong), "y": of(wrong) });
            assert!(Key::read(&key).is_none(), "{curve} of {wrong} bytes");
        }
        assert!(Key::read(&json!({ "kty": "OKP", "crv": "Ed25519", "x": of(32) })).is_some());
    }
}
