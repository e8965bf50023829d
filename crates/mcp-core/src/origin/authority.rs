use std::{
    borrow::Cow,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use crate::origin::refused::Flaw;

/// A host and the port written after it.
#[derive(Clone, Debug)]
pub(super) struct Authority<'a> {
    pub(super) host: Host<'a>,
    pub(super) port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Flaw> {
        // Looked for first: each of these would otherwise be reported as a bad character in a name.
        if let Some(flaw) = text.chars().find_map(misplaced) {
            return Err(flaw);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, after) = rest.split_once(']').ok_or(Flaw::Ipv6)?;
                let address: Ipv6Addr = address.parse().map_err(|_| Flaw::Ipv6)?;
                let port = if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(Flaw::Ipv6)?) };
                (Host::Ip(address.into()), port)
            }
            None if text.parse::<Ipv6Addr>().is_ok() => return Err(Flaw::Brackets),
            None => {
                let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
                (Host::parse(name)?, port)
            }
        };
        Ok(Self { host, port: port.map(parse_port).transpose()?.flatten() })
    }

    /// The value of a `Host` header.
    pub(super) fn presented(text: &'a str) -> Result<Self, Flaw> {
        if text.is_empty() {
            return Err(Flaw::Empty);
        }
        let Self { host, port } = Self::parse(text)?;
        Ok(Self { host: host.without_dot()?, port })
    }

    /// An entry for the list of accepted hosts.
    pub(super) fn entry(text: &'a str) -> Result<Self, Flaw> {
        if text.contains("://") {
            return Err(Flaw::Scheme);
        }
        Self::presented(text)
    }

    pub(super) fn into_owned(self) -> Authority<'static> {
        Authority { host: self.host.into_owned(), port: self.port }
    }

    /// Whether this entry of the accepted hosts lets the presented one in.
    pub(super) fn admits(&self, presented: &Authority<'_>) -> bool {
        let port = match (self.port, presented.port) {
            (None, _) => true,
            // The scheme is unknown behind a TLS proxy, and the client left out the port of the one it used.
            (Some(entry), None) => entry == 80 || entry == 443,
            (Some(entry), Some(presented)) => entry == presented,
        };
        port && self.host.same(&presented.host)
    }
}

/// A name or an address. A name taken from a list is in lower case.
#[derive(Clone, Debug)]
pub(super) enum Host<'a> {
    Name(Cow<'a, str>),
    Ip(IpAddr),
}

impl<'a> Host<'a> {
    fn parse(text: &'a str) -> Result<Self, Flaw> {
        if text.is_empty() {
            return Err(Flaw::NoHost);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Ip(address.into()));
        }
        if !text.chars().all(is_name_char) {
            return Err(Flaw::Name);
        }
        Ok(Self::Name(Cow::Borrowed(text)))
    }

    /// Drops the dot that ends a fully qualified name.
    fn without_dot(self) -> Result<Self, Flaw> {
        match self {
            Self::Name(Cow::Borrowed(".")) => Err(Flaw::NoHost),
            Self::Name(Cow::Borrowed(name)) => Ok(Self::Name(Cow::Borrowed(name.strip_suffix('.').unwrap_or(name)))),
            host => Ok(host),
        }
    }

    fn into_owned(self) -> Host<'static> {
        match self {
            Self::Name(name) => Host::Name(Cow::Owned(name.to_ascii_lowercase())),
            Self::Ip(address) => Host::Ip(address),
        }
    }

    pub(super) fn same(&self, other: &Host<'_>) -> bool {
        match (self, other) {
            (Self::Name(a), Host::Name(b)) => a.eq_ignore_ascii_case(b),
            (Self::Ip(a), Host::Ip(b)) => a == b,
            _ => false,
        }
    }

    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name.eq_ignore_ascii_case("localhost"),
            Self::Ip(address) => address.is_loopback(),
        }
    }
}

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// The part of a URL that the character begins, if it is one that neither an origin nor a host has.
fn misplaced(c: char) -> Option<Flaw> {
    match c {
        '*' => Some(Flaw::Wildcard),
        '@' => Some(Flaw::UserInfo),
        // Browsers read a backslash as a slash.
        '/' | '\\' => Some(Flaw::Path),
        '?' => Some(Flaw::Query),
        '#' => Some(Flaw::Fragment),
        _ => None,
    }
}

/// A port may be written without digits, which is as good as none (RFC 3986, 3.2.3).
fn parse_port(text: &str) -> Result<Option<u16>, Flaw> {
    if text.is_empty() {
        return Ok(None);
    }
    // `u16::from_str` would take a sign.
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Flaw::Port);
    }
    text.parse().map(Some).map_err(|_| Flaw::Port)
}

/// Letters, digits and what real names are seen with; beyond ASCII, whatever is no space or control character.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '-' | '.' | '_' | '~')
        || !(c.is_ascii() || c.is_whitespace() || c.is_control())
}
