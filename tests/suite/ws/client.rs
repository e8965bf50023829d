//! The client's side: handshakes that fail, ends that lose nothing, frames that are none.

use std::{sync::Arc, time::Instant};

use mcp_core::{Blame, Client, ErrorKind, Limits, Revision, client::CallOptions, implementation};
use mcp_ws::Ws;
use serde_json::json;

use super::*;

const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;

/// A listener that does with each connection what `serve` says.
pub(super) async fn peer<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(Peer) -> F + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/mcp?key=secret", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(Peer::new(stream, false)));
        }
    });
    url
}

/// Reads the upgrade and switches, with `extra` header lines.
pub(super) async fn switch(peer: &mut Peer, extra: &str) {
    let head = peer.head().await.expect("an upgrade");
    switched(peer, &head, extra).await;
}

/// Switches, as that upgrade asks.
pub(crate) async fn switched(peer: &mut Peer, head: &[String], extra: &str) {
    let key = header(head, "sec-websocket-key").unwrap();
    let accept = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
    peer.write(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{extra}\r\n"
    ))
    .await;
}

/// Switches, and answers the probe as a modern server.
pub(super) async fn modern(peer: &mut Peer) {
    switch(peer, "Sec-WebSocket-Protocol: mcp\r\n").await;
    let probe = peer.hear().await;
    assert_eq!(probe["method"], "server/discover");
    peer.say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{DISCOVERED}}}"#, probe["id"])).await;
}

async fn answer(peer: &mut Peer, text: &str) {
    let call = peer.hear().await;
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    peer.say(json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }).to_string()).await;
}

async fn connect(url: &str) -> Result<Client, mcp_core::Error> {
    soon("connecting", Client::connect(Ws::new(url))).await
}

#[tokio::test]
async fn our_client_and_our_server_speak_every_revision() {
    let served = Served::start(everything_server::server()).await;
    for revision in Revision::ALL {
        let client = Client::builder(implementation!()).revisions([*revision]).connect(Ws::new(served.url())).await;
        let client = client.unwrap();
        assert_eq!(client.revision(), *revision);
        assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
        let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
        let ear = heard.clone();
        let options = CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress));
        client.call_with::<String>("count", json!({ "n": 3 }), options).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), [1.0, 2.0, 3.0]);
        let big: String = client.call("big", json!({ "bytes": 1_000_000 })).await.unwrap();
        assert_eq!(big.len(), 1_000_000);
        let start = Instant::now();
        client.disconnect().await;
        assert!(start.elapsed() < Duration::from_millis(500), "the server closes first: {:?}", start.elapsed());
    }
}

/// What the upgrade says: the headers of the user's, the subprotocol, the host as the URL has it.
#[tokio::test]
async fn the_upgrade_carries_what_it_must() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let told = Arc::new(std::sync::Mutex::new(Some(told)));
    let url = peer(move |mut peer| {
        let told = told.clone();
        async move {
            let head = peer.head().await.unwrap();
            if let Some(told) = told.lock().unwrap().take() {
                told.send(head).unwrap();
            }
        }
    })
    .await;
    let ws = Ws::new(&url).header(http::header::AUTHORIZATION, "Bearer t".parse().unwrap());
    assert!(!format!("{ws:?}").contains("secret"));
    soon("connecting", Client::connect(ws)).await.unwrap_err();
    let head = heard.await.unwrap();
    assert_eq!(head[0], "GET /mcp?key=secret HTTP/1.1");
    assert_eq!(header(&head, "host"), url.split('/').nth(2));
    assert_eq!(header(&head, "authorization"), Some("Bearer t"));
    assert_eq!(header(&head, "sec-websocket-protocol"), Some("mcp"));
    assert_eq!(header(&head, "sec-websocket-version"), Some("13"));
    assert_eq!(header(&head, "origin"), None);
}

