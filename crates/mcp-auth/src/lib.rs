#![cfg_attr(feature = "client", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "client"), doc = "Authorization for the Model Context Protocol: challenges and resources.")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod challenge;
#[cfg(feature = "client")]
mod client;
mod resource;

pub use challenge::{Challenge, Wanted};
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
}
