//! From a challenge to the authorization server.
//!
//! Specification: *Authorization Server Discovery*; *2025-03-26, Authorization, Fallbacks for Servers without Metadata
//! Discovery*; *RFC 8414*; *RFC 9728*.

use serde::{Deserialize, Deserializer};
use url::Url;

use super::{dpop, error::AuthError, registration::ClientRegistration};
use crate::{
    fetch::Fetch,
    resource::{canonical, covers},
};

/// How many places that a server names are looked into.
const MOST: usize = 8;

/// What there is to know before a login.
#[derive(Debug, Clone)]
pub(super) struct Discovered {
    /// As it was published, to the byte.
    pub(super) resource: String,
    pub(super) scopes: Vec<String>,
    /// Whether the resource takes tokens that are bound to a key of the client.
    pub(super) takes_dpop: bool,
    /// Whether it takes no others.
    pub(super) requires_dpop: bool,
    pub(super) server: ServerMetadata,
}

#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default, deserialize_with = "or_default")]
    authorization_servers: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    scopes_supported: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    dpop_bound_access_tokens_required: bool,
    #[serde(default, deserialize_with = "or_default")]
    dpop_signing_alg_values_supported: Vec<String>,
}

/// What an authorization server says of itself.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) device_authorization_endpoint: Option<String>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) scopes_supported: Vec<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) dpop_signing_alg_values_supported: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl ResourceMetadata {
    fn at(self, server: ServerMetadata) -> Discovered {
        let requires_dpop = self.dpop_bound_access_tokens_required;
        let mut algorithms = self.dpop_signing_alg_values_supported.iter();
        Discovered {
            takes_dpop: requires_dpop || algorithms.any(|algorithm| algorithm == dpop::ALGORITHM),
            requires_dpop,
            resource: self.resource,
            scopes: self.scopes_supported,
            server,
        }
    }
}

/// Servers write `null` for what they say nothing of.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(source: D) -> Result<T, D::Error> {
    Option::deserialize(source).map(Option::unwrap_or_default)
}

impl ServerMetadata {
    /// A server that says no more than where it gives tokens, in the places that 2025-03-26 has for them.
    ///
    /// Specification: *2025-03-26, Authorization, Fallbacks for Servers without Metadata Discovery*.
    pub(super) fn named(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            authorization_endpoint: Some(format!("{issuer}/authorize")),
            token_endpoint: format!("{issuer}/token"),
            registration_endpoint: Some(format!("{issuer}/register")),
            device_authorization_endpoint: None,
            // That revision has every server know it.
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            scopes_supported: Vec::new(),
            token_endpoint_auth_methods_supported: None,
            dpop_signing_alg_values_supported: Vec::new(),
            client_id_metadata_document_supported: false,
            authorization_response_iss_parameter_supported: false,
        }
    }

    /// Whether it binds tokens to keys of the kind that this client has.
    pub(super) fn knows_dpop(&self) -> bool {
        self.dpop_signing_alg_values_supported.iter().any(|algorithm| algorithm == dpop::ALGORITHM)
    }
}

/// Finds the authorization server of the MCP server at `endpoint`: the first that the user has a client of, or else the first
/// that says anything. `named` are the places that the challenge names.
pub(super) async fn discover(
    fetch: &Fetch,
    registration: &ClientRegistration,
    endpoint: &Url,
    named: &[String],
) -> Result<Discovered, AuthError> {
    let Some(resource) = resource_metadata(fetch, endpoint, named).await? else {
        return older(fetch, endpoint).await;
    };
    if resource.authorization_servers.is_empty() {
        return Err(AuthError::Discovery("the server's metadata names no authorization server".to_owned()));
    }
    let mut failed = None;
    let mut issuers = resource.authorization_servers.clone();
    issuers.sort_by_key(|issuer| !registration.knows(issuer));
    for issuer in issuers.iter().take(MOST) {
        match server_metadata(fetch, issuer).await {
            Ok(Some(server)) => return Ok(resource.at(server)),
            Ok(None) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| AuthError::Discovery("no authorization server has metadata".to_owned())))
}

