//! What a request is, before it becomes a socket: an upgrade that is meant for this server, or none of its business.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header, request::Parts};
use mcp_core::Revisions;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::{RESUME_SUBPROTOCOL, SUBPROTOCOL, VERSION_SUBPROTOCOL};

/// An upgrade that this server takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Upgrade {
    accept: HeaderValue,
    picked: Option<HeaderValue>,
}

/// Which subprotocols a server knows beside its own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) resume: bool,
    /// The revisions that may be named, where any may be.
    pub(super) versions: Option<Revisions>,
}

/// A revision is offered, and none that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnknownVersion;

impl Upgrade {
    /// Reads the upgrade, if it is a well-formed one at `path`. All else is for somebody else to answer.
    pub(super) fn read(path: &str, parts: &Parts, known: Known) -> Option<Result<Self, UnknownVersion>> {
        let is_here = parts.uri.path().trim_end_matches('/') == path.trim_end_matches('/');
        let is_upgrade = parts.method == Method::GET
            && parts.version == Version::HTTP_11
            && has_token(&parts.headers, &header::CONNECTION, "upgrade")
            && has_token(&parts.headers, &header::UPGRADE, "websocket")
            && single(&parts.headers, &header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
        let key = single(&parts.headers, &header::SEC_WEBSOCKET_KEY).filter(|key| is_nonce(key.as_bytes()))?;
        if !(is_here && is_upgrade) {
            return None;
        }
        let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok()?;
        Some(known.pick(&parts.headers).map(|picked| Self { accept, picked }))
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.picked.as_ref().is_some_and(|picked| picked == RESUME_SUBPROTOCOL)
    }

    /// The answer that switches protocols.
    pub(super) fn answer<B: Default>(self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(picked) = self.picked {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, picked);
        }
        response
    }
}

impl Known {
    /// Which of the offered subprotocols is picked: none but these, as others may be secrets.
    fn pick(self, headers: &HeaderMap) -> Result<Option<HeaderValue>, UnknownVersion> {
        let offers = |ours: &str| tokens(headers, &header::SEC_WEBSOCKET_PROTOCOL).any(|offered| offered == ours);
        let version = self.versions.map_or(Ok(None), |versions| version(headers, versions))?;
        let fixed = [(RESUME_SUBPROTOCOL, self.resume), (SUBPROTOCOL, true)];
        let fixed = fixed.into_iter().find(|(ours, is_known)| *is_known && offers(ours));
        Ok(fixed.map(|(ours, _)| HeaderValue::from_static(ours)).or(version))
    }
}

/// The offered revision, if any is; then it has to be one of `versions`.
fn version(headers: &HeaderMap, versions: Revisions) -> Result<Option<HeaderValue>, UnknownVersion> {
    let offered = tokens(headers, &header::SEC_WEBSOCKET_PROTOCOL);
    let mut dates = offered.filter_map(|offered| offered.strip_prefix(VERSION_SUBPROTOCOL)).peekable();
    if dates.peek().is_none() {
        return Ok(None);
    }
    let revision = dates.find_map(|date| versions.find(date)).ok_or(UnknownVersion)?;
    Ok(HeaderValue::try_from(format!("{VERSION_SUBPROTOCOL}{revision}")).ok())
}

/// A header that stands once.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// The members of a header that is a list, over all the lines it may stand on.
pub(super) fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).map(str::trim)
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|member| member.eq_ignore_ascii_case(token))
}

