//! Proofs that whoever sends a token has the key that it is bound to.
//!
//! Specification: *RFC 9449, OAuth 2.0 Demonstrating Proof of Possession*.

use std::{fmt, sync::Mutex, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderName, Method};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use url::Url;

use super::{
    jws::{self, ALGORITHMS, Jws, Key},
    recent::Recent,
    refusal::Refusal,
};
use crate::{clock::now, lock::lock, resource::canonical};

pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// The longest proof, in bytes.
const MOST_BYTES: usize = 8 << 10;
/// The longest `jti`, in bytes.
const MOST_ID_BYTES: usize = 256;
/// How far ahead a client's clock may be, in seconds.
const AHEAD: u64 = 5;
/// How long a nonce is given out; it is taken for as long again.
const NONCE_TIME: Duration = Duration::from_secs(300);
/// What no public key has.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Takes tokens that are bound to a key (RFC 9449).
///
/// A proof is good for one request with its method, URL and token, for 60 s from when it was made. The URL is that of the
/// resource, or its origin with the path of the request. Proofs may have 8 KiB, and their `jti` 256 bytes. What was used is
/// remembered for as long as it would be good; while there is no room for more, requests get 503.
#[must_use]
pub struct Dpop {
    window: Duration,
    is_required: bool,
    nonces: Option<Mutex<Nonces>>,
    used: Mutex<Recent<()>>,
}

struct Nonces {
    current: String,
    previous: Option<String>,
    since: Instant,
}

/// What a proof must be about.
pub(super) struct Target<'a> {
    pub(super) method: &'a Method,
    pub(super) urls: [&'a str; 2],
    pub(super) token: &'a str,
    /// The thumbprint of the token's key.
    pub(super) bound: &'a str,
}

#[derive(Deserialize)]
struct Proof {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: String,
    nonce: Option<String>,
}

impl Default for Dpop {
    fn default() -> Self {
        Self::new()
    }
}

impl Dpop {
    /// Takes bound tokens beside others.
    pub fn new() -> Self {
        Self {
            window: Duration::from_secs(60),
            is_required: false,
            nonces: None,
            used: Mutex::new(Recent::new(100_000)),
        }
    }

    /// Takes no other tokens.
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Wants proofs to hold a nonce that the server has given within the last five to ten minutes: none can be made in advance.
    /// The nonces are of this process alone.
    pub fn nonces(mut self) -> Self {
        self.nonces = Some(Mutex::new(Nonces { current: String::new(), previous: None, since: Instant::now() }));
        self
    }

    /// Sets how old a proof may be. Default: 60 s.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets how many proofs are remembered at once. Default: 100,000, which is 1,500 requests a second.
    pub fn remembered(mut self, most: usize) -> Self {
        self.used = Mutex::new(Recent::new(most));
        self
    }

    pub(super) const fn is_required(&self) -> bool {
        self.is_required
    }

    pub(super) fn algorithms(&self) -> Vec<String> {
        ALGORITHMS.into_iter().map(jws::name).collect()
    }

    /// Whether the request has a proof that is about it, and that was never used.
    pub(super) fn check(&self, headers: &HeaderMap, target: &Target<'_>) -> Result<(), Refusal> {
        let mut lines = headers.get_all(DPOP).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return Err(Refusal::Proof("a token that is bound to a key needs one proof in the header DPoP"));
        };
        let text = line.to_str().ok().filter(|text| text.len() <= MOST_BYTES);
        let text = text.ok_or(Refusal::Proof("the proof is too long, or no text"))?;
        let (key, proof) = read(text).map_err(Refusal::Proof)?;
        proof.check(target, self.window.as_secs(), now()).map_err(Refusal::Proof)?;
        if key.thumbprint != target.bound {
            return Err(Refusal::Proof("the proof is by another key than the token's"));
        }
        self.check_nonce(proof.nonce.as_deref())?;
        self.check_unused(&key.thumbprint, &proof.jti)
    }

    fn check_nonce(&self, nonce: Option<&str>) -> Result<(), Refusal> {
        let Some(nonces) = &self.nonces else { return Ok(()) };
        let mut nonces = lock(nonces);
        nonces.turn(Instant::now())?;
        let is_given = nonce.is_some_and(|nonce| nonce == nonces.current || Some(nonce) == nonces.previous.as_deref());
        if is_given { Ok(()) } else { Err(Refusal::Nonce(nonces.current.clone())) }
    }

    fn check_unused(&self, thumbprint: &str, id: &str) -> Result<(), Refusal> {
        let digest = Sha256::new().chain_update(thumbprint).chain_update([0_u8]).chain_update(id).finalize().into();
        let (mut used, now) = (lock(&self.used), Instant::now());
        if used.get(&digest, now).is_some() {
            return Err(Refusal::Proof("the proof was used before"));
        }
        if !used.has_room(now) {
            return Err(Refusal::Unavailable("too many proofs are remembered at the moment".into()));
        }
        // It may have been made a moment ahead, and times are compared in whole seconds.
        used.insert(digest, (), self.window.saturating_add(Duration::from_secs(AHEAD + 1)), now);
        Ok(())
    }
}