/// Looks where the challenge says, then beside the endpoint, then at the root. A place that is empty, or that has what is
/// about something else, does not end the search.
async fn resource_metadata(
    fetch: &Fetch,
    endpoint: &Url,
    named: &[String],
) -> Result<Option<ResourceMetadata>, AuthError> {
    let mut failed = None;
    for place in named.iter().take(MOST).cloned().chain(beside(endpoint)) {
        match look(fetch, endpoint, &place).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    failed.map_or(Ok(None), Err)
}

async fn look(fetch: &Fetch, endpoint: &Url, place: &str) -> Result<Option<ResourceMetadata>, AuthError> {
    let fetched = fetch.get(place).await?;
    if !fetched.is_success() {
        return is_absent(fetched.status).map(|()| None);
    }
    let Some(found) = fetched.json::<ResourceMetadata>() else { return Ok(None) };
    if covers(&found.resource, endpoint) {
        return Ok(Some(found));
    }
    Err(AuthError::Discovery("the server's metadata is about another resource than the server".to_owned()))
}

/// A server that is busy or broken says nothing about what it has.
fn is_absent(status: u16) -> Result<(), AuthError> {
    match status {
        429 | 500.. => Err(AuthError::Server(format!("it answered {status} to a request for metadata"))),
        _ => Ok(()),
    }
}

fn beside(endpoint: &Url) -> Vec<String> {
    let endpoint = canonical(endpoint);
    let Ok(url) = Url::parse(&endpoint) else { return Vec::new() };
    let root = format!("{}/.well-known/oauth-protected-resource", url.origin().ascii_serialization());
    let path = url.path().trim_end_matches('/');
    if path.is_empty() { vec![root] } else { vec![format!("{root}{path}"), root] }
}

/// The metadata of an issuer; nothing where it has none.
pub(super) async fn server_metadata(fetch: &Fetch, issuer: &str) -> Result<Option<ServerMetadata>, AuthError> {
    fetch.allowed(issuer)?;
    let mut failed = None;
    for place in places(issuer) {
        let fetched = match fetch.get(&place).await {
            Ok(fetched) if fetched.is_success() => fetched,
            Ok(fetched) => {
                failed = failed.or(is_absent(fetched.status).err());
                continue;
            }
            Err(error) => {
                failed = failed.or(Some(error.into()));
                continue;
            }
        };
        match fetched.json::<ServerMetadata>() {
            Some(found) if found.issuer == issuer => return Ok(Some(found)),
            // Whoever says to be another issuer would have the client's secrets sent to the wrong one.
            Some(_) => failed = Some(AuthError::Discovery("the metadata of the issuer is another's".to_owned())),
            None => {}
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Where the specification looks for the metadata of an issuer, in its order.
fn places(issuer: &str) -> Vec<String> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let Ok(url) = Url::parse(issuer) else { return Vec::new() };
    let (origin, path) = (url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
    let inserted = [OAUTH, OPENID].map(|known| format!("{origin}{known}{path}"));
    let appended = (!path.is_empty()).then(|| format!("{origin}{path}{OPENID}"));
    inserted.into_iter().chain(appended).collect()
}

/// The metadata that a server has of itself as an issuer. Nobody has named that, and it may have a slash at its end.
async fn own_metadata(fetch: &Fetch, origin: &str) -> Result<Option<ServerMetadata>, AuthError> {
    match server_metadata(fetch, origin).await {
        Err(error) => match server_metadata(fetch, &format!("{origin}/")).await {
            Ok(Some(server)) => Ok(Some(server)),
            _ => Err(error),
        },
        found => found,
    }
}

/// A server of 2025-03-26 is its own authorization server, and may not say where it does what.
async fn older(fetch: &Fetch, endpoint: &Url) -> Result<Discovered, AuthError> {
    let resource = canonical(endpoint);
    let url = fetch.allowed(&resource)?;
    let origin = url.origin().ascii_serialization();
    let server = own_metadata(fetch, &origin).await?.unwrap_or_else(|| ServerMetadata::named(&origin));
    Ok(Discovered { resource, scopes: Vec::new(), takes_dpop: false, requires_dpop: false, server })
}

/// What servers publish of themselves.
#[cfg(any(fuzzing, test))]
pub(crate) fn fuzz(data: &[u8]) {
    let _ = serde_json::from_slice::<ResourceMetadata>(data);
    if let Ok(server) = serde_json::from_slice::<ServerMetadata>(data)
        && Url::parse(&server.issuer).is_ok_and(|issuer| issuer.origin().is_tuple())
    {
        for place in places(&server.issuer) {
            assert!(Url::parse(&place).is_ok(), "{place}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c174_metadata_is_looked_for_in_the_order_of_the_specification() {
        for (issuer, expected) in [
            (
                "https://as.example/tenant1",
                &[
                    "https://as.example/.well-known/oauth-authorization-server/tenant1",
                    "https://as.example/.well-known/openid-configuration/tenant1",
                    "https://as.example/tenant1/.well-known/openid-configuration",
                ][..],
            ),
            (
                "https://as.example:8443/a/b/",
                &[
                    "https://as.example:8443/.well-known/oauth-authorization-server/a/b",
                    "https://as.example:8443/.well-known/openid-configuration/a/b",
                    "https://as.example:8443/a/b/.well-known/openid-configuration",
                ],
            ),
            (
                "https://as.example/",
                &[
                    "https://as.example/.well-known/oauth-authorization-server",
                    "https://as.example/.well-known/openid-configuration",
                ],
            ),
        ] {
            assert_eq!(places(issuer), expected, "{issuer}");
        }
    }

    #[test]
    fn what_a_server_says_nothing_of_may_be_null() {
        fuzz(br#"{"issuer":"https://h/\u0000?x#y","token_endpoint":"t"}"#);
        fuzz(br#"{"issuer":"data:x","token_endpoint":"t"}"#);
        let text = r#"{"issuer":"i","token_endpoint":"t","scopes_supported":null,"registration_endpoint":null,
            "client_id_metadata_document_supported":null,"dpop_signing_alg_values_supported":["RS256","ES256"]}"#;
        let server: ServerMetadata = serde_json::from_str(text).unwrap();
        assert!(server.scopes_supported.is_empty() && server.registration_endpoint.is_none() && server.knows_dpop());
    }

    #[test]
    fn the_resource_is_looked_for_beside_the_endpoint_and_at_the_root() {
        let beside = |url| beside(&Url::parse(url).unwrap());
        const ROOT: &str = "https://h/.well-known/oauth-protected-resource";
        assert_eq!(beside("wss://h/a/mcp?x"), [&format!("{ROOT}/a/mcp"), ROOT]);
        assert_eq!(beside("https://h/"), [ROOT]);
    }
}
