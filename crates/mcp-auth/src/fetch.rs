//! Requests to what servers name: bounded in bytes and time, and only to where they may lead.
//!
//! Specification: *Security Best Practices, Server-Side Request Forgery*.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

#[cfg(feature = "client")]
use mcp_core::client::DPOP_NONCE;
use reqwest::{
    Client, RequestBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
    header, redirect,
};
use serde::de::DeserializeOwned;
use thiserror::Error;
use url::{Host, Url};

const BEHIND: &str = "it leads into a network that is not public, and that it is not asked from";

/// The most that is read of an answer.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// Why there is no answer. What the URL was is told to nobody, as it may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FetchError {
    #[error("a URL that is none: {0}")]
    NoUrl(#[from] url::ParseError),
    #[error("a URL that is not to be trusted: {0}")]
    Untrusted(&'static str),
    #[error("{0}")]
    Failed(String),
    #[error("it answered with more than {MOST_BYTES} bytes")]
    TooLong,
    #[error("{0}")]
    Local(String),
}

/// What asks authorization servers.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    client: Client,
    policy: Policy,
}

/// A response, read to its end.
pub(crate) struct Fetched {
    pub(crate) status: u16,
    /// What the next proof that is sent there has to hold.
    #[cfg(feature = "client")]
    pub(crate) nonce: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Fetched {
    /// What the body says, where it is JSON of that shape.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Fetch {
    /// For a client of the MCP server at `endpoint`. Redirects are followed within an origin.
    #[cfg(feature = "client")]
    pub(crate) fn beside(endpoint: &Url) -> Result<Self, FetchError> {
        let redirects = redirect::Policy::custom(|attempt| {
            let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
            if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
        });
        Self::new(Policy::Beside(Arc::new(endpoint.clone())), redirects, Duration::from_secs(20))
    }

    /// For a server that was told whom to ask. No redirect is followed.
    #[cfg(feature = "server")]
    pub(crate) fn within(network: Network) -> Result<Self, FetchError> {
        Self::new(Policy::Within(network), redirect::Policy::none(), Duration::from_secs(5))
    }

    fn new(policy: Policy, redirects: redirect::Policy, patience: Duration) -> Result<Self, FetchError> {
        let client = Client::builder()
            .redirect(redirects)
            .timeout(patience)
            .dns_resolver(Arc::new(policy.clone()))
            .build()
            .map_err(|error| FetchError::Local(error.without_url().to_string()))?;
        Ok(Self { client, policy })
    }

    /// The URL, where it may be asked or shown to the user.
    pub(crate) fn allowed(&self, url: &str) -> Result<Url, FetchError> {
        let url = Url::parse(url)?;
        self.policy.check(&url)?;
        Ok(url)
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Fetched, FetchError> {
        let url = self.allowed(url)?;
        read(self.client.get(url).header(header::ACCEPT, "application/json")).await
    }

    pub(crate) async fn post(
        &self,
        url: &str,
        kind: &str,
        head: &[(&str, String)],
        body: String,
    ) -> Result<Fetched, FetchError> {
        let url = self.allowed(url)?;
        let request =
            self.client.post(url).header(header::ACCEPT, "application/json").header(header::CONTENT_TYPE, kind);
        let request = head.iter().fold(request, |request, (name, value)| request.header(*name, value));
        read(request.body(body)).await
    }
}

async fn read(request: RequestBuilder) -> Result<Fetched, FetchError> {
    let failed = |error: reqwest::Error| FetchError::Failed(error.without_url().to_string());
    let mut response = request.send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MOST_BYTES {
            return Err(FetchError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Fetched {
        status: response.status().as_u16(),
        #[cfg(feature = "client")]
        nonce: response.headers().get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok()).map(str::to_owned),
        body,
    })
}

/// Where requests may go: to the web, by https; and to networks that are not public only for who is in one, so that nobody
/// on the web can have this process ask around behind its firewall.
#[derive(Debug, Clone)]
enum Policy {
    /// Where the MCP server at that URL is.
    #[cfg(feature = "client")]
    Beside(Arc<Url>),
    #[cfg(feature = "server")]
    Within(Network),
}

/// How far requests may go that a server makes to be told who a caller is: to public addresses over `https` alone, unless it
/// says otherwise. What is link-local can never be asked: clouds have their secrets there.
#[cfg(feature = "server")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// To public addresses.
    #[default]
    Public,
    /// To private addresses too, as `10.0.0.1` and `fd00::1`.
    Private,
    /// To private addresses and to this machine, which may be asked over `http` too.
    Loopback,
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
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        let reach = literal(url);
        match url.scheme() {
            "https" => {}
            "http" if reach == Some(Reach::Loopback) => {}
            _ => return Err(FetchError::Untrusted("it is neither https nor of this machine")),
        }
        match reach {
            None | Some(Reach::Public) => Ok(()),
            Some(reach) if self.vantage().is_ok_and(|from| may_reach(from, reach)) => Ok(()),
            Some(_) => Err(FetchError::Untrusted(BEHIND)),
        }
    }

