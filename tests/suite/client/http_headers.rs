//! Headers of a user's own, and headers that a busy server sends.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ::http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use mcp_suite::{Client, Error, ErrorKind, client::CallOptions, http::Http};
use tokio::time::sleep;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

fn bearer(token: &str) -> HeaderMap {
    HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap())])
}

/// A legacy server with a session, whose call comes as a stream that is to be resumed: every kind of request there is.
async fn of_every_kind() -> HttpPeer {
    HttpPeer::start(http::with_session(http::listening("2025-11-25", |request: &Request| {
        match (request.verb.as_str(), request.header("last-event-id")) {
            ("GET", None) => Answer::events(": hello\n\n").without_end(),
            ("GET", _) => {
                Answer::events(format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": 1, "result": text("b") })))
            }
            _ => Answer::events("id: 1\nretry: 1\ndata:\n\n"),
        }
    })))
    .await
}

/// Makes requests of every kind, and gives them back.
async fn requests_of_every_kind(server: &HttpPeer, transport: Http) -> Vec<Request> {
    let client = soon(connect_in(Era::Legacy, transport)).await.unwrap();
    server.until("it listens", |seen| seen.iter().any(|request| request.verb == "GET")).await;
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    soon(client.disconnect()).await;
    let requests = [server.requests(), server.gets()].concat();
    let kinds: BTreeSet<_> =
        requests.iter().map(|request| (request.verb.clone(), request.method().to_owned())).collect();
    assert_eq!(kinds.len(), 5, "{kinds:?}");
    requests
}

#[tokio::test]
async fn headers_are_asked_for_before_every_request() {
    let server = of_every_kind().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let transport = Http::new(server.url()).headers_with(move || {
        let token = counter.fetch_add(1, Ordering::SeqCst);
        async move {
            // Where tokens come from, one waits.
            sleep(Duration::from_millis(5)).await;
            Ok(bearer(&token.to_string()))
        }
    });
    let requests = requests_of_every_kind(&server, transport).await;
    let tokens: BTreeSet<_> =
        requests.iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(tokens.len(), requests.len(), "each has its own: {tokens:?}");
    assert_eq!(asked.load(Ordering::SeqCst), requests.len());
}

#[tokio::test]
async fn what_is_asked_for_takes_the_place_of_what_was_given() {
    let server = HttpPeer::start(http::modern(|_| Answer::result(text("b")))).await;
    let other = HeaderName::from_static("x-tenant");
    let transport = Http::new(server.url())
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer old"))
        .header(other, HeaderValue::from_static("t"))
        .headers_with(|| async { Ok(bearer("new")) });
    soon(Client::connect(transport)).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!((request.header("authorization"), request.header("x-tenant")), (Some("Bearer new"), Some("t")));
}

/// A user's word on what the protocol says in its headers would be a lie sooner or later.
#[tokio::test]
async fn the_protocols_own_headers_are_its_own() {
    let lies = [
        ("content-type", "text/plain"),
        ("content-length", "7"),
        ("accept", "text/html"),
        ("mcp-protocol-version", "1999-01-01"),
        ("mcp-session-id", "stolen"),
        ("mcp-method", "lie"),
        ("mcp-name", "lie"),
        ("mcp-param-lie", "lie"),
        ("last-event-id", "lie"),
    ]
    .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let given = HeaderMap::from_iter(lies.clone());
    for asked in [false, true] {
        let server = of_every_kind().await;
        let transport = if asked {
            let given = given.clone();
            Http::new(server.url()).headers_with(move || std::future::ready(Ok(given.clone())))
        } else {
            lies.iter().fold(Http::new(server.url()), |http, (name, value)| http.header(name.clone(), value.clone()))
        };
        for request in requests_of_every_kind(&server, transport).await {
            for (name, value) in &given {
                let seen = request.header(name.as_str());
                assert_ne!(seen, Some(value.to_str().unwrap()), "{name} of {request:?}");
            }
            assert!(request.header("mcp-method").is_none() && request.header("mcp-param-lie").is_none());
            assert_eq!(request.header("mcp-session-id").is_some(), request.method() != "initialize");
        }
    }
}

/// Who cannot say who asks, asks nothing.
#[tokio::test]
async fn where_headers_cannot_be_had_nothing_is_sent() {
    let server = HttpPeer::start(http::modern(|_| Answer::result(text("b")))).await;
    let works = Arc::new(Mutex::new(true));
    let switch = works.clone();
    let transport = Http::new(server.url()).headers_with(move || {
        let works = *switch.lock().unwrap();
        async move {
            if works {
                Ok(bearer("t"))
            } else {
                Err(Error::new(ErrorKind::Unauthorized, "the token cannot be renewed"))
            }
        }
    });
    let client = soon(Client::connect(transport)).await.unwrap();
    *works.lock().unwrap() = false;
    let error = soon(client.call::<String>("a", ())).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unauthorized, "the token cannot be renewed".into()));
    assert_eq!(server.methods(), ["server/discover"]);
    *works.lock().unwrap() = true;
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

