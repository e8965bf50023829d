//! What a server says of itself that cannot be.

use thiserror::Error;

/// Why something that checks tokens cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Misconfigured {
    /// The resource is no absolute `http` or `https` URL without query, fragment and user.
    #[error("`{0}` is no resource: write it like `https://mcp.example.com/mcp`")]
    Resource(String),
    /// No issuer was named, so no token could be good.
    #[error("no issuer is named: nobody could come in")]
    NoIssuer,
    /// An issuer is no URL without query and fragment (RFC 8414), or named twice.
    #[error("`{0}` is no issuer, or is one already: write it as it stands in its tokens")]
    Issuer(String),
    /// A URL is not one that may be asked.
    #[error("`{url}` cannot be asked: {why}")]
    Url {
        /// The URL.
        url: String,
        /// Why it cannot be asked; what [`Network`](crate::Network) would allow it.
        why: String,
    },
    /// An algorithm is unknown, or one by which whoever can check a token can also make one.
    #[error("`{0}` is no algorithm that tokens may be signed by: take `ES256`, `EdDSA` or `RS256`")]
    Algorithm(String),
    /// A document of keys has none that tokens could be signed by.
    #[error("there is no key that tokens of `{0}` could be signed by")]
    NoKey(String),
    /// A name or a password cannot be sent in a header, or is taken.
    #[error("the user `{0}` has no name that can be sent, or is there already")]
    User(String),
    /// This machine cannot make requests, or random numbers.
    #[error("this machine cannot check tokens: {0}")]
    Local(String),
}