#[tokio::test]
async fn c115_an_upgrade_that_is_refused_is_an_error_with_its_status() {
    // What OAuth starts from comes whole, however long it is.
    let challenges = [
        "Basic realm=\"a\"".to_owned(),
        format!("Bearer scope=\"{}\", resource_metadata=\"http://x\"", "s".repeat(300)),
    ];
    let lines: String = challenges.iter().map(|challenge| format!("WWW-Authenticate: {challenge}\r\n")).collect();
    for (status, kind) in [
        ("401 Unauthorized", ErrorKind::Unauthorized),
        ("200 OK", ErrorKind::TransportError),
        ("404 Not Found", ErrorKind::TransportError),
        ("503 Service Unavailable", ErrorKind::TransportError),
        ("307 Temporary Redirect", ErrorKind::TransportError),
    ] {
        let answer = format!(
            "HTTP/1.1 {status}\r\n{lines}Location: /elsewhere\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n<p>no</p>"
        );
        let url = peer(move |mut peer| {
            let answer = answer.clone();
            async move {
                peer.head().await.unwrap();
                peer.write(answer).await;
                peer.fill().await;
            }
        })
        .await;
        let error = connect(&url).await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (kind, status[..3].parse().ok()), "{error:?}");
        assert_eq!(error.challenges(), challenges);
        assert!(error.to_string().contains("<p>no</p>"), "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}

#[tokio::test]
async fn c115_a_server_that_closes_or_says_nothing_is_an_error_in_time() {
    let url = peer(|mut peer| async move { drop(peer.head().await) }).await;
    let error = connect(&url).await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportError, Blame::Transport), "{error:?}");

    let url = peer(|mut peer| async move { while peer.fill().await {} }).await;
    let limits = Limits::default().request_timeout(Duration::from_millis(200));
    let error = Client::builder(implementation!()).limits(limits).connect(Ws::new(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");

    let vacant = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = connect(&format!("ws://{vacant}/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransportError, "{error:?}");
    assert_eq!(format!("{error:?}").matches("refused").count(), 1, "the cause is told once: {error:?}");
}

#[tokio::test]
async fn a_switch_that_breaks_the_rules_is_no_websocket() {
    let good = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for lines in [good.to_owned(), format!("{good}Sec-WebSocket-Accept: AAAA\r\n"), "X: y\r\n".to_owned()] {
        let url = peer(move |mut peer| {
            let lines = lines.clone();
            async move {
                peer.head().await.unwrap();
                peer.write(format!("HTTP/1.1 101 Switching Protocols\r\n{lines}\r\n")).await;
                peer.fill().await;
            }
        })
        .await;
        let error = connect(&url).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer), "{error:?}");
        let told = format!("{error:?}");
        let causes: Vec<_> = told.split(": ").collect();
        assert!(causes.windows(2).all(|two| two[0] != two[1]), "each cause is told once: {told}");
    }
}

/// The peer says what was wrong, and the call that did it is not sent again.
#[tokio::test]
async fn c110_a_message_that_is_too_large_for_the_server_fails_and_is_not_sent_again() {
    let connections = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = connections.clone();
    let url = peer(move |mut peer| {
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            modern(&mut peer).await;
            peer.next().await.unwrap();
            let mut payload = 1009u16.to_be_bytes().to_vec();
            payload.extend_from_slice(b"at most 64 KiB");
            peer.send(true, CLOSE, payload).await;
            while peer.next().await.is_some() {}
        }
    })
    .await;
    let client = connect(&url).await.unwrap();
    let error = soon("the call", client.call::<String>("a", json!({ "x": "x".repeat(100 << 10) }))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransportClosed);
    for part in ["1009", "too large", "at most 64 KiB"] {
        assert!(format!("{error:?}").contains(part), "{error:?}");
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(connections.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn c114_pending_calls_fail_when_the_connection_is_cut() {
    let url = peer(|mut peer| async move {
        modern(&mut peer).await;
        for _ in 0..3 {
            peer.next().await.unwrap();
        }
        // Without a close frame.
        drop(peer);
    })
    .await;
    let client = connect(&url).await.unwrap();
    let start = Instant::now();
    let call = || client.call::<String>("a", ());
    let (a, b, c) = soon("the calls", async { tokio::join!(call(), call(), call()) }).await;
    for outcome in [a, b, c] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error:?}");
    }
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// A server that pings is answered, whether or not anything is called.
#[tokio::test]
async fn pings_are_answered() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let told = Arc::new(std::sync::Mutex::new(Some(told)));
    let url = peer(move |mut peer| {
        let told = told.clone();
        async move {
            modern(&mut peer).await;
            peer.send(true, PING, b"are you there").await;
            let pong = peer.next().await.unwrap();
            told.lock().unwrap().take().unwrap().send(pong).unwrap();
            answer(&mut peer, "b").await;
        }
    })
    .await;
    let client = connect(&url).await.unwrap();
    assert_eq!(soon("a pong", heard).await.unwrap(), Frame { opcode: PONG, payload: b"are you there".to_vec() });
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
}

#[tokio::test]
async fn a_url_that_is_none_is_the_callers_fault_and_is_not_repeated() {
    for url in [
        "no url: secret",
        "ftp://secret@127.0.0.1/",
        "ws://:secret",
        "ws://127.0.0.1:secret/",
        "",
        "ws://secret@127.0.0.1/",
        "ws://:secret@127.0.0.1/",
        "http://user:secret@127.0.0.1/",
    ] {
        let error = connect(url).await.unwrap_err();
        assert_eq!((error.kind(), error.blame()), (ErrorKind::InvalidParams, Blame::Caller), "{url}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        assert_eq!(
            error.to_string().contains("header"),
            url.ends_with("@127.0.0.1/") && !url.starts_with("ftp"),
            "{error}"
        );
    }
    let served = Served::start(everything_server::server()).await;
    let client = connect(&served.url().replacen("ws", "http", 1)).await.unwrap();
    assert_eq!(client.revision(), Revision::LATEST);
}