    /// Where requests come from, or the name that tells it once its address is asked for.
    fn vantage(&self) -> Result<Reach, &str> {
        match self {
            #[cfg(feature = "client")]
            Self::Beside(endpoint) => literal(endpoint).ok_or(endpoint.host_str().unwrap_or_default()),
            #[cfg(feature = "server")]
            Self::Within(Network::Public) => Ok(Reach::Public),
            #[cfg(feature = "server")]
            Self::Within(Network::Private) => Ok(Reach::Private),
            #[cfg(feature = "server")]
            Self::Within(Network::Loopback) => Ok(Reach::Loopback),
        }
    }

    async fn addresses(self, name: String) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = tokio::net::lookup_host((name, 0)).await?.collect();
        if found.iter().all(|address| reach(address.ip()) == Reach::Public) {
            return Ok(found);
        }
        let from = match self.vantage() {
            Ok(from) => from,
            Err(name) => {
                let first = tokio::net::lookup_host((name, 0)).await?.next();
                first.map_or(Reach::Public, |address| reach(address.ip()))
            }
        };
        let allowed: Vec<_> = found.into_iter().filter(|address| may_reach(from, reach(address.ip()))).collect();
        if allowed.is_empty() { Err(io::Error::other(BEHIND)) } else { Ok(allowed) }
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

#[cfg(all(test, feature = "client"))]
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
            let policy = Policy::Beside(Arc::new(Url::parse(endpoint).unwrap()));
            assert_eq!(policy.check(&Url::parse(url).unwrap()).is_ok(), expected, "{endpoint} {url}");
        }
    }
}

#[cfg(all(test, feature = "server"))]
mod server_tests {
    use super::*;

    #[test]
    fn a_server_asks_in_the_networks_that_it_was_told_of_alone() {
        for (url, public, private, loopback) in [
            ("https://as.example/x", true, true, true),
            ("https://8.8.8.8/x", true, true, true),
            ("http://as.example/x", false, false, false),
            ("http://8.8.8.8/x", false, false, false),
            ("https://10.0.0.1/x", false, true, true),
            ("http://10.0.0.1/x", false, false, false),
            ("https://[fd00::1]/x", false, true, true),
            ("https://127.0.0.1/x", false, false, true),
            ("http://127.0.0.1:8080/x", false, false, true),
            ("http://localhost/x", false, false, true),
            ("https://[::ffff:127.0.0.1]/x", false, false, true),
            ("https://169.254.169.254/x", false, false, false),
            ("https://[fe80::1]/x", false, false, false),
            ("https://0.0.0.0/x", false, false, false),
            ("file:///etc/passwd", false, false, false),
        ] {
            let url = Url::parse(url).unwrap();
            let networks = [Network::Public, Network::Private, Network::Loopback];
            let allowed = networks.map(|network| Policy::Within(network).check(&url).is_ok());
            assert_eq!(allowed, [public, private, loopback], "{url}");
        }
    }

    /// What a name stands for is looked at when it is asked for, whatever the URL looks like.
    #[tokio::test]
    async fn a_name_leads_no_further_than_an_address() {
        let resolve = async |network| Policy::Within(network).addresses("localhost".to_owned()).await;
        assert!(resolve(Network::Public).await.is_err() && resolve(Network::Private).await.is_err());
        assert!(!resolve(Network::Loopback).await.unwrap().is_empty());
    }
}
