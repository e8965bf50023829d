//! The resource that an MCP server is, to authorization servers.
//!
//! Specification: *Authorization, Resource Parameter Implementation*; *RFC 8707*; *RFC 9728, Protected Resource Metadata
//! Validation*.

use url::{Position, Url};

/// The canonical URI of the server at `endpoint`: scheme and host in lower case, no user, query or fragment, and no slash at
/// the end. WebSocket URLs mean the HTTP ones.
#[must_use]
pub fn canonical(endpoint: &Url) -> String {
    let scheme = match endpoint.scheme() {
        "ws" => "http",
        "wss" => "https",
        scheme => scheme,
    };
    let rest = &endpoint[Position::BeforeHost..Position::AfterPath];
    format!("{scheme}://{}", rest.trim_end_matches('/'))
}

/// Whether `resource`, as a server published it, is the server at `endpoint` or what holds it: of the same origin, and the
/// same path or a parent of it, up to a slash.
#[must_use]
pub fn covers(resource: &str, endpoint: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let Ok(endpoint) = Url::parse(&canonical(endpoint)) else { return false };
    let is_plain = resource.query().is_none() && resource.fragment().is_none() && resource.username().is_empty();
    let parent = resource.path().trim_end_matches('/');
    let below = endpoint.path().trim_end_matches('/').strip_prefix(parent);
    is_plain
        && resource.password().is_none()
        && resource.origin().is_tuple()
        && resource.origin() == endpoint.origin()
        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn c178_a_resource_is_of_the_same_origin_and_a_parent_at_a_segments_border() {
        for (resource, expected) in [
            ("https://h", true),
            ("https://h/", true),
            ("https://h/mcp", true),
            ("https://h/mcp/", true),
            ("HTTPS://H:443/mcp", true),
            ("https://h/mc", false),
            ("https://h/mcp/x", false),
            ("https://h/MCP", false),
            ("https://evil.example", false),
            ("https://h.evil.example/mcp", false),
            ("https://h@evil.example/mcp", false),
            ("https://u@h/mcp", false),
            ("http://h/mcp", false),
            ("https://h:8443/mcp", false),
            ("https://h/mcp/../mc", false),
            ("https://h?x", false),
            ("h/mcp", false),
            ("", false),
        ] {
            assert_eq!(covers(resource, &url("https://h/mcp")), expected, "{resource}");
        }
    }

    #[test]
    fn c178_a_websocket_is_the_resource_that_its_upgrade_goes_to() {
        assert!(covers("https://h/mcp", &url("wss://h/mcp")));
        assert!(covers("http://h:81", &url("ws://h:81/mcp")));
        assert!(!covers("https://h/mcp", &url("ws://h/mcp")));
    }

    #[test]
    fn the_canonical_uri_has_no_more_than_it_needs() {
        for (endpoint, expected) in [
            ("https://H/", "https://h"),
            ("https://u:p@h:443/mcp/?q#f", "https://h/mcp"),
            ("wss://h:8443/Mcp", "https://h:8443/Mcp"),
        ] {
            assert_eq!(canonical(&url(endpoint)), expected);
        }
    }
}
