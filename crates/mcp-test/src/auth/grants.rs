//! What the authorization server gives tokens for.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    DecodingKey, Validation, decode, decode_header,
    jwk::{Jwk, ThumbprintHash},
};
use mcp_http::axum::http::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Book, endpoints::Form};

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

pub(super) const SUPPORTED: [&str; 5] = ["authorization_code", "refresh_token", "client_credentials", DEVICE, EXCHANGE];

/// What a code or a refresh token is for.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    challenge: Option<String>,
    scope: Option<String>,
    resource: Option<String>,
    client: Option<String>,
    subject: Option<Value>,
    /// The key that it is bound to.
    bound: Option<String>,
}

impl Given {
    fn of(form: &Form) -> Self {
        let said = |name: &str| form.get(name).cloned();
        Self {
            challenge: said("code_challenge"),
            scope: said("scope"),
            resource: said("resource"),
            client: said("client_id"),
            ..Self::default()
        }
    }
}

impl Book {
    /// A code for what was asked for.
    pub(super) fn give(&mut self, kind: &str, form: &Form) -> String {
        let code = self.name(kind);
        self.given.insert(code.clone(), Given::of(form));
        code
    }

    /// Tokens for what was sent, or the error's code.
    pub(super) fn grant(&mut self, headers: &HeaderMap, form: &Form) -> Result<Value, &'static str> {
        let said = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let bound = headers.get("dpop").map(|proof| key_of(proof.as_bytes())).transpose()?;
        let mut given = match said("grant_type") {
            "authorization_code" => self.redeem(said("code")).and_then(|given| verified(given, said("code_verifier"))),
            "refresh_token" => self.redeem(said("refresh_token")).filter(|given| given.bound == bound),
            DEVICE => self.redeem(said("device_code")),
            "client_credentials" => Some(Given { subject: Some(Value::Null), ..Given::of(form) }),
            EXCHANGE => self.tokens.get(said("subject_token")).map(|of| exchanged(of, form)),
            _ => return Err("unsupported_grant_type"),
        }
        .ok_or("invalid_grant")?;
        given.bound = bound;
        Ok(self.tokens_of(given, said("grant_type")))
    }

    /// What a code is for; it is used up.
    fn redeem(&mut self, code: &str) -> Option<Given> {
        self.given.remove(code)
    }

    fn tokens_of(&mut self, given: Given, grant: &str) -> Value {
        let mut claims = json!({ "aud": given.resource, "scope": given.scope });
        if let Some(client) = &given.client {
            claims["client_id"] = json!(client);
        }
        if let Some(subject) = &given.subject {
            claims["sub"] = subject.clone();
        }
        if let Some(thumbprint) = &given.bound {
            claims["cnf"] = json!({ "jkt": thumbprint });
        }
        let kind = if given.bound.is_some() { "DPoP" } else { "Bearer" };
        let mut tokens = json!({ "access_token": self.token(claims), "token_type": kind, "expires_in": 3600 });
        if let Some(scope) = &given.scope {
            tokens["scope"] = json!(scope);
        }
        if !matches!(grant, "client_credentials" | EXCHANGE) {
            let refresh = self.name("refresh");
            self.given.insert(refresh.clone(), given);
            tokens["refresh_token"] = json!(refresh);
        }
        if grant == EXCHANGE {
            tokens["issued_token_type"] = json!("urn:ietf:params:oauth:token-type:access_token");
        }
        tokens
    }
}

/// A code belongs to whoever knows what its challenge was made of.
fn verified(given: Given, verifier: &str) -> Option<Given> {
    let shown = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    (given.challenge.as_deref() == Some(&shown)).then_some(given)
}

/// The same user, for what is asked for now.
fn exchanged(claims: &Value, form: &Form) -> Given {
    let subject = Some(claims["sub"].clone());
    let audience = form.get("audience").cloned();
    let asked = Given::of(form);
    Given { subject, resource: asked.resource.clone().or(audience), ..asked }
}

/// The thumbprint of the key that has signed a proof.
fn key_of(proof: &[u8]) -> Result<String, &'static str> {
    const WRONG: &str = "invalid_dpop_proof";
    let head = decode_header(proof).map_err(|_| WRONG)?;
    let jwk: Jwk = head.jwk.ok_or(WRONG)?;
    let mut validation = Validation::new(head.alg);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    let key = DecodingKey::from_jwk(&jwk).map_err(|_| WRONG)?;
    decode::<Value>(proof, &key, &validation).map_err(|_| WRONG)?;
    jwk.thumbprint(ThumbprintHash::SHA256).map_err(|_| WRONG)
}
