use std::{borrow::Cow, fmt};

use crate::{
    origin::{
        OriginError, Refused,
        authority::Authority,
        refused::{Flaw, Refusal},
    },
    shown,
};

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

/// A scheme, host and port. Borrowed from a header, or owned and in lower case from a list.
#[derive(Clone, Debug)]
pub(super) struct Origin<'a> {
    scheme: Cow<'a, str>,
    authority: Authority<'a>,
}

impl<'a> Origin<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Flaw> {
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

    pub(super) fn into_owned(self) -> Origin<'static> {
        Origin { scheme: Cow::Owned(self.scheme.to_ascii_lowercase()), authority: self.authority.into_owned() }
    }

    pub(super) fn same(&self, other: &Origin<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(&other.scheme)
            && self.authority.port == other.authority.port
            && self.authority.host.same(&other.authority.host)
    }

    pub(super) fn is_loopback(&self) -> bool {
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

fn default_port(scheme: &str) -> Option<u16> {
    let ports = [("http", 80), ("https", 443), ("ws", 80), ("wss", 443)];
    ports.iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)).map(|&(_, port)| port)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}
