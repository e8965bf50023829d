//! Whether a server is a modern or a legacy one: judged from its answer to `server/discover`, and from nothing else.
//!
//! Specification: *Versioning and Compatibility, Backward Compatibility*; *stdio* and *Streamable HTTP, Backward Compatibility*.

use mcp_jsonrpc::ErrorObject;

use crate::{Era, Error, ErrorKind, Revision, Revisions, mcp_code, types::DiscoverResult};

/// What came back for the probe, as far as it matters.
#[derive(Debug)]
pub(crate) enum Probe {
    /// A result that names the revisions, these ones.
    Modern(Vec<String>),
    /// An error that only modern servers give.
    ModernError(ErrorObject),
    /// Any other answer.
    Other,
    /// None, in the time that it was given.
    Silent,
    /// The server went away.
    Exited,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Speak that modern revision.
    Modern(Revision),
    /// Ask again in that modern revision.
    Again(Revision),
    /// Shake hands; on a new connection, where the old one died of the probe.
    Legacy { reconnect: bool },
    /// There is no revision in common.
    Nothing { theirs: Vec<String> },
}

impl Probe {
    /// The probe's outcome from what the call gave. Errors of the connection itself are not about the era, but on shared wires,
    /// where a legacy server may be silent or go away at the sight of a probe. A client that `falls_back` then tries such a
    /// server anew; to another one, a connection that is lost is just that.
    pub(crate) fn read(
        outcome: Result<Result<DiscoverResult, ErrorObject>, Error>,
        is_shared: bool,
        falls_back: bool,
    ) -> Result<Self, Error> {
        match outcome {
            Ok(Ok(result)) => Ok(Self::Modern(result.supported_versions)),
            Ok(Err(object)) if is_modern(&object) => Ok(Self::ModernError(object)),
            Ok(Err(_)) => Ok(Self::Other),
            Err(error) => match (error.kind(), error.status()) {
                (ErrorKind::Timeout, _) if is_shared => Ok(Self::Silent),
                (ErrorKind::TransportClosed, _) if is_shared && falls_back => Ok(Self::Exited),
                (ErrorKind::ProtocolInvalid, _) => Ok(Self::Other),
                (ErrorKind::TransportError, Some(status)) if !is_about_now(status) => Ok(Self::Other),
                _ => Err(error),
            },
        }
    }
}

/// Statuses that say that somebody may not ask, or that nobody can be asked at the moment, whatever the server speaks.
fn is_about_now(status: u16) -> bool {
    matches!(status, 401 | 403 | 408 | 425 | 429 | 502..=504)
}

/// Codes that only a modern server gives.
fn is_modern(object: &ErrorObject) -> bool {
    matches!(
        object.code,
        mcp_code::UNSUPPORTED_PROTOCOL_VERSION | mcp_code::HEADER_MISMATCH | mcp_code::MISSING_CLIENT_CAPABILITY
    )
}

/// Judges a probe that was sent in `sent`; `first` is whether another one may follow.
pub(crate) fn judge(probe: Probe, ours: Revisions, sent: Revision, first: bool) -> Next {
    match probe {
        Probe::Modern(theirs) => choose(&theirs, ours, Next::Modern),
        Probe::ModernError(object) => match supported(&object) {
            Some(theirs) => choose(&theirs, ours, |revision| {
                // A list that repeats what was just refused may be a race or a fault; once more, and not for ever.
                if first { Next::Again(revision) } else { Next::Nothing { theirs: theirs.clone() } }
            }),
            // It minds something else than the version, if it does not say which it would take.
            None if object.code != mcp_code::UNSUPPORTED_PROTOCOL_VERSION => Next::Modern(sent),
            None => Next::Nothing { theirs: Vec::new() },
        },
        Probe::Other | Probe::Silent => Next::Legacy { reconnect: false },
        Probe::Exited => Next::Legacy { reconnect: true },
    }
}

fn supported(object: &ErrorObject) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let is_unsupported = object.code == mcp_code::UNSUPPORTED_PROTOCOL_VERSION;
    let data = object.data.as_ref().filter(|_| is_unsupported)?;
    data.decode::<Data>().ok().map(|data| data.supported)
}

/// The newest revision that both speak. A server may say by a modern answer that it speaks legacy ones only.
fn choose(theirs: &[String], ours: Revisions, modern: impl FnOnce(Revision) -> Next) -> Next {
    let common = ours.iter().find(|revision| theirs.iter().any(|date| date == revision.as_str()));
    match common {
        Some(revision) if revision.era() == Era::Modern => modern(revision),
        Some(_) => Next::Legacy { reconnect: false },
        None => Next::Nothing { theirs: theirs.to_vec() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Revision = Revision::LATEST;

    fn discovered(versions: &[&str]) -> Probe {
        Probe::Modern(versions.iter().map(|version| (*version).to_owned()).collect())
    }

    fn refused(code: i64, versions: Option<&[&str]>) -> Probe {
        let mut object = ErrorObject::new(code, "no");
        if let Some(versions) = versions {
            object = object.with_data(mcp_jsonrpc::Raw::encode(&serde_json::json!({ "supported": versions })).unwrap());
        }
        Probe::read(Ok(Err(object)), true, true).unwrap()
    }

    fn verdict(probe: Probe) -> Next {
        judge(probe, Revisions::default(), SENT, true)
    }

    #[test]
    fn a_modern_answer_is_a_modern_server() {
        assert_eq!(verdict(discovered(&["2026-07-28", "2025-11-25"])), Next::Modern(SENT));
        assert_eq!(verdict(refused(-32022, Some(&["2026-07-28"]))), Next::Again(SENT));
        assert_eq!(verdict(refused(-32020, None)), Next::Modern(SENT));
        assert_eq!(verdict(discovered(&["2099-01-01"])), Next::Nothing { theirs: vec!["2099-01-01".into()] });
        let again = judge(refused(-32022, Some(&["2026-07-28"])), Revisions::default(), SENT, false);
        assert_eq!(again, Next::Nothing { theirs: vec!["2026-07-28".into()] });
    }

    #[test]
    fn anything_else_is_a_legacy_server() {
        for code in [-32601, -32602, -32600, -32000, -32700] {
            assert_eq!(verdict(refused(code, None)), Next::Legacy { reconnect: false }, "{code}");
        }
        assert_eq!(verdict(Probe::Silent), Next::Legacy { reconnect: false });
        assert_eq!(verdict(Probe::Exited), Next::Legacy { reconnect: true });
        assert_eq!(verdict(discovered(&["2025-11-25"])), Next::Legacy { reconnect: false });
        let page = Error::new(ErrorKind::TransportError, "404").with_status(404);
        assert!(matches!(Probe::read(Err(page), false, true), Ok(Probe::Other)));
        for status in [401, 403, 408, 425, 429, 502, 503, 504] {
            let busy = Error::new(ErrorKind::TransportError, "busy").with_status(status);
            assert_eq!(Probe::read(Err(busy), false, true).unwrap_err().status(), Some(status));
        }
    }

    #[test]
    fn errors_of_the_connection_are_no_verdict() {
        for kind in [ErrorKind::TransportError, ErrorKind::Unauthorized, ErrorKind::Timeout, ErrorKind::TransportClosed]
        {
            assert_eq!(Probe::read(Err(Error::new(kind, "no")), false, true).unwrap_err().kind(), kind);
        }
    }
}