impl Nonces {
    /// Makes a new one when it is time.
    fn turn(&mut self, now: Instant) -> Result<(), Refusal> {
        let age = now - self.since;
        if !self.current.is_empty() && age < NONCE_TIME {
            return Ok(());
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|_| Refusal::Unavailable("this server has no random numbers at the moment".into()))?;
        let current = std::mem::replace(&mut self.current, URL_SAFE_NO_PAD.encode(bytes));
        self.previous = Some(current).filter(|current| !current.is_empty() && age < 2 * NONCE_TIME);
        self.since = now;
        Ok(())
    }
}

/// A proof that is signed by the key it brings along, and that key.
fn read(text: &str) -> Result<(Key, Proof), &'static str> {
    let jws = Jws::parse(text).ok_or("the proof is no signed JWT")?;
    if !jws.head.is("dpop+jwt") {
        return Err("the proof is none by its type");
    }
    let algorithm = jws.head.algorithm(&ALGORITHMS).ok_or("the proof is signed by an algorithm that is not taken")?;
    let jwk = jws.head.jwk.as_ref().ok_or("the proof has no key")?;
    if PRIVATE.iter().any(|member| jwk.get(member).is_some()) {
        return Err("the proof shows a key that is private or shared: make another one");
    }
    let key = Key::read(jwk).ok_or("the proof's key is of no kind that is taken")?;
    if !jws.is_signed_by(&key, algorithm) {
        return Err("the proof's signature is wrong");
    }
    let proof =
        serde_json::from_slice(&jws.payload).map_err(|_| "the proof lacks a claim, or has one that is no such")?;
    Ok((key, proof))
}

impl Proof {
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact for millions of years")]
    fn check(&self, target: &Target<'_>, window: u64, now: u64) -> Result<(), &'static str> {
        if self.jti.is_empty() || self.jti.len() > MOST_ID_BYTES {
            return Err("the proof's id is empty or too long");
        }
        if self.htm != target.method.as_str() {
            return Err("the proof is for another method");
        }
        let url = Url::parse(&self.htu).map(|url| canonical(&url)).map_err(|_| "the proof's URL is none")?;
        if !target.urls.iter().any(|ours| Url::parse(ours).is_ok_and(|ours| canonical(&ours) == url)) {
            return Err("the proof is for another URL");
        }
        if !(now.saturating_sub(window) as f64..=(now + AHEAD) as f64).contains(&self.iat) {
            return Err("the proof is too old, or of a time to come");
        }
        if self.ath != URL_SAFE_NO_PAD.encode(Sha256::digest(target.token)) {
            return Err("the proof is for another token");
        }
        Ok(())
    }
}

impl fmt::Debug for Dpop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Dpop");
        shown.field("window", &self.window).field("is_required", &self.is_required).finish_non_exhaustive()
    }
}

#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let urls = ["https://h/mcp", "https://h/mcp"];
    let target = Target { method: &Method::POST, urls, token: "token", bound: "" };
    if let Ok((_, proof)) = read(&text) {
        let _ = proof.check(&target, 60, 1_000);
    }
    if let Ok(proof) = serde_json::from_slice::<Proof>(data) {
        let _ = proof.check(&target, 60, 1_000);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn proof(iat: f64) -> Proof {
        let ath = URL_SAFE_NO_PAD.encode(Sha256::digest("token"));
        let (htm, htu) = ("POST".to_owned(), "https://h/mcp".to_owned());
        Proof { jti: "j".repeat(MOST_ID_BYTES), htm, htu, iat, ath, nonce: None }
    }

    #[test]
    fn a_proof_is_good_up_to_the_edges_of_its_time() {
        let urls = ["https://h/mcp", "https://h/mcp"];
        let target = Target { method: &Method::POST, urls, token: "token", bound: "" };
        for (iat, is_good) in [(939.0, false), (940.0, true), (940.5, true), (1005.0, true), (1005.5, false)] {
            assert_eq!(proof(iat).check(&target, 60, 1_000).is_ok(), is_good, "{iat}");
        }
        assert!(proof(f64::NAN).check(&target, 60, 1_000).is_err());
    }

    fn wanted(dpop: &Dpop, nonce: Option<&str>) -> Option<String> {
        match dpop.check_nonce(nonce) {
            Err(Refusal::Nonce(wanted)) => Some(wanted),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_nonce_is_taken_for_as_long_again_as_it_is_given_out() {
        let dpop = Dpop::new().nonces();
        let first = wanted(&dpop, None).unwrap();
        assert_eq!(wanted(&dpop, Some(&first)), None);
        advance(NONCE_TIME).await;
        let second = wanted(&dpop, Some("")).unwrap();
        assert_ne!(first, second);
        assert_eq!((wanted(&dpop, Some(&first)), wanted(&dpop, Some(&second))), (None, None));
        advance(NONCE_TIME).await;
        assert!(wanted(&dpop, Some(&first)).is_some() && wanted(&dpop, Some(&second)).is_none());
        advance(NONCE_TIME * 2).await;
        assert!(wanted(&dpop, Some(&second)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_proof_is_remembered_for_as_long_as_it_would_be_good() {
        let dpop = Dpop::new();
        assert!(dpop.check_unused("key", "id").is_ok() && dpop.check_unused("other", "id").is_ok());
        advance(Duration::from_secs(60 + AHEAD)).await;
        assert!(dpop.check_unused("key", "id").is_err());
        advance(Duration::from_secs(1)).await;
        assert!(dpop.check_unused("key", "id").is_ok());
    }
}
