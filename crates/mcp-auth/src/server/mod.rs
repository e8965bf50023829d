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

#[cfg(test)]
mod tests {
    use super::fuzz;

    /// Samples of each, for what no other test happens to send.
    #[test]
    fn whatever_peers_send_is_read_without_harm() {
        for data in [
            &b""[..],
            b"Bearer \xff",
            b"{}",
            b"e30.e30.",
            b"eyJhbGciOiJub25lIn0.e30.AAAA",
            br#"{"exp":1e400}"#,
            br#"{"aud":"https://h/mcp","exp":2000,"sub":"a"}"#,
            br#"{"keys":[{"kty":"RSA","n":"","e":""},{"kty":"EC","crv":"P-256","x":"","y":""},5]}"#,
            br#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
        ] {
            fuzz::authorization(data);
            fuzz::claims(data);
            fuzz::proof(data);
            fuzz::key_set(data);
            fuzz::token(data);
        }
        let nested = "[".repeat(100_000);
        fuzz::claims(nested.as_bytes());
        fuzz::key_set(nested.as_bytes());
    }
}
