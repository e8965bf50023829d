//! What is claimed of a token, and whether it is for here and now.
//!
//! Specification: *RFC 7519, JWT Claims*; *RFC 9068, Validating JWT Access Tokens*; *RFC 7800, Confirmation Claim*.

use std::fmt;

use mcp_core::{Principal, jsonrpc::Raw};
use serde_json::{Map, Value};

/// A token's claims. Where one stands twice, the last counts, as RFC 7519 allows.
#[derive(Clone, Default)]
pub(super) struct Claims(pub(super) Map<String, Value>);

/// What they say is nobody's business.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// What a token must be for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    /// One of these has to be in `aud`, exactly.
    pub(super) audiences: &'a [String],
    /// How far clocks may differ, in seconds.
    pub(super) leeway: u64,
}

impl Claims {
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok().map(Self)
    }

    /// Those that a principal carries.
    pub(super) fn of(principal: &Principal) -> Option<Self> {
        Self::parse(principal.claims()?.as_bytes())
    }

    pub(super) fn into_principal(self, id: String) -> Principal {
        let claims = Raw::encode(&self.0).unwrap_or_else(|_| Raw::empty_object());
        Principal::new(id).with_claims(claims)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    /// A point in time, which may have a fraction. One that is no number is refused: taken as absent, it would allow all.
    pub(super) fn time(&self, name: &'static str) -> Result<Option<f64>, &'static str> {
        match self.0.get(name) {
            None => Ok(None),
            Some(value) => value.as_f64().map(Some).ok_or("a time in the token is no number"),
        }
    }

    /// What may be done: `scope`, separated by blanks, or the `scp` that some issuers have in its place.
    pub(super) fn scopes(&self) -> Vec<&str> {
        match self.0.get("scope").or_else(|| self.0.get("scp")) {
            Some(Value::String(scopes)) => scopes.split_whitespace().collect(),
            Some(Value::Array(scopes)) => scopes.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether all of these scopes are among its own.
    pub(super) fn allow(&self, needed: &[String]) -> bool {
        let granted = self.scopes();
        needed.iter().all(|scope| granted.contains(&scope.as_str()))
    }

    /// The thumbprint of the key that the token is bound to.
    pub(super) fn thumbprint(&self) -> Result<Option<&str>, &'static str> {
        match self.0.get("cnf") {
            None => Ok(None),
            // Bound in a way that nothing here can check, it must not be taken as free.
            Some(bound) => {
                bound["jkt"].as_str().map(Some).ok_or("the token is bound to something other than a DPoP key")
            }
        }
    }

    /// Whether the time for it is over.
    pub(super) fn has_expired(&self, now: u64, leeway: u64) -> Result<bool, &'static str> {
        Ok(self.time("exp")?.is_some_and(|exp| seconds(now) >= exp + seconds(leeway)))
    }

    /// Whether the token is for here and now.
    pub(super) fn check(&self, expected: &Expected<'_>, now: u64) -> Result<(), &'static str> {
        if self.time("exp")?.is_none() {
            return Err("the token does not say when it expires");
        }
        if self.has_expired(now, expected.leeway)? {
            return Err("the token has expired");
        }
        if self.time("nbf")?.is_some_and(|nbf| nbf > seconds(now) + seconds(expected.leeway)) {
            return Err("the token is not valid yet");
        }
        let is_ours = |audience: &Value| expected.audiences.iter().any(|ours| audience.as_str() == Some(ours.as_str()));
        match self.0.get("aud") {
            Some(Value::Array(audiences)) if audiences.iter().any(is_ours) => Ok(()),
            Some(audience) if is_ours(audience) => Ok(()),
            _ => Err("the token is for another resource"),
        }
    }

    /// The id of whom `issuer` gave the token. No issuer has a query or a fragment (RFC 8414), so no two ids are alike.
    pub(super) fn owner(&self, issuer: &str) -> Result<String, &'static str> {
        match (self.text("sub"), self.text("client_id")) {
            (Some(subject), _) if !subject.is_empty() => Ok(format!("{issuer}#{subject}")),
            (_, Some(client)) if !client.is_empty() => Ok(format!("{issuer}?client_id={client}")),
            _ => Err("the token does not say whose it is"),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are exact for millions of years")]
fn seconds(time: u64) -> f64 {
    time as f64
}

#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    if let Some(claims) = Claims::parse(data) {
        let audiences = ["https://h/mcp".to_owned()];
        let is_fine = claims.check(&Expected { audiences: &audiences, leeway: 0 }, 1_000).is_ok();
        assert!(!is_fine || String::from_utf8_lossy(data).contains("exp"));
        let _ = (claims.owner("https://as"), claims.thumbprint(), claims.scopes().len());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(claims: &Value, now: u64) -> Result<(), &'static str> {
        let audiences = ["https://h/mcp".to_owned(), "api://mcp".to_owned()];
        let claims = Claims(claims.as_object().unwrap().clone());
        claims.check(&Expected { audiences: &audiences, leeway: 60 }, now)
    }

    #[test]
    fn a_token_is_good_up_to_the_edges_of_its_time() {
        let claims = json!({ "aud": "https://h/mcp", "nbf": 1_000, "exp": 2_000 });
        for (now, is_good) in [(939, false), (940, true), (2_059, true), (2_060, false)] {
            assert_eq!(checked(&claims, now).is_ok(), is_good, "{now}");
        }
        let fraction = json!({ "aud": "https://h/mcp", "exp": 2_000.5 });
        assert!(checked(&fraction, 2_060).is_ok() && checked(&fraction, 2_061).is_err());
    }

    #[test]
    fn a_token_without_an_end_or_with_a_time_that_is_none_is_refused() {
        for claims in [
            json!({ "aud": "https://h/mcp" }),
            json!({ "aud": "https://h/mcp", "exp": "2000" }),
            json!({ "aud": "https://h/mcp", "exp": null }),
            json!({ "aud": "https://h/mcp", "exp": 2_000, "nbf": "later" }),
        ] {
            assert!(checked(&claims, 1_000).is_err(), "{claims}");
        }
    }

    #[test]
    fn an_audience_is_compared_to_the_letter() {
        for (audience, is_ours) in [
            (json!("https://h/mcp"), true),
            (json!(["https://other", "https://h/mcp"]), true),
            (json!(["api://mcp"]), true),
            (json!("https://h/mcp/"), false),
            (json!("https://H/mcp"), false),
            (json!("https://h"), false),
            (json!(["https://other"]), false),
            (json!([]), false),
            (json!([["https://h/mcp"]]), false),
            (json!({ "https://h/mcp": true }), false),
            (json!(null), false),
        ] {
            assert_eq!(checked(&json!({ "aud": audience, "exp": 2_000 }), 1_000).is_ok(), is_ours, "{audience}");
        }
    }

    #[test]
    fn scopes_are_read_in_each_form_that_issuers_have() {
        for claims in [json!({ "scope": " a  b" }), json!({ "scp": "a b" }), json!({ "scp": ["a", "b", 3] })] {
            assert_eq!(Claims(claims.as_object().unwrap().clone()).scopes(), ["a", "b"], "{claims}");
        }
    }

    #[test]
    fn no_two_owners_are_alike() {
        let owner = |claims: Value| Claims(claims.as_object().unwrap().clone()).owner("https://as");
        assert_eq!(owner(json!({ "sub": "a", "client_id": "c" })).unwrap(), "https://as#a");
        assert_eq!(owner(json!({ "client_id": "a" })).unwrap(), "https://as?client_id=a");
        assert!(owner(json!({ "sub": "" })).is_err());
    }

    #[test]
    fn a_token_that_is_bound_to_what_cannot_be_checked_is_not_taken_as_free() {
        let bound = |claims: Value| Claims(claims.as_object().unwrap().clone()).thumbprint().map(|_| ());
        assert!(bound(json!({})).is_ok() && bound(json!({ "cnf": { "jkt": "x" } })).is_ok());
        assert!(bound(json!({ "cnf": { "x5t#S256": "x" } })).is_err() && bound(json!({ "cnf": null })).is_err());
    }

    #[test]
    fn debug_shows_no_value() {
        let claims = Claims(json!({ "email": "ada@example.com" }).as_object().unwrap().clone());
        assert_eq!(format!("{claims:?}"), r#"["email"]"#);
    }
}
