//! Tokens that are signed objects, checked without asking anybody but for keys.
//!
//! Specification: *Authorization, Token Handling*; *RFC 9068, Validating JWT Access Tokens*; *RFC 8725*.

use std::time::Duration;

use jsonwebtoken::Algorithm;
use mcp_core::BoxFuture;
use url::Url;

use super::{
    claims::{Claims, Expected},
    jwks::{self, Keys, Pace},
    jws::{self, ALGORITHMS, Jws},
    misconfigured::Misconfigured,
    validator::{TokenError, Validator, Verified},
};
use crate::{
    clock::now,
    fetch::{Fetch, Network},
};

/// Validates JWT access tokens (RFC 9068) by the keys of their issuers.
///
/// A token is good if an issuer that is named here has signed it by an allowed algorithm, if it is of an allowed type, not
/// expired, and for this resource. Its id is that of the issuer and of the subject, or of the client where there is no
/// subject. Nothing that the token says of where its key is (`jku`, `x5u`, `jwk`) is heeded.
///
/// Keys are asked for with the first token, after an hour, and when a token names one that is not there: once for all who
/// wait, and no sooner than 10 s after the last time. While they cannot be had, the last ones serve on for a day. A document
/// of keys may have 64 KiB, of which 100 keys are kept, and 5 s to come; redirects are not followed.
#[derive(Debug, Clone)]
pub struct Jwt {
    issuers: Vec<(String, Keys)>,
    audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    types: Option<Vec<String>>,
    leeway: Duration,
}

/// Builds a [`Jwt`].
#[derive(Debug, Clone)]
#[must_use = "nothing is checked before it is built"]
pub struct JwtBuilder {
    issuers: Vec<(String, Source)>,
    audiences: Vec<String>,
    algorithms: Option<Vec<String>>,
    types: Option<Vec<String>>,
    leeway: Duration,
    network: Network,
    pace: Pace,
}

#[derive(Debug, Clone)]
enum Source {
    At(String),
    Given(String),
}

impl Jwt {
    /// Tokens for `resource`, as its metadata names it.
    pub fn builder(resource: impl Into<String>) -> JwtBuilder {
        JwtBuilder {
            issuers: Vec::new(),
            audiences: vec![resource.into()],
            algorithms: None,
            types: Some(vec!["at+jwt".to_owned()]),
            leeway: Duration::from_secs(60),
            network: Network::default(),
            pace: Pace { fresh: Duration::from_secs(3600), cooldown: Duration::from_secs(10) },
        }
    }

    async fn check(&self, token: &str) -> Result<Verified, TokenError> {
        let jws = Jws::parse(token).ok_or(TokenError::invalid("the token is no signed JWT"))?;
        let algorithm = jws.head.algorithm(&self.algorithms);
        let algorithm =
            algorithm.ok_or(TokenError::invalid("the token is signed by an algorithm that is not taken"))?;
        if !self.types.as_ref().is_none_or(|types| types.iter().any(|kind| jws.head.is(kind))) {
            return Err(TokenError::invalid("the token is no access token by its type"));
        }
        let claims =
            Claims::parse(&jws.payload).ok_or(TokenError::invalid("the token has no claims that can be read"))?;
        let known = self.issuers.iter().find(|(issuer, _)| claims.text("iss") == Some(issuer.as_str()));
        let (issuer, keys) = known.ok_or(TokenError::invalid("the token is of an issuer that is not taken"))?;
        let key = keys.find(jws.head.kid.as_deref(), algorithm).await?;
        if !jws.is_signed_by(&key, algorithm) {
            return Err(TokenError::invalid("the token's signature is wrong"));
        }
        let expected = Expected { audiences: &self.audiences, leeway: self.leeway.as_secs() };
        claims.check(&expected, now()).map_err(TokenError::invalid)?;
        let id = claims.owner(issuer).map_err(TokenError::invalid)?;
        Ok(Verified { id, claims })
    }
}

impl Validator for Jwt {
    fn validate<'a>(&'a self, credentials: &'a str) -> BoxFuture<'a, Result<Verified, TokenError>> {
        Box::pin(self.check(credentials))
    }
}

impl JwtBuilder {
    /// Takes tokens of `issuer`, signed by keys of the document at `jwks`. There may be several issuers.
    pub fn issuer(mut self, issuer: impl Into<String>, jwks: impl Into<String>) -> Self {
        self.issuers.push((issuer.into(), Source::At(jwks.into())));
        self
    }

