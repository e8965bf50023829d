use crate::shown;

/// A request's `Host` or `Origin` that the server does not accept.
///
/// The text names what was compared and, for a host, how to allow it. It repeats at most 200 characters of the header,
/// with control characters escaped, and is fit for the body of the 403 response.
///
/// Specification: *Streamable HTTP, Security & Endpoint*.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Refused(pub(super) Refusal);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
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

/// An entry given to [`Origins::list`](crate::origin::Origins::list) that is not an origin. The text names the entry and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{entry}' is not an origin: {flaw}")]
pub struct OriginError {
    pub(super) entry: String,
    pub(super) flaw: Flaw,
}

impl OriginError {
    pub(super) fn new(entry: &str, flaw: Flaw) -> Self {
        // What stands before an `@` may be a password.
        let entry = entry.rsplit_once('@').map_or_else(|| shown(entry), |(_, host)| format!("…@{}", shown(host)));
        Self { entry, flaw }
    }
}

/// An entry given to [`Hosts::allow`](crate::origin::Hosts::allow) that is not a host. The text names the entry and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{entry}' is not a host: {flaw}")]
pub struct HostError {
    pub(super) entry: String,
    pub(super) flaw: Flaw,
}

impl HostError {
    pub(super) fn new(entry: &str, flaw: Flaw) -> Self {
        Self { entry: shown(entry), flaw }
    }
}

/// What is wrong with the text of a host or an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
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
