use super::{
    refused::{Flaw, HostError, Refusal},
    *,
};

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
    assert!(text.starts_with(&format!("Origin '{}…' is not", "é".repeat(crate::shown::SHOWN))), "{text}");

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
    for host in ["www.example.com", "example.com.evil", "evil-example.com", "example.co", "[fe80::2]", "192.168.1.5"] {
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