    /// Takes tokens of `issuer`, signed by keys of this JWK set, which stays as it is.
    pub fn issuer_with_keys(mut self, issuer: impl Into<String>, jwks: impl Into<String>) -> Self {
        self.issuers.push((issuer.into(), Source::Given(jwks.into())));
        self
    }

    /// Takes tokens for this audience too, compared to the letter. Default: the resource alone.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Sets the algorithms by their names. Default: `ES256`, `ES384`, `EdDSA`, `RS256`, `RS384`, `RS512`, `PS256`, `PS384`,
    /// `PS512`; there are no others.
    pub fn algorithms<A: Into<String>>(mut self, names: impl IntoIterator<Item = A>) -> Self {
        self.algorithms = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets what the header `typ` may be. Default: `at+jwt`, so that no id token is taken for an access token.
    pub fn types<T: Into<String>>(mut self, types: impl IntoIterator<Item = T>) -> Self {
        self.types = Some(types.into_iter().map(Into::into).collect());
        self
    }

    /// Takes tokens whatever `typ` is, for issuers that do not follow RFC 9068. They must give no other tokens with the same
    /// audience.
    pub fn any_type(mut self) -> Self {
        self.types = None;
        self
    }

    /// Sets how far clocks may differ. Default: 60 s.
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Sets where keys may be asked for. Default: [`Network::Public`].
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Sets how old keys may get before they are asked for again. Default: 1 h.
    pub fn keys_for(mut self, age: Duration) -> Self {
        self.pace.fresh = age;
        self
    }

    /// Sets what has to lie between two requests for keys, whatever tokens say. Default: 10 s.
    pub fn cooldown(mut self, least: Duration) -> Self {
        self.pace.cooldown = least;
        self
    }

    /// The validator. Nothing is asked for yet.
    ///
    /// # Errors
    /// [`Misconfigured`] where no token could be good, or some would be that must not be.
    pub fn build(self) -> Result<Jwt, Misconfigured> {
        let algorithms = match &self.algorithms {
            None => ALGORITHMS.to_vec(),
            Some(names) => names.iter().map(|name| algorithm(name)).collect::<Result<_, _>>()?,
        };
        let fetch = Fetch::within(self.network).map_err(|error| Misconfigured::Local(error.to_string()))?;
        let mut issuers: Vec<(String, Keys)> = Vec::new();
        for (issuer, source) in self.issuers {
            check_issuer(&issuer)?;
            if issuers.iter().any(|(other, _)| *other == issuer) {
                return Err(Misconfigured::Issuer(issuer));
            }
            let keys = source.keys(&issuer, &fetch, self.pace)?;
            issuers.push((issuer, keys));
        }
        if issuers.is_empty() {
            return Err(Misconfigured::NoIssuer);
        }
        Ok(Jwt { issuers, audiences: self.audiences, algorithms, types: self.types, leeway: self.leeway })
    }
}

impl Source {
    fn keys(self, issuer: &str, fetch: &Fetch, pace: Pace) -> Result<Keys, Misconfigured> {
        match self {
            Self::At(url) => {
                allowed(fetch, &url)?;
                Ok(Keys::at(url, fetch.clone(), pace))
            }
            Self::Given(document) => match jwks::read(document.as_bytes()) {
                Some(keys) if !keys.is_empty() => Ok(Keys::Given(keys.into())),
                _ => Err(Misconfigured::NoKey(issuer.to_owned())),
            },
        }
    }
}

fn algorithm(name: &str) -> Result<Algorithm, Misconfigured> {
    let found = ALGORITHMS.into_iter().find(|&algorithm| jws::name(algorithm) == name);
    found.ok_or_else(|| Misconfigured::Algorithm(name.to_owned()))
}

/// That it can be told from whose it is: neither query nor fragment.
pub(super) fn check_issuer(issuer: &str) -> Result<(), Misconfigured> {
    match Url::parse(issuer) {
        Ok(url) if url.query().is_none() && url.fragment().is_none() && url.has_host() => Ok(()),
        _ => Err(Misconfigured::Issuer(issuer.to_owned())),
    }
}

pub(super) fn allowed(fetch: &Fetch, url: &str) -> Result<(), Misconfigured> {
    let refused = |error: crate::fetch::FetchError| Misconfigured::Url { url: url.to_owned(), why: error.to_string() };
    fetch.allowed(url).map(drop).map_err(refused)
}
