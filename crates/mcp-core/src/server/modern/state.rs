//! What a modern client carries from one round of a call to the next, sealed: the server keeps nothing.
//!
//! Specification: *Multi Round-Trip Requests, Security Considerations*.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use super::canonical::canonical;
use crate::{
    Exchange,
    deadline::since_1970,
    server::crypto::{Hash, SealKey},
};

/// How far the clocks of servers that share keys may be apart.
const SKEW: Duration = Duration::from_secs(60);

/// The keys that seal `requestState`: the first one seals, and all of them open, so that keys can be changed while calls
/// are under way. Servers that answer for one another must have the same. What seals is XChaCha20-Poly1305 of the crate
/// `orion`, which is small, maintained and tested against the draft's vectors here, and has had no audit by others.
///
/// ```
/// use mcp_core::{Server, implementation, server::StateKeys};
///
/// # let (new, old) = ([1; 32], [2; 32]);
/// let keys = StateKeys::new(new).and(old).audience("https://tools.example.com");
/// let server = Server::builder(implementation!()).state_keys(keys).build();
/// ```
#[derive(Clone)]
#[must_use]
pub struct StateKeys {
    keys: Vec<Arc<SealKey>>,
    audience: String,
}

impl StateKeys {
    /// One key, of 32 random bytes.
    pub fn new(key: [u8; 32]) -> Self {
        Self { keys: vec![Arc::new(SealKey::new(key))], audience: String::new() }
    }

    /// A key of this process alone.
    pub(crate) fn random() -> Self {
        let mut key = [0; 32];
        if let Err(error) = getrandom::fill(&mut key) {
            panic!("no random numbers for a key: {error}");
        }
        Self::new(key)
    }

    /// Also opens what another key has sealed: an older one, or a newer one that does not seal yet.
    pub fn and(mut self, key: [u8; 32]) -> Self {
        self.keys.push(Arc::new(SealKey::new(key)));
        self
    }

    /// Names the service whose state it is, so that another one with the same keys refuses it.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = audience.into();
        self
    }

    /// Seals what an exchange is to go on with, for whoever asks for the very same again within `ttl`; `None` if that cannot
    /// be written.
    pub(super) fn seal(&self, exchange: &Exchange, state: &State, ttl: Duration) -> Option<String> {
        let until = since_1970().saturating_add(ttl).as_secs();
        let plain = serde_json::to_vec(&Sealed { until, state: state.clone() }).ok()?;
        let sealed = self.keys.first()?.seal(&plain, &self.bound_to(exchange))?;
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens what was sealed for that exchange, for `ttl` at most; `None` whatever is wrong with it.
    pub(super) fn open(&self, exchange: &Exchange, text: &str, ttl: Duration) -> Option<State> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let bound_to = self.bound_to(exchange);
        let plain = self.keys.iter().find_map(|key| key.open(&bytes, &bound_to))?;
        let Sealed { until, state } = serde_json::from_slice(&plain).ok()?;
        let now = since_1970();
        // What is good for longer was sealed by a clock that was ahead: set right, it would be good until then.
        let latest = now.saturating_add(ttl).saturating_add(SKEW).as_secs();
        (now.as_secs() < until && until <= latest).then_some(state)
    }

    /// What the state belongs to: service, principal, method and parameters, however they are written.
    fn bound_to(&self, exchange: &Exchange) -> [u8; 32] {
        let principal = exchange.principal().map(crate::Principal::digest);
        let arguments = exchange.arguments().map_or_else(|| "{}".to_owned(), canonical);
        let name = exchange.name().unwrap_or_default();
        let uri = exchange.uri().unwrap_or_default();
        let texts = [&self.audience, exchange.method(), name, uri, &arguments].into_iter();
        let hash = texts.fold(Hash::default(), |hash, text| hash.with((text.len() as u64).to_be_bytes()).with(text));
        hash.with([u8::from(principal.is_some())]).with(principal.unwrap_or_default()).finish()
    }
}

/// Keys are nobody's business.
impl fmt::Debug for StateKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateKeys").field("count", &self.keys.len()).finish_non_exhaustive()
    }
}

/// What tells a question from others that are asked under the same key.
///
/// 16 bytes of a hash, since all that is sealed travels with the call.
pub(super) fn fingerprint(method: &str, params: &Raw) -> String {
    let hash = Hash::default().with(method).with([0]).with(params.as_bytes()).finish();
    URL_SAFE_NO_PAD.encode(&hash[..16])
}

/// What one round leaves for the next. Questions are fingerprints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// How many rounds there were.
    pub(super) rounds: u32,
    /// What the client was asked in the last one, by key.
    pub(super) open: BTreeMap<String, String>,
    /// What the client has answered, and to which question, by key.
    pub(super) answers: BTreeMap<String, (String, Raw)>,
    /// What was done once, by key.
    pub(super) once: BTreeMap<String, Raw>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    /// In seconds since 1970.
    until: u64,
    state: State,
}
