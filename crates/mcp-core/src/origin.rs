//! Which `Host` and `Origin` a server on the network answers: the guard against DNS rebinding.
//!
//! A page on the open web can make a browser send requests to a server on the visitor's own machine. Two headers give
//! such a request away: `Origin` names the page, and `Host` names what the browser believes it is talking to. These are
//! the rules alone, on text; a transport reads the headers and answers 403 with the words of [`Refused`].
//!
//! Specification: *Streamable HTTP, Security & Endpoint*.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Characters of a header or an entry that an error repeats.
const SHOWN: usize = 200;
/// Entries of an allowed list that a refusal repeats.
const LISTED: usize = 8;

/// Which `Origin` header values a server accepts.
///
/// The default is [`Origins::loopback`]. A request without `Origin` does not come from a browser page and is always
/// accepted; the origin `null` never is, unless the check is off.
///
/// Specification: *Streamable HTTP, Security & Endpoint*.
///
/// ```
/// # use mcp_core::origin::Origins;
/// let origins = Origins::list(["https://app.example.com"])?;
/// assert!(origins.check(Some("https://app.example.com")).is_ok());
/// assert!(origins.check(Some("https://app.example.com.evil.example")).is_err());
/// # Ok::<(), mcp_core::origin::OriginError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Origins(OriginRule);

#[derive(Clone, Debug, Default)]
enum OriginRule {
    #[default]
    Loopback,
    List(Vec<Origin<'static>>),
    Any,
}

impl Origins {
    /// Accepts every `http` and `https` origin whose host is `localhost`, in `127.0.0.0/8` or `[::1]`, on any port.
    #[must_use]
    pub fn loopback() -> Self {
        Self(OriginRule::Loopback)
    }

    /// Accepts exactly the given origins, in place of the loopback default. An empty list refuses every origin.
    ///
    /// An entry is `scheme://host` or `scheme://host:port`. Case of scheme and host does not matter, nor does a port
    /// that is the scheme's own. Internationalised names are taken as they stand: browsers send the `xn--` form, so
    /// write that one.
    ///
    /// # Errors
    ///
    /// The first entry that is empty, has no scheme, or has user information, a path (a trailing slash is one), a
    /// query, a fragment, a wildcard or a malformed host or port.
    pub fn list<I>(origins: I) -> Result<Self, OriginError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let entry = |origin: I::Item| {
            let origin = origin.as_ref();
            Origin::parse(origin).map(Origin::into_owned).map_err(|flaw| OriginError::new(origin, flaw))
        };
        let list = origins.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Self(OriginRule::List(list)))
    }

    /// Accepts every origin: the check is off.
    ///
    /// Any page that a user of this server's machine visits can then call the server, so this is for servers that
    /// check the caller by other means.
    #[must_use]
    pub fn any() -> Self {
        Self(OriginRule::Any)
    }

    /// Judges the value of a request's `Origin` header, `None` if it has none.
    ///
    /// Hosts are compared whole, never by prefix or suffix. Nothing is allocated unless the origin is refused.
    ///
    /// # Errors
    ///
    /// [`Refused`], to be answered with 403, if the origin is `null`, malformed or not among those accepted.
    pub fn check(&self, origin: Option<&str>) -> Result<(), Refused> {
        let Some(presented) = origin else { return Ok(()) };
        if self.accept(presented) {
            return Ok(());
        }
        Err(Refused(Refusal::Origin { presented: shown(presented), allowed: self.0.to_string() }))
    }

    fn accept(&self, presented: &str) -> bool {
        match &self.0 {
            OriginRule::Any => true,
            OriginRule::Loopback => Origin::parse(presented).is_ok_and(|origin| origin.is_loopback()),
            OriginRule::List(list) => {
                Origin::parse(presented).is_ok_and(|origin| list.iter().any(|entry| entry.same(&origin)))
            }
        }
    }
}

