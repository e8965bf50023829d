//! What a modern client carries from one round of a call to the next, sealed: the server keeps nothing.
//!
//! Specification: *Multi Round-Trip Requests, Security Considerations*.

use std::{collections::BTreeMap, fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    Key, XChaCha20Poly1305, XNonce,
    aead::{Aead, KeyInit, Payload},
};
use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::canonical::canonical;
use crate::{Exchange, deadline::since_1970};

const NONCE: usize = 24;

/// The keys that seal `requestState`: the first one seals, and all of them open, so that keys can be changed while calls
/// are under way. Servers that answer for one another must have the same.
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
    keys: Vec<[u8; 32]>,
    audience: String,
}

impl StateKeys {
    /// One key, of 32 random bytes.
    pub fn new(key: [u8; 32]) -> Self {
        Self { keys: vec![key], audience: String::new() }
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
        self.keys.push(key);
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
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let aad = self.bound_to(exchange);
        let payload = Payload { msg: &plain, aad: &aad };
        let cipher = XChaCha20Poly1305::new(Key::from_slice(self.keys.first()?));
        let text = cipher.encrypt(XNonce::from_slice(&nonce), payload).ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &text].concat()))
    }

    /// Opens what was sealed for that exchange; `None` whatever is wrong with it.
    pub(super) fn open(&self, exchange: &Exchange, text: &str) -> Option<State> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, text) = bytes.split_at_checked(NONCE)?;
        let aad = self.bound_to(exchange);
        let plain = self.keys.iter().find_map(|key| {
            let cipher = XChaCha20Poly1305::new(Key::from_slice(key));
            cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: text, aad: &aad }).ok()
        })?;
        let Sealed { until, state } = serde_json::from_slice(&plain).ok()?;
        (since_1970().as_secs() < until).then_some(state)
    }

    /// What the state belongs to: service, principal, method and parameters, however they are written.
    fn bound_to(&self, exchange: &Exchange) -> Vec<u8> {
        let principal = exchange.principal().map(crate::Principal::digest);
        let mut hash = Sha256::new();
        let text = |hash: &mut Sha256, text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        text(&mut hash, &self.audience);
        text(&mut hash, exchange.method());
        text(&mut hash, exchange.name().unwrap_or_default());
        text(&mut hash, exchange.uri().unwrap_or_default());
        text(&mut hash, &exchange.arguments().map_or_else(|| "{}".to_owned(), canonical));
        hash.update([u8::from(principal.is_some())]);
        hash.update(principal.unwrap_or_default());
        hash.finalize().to_vec()
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
    let hash = Sha256::new().chain_update(method).chain_update([0]).chain_update(params.as_bytes()).finalize();
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
