#![cfg_attr(feature = "client", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "client"), doc = "Authorization for the Model Context Protocol: challenges and resources.")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod challenge;
#[cfg(feature = "client")]
mod client;
mod resource;

pub use challenge::{Challenge, Wanted};
#[cfg(feature = "keyring")]
pub use client::KeyringStore;
#[cfg(feature = "client")]
pub use client::{
    AuthError, ClientCredentials, ClientKey, DeviceCode, FileStore, Grant, IdentityProvider, Key, MemoryStore, OAuth,
    OAuthBuilder, ProofKey, SigningAlgorithm, StoreLock, TokenStore,
};
pub use resource::{canonical, covers};
pub use url::Url;

/// Entry points for the fuzzer.
#[cfg(fuzzing)]
pub mod fuzz {
    /// The values of `WWW-Authenticate`, and that what is read can be written and is read again the same.
    pub fn challenges(data: &[u8]) {
        crate::challenge::fuzz(data);
    }

    /// What the servers of an authorization answer a client: metadata, registrations, codes of devices and tokens.
    #[cfg(feature = "client")]
    pub fn answers(data: &[u8]) {
        crate::client::fuzz_answers(data);
    }

    /// The request by which a browser comes back from a login.
    #[cfg(feature = "client")]
    pub fn redirects(data: &[u8]) {
        crate::client::fuzz_redirects(data);
    }
}