/// A source of headers that hangs is bounded by the call that waits for it, and does not hold up the end.
#[tokio::test]
async fn headers_that_never_come_hold_up_nobody() {
    let server = of_every_kind().await;
    let hangs = Arc::new(Mutex::new(false));
    let switch = hangs.clone();
    let transport = Http::new(server.url()).headers_with(move || {
        let hangs = *switch.lock().unwrap();
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(bearer("secret"))
        }
    });
    let client = soon(connect_in(Era::Legacy, transport)).await.unwrap();
    *hangs.lock().unwrap() = true;
    let options = CallOptions::new().timeout(Duration::from_millis(100));
    let error = soon(client.call_with::<String>("a", (), options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    soon(client.disconnect()).await;
}

#[tokio::test]
async fn a_busy_server_says_when_to_ask_again() {
    for (status, value, expected) in [
        (429, Some("7"), Some(7)),
        (503, Some("0"), Some(0)),
        (503, Some("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0)),
        (429, Some("soon"), None),
        (429, None, None),
        (500, Some("7"), None),
        (400, Some("7"), None),
    ] {
        for era in ERAS {
            for body in [Answer::new(status, "text/plain", "busy"), Answer::new(status, "application/json", "{}")] {
                let answer = value.iter().fold(body, |answer, value| answer.header("Retry-After", value));
                let rule = move |_: &Request| answer.clone();
                let server = match era {
                    Era::Modern => HttpPeer::start(http::modern(rule)).await,
                    _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
                };
                let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
                let error = soon(client.call::<String>("a", ())).await.unwrap_err();
                assert_eq!((error.status(), error.kind()), (Some(status), ErrorKind::TransportError));
                assert_eq!(error.retry_after(), expected.map(Duration::from_secs), "{status} {value:?}");
                // Nothing is asked again by itself.
                assert_eq!(server.methods().iter().filter(|method| *method == "tools/call").count(), 1);
            }
        }
    }
    // Connecting tells it too.
    let server = HttpPeer::start(|_| Answer::status(503).header("Retry-After", "30")).await;
    let error = soon(over_http(&server.url())).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(30)));
    assert_eq!(server.requests().len(), 1);
}

/// What this client cannot inflate it does not ask for; a server that sends it all the same is told so at once.
#[tokio::test]
async fn c075_no_encoding_is_asked_for_that_cannot_be_read() {
    let server = of_every_kind().await;
    for request in requests_of_every_kind(&server, Http::new(server.url())).await {
        let asked = request.header("accept-encoding").unwrap_or("identity");
        assert_eq!(asked, "identity", "{} {}", request.verb, request.method());
        assert_eq!(request.header("content-encoding"), None);
    }
    let zipped = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for media_type in ["application/json", "text/event-stream"] {
        let answer = Answer::new(200, media_type, zipped).header("Content-Encoding", "gzip");
        let server = HttpPeer::start(http::modern(move |_| answer.clone())).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        let error = soon(client.call::<String>("a", ())).await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::ProtocolInvalid | ErrorKind::TransportClosed),
            "{media_type}: {error}"
        );
    }
}
