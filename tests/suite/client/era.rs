//! Which era a server speaks, on each wire. Were it judged wrongly, the client would fail at a server that works.
//!
//! Specification: *Versioning and Compatibility*; *stdio* and *Streamable HTTP, Backward Compatibility*.

use std::time::Duration;

use mcp_suite::{
    Blame, Client, ErrorKind, Limits, Revision,
    client::{Agreed, Inbox, IntoTransport, Outgoing, Replies, Transport},
    http::Http,
    implementation,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer},
    memory::{close, raw, wait},
};

/// The probe comes and is answered with that error.
fn refuses(error: Value) -> Script {
    vec![expect(json!({ "method": "server/discover" })), send(json!({ "id": "$id", "error": error }))]
}

fn unsupported(versions: &[&str]) -> Value {
    json!({ "code": -32022, "message": "Unsupported protocol version", "data": { "supported": versions } })
}

/// A handshake would go through the whole script; a modern client must leave it alone.
async fn plays(script: Script) -> (Result<Client, Error>, ScriptedPeer) {
    let peer = ScriptedPeer::new(script);
    let client = Client::builder(implementation!()).connect(peer.clone()).await;
    (client, peer)
}

// ---- over memory: the rules of stdio ----

#[tokio::test(start_paused = true)]
async fn a_discover_result_is_a_modern_server_and_says_what_it_is() {
    let (client, peer) = plays([modern(), answers("a", "b")].concat()).await;
    let client = client.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
    assert_eq!(client.server_info().unwrap().name, "scripted");
    assert_eq!(client.instructions(), Some("A scripted server."));
    assert!(client.server_capabilities().tools.is_some());
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    // The era is found out once, and nothing else is asked before the first call.
    assert_eq!(peer.methods(), ["server/discover", "tools/call"]);
}

#[tokio::test(start_paused = true)]
async fn the_newest_revision_that_both_speak_is_taken() {
    for (theirs, spoken) in [
        (json!(["2099-01-01", "2026-07-28", "2025-11-25"]), Revision::V2026_07_28),
        (json!(["2025-11-25", "2026-07-28"]), Revision::V2026_07_28),
    ] {
        let found = json!({ "supportedVersions": theirs, "capabilities": {} });
        let (client, _) =
            plays(vec![expect(json!({ "method": "server/discover" })), send(json!({ "id": "$id", "result": found }))])
                .await;
        assert_eq!(client.unwrap().revision(), spoken, "{theirs}");
    }
}

/// A server may know the method and speak legacy revisions only.
#[tokio::test(start_paused = true)]
async fn a_discover_result_with_legacy_revisions_only_leads_to_the_handshake() {
    let found = json!({ "supportedVersions": ["2025-11-25"], "capabilities": {} });
    let probe = vec![expect(json!({ "method": "server/discover" })), send(json!({ "id": "$id", "result": found }))];
    let (client, peer) = plays([probe, handshake()].concat()).await;
    assert_eq!(client.unwrap().revision(), Revision::V2025_11_25);
    peer.done().await;
}

#[tokio::test(start_paused = true)]
async fn no_revision_in_common_is_an_error_that_names_theirs() {
    for probe in [
        send(json!({ "id": "$id", "result": { "supportedVersions": ["2099-01-01"], "capabilities": {} } })),
        send(json!({ "id": "$id", "error": unsupported(&["2099-01-01"]) })),
        send(json!({ "id": "$id", "error": unsupported(&[]) })),
    ] {
        let (client, peer) = plays(vec![expect(json!({ "method": "server/discover" })), probe]).await;
        let error = client.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProtocolVersionMismatch, "{error}");
        peer.closed().await;
        assert_eq!(peer.methods(), ["server/discover"]);
    }
    let (client, _) = plays(refuses(unsupported(&["2099-01-01"]))).await;
    assert!(client.unwrap_err().to_string().contains("2099-01-01"));
}

