//! Requests to what servers name: bounded in bytes and time, and only to where they may lead.
//!
//! Specification: *Security Best Practices, Server-Side Request Forgery*.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use mcp_core::client::DPOP_NONCE;
use reqwest::{
    Client, RequestBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
    header, redirect,
};
use serde::de::DeserializeOwned;
use url::{Host, Url};

use super::error::AuthError;

const MOST_BYTES: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(20);

/// What asks authorization servers, on behalf of a client of one MCP server.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    client: Client,
    policy: Policy,
}

/// A response, read to its end.
pub(super) struct Fetched {
    pub(super) status: u16,
    /// What the next proof that is sent there has to hold.
    pub(super) nonce: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Fetched {
    /// What the body says, where it is JSON of that shape.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Fetch {
    pub(super) fn new(endpoint: &Url) -> Result<Self, AuthError> {
        let policy = Policy { endpoint: Arc::new(endpoint.clone()) };
        let client = Client::builder()
            .redirect(redirect::Policy::custom(|attempt| {
                let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
                if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
            }))
            .timeout(PATIENCE)
            .dns_resolver(Arc::new(policy.clone()))
            .build()
            .map_err(|error| AuthError::Local(error.without_url().to_string()))?;
        Ok(Self { client, policy })
    }

    /// The URL, where it may be asked or shown to the user.
    pub(super) fn allowed(&self, url: &str) -> Result<Url, AuthError> {
        let url = Url::parse(url).map_err(|error| AuthError::Discovery(format!("a URL that is none: {error}")))?;
        self.policy.check(&url)?;
        Ok(url)
    }

    pub(super) async fn get(&self, url: &str) -> Result<Fetched, AuthError> {
        let url = self.allowed(url)?;
        read(self.client.get(url).header(header::ACCEPT, "application/json")).await
    }

    pub(super) async fn post(
        &self,
        url: &str,
        kind: &str,
        head: &[(&str, String)],
        body: String,
    ) -> Result<Fetched, AuthError> {
        let url = self.allowed(url)?;
        let request =
            self.client.post(url).header(header::ACCEPT, "application/json").header(header::CONTENT_TYPE, kind);
        let request = head.iter().fold(request, |request, (name, value)| request.header(*name, value));
        read(request.body(body)).await
    }
}

/// What the URLs were is told to nobody, as they may hold secrets.
async fn read(request: RequestBuilder) -> Result<Fetched, AuthError> {
    let failed = |error: reqwest::Error| AuthError::Server(error.without_url().to_string());
    let mut response = request.send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(AuthError::Server(format!("it answered with more than {MOST_BYTES} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    let nonce = response.headers().get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok()).map(str::to_owned);
    Ok(Fetched { status: response.status().as_u16(), nonce, body })
}

/// Where requests may go: to the web, by https; and to networks that are not public where the MCP server is on one itself,
/// so that no server on the web can have a client ask around behind its firewall.
#[derive(Debug, Clone)]
struct Policy {
    endpoint: Arc<Url>,
}

/// How far an address reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    Loopback,
    /// Link-local and the like, where clouds have their secrets.
    Other,
}

impl Policy {
    /// What can be told without asking for addresses.
    fn check(&self, url: &Url) -> Result<(), AuthError> {
        let refused = |why: &str| Err(AuthError::Discovery(format!("a URL that is not to be trusted: {why}")));
        let reach = literal(url);
        match url.scheme() {
            "https" => {}
            "http" if reach == Some(Reach::Loopback) => {}
            _ => return refused("it is neither https nor of this machine"),
        }
        match reach {
            Some(reach)
                if !literal(&self.endpoint).is_some_and(|from| may_reach(from, reach)) && reach != Reach::Public =>
            {
                refused("it leads into a network that the MCP server is not in")
            }
            _ => Ok(()),
        }
    }

    async fn addresses(self, name: String) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = tokio::net::lookup_host((name, 0)).await?.collect();
        if found.iter().all(|address| reach(address.ip()) == Reach::Public) {
            return Ok(found);
        }
        let from = self.own_reach().await?;
        let allowed: Vec<_> = found.into_iter().filter(|address| may_reach(from, reach(address.ip()))).collect();
        if allowed.is_empty() {
            return Err(io::Error::other("it leads into a network that the MCP server is not in"));
        }
        Ok(allowed)
    }

    async fn own_reach(&self) -> io::Result<Reach> {
        if let Some(reach) = literal(&self.endpoint) {
            return Ok(reach);
        }
        let name = self.endpoint.host_str().unwrap_or_default();
        let first = tokio::net::lookup_host((name, 0)).await?.next();
        Ok(first.map_or(Reach::Public, |address| reach(address.ip())))
    }
}

impl Resolve for Policy {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses = self.clone().addresses(name.as_str().to_owned());
        Box::pin(async move {
            let addresses: Addrs = Box::new(addresses.await?.into_iter());
            Ok(addresses)
        })
    }
}

fn may_reach(from: Reach, to: Reach) -> bool {
    to == Reach::Public || to == from || (from, to) == (Reach::Loopback, Reach::Private)
}

/// How far a host reaches of which the URL itself says it.
fn literal(url: &Url) -> Option<Reach> {
    match url.host()? {
        Host::Domain(name) if name == "localhost" || name.ends_with(".localhost") => Some(Reach::Loopback),
        Host::Domain(_) => None,
        Host::Ipv4(ip) => Some(reach(ip.into())),
        Host::Ipv6(ip) => Some(reach(ip.into())),
    }
}

fn reach(ip: IpAddr) -> Reach {
    match ip.to_canonical() {
        ip if ip.is_loopback() => Reach::Loopback,
        IpAddr::V4(ip) if ip.is_private() || (ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64) => Reach::Private,
        IpAddr::V6(ip) if ip.is_unique_local() => Reach::Private,
        IpAddr::V4(ip) if ip.is_link_local() || ip.octets()[0] == 0 || ip.octets()[0] >= 224 => Reach::Other,
        IpAddr::V6(ip) if ip.is_unicast_link_local() || ip.is_multicast() || ip.is_unspecified() => Reach::Other,
        _ => Reach::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_the_web_leads_nobody_behind_a_firewall() {
        for (endpoint, url, expected) in [
            ("https://h/mcp", "https://as.example/x", true),
            ("https://h/mcp", "http://as.example/x", false),
            ("https://h/mcp", "https://10.0.0.1/x", false),
            ("https://h/mcp", "https://127.0.0.1/x", false),
            ("https://h/mcp", "http://localhost/x", false),
            ("https://h/mcp", "https://169.254.169.254/x", false),
            ("https://h/mcp", "https://[::ffff:10.0.0.1]/x", false),
            ("https://h/mcp", "https://[fd00::1]/x", false),
            ("https://h/mcp", "https://8.8.8.8/x", true),
            ("https://h/mcp", "file:///etc/passwd", false),
            ("https://10.0.0.2/mcp", "https://10.0.0.1/x", true),
            ("https://10.0.0.2/mcp", "http://127.0.0.1/x", false),
            ("http://localhost:1/mcp", "http://127.0.0.1:2/x", true),
            ("http://127.0.0.1:1/mcp", "https://192.168.0.1/x", true),
            ("http://127.0.0.1:1/mcp", "https://169.254.169.254/x", false),
        ] {
            let policy = Policy { endpoint: Arc::new(Url::parse(endpoint).unwrap()) };
            assert_eq!(policy.check(&Url::parse(url).unwrap()).is_ok(), expected, "{endpoint} {url}");
        }
    }
}
