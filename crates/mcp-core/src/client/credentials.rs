use std::fmt;

use crate::{BoxFuture, Error};

/// What gives a request the headers by which a server knows who asks, as `Authorization`.
///
/// A transport asks before each request, and once more, with the [`Refusal`], where the server wanted others. The two
/// know nothing of each other but this.
///
/// Specification: *Authorization, Access Token Usage*.
pub trait Credentials: Send + Sync + 'static {
    /// The headers for a request to `target`. With a `refusal`, better ones than those that were refused: whoever
    /// implements it does what it takes, as refreshing a token.
    ///
    /// What is returned may be dropped at any time, when the call that waits for it ends.
    ///
    /// # Errors
    /// When there are none. Then the request fails, with that error.
    fn headers<'a>(
        &'a self,
        target: &'a Target<'a>,
        refusal: Option<&'a Refusal<'a>>,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, Error>>;

    /// A server at `target` answered with this nonce, which the next proof that is sent there has to hold. A transport tells
    /// every one that it reads in a header `DPoP-Nonce`, and that of a refusal before it asks for better credentials.
    ///
    /// Specification: *RFC 9449, Resource Server-Provided Nonce*.
    fn nonce(&self, target: &Target<'_>, nonce: &str) {
        let _ = (target, nonce);
    }
}

/// The header that a server's nonce comes in.
pub const DPOP_NONCE: &str = "dpop-nonce";

/// What a request with credentials is sent to.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Target<'a> {
    /// The server, as the user named it.
    pub endpoint: &'a str,
    /// The HTTP method.
    pub method: &'a str,
    /// The URL of this request, of the same origin as `endpoint`.
    pub url: &'a str,
}

impl<'a> Target<'a> {
    /// A request to that server.
    #[must_use]
    pub fn new(endpoint: &'a str, method: &'a str, url: &'a str) -> Self {
        Self { endpoint, method, url }
    }
}

/// URLs may be secrets.
impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("method", &self.method).finish_non_exhaustive()
    }
}

/// What a server said that wanted other credentials.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Refusal<'a> {
    /// The HTTP status: 401, or 403 with a challenge.
    pub status: u16,
    /// The values of the header `WWW-Authenticate`, one a line of it.
    pub challenges: &'a [String],
    /// The headers that were refused, as they were given.
    pub sent: &'a [(String, String)],
    /// How often this request was refused before.
    pub before: usize,
}

impl<'a> Refusal<'a> {
    /// The first refusal of a request that was sent with those headers.
    #[must_use]
    pub fn new(status: u16, challenges: &'a [String], sent: &'a [(String, String)]) -> Self {
        Self { status, challenges, sent, before: 0 }
    }

    /// The same refusal of a request that was refused as often before.
    #[must_use]
    pub fn after(mut self, before: usize) -> Self {
        self.before = before;
        self
    }
}

/// What was sent is a secret, which the challenges may repeat.
impl fmt::Debug for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, challenges, before, sent: _ } = self;
        f.debug_struct("Refusal")
            .field("status", status)
            .field("challenges", &challenges.len())
            .field("before", before)
            .finish_non_exhaustive()
    }
}

/// How often a request is made again with better credentials, after it was refused.
pub const MAX_REFUSALS: usize = 3;