#[tokio::test(start_paused = true)]
async fn a_discover_result_without_versions_is_no_modern_server() {
    for odd in [json!({}), json!({ "capabilities": {} }), json!({ "supportedVersions": "2026-07-28" }), json!([])] {
        let probe = vec![expect(json!({ "method": "server/discover" })), send(json!({ "id": "$id", "result": odd }))];
        let (client, peer) = plays([probe, handshake()].concat()).await;
        assert_eq!(client.unwrap().revision(), Revision::V2025_11_25, "{odd}");
        peer.done().await;
    }
}

/// An error of which hardly anything is right is still an error.
#[tokio::test(start_paused = true)]
async fn a_malformed_refusal_leads_to_the_handshake_at_once() {
    for refusal in [
        r#"{"jsonrpc":"2.0","id":0,"error":"no"}"#,
        r#"{"jsonrpc":"2.0","id":0,"error":{"message":"no code"}}"#,
        r#"{"jsonrpc":"2.0","id":0,"error":null}"#,
        r#"{"jsonrpc":"2.0","id":0}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":null}"#,
    ] {
        let start = Instant::now();
        let probe = vec![expect(json!({ "method": "server/discover" })), raw(refusal)];
        let (client, _) = plays([probe, handshake()].concat()).await;
        assert_eq!(client.unwrap().revision(), Revision::V2025_11_25, "{refusal}");
        assert_eq!(start.elapsed(), Duration::ZERO, "{refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_repeats_what_it_refuses_ends_in_an_error() {
    let refusals = std::iter::repeat_with(|| refuses(unsupported(&["2026-07-28"]))).take(8).flatten();
    let (client, peer) = plays(refusals.collect()).await;
    assert_eq!(client.unwrap_err().kind(), ErrorKind::ProtocolVersionMismatch);
    peer.closed().await;
    assert_eq!(peer.methods(), ["server/discover", "server/discover"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_legacy_versions_leads_to_the_handshake() {
    let (client, peer) = plays([refuses(unsupported(&["2025-11-25", "2025-06-18"])), handshake()].concat()).await;
    assert_eq!(client.unwrap().revision(), Revision::V2025_11_25);
    peer.done().await;
}

/// Every request would be refused just so: there is nothing to connect to.
#[tokio::test(start_paused = true)]
async fn a_refused_version_without_a_list_is_no_connection() {
    for data in [Value::Null, json!({}), json!({ "supported": "2026-07-28" })] {
        let mut error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
        if data.is_null() {
            error.as_object_mut().unwrap().remove("data");
        }
        let (client, peer) = plays([refuses(error.clone()), refuses(error)].concat()).await;
        let spoken = client.map(|client| client.revision());
        let kind = spoken.expect_err("it refused the only version that was tried").kind();
        assert_eq!(kind, ErrorKind::ProtocolVersionMismatch, "{data}");
        assert!(!peer.methods().contains(&"initialize".into()), "{data}");
    }
}

/// Other errors that only modern servers give say nothing against the version.
#[tokio::test(start_paused = true)]
async fn modern_errors_are_a_modern_server() {
    for code in [-32020, -32021] {
        let refusal = refuses(json!({ "code": code, "message": "no" }));
        let (client, peer) = plays([refusal, answers("a", "b")].concat()).await;
        let client = client.unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        assert_eq!(peer.methods(), ["server/discover", "tools/call"]);
    }
}

/// A slow server is a modern server as long as it answers within the probe's time.
#[tokio::test(start_paused = true)]
async fn a_late_discover_result_is_taken_within_its_time() {
    let mut script = modern();
    script.insert(1, wait(Limits::default().probe_timeout - Duration::from_millis(1)));
    assert_eq!(plays(script).await.0.unwrap().revision(), Revision::V2026_07_28);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_of_either_is_an_error_that_tells_both() {
    let peer = ScriptedPeer::new([expect(json!({ "method": "server/discover" })), close()])
        .then([expect(json!({ "method": "initialize" })), close()]);
    let error = Client::builder(implementation!()).connect(peer.clone()).await.unwrap_err();
    assert_eq!((error.kind(), peer.connections()), (ErrorKind::TransportClosed, 2));
    tells_both(&error);
}

#[tokio::test(start_paused = true)]
async fn both_eras_failing_is_an_error_that_tells_both() {
    let (client, peer) = plays(
        [
            refuses(json!({ "code": -32601, "message": "What is discover?" })),
            vec![
                expect(json!({ "method": "initialize" })),
                send(json!({ "id": "$id", "error": { "code": -32602, "message": "Bad clientInfo" } })),
            ],
        ]
        .concat(),
    )
    .await;
    let error = client.unwrap_err();
    tells_both(&error);
    for part in ["What is discover?", "Bad clientInfo", "-32601", "-32602"] {
        assert!(error.to_string().contains(part), "{part} is not in {error}");
    }
    assert_eq!(error.kind(), ErrorKind::InvalidParams);
    peer.closed().await;
}

/// Silence on both questions ends too, after the time of each.
#[tokio::test(start_paused = true)]
async fn silence_in_both_eras_is_an_error_that_tells_both() {
    let (start, limits) = (Instant::now(), Limits::default());
    let (client, peer) = plays(vec![expect(json!({ "method": "server/discover" }))]).await;
    let error = client.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    tells_both(&error);
    assert_eq!(start.elapsed().as_millis(), (limits.probe_timeout + limits.request_timeout).as_millis());
    peer.closed().await;
    // The handshake itself must not be cancelled.
    assert_eq!(peer.methods(), ["server/discover", "notifications/cancelled", "initialize"]);
}

fn tells_both(error: &Error) {
    let text = error.to_string();
    assert!(text.contains("server/discover") && text.contains("initialize"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_client_narrowed_to_the_legacy_era_never_sends_the_probe() {
    let peer = ScriptedPeer::new([handshake(), answers("a", "b")].concat());
    let client = connect_in(Era::Legacy, peer.clone()).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    assert_eq!(peer.methods(), ["initialize", "notifications/initialized", "tools/call"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_narrowed_to_one_legacy_revision_offers_that_one() {
    for revision in [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18] {
        let peer = ScriptedPeer::new([
            expect(json!({ "method": "initialize", "params": { "protocolVersion": revision.as_str() } })),
            send(json!({ "id": "$id", "result": initialized(revision.as_str()) })),
            expect(json!({ "method": "notifications/initialized" })),
        ]);
        let client = Client::builder(implementation!()).revisions([revision]).connect(peer.clone()).await.unwrap();
        assert_eq!(client.revision(), revision);
        peer.done().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_narrowed_to_the_modern_era_never_shakes_hands() {
    for answer in [
        Some(send(json!({ "id": "$id", "error": { "code": -32601, "message": "What is that?" } }))),
        Some(send(json!({ "id": "$id", "error": unsupported(&["2025-11-25"]) }))),
        Some(send(json!({ "id": "$id", "result": {} }))),
        None,
    ] {
        let peer = ScriptedPeer::new(std::iter::once(expect(json!({ "method": "server/discover" }))).chain(answer));
        let error = connect_in(Era::Modern, peer.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProtocolVersionMismatch, "{error}");
        peer.closed().await;
        assert!(!peer.methods().contains(&"initialize".into()));
    }
    // Nor does it open another connection for it.
    let peer = ScriptedPeer::new([expect(json!({ "method": "server/discover" })), close()]).then(handshake());
    let error = connect_in(Era::Modern, peer.clone()).await.unwrap_err();
    assert!(error.to_string().contains("server/discover"), "{error}");
    assert!(!peer.methods().contains(&"initialize".into()));
    // What was lost says nothing of what the server speaks.
    assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportClosed, Blame::Transport), "{error}");
}

// ---- over HTTP: the answer's status and body ----

fn refusing(refusal: Answer) -> impl Fn(&http::Request) -> Answer {
    let rest = http::legacy("2025-11-25", |_| Answer::result(text("b")));
    move |request| if request.method() == "server/discover" { refusal.clone() } else { rest(request) }
}

#[tokio::test]
async fn c105_a_list_that_repeats_what_it_refuses_ends_in_an_error() {
    let refusal = format!(r#"{{"jsonrpc":"2.0","id":$id,"error":{}}}"#, unsupported(&["2026-07-28"]));
    let server = HttpPeer::start(move |_| Answer::new(400, "application/json", refusal.clone())).await;
    let error = soon(over_http(&server.url())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProtocolVersionMismatch);
    assert_eq!(server.methods(), ["server/discover", "server/discover"]);
}

#[tokio::test]
async fn c105_modern_errors_with_their_status_are_a_modern_server() {
    for code in [-32020, -32021] {
        let rule = move |request: &http::Request| match request.method() {
            "server/discover" => Answer::error(400, code, "no"),
            _ => Answer::result(text("b")),
        };
        let server = HttpPeer::start(rule).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        assert_eq!(server.methods(), ["server/discover", "tools/call"]);
    }
}

#[tokio::test]
async fn c105_credentials_come_before_eras() {
    for era in [None, Some(Era::Legacy), Some(Era::Modern)] {
        let unauthorized = Answer::new(401, "application/json", r#"{"error":"invalid_token"}"#)
            .header("WWW-Authenticate", "Bearer resource_metadata=\"http://127.0.0.1/x\"");
        let server = HttpPeer::start(move |_| unauthorized.clone()).await;
        let error = match era {
            None => soon(over_http(&server.url())).await.unwrap_err(),
            Some(era) => soon(connect_in(era, Http::new(server.url()))).await.unwrap_err(),
        };
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unauthorized, Some(401)), "{error}");
        assert!(error.to_string().contains("invalid_token"), "{error}");
        // Neither is the other era tried, nor anything else asked for.
        assert_eq!(server.requests().len(), 1, "{:?}", server.methods());
    }
}

#[tokio::test]
async fn c105_both_eras_failing_is_an_error_that_tells_both() {
    let rule = |request: &http::Request| match request.method() {
        "server/discover" => Answer::new(400, "text/plain", "no session"),
        _ => Answer::new(404, "text/html", "<h1>gone fishing</h1>"),
    };
    let server = HttpPeer::start(rule).await;
    let error = soon(over_http(&server.url())).await.unwrap_err();
    tells_both(&error);
    for part in ["400", "no session", "404", "gone fishing"] {
        assert!(error.to_string().contains(part), "{part} is not in {error}");
    }
    assert_eq!(error.kind(), ErrorKind::TransportError);
}

/// Whoever wants to tell a wrong URL from a broken server asks for the status, not for words.
#[tokio::test]
async fn both_eras_failing_keeps_what_the_last_error_says_of_itself() {
    let facts = |error: &Error| (error.kind(), error.status(), error.blame(), error.object().map(|object| object.code));
    for (answer, told) in [
        (Answer::new(404, "text/html", "<h1>gone fishing</h1>"), (ErrorKind::TransportError, Some(404), None)),
        (Answer::error(200, -32602, "Bad clientInfo"), (ErrorKind::InvalidParams, None, Some(-32602))),
    ] {
        let server = HttpPeer::start(move |_| answer.clone()).await;
        let alone = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
        let both = soon(over_http(&server.url())).await.unwrap_err();
        assert_eq!(facts(&alone), (told.0, told.1, Blame::Peer, told.2));
        assert_eq!(facts(&both), facts(&alone));
    }
}

/// Every HTTP server answers with a status, so that silence says nothing of its era.
#[tokio::test]
async fn over_http_silence_is_an_error_and_no_handshake_is_tried() {
    let server = HttpPeer::start(refusing(Answer::silence())).await;
    let limits = Limits::default().probe_timeout(Duration::from_millis(50)).request_timeout(Duration::from_millis(300));
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    assert_eq!(soon(client).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(server.methods(), ["server/discover"]);
}

/// Nor is a modern server that is slow to answer taken for a legacy one.
#[tokio::test]
async fn over_http_a_slow_discover_result_is_waited_for() {
    let rule = http::modern(|_| Answer::result(text("b")));
    let server = HttpPeer::start(move |request| rule(request).after(Duration::from_millis(200))).await;
    let limits = Limits::default().probe_timeout(Duration::from_millis(50));
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url()));
    assert_eq!(soon(client).await.unwrap().revision().era(), Era::Modern);
}

#[tokio::test]
async fn over_http_a_narrowed_client_keeps_to_its_era() {
    let server = HttpPeer::start(http::legacy("2025-11-25", |_| Answer::result(text("b")))).await;
    soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    assert_eq!(server.methods(), ["initialize", "notifications/initialized"]);

    let server = HttpPeer::start(http::legacy("2025-11-25", |_| Answer::result(text("b")))).await;
    let error = soon(connect_in(Era::Modern, Http::new(server.url()))).await.unwrap_err();
    assert_eq!((error.kind(), server.methods()), (ErrorKind::ProtocolVersionMismatch, vec!["server/discover".into()]));
}

#[tokio::test]
async fn c124_over_http_the_agreed_version_goes_into_the_headers() {
    for agreed in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let server = HttpPeer::start(http::legacy(agreed, |_| Answer::result(text("b")))).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        assert_eq!(client.revision().as_str(), agreed);
        client.call::<String>("a", ()).await.unwrap();
        let later = &server.requests()[2..];
        assert_eq!(later.len(), 2);
        for request in later {
            assert_eq!(request.header("mcp-protocol-version"), Some(agreed), "{}", request.method());
        }
    }
    let server = HttpPeer::start(http::with_session(http::legacy("1999-01-01", |_| Answer::status(500)))).await;
    let error = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProtocolVersionMismatch);
    assert!(error.to_string().contains("1999-01-01"), "{error}");
    // Nothing goes on with it, and the session that was opened is closed.
    assert_eq!(server.methods(), ["initialize", "DELETE"]);
}

/// Any transport may be wrapped; what it is asked for shows what a client knows when.
#[tokio::test(start_paused = true)]
async fn the_revision_is_known_from_the_first_modern_request_and_never_in_the_handshake() {
    let peer = ScriptedPeer::new(legacy());
    let limits = Limits::default();
    let transport = Watched { inner: peer.clone().into_transport(&limits).unwrap(), seen: Default::default() };
    let seen = transport.seen.clone();
    let _client = Client::builder(implementation!()).connect(transport).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen.iter().map(|(method, revision)| (&**method, *revision)).collect::<Vec<_>>(),
        [
            ("server/discover", Some(Revision::V2026_07_28)),
            ("initialize", None),
            ("notifications/initialized", Some(Revision::V2025_11_25)),
            ("agreed", Some(Revision::V2025_11_25)),
        ]
    );
}

type Seen = std::sync::Arc<std::sync::Mutex<Vec<(String, Option<Revision>)>>>;

struct Watched<T> {
    inner: T,
    seen: Seen,
}

impl<T: Transport> Transport for Watched<T> {
    fn open(&self, inbox: Inbox) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.open(inbox)
    }

    fn request(&self, out: Outgoing) -> Replies {
        self.seen.lock().unwrap().push((out.method.clone().unwrap().to_string(), out.revision));
        self.inner.request(out)
    }

    fn send(&self, out: Outgoing) -> BoxFuture<'_, Result<(), Error>> {
        self.seen.lock().unwrap().push((out.method.clone().unwrap().to_string(), out.revision));
        self.inner.send(out)
    }

    fn agreed(&self, to: &Agreed) {
        self.seen.lock().unwrap().push(("agreed".to_owned(), Some(to.revision)));
        self.inner.agreed(to);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}
