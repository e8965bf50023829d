//! What servers and what stands before them answer over HTTP.
//!
//! Specification: *Streamable HTTP, Sending Messages*.

use std::time::Duration;

use mcp_suite::{Blame, Client, Error, ErrorKind, Limits, http::Http, implementation};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

/// A server that gives this answer to each call of a tool, and a client that is connected to it.
async fn answering(era: Era, answer: Answer) -> (Client, HttpPeer) {
    answering_within(era, answer, Limits::default()).await
}

async fn answering_within(era: Era, answer: Answer, limits: Limits) -> (Client, HttpPeer) {
    let rule = move |request: &Request| match request.body["params"]["name"].as_str() {
        Some("good") => Answer::result(text("b")),
        _ => answer.clone(),
    };
    let server = match era {
        Era::Modern => HttpPeer::start(http::modern(rule)).await,
        _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
    };
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    (soon(client).await.unwrap(), server)
}

/// The error of a call, which must come at once.
async fn refused(client: &Client) -> Error {
    soon(client.call::<String>("a", ())).await.unwrap_err()
}

#[tokio::test]
async fn c059_a_web_page_is_an_error_that_shows_it() {
    for page in [
        Answer::new(200, "text/html", "<html>login</html>"),
        Answer::new(200, "text/html; charset=utf-8", format!("<html>login</html>{}", "x".repeat(100_000))),
        Answer::new(503, "text/html", "<html>login</html>"),
        Answer::new(404, "text/html", "<html>login</html>"),
        Answer::new(403, "text/html", "<html>login</html>"),
    ] {
        let said = format!("{page:?}").chars().take(60).collect::<String>();
        let status = said.split_once("status: ").unwrap().1[..3].to_owned();
        let server = HttpPeer::start(move |_| page.clone()).await;
        for error in [
            soon(over_http(&server.url())).await.unwrap_err(),
            soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err(),
            soon(connect_in(Era::Modern, Http::new(server.url()))).await.unwrap_err(),
        ] {
            let message = error.to_string();
            for part in [status.as_str(), "text/html", "<html>login</html>"] {
                assert!(message.contains(part), "{said}: {part} is not in {message}");
            }
            assert!(message.len() < 2000, "{said}: the excerpt is short: {} bytes", message.len());
        }
    }
}

/// A page that never ends says as much in its first bytes as one that does.
#[tokio::test]
async fn c059_a_page_without_end_is_an_error_that_shows_it() {
    let limits =
        Limits::default().probe_timeout(Duration::from_millis(300)).request_timeout(Duration::from_millis(600));
    for status in [200, 404] {
        let page = Answer::new(status, "text/html", "<html>login</html>").without_end();
        let server = HttpPeer::start(move |_| page.clone()).await;
        let client = Client::builder(implementation!()).limits(limits.clone()).connect(Http::new(server.url()));
        let error = soon(client).await.unwrap_err();
        assert!(error.to_string().contains("text/html"), "{status}: {error}");
    }
}

/// Whoever has to log in must be told so, and not be taken for a legacy server.
#[tokio::test]
async fn c105_a_401_without_end_is_a_401() {
    let limits =
        Limits::default().probe_timeout(Duration::from_millis(300)).request_timeout(Duration::from_millis(600));
    let server = HttpPeer::start(|_| Answer::new(401, "text/html", "<html>login</html>").without_end()).await;
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    let error = soon(client).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unauthorized, Some(401)), "{error}");
    assert_eq!(server.requests().len(), 1);
}

/// Media types are case-insensitive and have parameters; JSON without a type is taken by no one's word.
#[tokio::test]
async fn media_types_are_read_as_the_standard_says() {
    let body = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"b"}]}}"#;
    let events = format!("data: {body}\n\n");
    for (kind, body) in [
        ("application/json; charset=utf-8", body),
        ("Application/JSON", body),
        ("application/json;charset=\"utf-8\"", body),
        (" application/json ", body),
        ("text/event-stream; charset=utf-8", &events),
        ("Text/Event-Stream", &events),
    ] {
        let (client, _server) = answering(Era::Modern, Answer::new(200, kind, body)).await;
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b", "{kind}");
    }
    let (client, _server) = answering(Era::Modern, Answer::new(200, "application/jsonp", body)).await;
    assert_eq!(refused(&client).await.kind(), ErrorKind::ProtocolInvalid);
}

