use std::net::SocketAddr;

use crate::{
    origin::{
        HostError, Refused,
        authority::{Authority, Host},
        refused::Refusal,
    },
    shown,
};

/// Which `Host` header values a server accepts.
///
/// The default is [`Hosts::loopback`]; [`Hosts::allow`] and [`Hosts::bound`] add to it. Over HTTP/2 the `:authority` of
/// the request is its host.
///
/// Specification: *Streamable HTTP, Security & Endpoint*.
///
/// ```
/// # use mcp_core::origin::Hosts;
/// let hosts = Hosts::loopback().allow("mcp.example.com")?;
/// assert!(hosts.check(Some("mcp.example.com:8443")).is_ok());
/// assert!(hosts.check(Some("mcp.example.com.evil.example")).is_err());
/// # Ok::<(), mcp_core::origin::HostError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    any: bool,
    added: Vec<Authority<'static>>,
}

impl Hosts {
    /// Accepts `localhost`, `127.0.0.0/8` and `[::1]`, with any port or none.
    #[must_use]
    pub fn loopback() -> Self {
        Self::default()
    }

    /// Accepts every host, and requests that name none: the check is off.
    #[must_use]
    pub fn any() -> Self {
        Self { any: true, added: Vec::new() }
    }

    /// Accepts this host too: a name or an address, such as `example.com`, `192.168.1.5`, `[fe80::1]` or
    /// `example.com:8443`.
    ///
    /// Without a port, every port is accepted. With one, the request's must be the same; a request without a port
    /// matches 80 and 443, which clients leave out. Case does not matter, nor does a dot after a name.
    ///
    /// # Errors
    /// The entry is empty, has a wildcard, a scheme, a path or user information, or its host or port is malformed.
    pub fn allow(mut self, host: impl AsRef<str>) -> Result<Self, HostError> {
        let host = host.as_ref();
        let entry = Authority::entry(host).map_err(|flaw| HostError::new(host, flaw))?;
        self.added.push(entry.into_owned());
        Ok(self)
    }

    /// Accepts the address that the server listens on too, with any port.
    ///
    /// An unspecified address (`0.0.0.0`, `[::]`) adds nothing: it stands for all interfaces and names none.
    #[must_use]
    pub fn bound(mut self, address: SocketAddr) -> Self {
        let ip = address.ip().to_canonical();
        if !ip.is_unspecified() {
            self.added.push(Authority { host: Host::Ip(ip), port: None });
        }
        self
    }

    /// Judges the value of a request's `Host` header, `None` if it has none.
    ///
    /// Hosts are compared whole, never by prefix or suffix. Nothing is allocated unless the host is refused.
    ///
    /// # Errors
    /// [`Refused`], to be answered with 403, if the header is missing, malformed or not among those accepted. Its
    /// text tells how to allow the host.
    pub fn check(&self, host: Option<&str>) -> Result<(), Refused> {
        if self.any {
            return Ok(());
        }
        let presented = host.ok_or(Refused(Refusal::NoHost))?;
        let authority = Authority::presented(presented)
            .map_err(|flaw| Refused(Refusal::MalformedHost { presented: shown(presented), flaw }))?;
        if authority.host.is_loopback() || self.added.iter().any(|entry| entry.admits(&authority)) {
            return Ok(());
        }
        Err(Refused(Refusal::Host { presented: shown(presented), name: shown(&authority.host.to_string()) }))
    }
}
