//! Sessions over HTTP, as the transport has them: begun, named, lost, ended.
//!
//! Specification: *2025-11-25, Transports, Session Management*.

use futures_util::{FutureExt, StreamExt};
use mcp_suite::{
    Blame, Error, ErrorKind, Limits,
    client::{Agreed, Inbox, Incoming, IntoTransport, Outgoing, Transport},
    http::Http,
    jsonrpc::{Message, Notification, Request as Call, RequestId},
};
use tokio::time::sleep;

use super::*;
use crate::peer::http::{self, Answer, HttpPeer, Request};

/// A transport that is open, as a client has it.
async fn open(server: &HttpPeer) -> impl Transport {
    let limits = Limits::default();
    let transport = Http::new(server.url()).into_transport(&limits).unwrap();
    transport.open(Inbox::new(&limits)).await.unwrap();
    transport
}

/// Asks that, before or after the handshake.
async fn ask(transport: &impl Transport, method: &str, revision: Option<Revision>) -> Result<Incoming, Error> {
    let call = Call::new(RequestId::from(1), method, None);
    let mut replies = transport.request(Outgoing::new(&Message::Request(call), revision));
    soon(replies.next()).await.unwrap()
}

async fn shake_hands(transport: &impl Transport) {
    ask(transport, "initialize", None).await.unwrap();
    transport.agreed(&Agreed::new(Revision::V2025_11_25));
}

const LEGACY: Option<Revision> = Some(Revision::V2025_11_25);

#[tokio::test]
async fn c046_a_session_that_is_lost_is_told_as_such() {
    for answer in [
        Answer::status(404),
        Answer::new(404, "text/plain", "Session not found"),
        Answer::error(404, -32001, "Session not found"),
        Answer::new(404, "text/html", "x".repeat(100_000)).without_end(),
    ] {
        let rule = move |_: &Request| answer.clone();
        let server = HttpPeer::start(http::with_session(http::legacy("2025-11-25", rule))).await;
        let transport = open(&server).await;
        shake_hands(&transport).await;
        let note = Message::Notification(Notification::new("notifications/roots/list_changed", None));
        for error in [
            ask(&transport, "tools/list", LEGACY).await.unwrap_err(),
            soon(transport.send(Outgoing::new(&note, LEGACY))).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotInitialized, "{error}");
            assert_eq!((error.status(), error.blame()), (Some(404), Blame::Peer));
            assert!(error.to_string().contains("session") && !error.to_string().contains("s-1"), "{error}");
        }
    }
}

/// A transport that is opened anew knows nothing of what was before.
#[tokio::test]
async fn c046_a_new_session_is_asked_for_without_the_old_one() {
    let rule = http::with_session(http::legacy("2025-11-25", |_| Answer::status(404)));
    let server = HttpPeer::start(rule).await;
    let transport = open(&server).await;
    for _ in 0..2 {
        shake_hands(&transport).await;
        let lost = ask(&transport, "tools/list", LEGACY).await.unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::NotInitialized);
        // Even while the old one is known, it is not named there.
        ask(&transport, "initialize", None).await.unwrap();
        transport.open(Inbox::new(&Limits::default())).await.unwrap();
    }
    for request in server.requests() {
        let names = request.header("mcp-session-id");
        assert_eq!(names.is_some(), request.method() != "initialize", "{request:?}");
        if request.method() == "initialize" {
            assert_eq!(request.header("mcp-protocol-version"), None);
        }
    }
}

/// Where no session was named, 404 says nothing of one: not in either era.
#[tokio::test]
async fn a_404_without_a_session_is_an_error_like_any_other() {
    let server = HttpPeer::start(http::legacy("2025-11-25", |_| Answer::new(404, "text/plain", "nothing here"))).await;
    let transport = open(&server).await;
    shake_hands(&transport).await;
    let error = ask(&transport, "tools/list", LEGACY).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::TransportError, Some(404)));

    // A modern request names no session, though a server may have given one.
    let server = HttpPeer::start(http::with_session(|request: &Request| match request.method() {
        "initialize" => Answer::result(initialized("2025-11-25")),
        _ => Answer::error(404, -32601, "no such method"),
    }))
    .await;
    let transport = open(&server).await;
    shake_hands(&transport).await;
    let answer = ask(&transport, "tools/list", Some(Revision::LATEST)).await.unwrap();
    assert!(matches!(answer, Incoming::Response(_)));
    assert_eq!(server.requests().last().unwrap().header("mcp-session-id"), None);
}

#[tokio::test]
async fn the_end_of_a_session_is_told_once_and_need_not_be_welcome() {
    for answer in [
        Answer::status(204),
        Answer::status(200),
        Answer::status(405),
        Answer::status(404),
        Answer::hang_up(),
        Answer::new(500, "text/html", "oops").without_end(),
    ] {
        let server = HttpPeer::start(move |request: &Request| match request.method() {
            "initialize" => Answer::result(initialized("2025-11-25")).header("Mcp-Session-Id", "s-1"),
            "notifications/initialized" => Answer::status(202),
            _ if request.verb == "DELETE" => answer.clone(),
            _ => Answer::status(405),
        })
        .await;
        let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
        soon(client.disconnect()).await;
        soon(client.disconnect()).await;
        let requests = server.requests();
        let ended: Vec<_> = requests.iter().filter(|request| request.verb == "DELETE").collect();
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].header("mcp-session-id"), Some("s-1"));
        assert_eq!(ended[0].header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

/// A server that shakes hands as long as `shakes`, and whose session nobody but the client ends.
async fn with_session_of(shakes: bool) -> HttpPeer {
    let rule = http::with_session(http::legacy("2025-11-25", |_| Answer::result(text("b"))));
    HttpPeer::start(move |request: &Request| match request.method() {
        "notifications/initialized" if !shakes => Answer::silence(),
        _ if request.verb == "DELETE" => Answer::status(204).after(Duration::from_millis(200)),
        _ => rule(request),
    })
    .await
}

/// The session's name, as often as its end was told.
async fn ended(server: &HttpPeer) {
    server.until("the session ends", |seen| seen.iter().any(|request| request.verb == "DELETE")).await;
    let told: Vec<_> = server.requests().into_iter().filter(|request| request.verb == "DELETE").collect();
    assert_eq!((told.len(), told[0].header("mcp-session-id")), (1, Some("s-1")));
}

/// Servers bound their sessions, and one that nobody ends takes the place of another.
#[tokio::test]
async fn a_session_ends_however_its_client_is_left() {
    // The last of its clones is dropped, with a call under way or not.
    for calls in [false, true] {
        let server = with_session_of(true).await;
        let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
        let clone = client.clone();
        drop(client);
        assert_eq!(soon(clone.call::<String>("a", ())).await.unwrap(), "b");
        if calls {
            assert!(clone.call::<String>("a", ()).now_or_never().is_none());
        }
        drop(clone);
        ended(&server).await;
    }

    // The connection is given up in the middle of the handshake.
    let server = with_session_of(false).await;
    tokio::select! {
        outcome = connect_in(Era::Legacy, Http::new(server.url())) => panic!("{outcome:?}"),
        () = server.until("the session is there", |seen| seen.iter().any(is_initialized)) => {}
    }
    ended(&server).await;

    // Nobody waits for the end of a disconnection.
    let server = with_session_of(true).await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    assert!(client.disconnect().now_or_never().is_none());
    ended(&server).await;
    soon(client.disconnect()).await;
    drop(client);
    sleep(Duration::from_millis(300)).await;
    ended(&server).await;
}

fn is_initialized(request: &Request) -> bool {
    request.method() == "notifications/initialized"
}