#[tokio::test]
async fn c072_a_redirect_within_the_origin_keeps_method_body_and_headers() {
    for status in [307, 308] {
        for location in ["/mcp/", "ORIGIN/mcp/", "mcp/"] {
            let target = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
            let to = target.clone();
            let rest = http::legacy("2025-11-25", |_| Answer::result(text("b")));
            let server = HttpPeer::start(move |request: &Request| {
                if request.path == "/mcp" {
                    return Answer::status(status).header("Location", to.get().unwrap());
                }
                rest(request)
            })
            .await;
            target.set(location.replace("ORIGIN", &server.origin())).unwrap();
            let authorization = ::http::HeaderValue::from_static("Bearer t");
            let transport = Http::new(server.url()).header(::http::header::AUTHORIZATION, authorization);
            let client = soon(Client::connect(transport)).await.unwrap();
            assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
            let requests = server.requests();
            let (first, second) = (&requests[requests.len() - 2], &requests[requests.len() - 1]);
            assert_eq!((first.path.as_str(), second.path.as_str()), ("/mcp", "/mcp/"));
            assert_eq!((&second.verb, &second.body), (&first.verb, &first.body));
            let kept = |request: &Request| {
                let mut kept = request.headers.clone();
                kept.retain(|(name, _)| name != "referer");
                kept.sort();
                kept
            };
            assert_eq!(kept(first), kept(second));
            assert_eq!(second.header("authorization"), Some("Bearer t"));
        }
    }
}

/// To another origin goes nothing at all, credentials least of all.
#[tokio::test]
async fn c072_a_redirect_to_another_origin_is_an_error_that_names_it() {
    for status in [301, 302, 303, 307, 308] {
        let other = HttpPeer::start(|_| Answer::result(discovered())).await;
        let to = format!("{}/elsewhere", other.origin());
        let server = HttpPeer::start(move |_| Answer::status(status).header("Location", &to)).await;
        let authorization = ::http::HeaderValue::from_static("Bearer t");
        for era in ERAS {
            let transport = Http::new(server.url()).header(::http::header::AUTHORIZATION, authorization.clone());
            let error = soon(connect_in(era, transport)).await.unwrap_err();
            assert!(error.to_string().contains(&other.origin()), "{status}: {error}");
            assert!(error.to_string().contains(&status.to_string()), "{error}");
            assert_eq!(other.requests().len(), 0, "{status}");
        }
        // The same host by another name, and with another scheme, are other origins too.
        let port = server.url().rsplit_once(':').unwrap().1.replace("/mcp", "");
        for elsewhere in [format!("http://localhost:{port}"), format!("https://127.0.0.1:{port}")] {
            let to = format!("{elsewhere}/x");
            let server = HttpPeer::start(move |_| Answer::status(status).header("Location", &to)).await;
            let error = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
            assert!(error.to_string().contains(&elsewhere), "{status}: {error}");
            assert_eq!((error.status(), server.requests().len()), (Some(status), 1));
        }
    }
}

#[tokio::test]
async fn c072_a_redirect_that_would_lose_the_body_is_an_error_that_names_the_origin() {
    for status in [300, 301, 302, 303] {
        let server = HttpPeer::start(move |request: &Request| match request.path.as_str() {
            "/mcp" => Answer::status(status).header("Location", "/elsewhere"),
            _ => Answer::result(discovered()),
        })
        .await;
        let error = soon(over_http(&server.url())).await.unwrap_err();
        assert!(error.to_string().contains(&server.origin()), "{status}: {error}");
        assert!(server.requests().iter().all(|request| request.path == "/mcp"), "{status}");
    }
}

#[tokio::test]
async fn c072_a_redirect_to_itself_comes_to_an_end() {
    let server = HttpPeer::start(|_| Answer::status(307).header("Location", "/mcp")).await;
    let error = soon(connect_in(Era::Modern, Http::new(server.url()))).await.unwrap_err();
    assert!(error.to_string().contains(&server.origin()), "{error}");
    assert!(server.requests().len() <= 11, "{}", server.requests().len());
}

