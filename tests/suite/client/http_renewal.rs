//! A session that the server has forgotten is begun anew, once for all, and nobody who calls or listens need know.
//!
//! Specification: *2025-11-25, Transports, Session Management*.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;
use mcp_http::Routes;
use mcp_suite::{
    ErrorKind, Limits, Server, Tool, ToolError,
    client::{CallOptions, Changed, ListenEnd},
    http::Http,
    types::NotificationFilter,
};

use tokio::time::{sleep, timeout};

use super::*;
use crate::{
    http::Served,
    peer::http::{self, Answer, HttpPeer, Request},
};

/// A server that knows the last `known` of the sessions that it began, and refuses what names none.
async fn forgetful(forget: Arc<AtomicUsize>) -> HttpPeer {
    let begun = AtomicUsize::new(0);
    let rule = http::legacy("2025-11-25", |_| Answer::result(text("b")));
    HttpPeer::start(move |request: &Request| {
        let current = begun.load(Ordering::SeqCst);
        match (request.method(), request.header("mcp-session-id")) {
            ("server/discover", _) => rule(request),
            ("initialize", _) => {
                let next = current + 1;
                begun.store(next, Ordering::SeqCst);
                // Long enough for calls to come in between.
                rule(request).header("Mcp-Session-Id", &format!("s-{next}")).after(Duration::from_millis(50))
            }
            (_, None) => Answer::status(400),
            (_, Some(id)) if id == format!("s-{current}") && current > forget.load(Ordering::SeqCst) => rule(request),
            _ => Answer::status(404),
        }
    })
    .await
}

fn count(server: &HttpPeer, method: &str) -> usize {
    server.methods().iter().filter(|seen| *seen == method).count()
}

#[tokio::test]
async fn c046_calls_that_find_the_session_gone_begin_one_and_are_made_again() {
    let forget = Arc::new(AtomicUsize::new(0));
    let server = forgetful(forget.clone()).await;
    let client = connect_in(Era::Legacy, Http::new(server.url())).await.unwrap();
    for round in 1..=3 {
        forget.store(round, Ordering::SeqCst);
        let calls = join_all((0..20).map(|_| client.call::<String>("a", ())));
        // Some come while the new session is being begun: they are in the old one, and none is in none.
        let later = async {
            server.until("another session", |seen| handshakes(seen) > round).await;
            join_all((0..20).map(|_| client.call::<String>("a", ()))).await
        };
        let (calls, later) = soon(async { tokio::join!(calls, later) }).await;
        for outcome in calls.into_iter().chain(later) {
            assert_eq!(outcome.unwrap(), "b");
        }
        assert_eq!(count(&server, "initialize"), 1 + round);
        assert_eq!(count(&server, "notifications/initialized"), 1 + round);
    }
}

fn handshakes(seen: &[Request]) -> usize {
    seen.iter().filter(|request| request.method() == "initialize").count()
}

/// Whoever began it anew may leave in the middle of it.
#[tokio::test]
async fn c046_a_caller_that_leaves_leaves_no_session_begun_by_half() {
    let forget = Arc::new(AtomicUsize::new(0));
    let server = forgetful(forget.clone()).await;
    let client = connect_in(Era::Legacy, Http::new(server.url())).await.unwrap();
    forget.store(1, Ordering::SeqCst);
    tokio::select! {
        outcome = client.call::<String>("a", ()) => panic!("{outcome:?}"),
        () = server.until("another session", |seen| handshakes(seen) == 2) => {}
    }
    server
        .until("the handshake ends", |seen| {
            seen.iter().filter(|request| request.method() == "notifications/initialized").count() == 2
        })
        .await;
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    assert_eq!(count(&server, "initialize"), 2);
}

/// A server that begins sessions and knows none of them is asked for one more, and no more.
#[tokio::test]
async fn c046_a_server_that_keeps_no_session_fails_the_call() {
    let server = HttpPeer::start(http::with_session(http::legacy("2025-11-25", |_| Answer::status(404)))).await;
    let client = connect_in(Era::Legacy, Http::new(server.url())).await.unwrap();
    let error = soon(client.call::<String>("a", ())).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::NotInitialized, Some(404)));
    assert_eq!((count(&server, "initialize"), count(&server, "tools/call")), (2, 2));
}

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