/// What is allowed, in the words of a refusal.
impl fmt::Display for OriginRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.write_str("any http or https origin on localhost, 127.0.0.0/8 or [::1]"),
            Self::List(list) if list.is_empty() => f.write_str("none"),
            Self::List(list) => {
                for (i, origin) in list.iter().take(LISTED).enumerate() {
                    let separator = if i == 0 { "" } else { ", " };
                    write!(f, "{separator}{}", shown(&origin.to_string()))?;
                }
                match list.len().saturating_sub(LISTED) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::Any => f.write_str("any"),
        }
    }
}

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
    ///
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
    ///
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

/// A request's `Host` or `Origin` that the server does not accept.
///
/// The text names what was compared and, for a host, how to allow it. It repeats at most 200 characters of the header,
/// with control characters escaped, and is fit for the body of the 403 response.
///
/// Specification: *Streamable HTTP, Security & Endpoint*.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Refused(Refusal);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("Origin '{presented}' is not allowed; allowed: {allowed}")]
    Origin { presented: String, allowed: String },
    #[error("the request has no Host header, so it cannot be told which host it is meant for")]
    NoHost,
    #[error("Host '{presented}' is malformed: {flaw}")]
    MalformedHost { presented: String, flaw: Flaw },
    #[error(
        "Host '{presented}' is not allowed: only loopback hosts are, and those added when the server is built; \
         allow it with `Hosts::allow(\"{name}\")`"
    )]
    Host { presented: String, name: String },
}

/// An entry given to [`Origins::list`] that is not an origin. The text names the entry and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{entry}' is not an origin: {flaw}")]
pub struct OriginError {
    entry: String,
    flaw: Flaw,
}

impl OriginError {
    fn new(entry: &str, flaw: Flaw) -> Self {
        // What stands before an `@` may be a password.
        let entry = entry.rsplit_once('@').map_or_else(|| shown(entry), |(_, host)| format!("…@{}", shown(host)));
        Self { entry, flaw }
    }
}

/// An entry given to [`Hosts::allow`] that is not a host. The text names the entry and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{entry}' is not a host: {flaw}")]
pub struct HostError {
    entry: String,
    flaw: Flaw,
}

impl HostError {
    fn new(entry: &str, flaw: Flaw) -> Self {
        Self { entry: shown(entry), flaw }
    }
}

/// What is wrong with the text of a host or an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Flaw {
    #[error("it is empty")]
    Empty,
    #[error("it has no scheme (such as `https://`)")]
    NoScheme,
    #[error("a host is given without a scheme")]
    Scheme,
    #[error("a wildcard is not supported; name each one, or turn the check off with `any()`")]
    Wildcard,
    #[error("it has user information")]
    UserInfo,
    #[error("it has a path (a trailing slash is one)")]
    Path,
    #[error("it has a query")]
    Query,
    #[error("it has a fragment")]
    Fragment,
    #[error("the host is empty")]
    NoHost,
    #[error("the host name has a character that names do not have")]
    Name,
    #[error("the IPv6 address is malformed")]
    Ipv6,
    #[error("an IPv6 address stands in brackets")]
    Brackets,
    #[error("the port is not a number from 0 to 65535")]
    Port,
}

/// A scheme, host and port. Borrowed from a header, or owned and in lower case from a list.
#[derive(Clone, Debug)]
struct Origin<'a> {
    scheme: Cow<'a, str>,
    authority: Authority<'a>,
}

impl<'a> Origin<'a> {
    fn parse(text: &'a str) -> Result<Self, Flaw> {
        if text.is_empty() {
            return Err(Flaw::Empty);
        }
        // Before the scheme is looked for, so that `*` is told what is wrong with it.
        if text.contains('*') {
            return Err(Flaw::Wildcard);
        }
        let (scheme, rest) = text.split_once("://").ok_or(Flaw::NoScheme)?;
        if !is_scheme(scheme) {
            return Err(Flaw::NoScheme);
        }
        let mut authority = Authority::parse(rest)?;
        if authority.port == default_port(scheme) {
            authority.port = None;
        }
        Ok(Self { scheme: Cow::Borrowed(scheme), authority })
    }

