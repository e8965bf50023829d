//! The keys of an issuer, and how they are renewed.
//!
//! Specification: *RFC 7517, JWK Set Format*.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use jsonwebtoken::Algorithm;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{jws::Key, validator::TokenError};
use crate::{fetch::Fetch, lock::lock};

/// The most keys of a document that are kept.
const MOST_KEYS: usize = 100;
/// The longest `kid` that is looked for.
const MOST_KID_BYTES: usize = 256;
/// How long keys are used that could not be renewed.
const MOST_STALE: Duration = Duration::from_secs(24 * 60 * 60);

const NO_KEYS: TokenError = TokenError::unavailable("the keys of the issuer cannot be had at the moment");
const UNKNOWN: TokenError = TokenError::invalid("the token is signed by a key that the issuer does not have");

/// How often a document of keys is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How old keys may get.
    pub(super) fresh: Duration,
    /// What has to lie between two requests.
    pub(super) cooldown: Duration,
}

/// The keys of one issuer.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    Given(Arc<[Key]>),
    At(Arc<Remote>),
}

/// Keys that are asked for.
pub(super) struct Remote {
    url: String,
    fetch: Fetch,
    pace: Pace,
    kept: Mutex<Kept>,
    /// Held by whoever asks.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Default)]
struct Kept {
    keys: Arc<[Key]>,
    /// When they came.
    since: Option<Instant>,
    /// When they were last asked for.
    asked: Option<Instant>,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

/// The keys of a document; those that are not known cost none of the others.
pub(super) fn read(document: &[u8]) -> Option<Vec<Key>> {
    let document: Document = serde_json::from_slice(document).ok()?;
    Some(document.keys.iter().filter_map(Key::read).take(MOST_KEYS).collect())
}

/// The key for a token that names one, or the only one that there is for a token that names none.
fn pick(keys: &[Key], kid: Option<&str>, algorithm: Algorithm) -> Option<Key> {
    let mut fitting = keys.iter().filter(|key| key.fits(algorithm));
    match kid {
        Some(kid) => fitting.find(|key| key.kid.as_deref() == Some(kid)).cloned(),
        None => fitting.next().filter(|_| fitting.next().is_none()).cloned(),
    }
}

impl Keys {
    pub(super) fn at(url: String, fetch: Fetch, pace: Pace) -> Self {
        Self::At(Arc::new(Remote { url, fetch, pace, kept: Mutex::default(), asking: Arc::default() }))
    }

    /// The key that a token with such a head is to be verified with.
    pub(super) async fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Key, TokenError> {
        if kid.is_some_and(|kid| kid.len() > MOST_KID_BYTES) {
            return Err(UNKNOWN);
        }
        match self {
            Self::Given(keys) => pick(keys, kid, algorithm).ok_or(UNKNOWN),
            Self::At(remote) => remote.find(kid, algorithm).await,
        }
    }
}

impl Remote {
    async fn find(self: &Arc<Self>, kid: Option<&str>, algorithm: Algorithm) -> Result<Key, TokenError> {
        let asked = lock(&self.kept).asked;
        let (key, is_fresh) = self.look(kid, algorithm);
        if let Some(key) = key.filter(|_| is_fresh) {
            return Ok(key);
        }
        self.renew(asked).await;
        match self.look(kid, algorithm) {
            (Some(key), _) => Ok(key),
            // Whether it is unknown can be told by keys that are up to date alone.
            (None, true) => Err(UNKNOWN),
            (None, false) => Err(NO_KEYS),
        }
    }

    /// The key among those that are kept, and whether these are fresh.
    fn look(&self, kid: Option<&str>, algorithm: Algorithm) -> (Option<Key>, bool) {
        let kept = lock(&self.kept).clone();
        let Some(age) = kept.since.map(|since| since.elapsed()) else { return (None, false) };
        let key = pick(&kept.keys, kid, algorithm).filter(|_| age <= MOST_STALE);
        (key, age <= self.pace.fresh)
    }

