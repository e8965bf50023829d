//! Specification: *Security Considerations, Authorization Code Protection*; *RFC 7636*.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::{discovery::ServerMetadata, error::AuthError};

/// What only the client knows that began a login, and what it shows of it.
pub(super) struct Pkce {
    pub(super) verifier: String,
    pub(super) challenge: String,
}

impl Pkce {
    /// # Errors
    /// When the server does not say that it knows S256.
    pub(super) fn new(server: &ServerMetadata) -> Result<Self, AuthError> {
        let methods = server.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if !methods.iter().any(|method| method == "S256") {
            return Err(AuthError::NoPkce);
        }
        let verifier = secret()?;
        Ok(Self { challenge: challenge(&verifier), verifier })
    }
}

fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// 256 bits that nobody can guess, as text.
pub(super) fn secret() -> Result<String, AuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| AuthError::Local(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        assert_eq!(
            challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