    fn into_owned(self) -> Origin<'static> {
        Origin { scheme: Cow::Owned(self.scheme.to_ascii_lowercase()), authority: self.authority.into_owned() }
    }

    fn same(&self, other: &Origin<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(&other.scheme)
            && self.authority.port == other.authority.port
            && self.authority.host.same(&other.authority.host)
    }

    fn is_loopback(&self) -> bool {
        let web = ["http", "https"].iter().any(|scheme| self.scheme.eq_ignore_ascii_case(scheme));
        web && self.authority.host.is_loopback()
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority.host)?;
        match self.authority.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

/// A host and the port written after it.
#[derive(Clone, Debug)]
struct Authority<'a> {
    host: Host<'a>,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Result<Self, Flaw> {
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
    fn presented(text: &'a str) -> Result<Self, Flaw> {
        if text.is_empty() {
            return Err(Flaw::Empty);
        }
        let Self { host, port } = Self::parse(text)?;
        Ok(Self { host: host.without_dot()?, port })
    }

    /// An entry for the list of accepted hosts.
    fn entry(text: &'a str) -> Result<Self, Flaw> {
        if text.contains("://") {
            return Err(Flaw::Scheme);
        }
        Self::presented(text)
    }

    fn into_owned(self) -> Authority<'static> {
        Authority { host: self.host.into_owned(), port: self.port }
    }

    /// Whether this entry of the accepted hosts lets the presented one in.
    fn admits(&self, presented: &Authority<'_>) -> bool {
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
enum Host<'a> {
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

    fn same(&self, other: &Host<'_>) -> bool {
        match (self, other) {
            (Self::Name(a), Host::Name(b)) => a.eq_ignore_ascii_case(b),
            (Self::Ip(a), Host::Ip(b)) => a == b,
            _ => false,
        }
    }

    fn is_loopback(&self) -> bool {
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

fn default_port(scheme: &str) -> Option<u16> {
    let ports = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443)];
    ports.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)).map(|&(_, port)| port)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// Letters, digits and what real names are seen with; beyond ASCII, whatever is no space or control character.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '-' | '.' | '_' | '~')
        || !(c.is_ascii() || c.is_whitespace() || c.is_control())
}