/// Whoever only listens calls nothing that would be told of it.
#[tokio::test]
async fn c046_a_client_that_only_listens_hears_of_changes_in_a_session_begun_anew() {
    let server = Server::builder(implementation!()).tool(Tool::new("one", nothing)).build();
    let routes = Routes::new(server.clone());
    let sessions = routes.sessions().unwrap().clone();
    let served = Served::with(routes, "127.0.0.1").await;
    let client = connect_in(Era::Legacy, Http::new(format!("http://{}/mcp", served.address))).await.unwrap();
    let mut changes = soon(client.listen(NotificationFilter::new().tools())).await.unwrap();
    for _ in 0..3 {
        let heard = async {
            loop {
                server.tools().replace(Tool::new("one", nothing)).unwrap();
                if let Ok(heard) = timeout(Duration::from_millis(50), changes.next()).await {
                    return heard;
                }
            }
        };
        assert_eq!(soon(heard).await, Some(Changed::Tools));
        let ended = sessions.ids();
        assert!(sessions.end(ended[0]).await);
        let begun_anew = async {
            while sessions.ids().iter().all(|id| ended.contains(id)) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        soon(begun_anew).await;
    }
}

/// What was lost when a session could not be begun anew can be listened to again, once one could.
#[tokio::test]
async fn a_session_that_is_back_can_be_listened_to_again() {
    let (is_down, gets, begun) = (Arc::<AtomicUsize>::default(), AtomicUsize::new(0), AtomicUsize::new(0));
    let down = is_down.clone();
    let rule = http::listening("2025-11-25", |_| Answer::result(text("b")));
    let server = HttpPeer::start(move |request: &Request| {
        let session = request.header("mcp-session-id");
        match (request.verb.as_str(), request.method()) {
            ("GET", _) if session != Some("s-1") => Answer::events(": hello\n\n").without_end(),
            ("GET", _) if gets.fetch_add(1, Ordering::SeqCst) == 0 => Answer::events("retry: 0\n: hello\n\n"),
            ("GET", _) => Answer::status(404),
            (_, "initialize") if down.load(Ordering::SeqCst) == 1 => Answer::status(503),
            (_, "initialize") => {
                let number = begun.fetch_add(1, Ordering::SeqCst) + 1;
                rule(request).header("Mcp-Session-Id", &format!("s-{number}"))
            }
            (_, "tools/call") if session == Some("s-1") => Answer::status(404),
            _ => rule(request),
        }
    })
    .await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    is_down.store(1, Ordering::SeqCst);
    let mut changes = soon(client.listen(NotificationFilter::new().tools())).await.unwrap();
    assert_eq!(soon(changes.next()).await, None);
    assert!(matches!(changes.ended(), Some(ListenEnd::Lost(_))), "{:?}", changes.ended());
    is_down.store(0, Ordering::SeqCst);
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    let mut again = soon(changes.again()).await.unwrap();
    assert!(timeout(Duration::from_millis(300), again.next()).await.is_err(), "{:?}", again.ended());
}

/// Telling of roots is no call, and ends in time; a session that is gone is begun anew for it too.
#[tokio::test]
async fn roots_that_change_are_told_in_time() {
    let rule = |request: &Request| match request.method() {
        "notifications/roots/list_changed" => Answer::silence(),
        _ => Answer::status(500),
    };
    let server = HttpPeer::start(http::legacy("2025-11-25", rule)).await;
    let limits = Limits::default().request_timeout(Duration::from_millis(300));
    let client = Client::builder(implementation!()).limits(limits).connect(Http::new(server.url())).await.unwrap();
    assert_eq!(soon(client.roots_changed()).await.unwrap_err().kind(), ErrorKind::Timeout);

    let forget = Arc::new(AtomicUsize::new(0));
    let server = forgetful(forget.clone()).await;
    let client = connect_in(Era::Legacy, Http::new(server.url())).await.unwrap();
    forget.store(1, Ordering::SeqCst);
    soon(client.roots_changed()).await.unwrap();
    assert_eq!((count(&server, "initialize"), count(&server, "notifications/roots/list_changed")), (2, 2));
}

/// The patience of a call is its own, whatever it waits for.
#[tokio::test]
async fn c046_a_call_waits_for_a_new_session_no_longer_than_for_its_answer() {
    let hands = AtomicUsize::new(0);
    let rest = http::with_session(http::legacy("2025-11-25", |_| Answer::status(404)));
    let server = HttpPeer::start(move |request| match request.method() {
        "initialize" if hands.fetch_add(1, Ordering::SeqCst) > 0 => Answer::silence(),
        _ => rest(request),
    })
    .await;
    let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    let options = CallOptions::new().timeout(Duration::from_millis(300));
    let error = soon(client.call_with::<String>("a", (), options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

/// A server that never had the stream refuses it like this; one that had it has lost the session.
#[tokio::test]
async fn a_session_that_is_lost_before_its_stream_is_open_is_begun_anew() {
    let (begun, gets) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let rest = http::listening("2025-11-25", |_| Answer::status(202));
    let server = HttpPeer::start(move |request: &Request| match request.verb.as_str() {
        "GET" => match gets.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::events("retry: 0\n\n"),
            1 | 2 => Answer::status(404),
            _ => Answer::events(": hello\n\n").without_end(),
        },
        _ if request.method() == "initialize" => {
            let session = format!("s-{}", begun.fetch_add(1, Ordering::SeqCst));
            rest(request).header("Mcp-Session-Id", &session)
        }
        _ => rest(request),
    })
    .await;
    let _client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
    let streams = |seen: &[Request]| seen.iter().filter(|request| request.verb == "GET").count();
    server.until("the third session has its stream", |seen| streams(seen) == 4).await;
    let sessions: Vec<_> = server.gets().iter().map(|get| get.header("mcp-session-id").unwrap().to_owned()).collect();
    assert_eq!(sessions, ["s-0", "s-0", "s-1", "s-2"]);
}

/// Nobody calls: that a session is lost is all that begins another one, and a server may lose them as fast as they begin.
#[tokio::test]
async fn sessions_that_are_lost_as_soon_as_they_begin_are_begun_ever_more_slowly() {
    const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    for stream in ["retry: 0\n\n".to_owned(), format!("retry: 0\nid: 1\ndata: {NOTE}\n\n")] {
        let (begun, gets) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rest = http::listening("2025-11-25", |_| Answer::result(text("b")));
        let server = HttpPeer::start(move |request: &Request| match request.verb.as_str() {
            "GET" if gets.fetch_add(1, Ordering::SeqCst) % 2 == 0 => Answer::events(stream.clone()),
            "GET" => Answer::status(404),
            _ if request.method() == "initialize" => {
                let session = format!("s-{}", begun.fetch_add(1, Ordering::SeqCst));
                rest(request).header("Mcp-Session-Id", &session)
            }
            _ => rest(request),
        })
        .await;
        let _client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
        server.until("another session", |seen| handshakes(seen) == 2).await;
        sleep(Duration::from_secs(3)).await;
        let count = count(&server, "initialize");
        assert!(count <= 4, "{count} sessions");
    }
}

/// A renewal that the client turns down leaves it in the session that is lost, and not in none at all.
#[tokio::test]
async fn c046_a_session_in_another_revision_is_asked_for_again_by_the_next_call() {
    for agreed in ["1999-01-01", "2025-03-26"] {
        let hands = Arc::new(AtomicUsize::new(0));
        let counted = hands.clone();
        let rest = http::with_session(http::legacy("2025-11-25", |_| Answer::status(404)));
        let server = HttpPeer::start(move |request| match (request.method(), request.header("mcp-session-id")) {
            ("initialize", _) if counted.fetch_add(1, Ordering::SeqCst) > 0 => Answer::result(initialized(agreed)),
            ("tools/call", None) => Answer::status(400),
            _ => rest(request),
        })
        .await;
        let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
        for tries in 1..=2 {
            soon(client.call::<String>("a", ())).await.unwrap_err();
            assert_eq!(hands.load(Ordering::SeqCst), 1 + tries, "{agreed}");
        }
    }
}