    /// Asks for the keys, unless that was done a moment ago; whoever comes meanwhile waits for what comes of it. It runs in a
    /// task of its own, so that a caller that leaves does not leave the others without keys.
    async fn renew(self: &Arc<Self>, before: Option<Instant>) {
        let remote = self.clone();
        let asked = tokio::spawn(async move {
            let _asking = remote.asking.clone().lock_owned().await;
            let asked = lock(&remote.kept).asked;
            let is_due = asked.is_none_or(|asked| asked.elapsed() >= remote.pace.cooldown);
            if asked == before && is_due {
                lock(&remote.kept).asked = Some(Instant::now());
                remote.ask().await;
            }
        });
        if let Err(error) = asked.await {
            tracing::warn!(%error, "the keys of an issuer were not renewed");
        }
    }

    async fn ask(&self) {
        let keys = match self.fetch.get(&self.url).await {
            Ok(fetched) if fetched.is_success() => read(&fetched.body).filter(|keys| !keys.is_empty()),
            Ok(fetched) => return tracing::warn!(status = fetched.status, "an issuer does not give its keys"),
            Err(error) => return tracing::warn!(%error, "the keys of an issuer cannot be had"),
        };
        match keys {
            Some(keys) => {
                let mut kept = lock(&self.kept);
                (kept.keys, kept.since) = (keys.into(), Some(Instant::now()));
            }
            // What was there before is better than nothing.
            None => tracing::warn!("an issuer has no keys that can be read"),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("pace", &self.pace).finish_non_exhaustive()
    }
}

#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    for key in read(data).unwrap_or_default() {
        assert!(super::jws::ALGORITHMS.into_iter().any(|algorithm| key.fits(algorithm)));
        assert_eq!(key.thumbprint.len(), 43);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The public keys of RFC 8037 A.2 and RFC 7515 A.3.
    fn keys(names: [Option<&str>; 2]) -> Vec<Value> {
        let [one, two] = names.map(|kid| json!(kid));
        let edwards =
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": one, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" });
        let elliptic = json!({
            "kty": "EC", "crv": "P-256", "kid": two, "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        });
        vec![edwards, elliptic]
    }

    fn set(keys: &[Value]) -> Vec<Key> {
        read(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_key_is_found_by_its_name_and_for_its_algorithm_alone() {
        let set = set(&keys([Some("a"), Some("b")]));
        for (kid, algorithm, is_there) in [
            ("a", Algorithm::EdDSA, true),
            ("b", Algorithm::ES256, true),
            ("a", Algorithm::ES256, false),
            ("b", Algorithm::ES384, false),
            ("b", Algorithm::RS256, false),
            ("c", Algorithm::EdDSA, false),
            ("", Algorithm::EdDSA, false),
        ] {
            assert_eq!(pick(&set, Some(kid), algorithm).is_some(), is_there, "{kid} {algorithm:?}");
        }
    }

    #[test]
    fn a_token_without_a_name_of_a_key_has_the_only_one_that_fits() {
        let one = keys([None, None]);
        assert!(pick(&set(&one), None, Algorithm::EdDSA).is_some());
        let two = [one.clone(), one].concat();
        assert!(pick(&set(&two), None, Algorithm::EdDSA).is_none());
    }

    #[test]
    fn a_key_that_is_no_use_costs_no_other() {
        let mut all = keys([Some("a"), Some("b")]);
        all[1]["use"] = json!("enc");
        all.extend([json!(5), json!({}), json!({ "kty": "oct", "k": "AAAA" }), json!({ "kty": "new" })]);
        all.push(json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }));
        let mut named = all[0].clone();
        named["alg"] = json!("ES256");
        all.push(named);
        assert_eq!(set(&all).len(), 1);
        assert!(read(b"{}").is_none() && read(b"[]").is_none());
    }

    #[test]
    fn no_more_keys_are_kept_than_may_be() {
        let many: Vec<Value> = (0..=MOST_KEYS).map(|n| keys([Some(&n.to_string()), None]).remove(0)).collect();
        assert_eq!(set(&many).len(), MOST_KEYS);
        assert_eq!(set(&many[..MOST_KEYS]).len(), MOST_KEYS);
    }
}