/// The text as an error shows it: bounded, and with nothing in it that could forge a log line or a terminal command.
fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let mut shown: String = chars.by_ref().take(SHOWN).flat_map(char::escape_debug).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> Origins {
        Origins::list(entries).unwrap()
    }

    fn refused(result: Result<(), Refused>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_request_without_origin_is_no_browser_and_is_served() {
        for origins in [Origins::default(), list(&[]), list(&["https://a.example"]), Origins::any()] {
            assert_eq!(origins.check(None), Ok(()));
        }
    }

    #[test]
    fn loopback_origins_are_accepted_by_default() {
        for origin in [
            "http://localhost",
            "http://localhost:3000",
            "https://LOCALHOST:3000",
            "HTTP://localhost",
            "http://127.0.0.1",
            "https://127.0.0.1:8443",
            "http://127.255.255.254:1",
            "http://[::1]",
            "http://[::1]:9000",
            "http://[0:0:0:0:0:0:0:1]:9000",
        ] {
            assert_eq!(Origins::default().check(Some(origin)), Ok(()), "{origin}");
        }
    }

    #[test]
    fn other_origins_are_refused_by_default() {
        for origin in [
            "",
            " ",
            "null",
            "NULL",
            "localhost",
            "localhost:3000",
            "//localhost",
            "://localhost",
            "http://",
            "http://:80",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://localhost.evil.example:3000",
            "http://evil-localhost",
            "http://evillocalhost",
            "http://localhostevil",
            "http://evil.localhost",
            "http://localhost.",
            "http://127.0.0.1.nip.io",
            "http://127.0.0.1.",
            "http://127.0.0.1evil",
            "http://128.0.0.1",
            "http://0.0.0.0",
            "http://[::]",
            "http://[::2]",
            "http://[::1",
            "http://[::1]evil.example",
            "http://::1",
            "http://localhost@evil.example",
            "http://user@localhost",
            "http://localhost/",
            "http://localhost\\@evil.example",
            "http://evil.example/localhost",
            "http://evil.example#localhost",
            "http://evil.example?localhost",
            "http://localhost:99999",
            "http://localhost:80:80",
            "http://localhost:+80",
            "http://localhost:evil",
            "http://localhost http://evil.example",
            "http://localhost, http://localhost",
            " http://localhost",
            "http://localhost ",
            "http://local\thost",
            "file://localhost",
            "ftp://localhost",
            "ws://localhost",
            "chrome-extension://localhost",
            "http://ｌocalhost",
        ] {
            assert!(Origins::default().check(Some(origin)).is_err(), "{origin}");
        }
    }

    #[test]
    fn a_list_replaces_the_loopback_default() {
        let origins = list(&["https://app.example.com", "http://10.0.0.7:3000"]);
        assert_eq!(origins.check(Some("https://app.example.com")), Ok(()));
        assert_eq!(origins.check(Some("http://10.0.0.7:3000")), Ok(()));
        for origin in [
            "null",
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://app.example.com",
            "https://app.example.com:8443",
            "https://app.example.com.",
            "https://example.com",
            "https://evil-app.example.com",
            "https://app.example.com.evil.example",
            "https://app.example.com@evil.example",
            "https://app.example.com/",
            "http://10.0.0.7",
            "http://10.0.0.7:30001",
        ] {
            assert!(origins.check(Some(origin)).is_err(), "{origin}");
        }
    }

    #[test]
    fn entries_and_headers_are_normalised_alike() {
        for (entry, origin) in [
            ("HTTPS://App.Example.COM", "https://app.example.com"),
            ("https://app.example.com:443", "https://app.example.com"),
            ("https://app.example.com", "https://app.example.com:443"),
            ("http://app.example.com:80", "http://APP.example.com"),
            ("wss://app.example.com:443", "wss://app.example.com"),
            ("http://[0:0:0:0:0:0:0:1]:3000", "http://[::1]:3000"),
            ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
            ("app://-", "app://-"),
            ("https://bücher.example", "https://bücher.example"),
            ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
        ] {
            assert_eq!(list(&[entry]).check(Some(origin)), Ok(()), "{entry} {origin}");
        }
        // The port of another scheme is a port like any other, and names are not converted.
        assert!(list(&["http://a.example:443"]).check(Some("http://a.example")).is_err());
        assert!(list(&["https://a.example:80"]).check(Some("https://a.example")).is_err());
        assert!(list(&["https://bücher.example"]).check(Some("https://xn--bcher-kva.example")).is_err());
        assert!(list(&["chrome-extension://abcdefgh"]).check(Some("chrome-extension://abcdefgi")).is_err());
    }

    #[test]
    fn an_empty_list_is_not_a_wildcard() {
        let origins = Origins::list(Vec::<String>::new()).unwrap();
        for origin in ["http://localhost", "https://a.example", "null"] {
            assert!(refused(origins.check(Some(origin))).ends_with("is not allowed; allowed: none"), "{origin}");
        }
    }

    #[test]
    fn only_any_accepts_what_is_no_origin() {
        for origin in ["null", "https://a.example", "", "?"] {
            assert_eq!(Origins::any().check(Some(origin)), Ok(()), "{origin}");
        }
    }

    #[test]
    fn an_entry_that_is_no_origin_fails_with_its_reason() {
        for (entry, flaw) in [
            ("", Flaw::Empty),
            ("null", Flaw::NoScheme),
            ("*", Flaw::Wildcard),
            ("app.example.com", Flaw::NoScheme),
            ("localhost:3000", Flaw::NoScheme),
            ("//app.example.com", Flaw::NoScheme),
            ("://app.example.com", Flaw::NoScheme),
            ("1http://app.example.com", Flaw::NoScheme),
            (" https://app.example.com", Flaw::NoScheme),
            ("https:app.example.com", Flaw::NoScheme),
            ("*://app.example.com", Flaw::Wildcard),
            ("https://*", Flaw::Wildcard),
            ("https://*.example.com", Flaw::Wildcard),
            ("https://app.example.com:*", Flaw::Wildcard),
            ("https://app.example.com/", Flaw::Path),
            ("https://app.example.com/mcp", Flaw::Path),
            ("https://app.example.com\\mcp", Flaw::Path),
            ("https://app.example.com?x", Flaw::Query),
            ("https://app.example.com#x", Flaw::Fragment),
            ("https://user:secret@app.example.com", Flaw::UserInfo),
            ("https://", Flaw::NoHost),
            ("file://", Flaw::NoHost),
            ("https://:443", Flaw::NoHost),
            ("https://app.example.com ", Flaw::Name),
            ("https://app example.com", Flaw::Name),
            ("https://app.example.com,https", Flaw::Name),
            ("https://[::1", Flaw::Ipv6),
            ("https://[::1]x", Flaw::Ipv6),
            ("https://[::g]", Flaw::Ipv6),
            ("https://::1", Flaw::Brackets),
            ("https://app.example.com:99999", Flaw::Port),
            ("https://app.example.com:-1", Flaw::Port),
            ("https://app.example.com:https", Flaw::Port),
        ] {
            let error = Origins::list(["https://good.example", entry]).unwrap_err();
            assert_eq!(error.flaw, flaw, "{entry}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let error = Origins::list(["https://app.example.com/mcp"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "'https://app.example.com/mcp' is not an origin: it has a path (a trailing slash is one)"
        );
    }

    #[test]
    fn a_refused_origin_names_what_was_compared() {
        assert_eq!(
            refused(Origins::loopback().check(Some("http://evil.example"))),
            "Origin 'http://evil.example' is not allowed; \
             allowed: any http or https origin on localhost, 127.0.0.0/8 or [::1]"
        );
        assert_eq!(
            refused(list(&["HTTPS://A.example:443", "http://[::1]:80", "http://b.example:81"]).check(Some("null"))),
            "Origin 'null' is not allowed; allowed: https://a.example, http://[::1], http://b.example:81"
        );
    }

    #[test]
    fn a_refusal_is_bounded_and_escaped() {
        let text = refused(Origins::loopback().check(Some(&"é".repeat(100_000))));
        assert!(text.starts_with(&format!("Origin '{}…' is not", "é".repeat(SHOWN))), "{text}");

        let text = refused(Origins::loopback().check(Some("http://a\r\nX: y\u{1b}[2J'\u{202e}")));
        assert!(text.starts_with("Origin 'http://a\\r\\nX: y\\u{1b}[2J\\'\\u{202e}' is not"), "{text}");

        let many: Vec<_> = (0..100).map(|i| format!("https://h{i}.example")).collect();
        let text = refused(Origins::list(many).unwrap().check(Some("null")));
        assert!(text.ends_with("https://h7.example and 92 more"), "{text}");

        let text = Hosts::loopback().allow("x".repeat(10_000) + "/").unwrap_err().to_string();
        assert!(text.len() < 300, "{text}");
    }

    #[test]
    fn loopback_hosts_are_accepted_by_default() {
        for host in [
            "localhost",
            "LOCALHOST",
            "LocalHost:9000",
            "localhost:9000",
            "localhost:65535",
            "localhost:",
            "localhost.",
            "localhost.:9000",
            "127.0.0.1",
            "127.0.0.1:9000",
            "127.1.2.3",
            "[::1]",
            "[::1]:9000",
            "[::1]:",
            "[0:0:0:0:0:0:0:1]",
        ] {
            assert_eq!(Hosts::default().check(Some(host)), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_hosts_are_refused_and_told_how_to_be_allowed() {
        for (host, name) in [
            ("evil.example:8088", "evil.example"),
            ("localhost.evil.example", "localhost.evil.example"),
            ("evil-localhost", "evil-localhost"),
            ("evil.localhost", "evil.localhost"),
            ("localhostevil", "localhostevil"),
            ("localhost..", "localhost."),
            ("127.0.0.1.nip.io", "127.0.0.1.nip.io"),
            ("127.1", "127.1"),
            ("2130706433", "2130706433"),
            ("0x7f.0.0.1", "0x7f.0.0.1"),
            ("0.0.0.0:9000", "0.0.0.0"),
            ("192.168.1.5", "192.168.1.5"),
            ("[::]:9000", "[::]"),
            ("[fe80::1]:9000", "[fe80::1]"),
        ] {
            let text = refused(Hosts::default().check(Some(host)));
            assert!(text.starts_with(&format!("Host '{host}' is not allowed: ")), "{text}");
            assert!(text.ends_with(&format!("allow it with `Hosts::allow(\"{name}\")`")), "{text}");
            // The advice is worth something only if it works.
            assert_eq!(Hosts::default().allow(name).unwrap().check(Some(name)), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_missing_host_is_refused_with_the_reason() {
        assert!(refused(Hosts::default().check(None)).starts_with("the request has no Host header"));
    }

    #[test]
    fn a_malformed_host_is_refused_with_the_reason() {
        for (host, flaw) in [
            ("", Flaw::Empty),
            (".", Flaw::NoHost),
            (":80", Flaw::NoHost),
            (" localhost", Flaw::Name),
            ("localhost ", Flaw::Name),
            ("local\0host", Flaw::Name),
            ("localhost, localhost", Flaw::Name),
            ("localhost%2eevil", Flaw::Name),
            ("localhost:99999", Flaw::Port),
            ("localhost:65536", Flaw::Port),
            ("localhost:-1", Flaw::Port),
            ("localhost:+1", Flaw::Port),
            ("localhost: 1", Flaw::Port),
            ("localhost:80:80", Flaw::Port),
            ("localhost:port", Flaw::Port),
            ("[::1", Flaw::Ipv6),
            ("[::1]9000", Flaw::Ipv6),
            ("[::1]evil.example", Flaw::Ipv6),
            ("[127.0.0.1]", Flaw::Ipv6),
            ("[::1%lo]", Flaw::Ipv6),
            ("[]", Flaw::Ipv6),
            ("::1", Flaw::Brackets),
            ("fe80::1", Flaw::Brackets),
            ("user@localhost", Flaw::UserInfo),
            ("evil.example@localhost", Flaw::UserInfo),
            ("localhost/", Flaw::Path),
            ("localhost/evil", Flaw::Path),
            ("http://localhost", Flaw::Path),
            ("localhost?x", Flaw::Query),
            ("localhost#x", Flaw::Fragment),
            ("*", Flaw::Wildcard),
        ] {
            let presented = host.escape_debug().to_string();
            let expected = Refused(Refusal::MalformedHost { presented, flaw });
            assert_eq!(Hosts::default().check(Some(host)), Err(expected), "{host}");
        }
        assert_eq!(
            refused(Hosts::default().check(Some("localhost:99999"))),
            "Host 'localhost:99999' is malformed: the port is not a number from 0 to 65535"
        );
    }

    #[test]
    fn an_allowed_host_is_added_to_loopback_and_matched_whole() {
        let hosts = Hosts::loopback().allow("Example.com").unwrap().allow("[FE80::1]").unwrap();
        for host in ["example.com", "EXAMPLE.com:1", "example.com.", "[fe80::1]", "[fe80:0::1]:80", "localhost"] {
            assert_eq!(hosts.check(Some(host)), Ok(()), "{host}");
        }
        for host in
            ["www.example.com", "example.com.evil", "evil-example.com", "example.co", "[fe80::2]", "192.168.1.5"]
        {
            assert!(hosts.check(Some(host)).is_err(), "{host}");
        }
    }

    #[test]
    fn the_port_of_an_allowed_host_must_match() {
        let hosts = Hosts::loopback().allow("example.com.:8443").unwrap().allow("192.168.1.5:80").unwrap();
        for host in ["example.com:8443", "example.com.:8443", "192.168.1.5:80", "192.168.1.5", "192.168.1.5:"] {
            assert_eq!(hosts.check(Some(host)), Ok(()), "{host}");
        }
        for host in ["example.com", "example.com:", "example.com:443", "example.com:84430", "192.168.1.5:443"] {
            assert!(hosts.check(Some(host)).is_err(), "{host}");
        }
        // Behind a TLS proxy clients leave out 443: the entry would otherwise never match.
        assert_eq!(Hosts::loopback().allow("example.com:443").unwrap().check(Some("example.com")), Ok(()));
    }

    #[test]
    fn an_entry_that_is_no_host_fails_with_its_reason() {
        for (entry, flaw) in [
            ("", Flaw::Empty),
            ("*", Flaw::Wildcard),
            ("*.example.com", Flaw::Wildcard),
            ("example.com:*", Flaw::Wildcard),
            ("https://example.com", Flaw::Scheme),
            ("example.com/mcp", Flaw::Path),
            ("user@example.com", Flaw::UserInfo),
            ("example com", Flaw::Name),
            ("example.com:99999", Flaw::Port),
            ("fe80::1", Flaw::Brackets),
            ("::1", Flaw::Brackets),
            ("[fe80::1", Flaw::Ipv6),
        ] {
            let error = Hosts::loopback().allow(entry).unwrap_err();
            assert_eq!(error, HostError { entry: entry.to_owned(), flaw }, "{entry}");
        }
        assert_eq!(
            Hosts::loopback().allow("*.example.com").unwrap_err().to_string(),
            "'*.example.com' is not a host: a wildcard is not supported; name each one, or turn the check off with `any()`"
        );
    }

    #[test]
    fn the_bound_address_is_added_unless_it_is_unspecified() {
        let bound = |address: &str| Hosts::loopback().bound(address.parse().unwrap());
        assert_eq!(bound("192.168.1.5:8080").check(Some("192.168.1.5:8080")), Ok(()));
        assert_eq!(bound("192.168.1.5:8080").check(Some("192.168.1.5")), Ok(()));
        assert_eq!(bound("[2001:db8::5]:8080").check(Some("[2001:DB8::5]:8080")), Ok(()));
        assert_eq!(bound("[::ffff:192.168.1.5]:8080").check(Some("192.168.1.5:8080")), Ok(()));
        assert!(bound("192.168.1.5:8080").check(Some("192.168.1.6:8080")).is_err());
        for (address, host) in [
            ("0.0.0.0:8080", "0.0.0.0:8080"),
            ("[::]:8080", "[::]:8080"),
            ("[::ffff:0.0.0.0]:8080", "0.0.0.0:8080"),
            ("0.0.0.0:8080", "192.168.1.5:8080"),
        ] {
            assert!(bound(address).check(Some(host)).is_err(), "{address} {host}");
            assert_eq!(bound(address).check(Some("localhost:8080")), Ok(()), "{address}");
        }
    }

    #[test]
    fn any_turns_the_host_check_off() {
        for host in [None, Some(""), Some("evil.example"), Some("[::1")] {
            assert_eq!(Hosts::any().check(host), Ok(()), "{host:?}");
            assert_eq!(Hosts::any().allow("a.example").unwrap().check(host), Ok(()), "{host:?}");
        }
    }
}
