//! A server that wants to know who asks.

mod authorization;
mod claims;
mod dpop;
mod introspection;
mod jwks;
mod jws;
mod jwt;
mod keys;
mod layer;
mod metadata;
mod misconfigured;
mod recent;
mod refusal;
mod scopes;
mod validator;

pub use dpop::Dpop;
pub use introspection::{Introspection, IntrospectionBuilder};
pub use jwt::{Jwt, JwtBuilder};
pub use keys::{BasicAuth, StaticKeys};
pub use layer::{ResourceServer, ResourceServerBuilder, ResourceService};
pub use metadata::ResourceMetadata;
pub use misconfigured::Misconfigured;
pub use scopes::Scopes;
pub use validator::{Scheme, TokenError, Validator, Verified};

/// Entry points for the fuzzer, one for each parser of what peers send.
#[cfg(any(fuzzing, test))]
pub(crate) mod fuzz {
    pub(crate) use super::{
        authorization::fuzz as authorization, claims::fuzz as claims, dpop::fuzz as proof, jwks::fuzz as key_set,
        jws::fuzz as token,
    };
}