/// Servers repeat the URL that they were asked for, and that may have a key in it.
#[tokio::test]
async fn where_a_redirect_points_is_told_without_what_may_be_secret_in_it() {
    for (location, told) in [
        ("https://user:secret@example.com:8443/secret?key=secret#secret".to_owned(), "https://example.com:8443"),
        ("/secret?key=secret".to_owned(), "http://127.0.0.1:"),
        ("secret:secret".to_owned(), "no origin"),
        ("https://secret[/secret".to_owned(), "no URL"),
        ("https://:secret".to_owned(), "no URL"),
        (format!("https://{}.example.com/secret", "x".repeat(10_000)), "https://xxx"),
    ] {
        let to = location.clone();
        let server = HttpPeer::start(move |_| Answer::status(301).header("Location", &to)).await;
        let error = soon(connect_in(Era::Modern, Http::new(server.url()))).await.unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(said.contains(told) && said.contains("301"), "{location}: {said}");
        assert!(!said.contains("secret") && said.len() < 2000, "{location}: {said}");
    }
}

/// What OAuth starts from comes whole with the error, every line of it, also where the body is an error of JSON-RPC.
#[tokio::test]
async fn a_challenge_comes_with_the_error() {
    let challenges = [
        "Basic realm=\"a\"".to_owned(),
        format!("Bearer scope=\"{}\", resource_metadata=\"http://x\"", "s".repeat(300)),
    ];
    for (status, kind) in [(401, ErrorKind::Unauthorized), (403, ErrorKind::TransportError)] {
        for answer in [
            Answer::new(status, "application/json", r#"{"error":"insufficient_scope"}"#),
            Answer::error(status, -32600, "insufficient_scope"),
            Answer::new(status, "text/plain", "insufficient_scope"),
        ] {
            let answer = challenges.iter().fold(answer, |answer, value| answer.header("WWW-Authenticate", value));
            let rule = answer.clone();
            let server = HttpPeer::start(move |_| rule.clone()).await;
            let (client, _server) = answering(Era::Modern, answer).await;
            for error in [soon(over_http(&server.url())).await.unwrap_err(), refused(&client).await] {
                assert_eq!((error.kind(), error.status()), (kind, Some(status)), "{error:?}");
                assert_eq!(error.challenges(), challenges, "{error:?}");
                assert!(error.to_string().contains("insufficient_scope"), "{error}");
            }
            assert_eq!(server.requests().len(), 1);
        }
    }
    // Without one, a 403 that is an error of JSON-RPC is that error.
    let (client, _server) = answering(Era::Modern, Answer::error(403, -32602, "because")).await;
    let error = refused(&client).await;
    assert_eq!((error.kind(), error.challenges()), (ErrorKind::InvalidParams, &[] as &[String]));
}

#[tokio::test]
async fn an_error_status_with_an_error_of_json_rpc_is_that_error() {
    for (status, code, kind) in [
        (404, -32601, ErrorKind::MethodNotFound),
        (400, -32602, ErrorKind::InvalidParams),
        (500, -32603, ErrorKind::InternalError),
        (400, -32020, ErrorKind::ProtocolInvalid),
    ] {
        let (client, _server) = answering(Era::Modern, Answer::error(status, code, "because")).await;
        let error = refused(&client).await;
        assert_eq!((error.kind(), error.blame()), (kind, Blame::Peer));
        assert_eq!(error.object().unwrap().code, code);
    }
    // Without one, the status is what is told.
    for (status, body) in [(503, r#"{"error":"overloaded"}"#), (500, ""), (400, "[]")] {
        let (client, _server) = answering(Era::Modern, Answer::new(status, "application/json", body)).await;
        let error = refused(&client).await;
        assert_eq!(
            (error.kind(), error.status(), error.blame()),
            (ErrorKind::TransportError, Some(status), Blame::Peer)
        );
        assert!(error.to_string().contains("overloaded") || body.len() < 3, "{error}");
    }
}

#[tokio::test]
async fn an_answer_to_another_request_is_an_error_of_that_call() {
    for id in ["99", "\"1\"", "\"\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        let (client, _server) = answering(Era::Modern, Answer::new(200, "application/json", body)).await;
        assert_eq!(refused(&client).await.kind(), ErrorKind::ProtocolInvalid, "{id}");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_at_once() {
    for answer in [
        Answer::hang_up(),
        Answer::new(200, "application/json", r#"{"jsonrpc":"2.0","id":$id,"#).broken_off(),
        Answer::new(200, "application/json", r#"{"jsonrpc":"2.0","id":$id,"#),
        Answer::events("data: {\"jsonrpc\"").broken_off(),
    ] {
        let said = format!("{answer:?}");
        let (client, server) = answering(Era::Modern, answer).await;
        let error = refused(&client).await;
        assert!(
            matches!(error.kind(), ErrorKind::TransportError | ErrorKind::ProtocolInvalid | ErrorKind::TransportClosed),
            "{said}: {error}"
        );
        // The bytes were sent: whatever the tool does, it is done once.
        assert_eq!(server.methods(), ["server/discover", "tools/call"], "{said}");
        assert_eq!(soon(client.call::<String>("good", ())).await.unwrap(), "b", "{said}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_an_error_and_is_not_read_on() {
    let limits = Limits::default().message_bytes(64 << 10);
    let endless = Answer::new(200, "application/json", format!(r#"{{"jsonrpc":"2.0","x":"{}"#, "x".repeat(64 << 10)));
    for answer in [
        Answer::new(200, "application/json", " ".repeat(64 << 10) + "1"),
        // Nobody can know how much more would come.
        endless.without_end(),
    ] {
        let (client, _server) = answering_within(Era::Modern, answer, limits.clone()).await;
        let error = refused(&client).await;
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
        assert!(error.to_string().contains("65536"), "the limit is named: {error}");
        assert_eq!(soon(client.call::<String>("good", ())).await.unwrap(), "b");
    }
    // At the limit it is read.
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"b"}]}}"#;
    let padded = " ".repeat((64 << 10) - body.len()) + body;
    let (client, _server) = answering_within(Era::Modern, Answer::new(200, "application/json", padded), limits).await;
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_transport_error_without_the_url() {
    let vacant = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://{vacant}/mcp?key=secret");
    for era in [None, Some(Era::Modern), Some(Era::Legacy)] {
        let error = match era {
            None => soon(over_http(&url)).await.unwrap_err(),
            Some(era) => soon(connect_in(era, Http::new(&url))).await.unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::TransportError, "{url}: {error}");
        let (mut told, mut source) = (error.to_string(), std::error::Error::source(&error));
        while let Some(cause) = source {
            told += &format!(": {cause}");
            source = cause.source();
        }
        assert!(!told.contains("secret"), "{told}");
        assert!(std::error::Error::source(&error).is_some(), "what happened is told: {told}");
    }
}

#[tokio::test]
async fn a_url_that_is_none_is_the_callers_fault_and_is_not_repeated() {
    for url in ["no url: secret", "ftp://secret@127.0.0.1/", "http://:secret", "http://127.0.0.1:secret/", ""] {
        let error = soon(over_http(url)).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::InvalidParams, Blame::Caller), "{url}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}

/// As everywhere on the web; a header of the caller's goes before it.
#[tokio::test]
async fn credentials_in_the_url_are_sent_as_basic() {
    let server = HttpPeer::start(http::modern(|_| Answer::result(text("b")))).await;
    let url = server.url().replacen("http://", "http://user:p%40ss@", 1);
    soon(over_http(&url)).await.unwrap();
    let authorization = ::http::HeaderValue::from_static("Bearer t");
    let given = Http::new(url).header(::http::header::AUTHORIZATION, authorization);
    soon(Client::connect(given)).await.unwrap();
    let sent: Vec<_> =
        server.requests().iter().map(|request| request.header("authorization").unwrap().to_owned()).collect();
    assert_eq!(sent, ["Basic dXNlcjpwQHNz", "Bearer t"]);
}

/// A refused connection says nothing of eras: no handshake is tried on top of it.
#[tokio::test]
async fn a_connection_that_fails_is_no_legacy_server() {
    let server = HttpPeer::start(|_| Answer::hang_up()).await;
    let error = soon(over_http(&server.url())).await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportError, Blame::Transport));
    assert_eq!(server.methods(), ["server/discover"]);
}

/// Calls reuse connections, and an idle one that the server closed meanwhile is replaced without a word.
#[tokio::test]
async fn an_idle_connection_that_the_server_closed_is_replaced() {
    let rule = http::modern(|_| Answer::result(text("b")).header("Connection", "close"));
    let server = HttpPeer::start(rule).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    for _ in 0..5 {
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    }
}

/// Nothing is asked for that no caller asked for.
#[tokio::test]
async fn a_legacy_client_asks_for_no_more_than_its_calls() {
    let server = HttpPeer::start(http::legacy("2025-11-25", |_| Answer::result(json!({ "tools": [] })))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    assert!(client.tools().await.unwrap().is_empty());
    let verbs: Vec<_> = server.requests().into_iter().map(|request| request.verb).collect();
    assert!(verbs.iter().all(|verb| verb == "POST" || verb == "GET"), "{verbs:?}");
}
