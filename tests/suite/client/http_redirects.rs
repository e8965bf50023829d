//! Redirects of every kind of request: within the origin where they keep it whole, and nowhere else.
//!
//! Specification: *RFC 9110, Redirection 3xx*.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use mcp_suite::{Blame, ErrorKind, http::Http};
use tokio::time::sleep;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

/// A server that works, but for requests of this verb to `/mcp`, which it sends elsewhere.
async fn redirecting(verb: &'static str, status: u16, location: String) -> HttpPeer {
    let rest = http::with_session(http::listening("2025-11-25", |request: &Request| match request.verb.as_str() {
        "GET" => Answer::events(": hello\n\n").without_end(),
        _ => Answer::result(text("b")),
    }));
    HttpPeer::start(move |request: &Request| {
        if request.verb == verb && request.path == "/mcp" {
            return Answer::status(status).header("Location", &location);
        }
        rest(request)
    })
    .await
}

/// A transport with a secret of each kind.
fn secretive(url: &str) -> Http {
    let asked = HeaderMap::from_iter([("x-key".parse().unwrap(), HeaderValue::from_static("k"))]);
    Http::new(url)
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer t"))
        .headers_with(move || std::future::ready(Ok(asked.clone())))
}

/// Connects, which may fail, has the stream opened, calls, and disconnects.
async fn live(url: &str) {
    if let Ok(client) = soon(connect_in(Era::Legacy, secretive(url))).await {
        sleep(Duration::from_millis(100)).await;
        let _ = soon(client.call::<String>("a", ())).await;
        soon(client.disconnect()).await;
    }
}

#[tokio::test]
async fn c072_every_kind_of_request_is_redirected_within_the_origin() {
    for verb in ["POST", "GET", "DELETE"] {
        for status in [307, 308] {
            let server = redirecting(verb, status, "/mcp/".into()).await;
            live(&server.url()).await;
            let requests = [server.requests(), server.gets()].concat();
            let redirected: Vec<_> = requests.iter().filter(|request| request.path == "/mcp/").collect();
            assert!(!redirected.is_empty(), "{verb} {status}");
            for request in redirected {
                assert_eq!((request.verb.as_str(), request.header("authorization")), (verb, Some("Bearer t")));
                assert_eq!(request.header("x-key"), Some("k"));
                let begins = request.method() == "initialize";
                assert_eq!(request.header("mcp-session-id").is_none(), begins, "{request:?}");
            }
        }
    }
}

/// Not the credentials, and not the request without them.
#[tokio::test]
async fn c072_no_kind_of_request_goes_to_another_origin() {
    let other = HttpPeer::start(|_| Answer::status(200)).await;
    for verb in ["POST", "GET", "DELETE"] {
        for status in [301, 302, 303, 307, 308] {
            let server = redirecting(verb, status, format!("{}/mcp", other.origin())).await;
            live(&server.url()).await;
            let requests = [server.requests(), server.gets()].concat();
            assert!(requests.iter().any(|request| request.verb == verb), "{verb} {status}");
        }
    }
    assert!(other.requests().is_empty() && other.gets().is_empty());
}

/// A redirect that would turn a request into another one is not followed either, and GETs go on for ever nowhere.
#[tokio::test]
async fn c072_what_would_not_be_the_same_request_is_not_followed() {
    for verb in ["POST", "GET", "DELETE"] {
        for status in [301, 302, 303] {
            let server = redirecting(verb, status, "/mcp/".into()).await;
            live(&server.url()).await;
            let requests = [server.requests(), server.gets()].concat();
            assert!(requests.iter().all(|request| request.path == "/mcp"), "{verb} {status}");
        }
        let server = redirecting(verb, 307, "/mcp".into()).await;
        live(&server.url()).await;
        let requests = [server.requests(), server.gets()].concat();
        let count = requests.iter().filter(|request| request.verb == verb).count();
        assert!(count <= 40, "{verb} {count}");
    }
}

/// Whatever else a user says of the HTTP client: it knows the headers that may go to no other origin.
#[tokio::test]
async fn c072_a_client_of_ones_own_follows_no_other_redirects() {
    use mcp_suite::http::reqwest::{Client, redirect::Policy};

    let other = HttpPeer::start(|_| Answer::status(200)).await;
    let builder = || Client::builder().redirect(Policy::limited(10)).user_agent("mine");
    let theirs = |url: &str| secretive(url).client_with(builder()).unwrap();
    for status in [301, 302, 303, 307, 308] {
        let server = redirecting("POST", status, format!("{}/mcp", other.origin())).await;
        let error = soon(connect_in(Era::Legacy, theirs(&server.url()))).await.unwrap_err();
        assert_eq!(error.status(), Some(status));
    }
    assert!(other.requests().is_empty() && other.gets().is_empty());
    let server = redirecting("POST", 307, "/mcp/".into()).await;
    soon(connect_in(Era::Legacy, theirs(&server.url()))).await.unwrap();
    assert!(server.requests().iter().all(|request| request.header("user-agent") == Some("mine")));
}

#[tokio::test]
async fn a_client_of_ones_own_that_cannot_be_made_is_an_error() {
    let builder = mcp_suite::http::reqwest::Client::builder().user_agent("a\nb");
    let error = Http::new("http://127.0.0.1:1/").client_with(builder).unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::InvalidParams, Blame::Caller), "{error}");
}
