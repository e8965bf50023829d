//! From a challenge to the authorization server.
//!
//! Specification: *Authorization Server Discovery*; *2025-03-26, Authorization, Fallbacks for Servers without Metadata
//! Discovery*; *RFC 8414*; *RFC 9728*.

use serde::Deserialize;
use url::Url;

use super::error::AuthError;
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
    pub(super) server: ServerMetadata,
}

#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// What an authorization server says of itself.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// Finds the authorization server of the MCP server at `endpoint`. `named` are the places that its challenge names.
pub(super) async fn discover(fetch: &Fetch, endpoint: &Url, named: &[String]) -> Result<Discovered, AuthError> {
    let Some(resource) = resource_metadata(fetch, endpoint, named).await? else {
        return older(fetch, endpoint).await;
    };
    if resource.authorization_servers.is_empty() {
        return Err(AuthError::Discovery("the server's metadata names no authorization server".to_owned()));
    }
    let mut failed = None;
    for issuer in resource.authorization_servers.iter().take(MOST) {
        match server_metadata(fetch, issuer).await {
            Ok(Some(server)) => {
                return Ok(Discovered { resource: resource.resource, scopes: resource.scopes_supported, server });
            }
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
async fn server_metadata(fetch: &Fetch, issuer: &str) -> Result<Option<ServerMetadata>, AuthError> {
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

/// A server of 2025-03-26 is its own authorization server, and may not say where it does what.
async fn older(fetch: &Fetch, endpoint: &Url) -> Result<Discovered, AuthError> {
    let resource = canonical(endpoint);
    let url = fetch.allowed(&resource)?;
    let origin = url.origin().ascii_serialization();
    let server = match server_metadata(fetch, &origin).await? {
        Some(server) => server,
        None => ServerMetadata {
            authorization_endpoint: format!("{origin}/authorize"),
            token_endpoint: format!("{origin}/token"),
            registration_endpoint: Some(format!("{origin}/register")),
            // That revision has every server know it.
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            scopes_supported: Vec::new(),
            token_endpoint_auth_methods_supported: None,
            client_id_metadata_document_supported: false,
            authorization_response_iss_parameter_supported: false,
            issuer: origin,
        },
    };
    Ok(Discovered { resource, scopes: Vec::new(), server })
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
    fn the_resource_is_looked_for_beside_the_endpoint_and_at_the_root() {
        let beside = |url| beside(&Url::parse(url).unwrap());
        const ROOT: &str = "https://h/.well-known/oauth-protected-resource";
        assert_eq!(beside("wss://h/a/mcp?x"), [&format!("{ROOT}/a/mcp"), ROOT]);
        assert_eq!(beside("https://h/"), [ROOT]);
    }
}
