//! What is said of a site before it starts.

use std::collections::HashMap;

use serde_json::{Value, json};

/// How such a site is; `{origin}` in any text is where it turned out to be.
#[derive(Clone)]
pub(super) struct Setup {
    /// The lines of `WWW-Authenticate` in a 401.
    pub(super) challenges: Vec<String>,
    /// What stands at each path.
    pub(super) documents: HashMap<String, String>,
    /// The scope that each tool needs.
    pub(super) needs: HashMap<&'static str, &'static str>,
    /// Whether what lacks a scope is told so, or refused without a word.
    pub(super) explains: bool,
    /// Scopes that nobody is given.
    pub(super) withheld: Vec<&'static str>,
    /// What the upgrade of a WebSocket needs.
    pub(super) of_socket: Option<&'static str>,
    /// Who answers to have logged somebody in, where that is not the issuer; nobody says so where it is empty.
    pub(super) answers_as: Option<&'static str>,
    /// For how many seconds tokens are said to be good, where that is said.
    pub(super) expires_in: Option<u64>,
    /// What the token endpoint says no by to these grants.
    pub(super) refuses: HashMap<&'static str, &'static str>,
}

pub(super) const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
pub(super) const SERVER_METADATA: &str = "/.well-known/oauth-authorization-server";

impl Default for Setup {
    fn default() -> Self {
        Self {
            challenges: vec![format!("Bearer resource_metadata=\"{{origin}}{RESOURCE_METADATA}/mcp\"")],
            documents: HashMap::new(),
            needs: HashMap::from([("a", "a"), ("b", "b"), ("write", "write")]),
            explains: true,
            withheld: Vec::new(),
            of_socket: None,
            answers_as: None,
            expires_in: None,
            refuses: HashMap::new(),
        }
        .resource(&format!("{RESOURCE_METADATA}/mcp"), "{origin}/mcp", "{origin}")
        .issuer(SERVER_METADATA, "{origin}", json!({}))
    }
}

impl Setup {
    /// A site without metadata and without a challenge that names it.
    pub(super) fn bare() -> Self {
        Self { documents: HashMap::new(), challenges: vec!["Bearer".to_owned()], ..Self::default() }
    }

    pub(super) fn challenges(mut self, lines: &[&str]) -> Self {
        self.challenges = lines.iter().map(|line| (*line).to_owned()).collect();
        self
    }

    pub(super) fn resource(self, path: &str, resource: &str, issuer: &str) -> Self {
        let document = json!({ "resource": resource, "authorization_servers": [issuer] });
        self.document(path, &document)
    }

    /// The metadata of an issuer, with these members in place of others; `null` is none.
    pub(super) fn issuer(self, path: &str, issuer: &str, members: Value) -> Self {
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": "{origin}/authorize",
            "token_endpoint": "{origin}/token",
            "registration_endpoint": "{origin}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        for (name, value) in members.as_object().unwrap() {
            document[name] = value.clone();
        }
        document.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        self.document(path, &document)
    }

    fn document(mut self, path: &str, document: &Value) -> Self {
        self.documents.insert(path.to_owned(), document.to_string());
        self
    }
}
