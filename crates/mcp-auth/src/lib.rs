#![cfg_attr(feature = "client", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "client"), doc = "Authorization for the Model Context Protocol: challenges and resources.")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod challenge;
#[cfg(feature = "client")]
mod client;
#[cfg(any(feature = "client", feature = "server"))]
mod clock;
#[cfg(any(feature = "client", feature = "server"))]
mod fetch;
#[cfg(any(feature = "client", feature = "server"))]
mod lock;
mod resource;
#[cfg(feature = "server")]
mod server;

pub use challenge::{Challenge, Wanted};
#[cfg(feature = "keyring")]
pub use client::KeyringStore;
#[cfg(feature = "client")]
pub use client::{
    AuthError, ClientCredentials, ClientKey, DeviceCode, FileStore, Grant, IdentityProvider, Key, MemoryStore, OAuth,
    OAuthBuilder, ProofKey, SigningAlgorithm, StoreLock, TokenStore,
};
#[cfg(feature = "server")]
pub use fetch::Network;
pub use resource::{canonical, covers};
#[cfg(feature = "server")]
pub use server::{
    BasicAuth, Dpop, Introspection, IntrospectionBuilder, Jwt, JwtBuilder, Misconfigured, ResourceMetadata,
    ResourceServer, ResourceServerBuilder, ResourceService, Scheme, Scopes, StaticKeys, TokenError, Validator,
    Verified,
};
pub use url::Url;

/// Entry points for the fuzzer.
#[cfg(fuzzing)]
pub mod fuzz {
    /// The values of `WWW-Authenticate`, and that what is read can be written and is read again the same.
    pub fn challenges(data: &[u8]) {
        crate::challenge::fuzz(data);
    }

    /// The header `Authorization`.
    #[cfg(feature = "server")]
    pub fn authorization(data: &[u8]) {
        crate::server::fuzz::authorization(data);
    }

    /// A token as a signed object, with its head and its signature.
    #[cfg(feature = "server")]
    pub fn token(data: &[u8]) {
        crate::server::fuzz::token(data);
    }

    /// A token's claims.
    #[cfg(feature = "server")]
    pub fn claims(data: &[u8]) {
        crate::server::fuzz::claims(data);
    }

    /// A DPoP proof, and its claims alone.
    #[cfg(feature = "server")]
    pub fn proof(data: &[u8]) {
        crate::server::fuzz::proof(data);
    }

    /// A document of keys.
    #[cfg(feature = "server")]
    pub fn key_set(data: &[u8]) {
        crate::server::fuzz::key_set(data);
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