/// 16 bytes in Base64.
fn is_nonce(key: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 6455, 1.3, with some headers replaced or added.
    fn parts(uri: &str, changed: &[(&'static str, &str)]) -> Parts {
        let mut request = http::Request::get(uri).body(()).unwrap();
        let usual = [
            ("host", "server.example.com"),
            ("upgrade", "websocket"),
            ("connection", "Upgrade"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
        ];
        for (name, value) in usual {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        for (name, value) in changed {
            request.headers_mut().remove(*name);
            for value in value.split('|').filter(|value| !value.is_empty()) {
                request.headers_mut().append(*name, value.parse().unwrap());
            }
        }
        request.into_parts().0
    }

    fn read(changed: &[(&'static str, &str)]) -> Option<Upgrade> {
        knowing(Known::default(), changed).map(Result::unwrap)
    }

    fn knowing(known: Known, changed: &[(&'static str, &str)]) -> Option<Result<Upgrade, UnknownVersion>> {
        Upgrade::read("/mcp", &parts("/mcp?x=1", changed), known)
    }

    fn picked(known: Known, offered: &str) -> Result<Option<String>, UnknownVersion> {
        let upgrade = knowing(known, &[("sec-websocket-protocol", offered)]).unwrap()?;
        let response: Response<()> = upgrade.answer();
        let picked = response.headers().get("sec-websocket-protocol");
        Ok(picked.map(|picked| picked.to_str().unwrap().to_owned()))
    }

    #[test]
    fn the_accept_key_is_the_one_of_the_rfc() {
        let response: Response<()> = read(&[]).unwrap().answer();
        assert_eq!(response.status(), 101);
        assert_eq!(response.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_no_upgrade_of_ours_is_passed_on() {
        for changed in [
            ("upgrade", ""),
            ("upgrade", "h2c"),
            ("connection", "keep-alive"),
            ("connection", ""),
            ("sec-websocket-version", ""),
            ("sec-websocket-version", "8"),
            ("sec-websocket-version", "13|13"),
            ("sec-websocket-version", "13, 8"),
            ("sec-websocket-key", ""),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="[1..].as_ref()),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==|dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25j\tQ=="),
        ] {
            assert_eq!(read(&[changed]), None, "{changed:?}");
        }
        for path in ["/", "/mcp2", "/mcp/x", "/MCP", "/x/mcp"] {
            assert_eq!(Upgrade::read("/mcp", &parts(path, &[]), Known::default()), None, "{path}");
        }
        let mut post = parts("/mcp", &[]);
        post.method = Method::POST;
        let mut old = parts("/mcp", &[]);
        old.version = Version::HTTP_10;
        assert!([post, old].iter().all(|parts| Upgrade::read("/mcp", parts, Known::default()).is_none()));
    }

    #[test]
    fn upgrades_are_read_as_lists_without_case() {
        for changed in [
            ("connection", "keep-alive, upgrade"),
            ("connection", "keep-alive|UPGRADE"),
            ("upgrade", "WebSocket"),
            ("upgrade", "h2c, websocket"),
        ] {
            assert!(read(&[changed]).is_some(), "{changed:?}");
        }
        for path in ["/mcp", "/mcp/", "/mcp?a=/b"] {
            assert!(Upgrade::read("/mcp", &parts(path, &[]), Known::default()).is_some(), "{path}");
        }
        assert!(Upgrade::read("/", &parts("/", &[]), Known::default()).is_some());
    }

    #[test]
    fn c107_the_subprotocol_is_echoed_only_if_offered_and_nothing_else_ever_is() {
        for (offered, echoed) in [
            ("", None),
            ("mcp", Some("mcp")),
            ("foo, mcp", Some("mcp")),
            ("foo|mcp", Some("mcp")),
            ("mcp, mcp.auth.TOKEN", Some("mcp")),
            ("mcp.auth.TOKEN", None),
            ("MCP", None),
            ("mcp2", None),
        ] {
            let response: Response<()> = read(&[("sec-websocket-protocol", offered)]).unwrap().answer();
            let values: Vec<_> = response.headers().get_all("sec-websocket-protocol").iter().collect();
            assert_eq!(values, echoed.iter().collect::<Vec<_>>(), "{offered}");
            assert!(!format!("{response:?}").contains("TOKEN"));
        }
    }

    #[test]
    fn c107_resuming_and_revisions_are_picked_only_where_they_are_known() {
        let all = Known { resume: true, versions: Some(Revisions::default()) };
        for (offered, known, otherwise) in [
            ("mcp.resume, mcp", "mcp.resume", Some("mcp")),
            ("mcp, mcp.resume", "mcp.resume", Some("mcp")),
            ("mcp.resume", "mcp.resume", None),
            ("mcp, mcp.version.2025-11-25", "mcp", Some("mcp")),
            ("mcp.version.2025-11-25", "mcp.version.2025-11-25", None),
            ("mcp.version.1999-01-01, mcp.version.2025-06-18", "mcp.version.2025-06-18", None),
        ] {
            assert_eq!(picked(all, offered), Ok(Some(known.to_owned())), "{offered}");
            assert_eq!(picked(Known::default(), offered), Ok(otherwise.map(str::to_owned)), "{offered}");
        }
        assert_eq!(picked(all, "foo"), Ok(None));
    }

    #[test]
    fn a_revision_that_nobody_speaks_is_refused_where_revisions_are_known() {
        let known = Known { resume: false, versions: Some(Revisions::default()) };
        for offered in ["mcp, mcp.version.1999-01-01", "mcp.version.", "mcp.version.2025-11-25x"] {
            assert_eq!(picked(known, offered), Err(UnknownVersion), "{offered}");
        }
    }
}
