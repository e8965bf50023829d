//! What observers hear, on both sides and on each wire.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_core::{
    Client, Error, Revision, Server, Tool, ToolError,
    client::CallOptions,
    implementation,
    observer::{CloseReason, ConnectionEvent, Direction, NotificationEvent, Observer, Outcome, RequestEvent, Role},
};
use mcp_suite::{http::Http, ws::Ws};
use serde_json::{Value, json};

use crate::{
    duplex::Peer,
    http::{Post, Served},
    server::{call, ping},
};

/// Keeps what it hears, a line each.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn note(&self, connection: &ConnectionEvent, what: &str) {
        let role = if connection.role == Role::Server { "server" } else { "client" };
        self.0.lock().unwrap().push(format!("{role} {} {what}", connection.transport));
    }

    /// All so far, and nothing of it again.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Waits for so many.
    async fn wait(&self, count: usize) -> Vec<String> {
        for _ in 0..1000 {
            if self.0.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.take()
    }
}

fn arrow(direction: Direction) -> &'static str {
    if direction == Direction::Incoming { "<" } else { ">" }
}

impl Observer for Recorder {
    fn request_started(&self, request: &RequestEvent<'_>) {
        let name = request.name.map(|name| format!(" {name}")).unwrap_or_default();
        let revision = request.revision.map_or("-", Revision::as_str);
        let what = format!("{} {}{name} #{} {revision}", arrow(request.direction), request.method, request.id);
        self.note(&request.connection, &what);
    }

    fn request_completed(&self, request: &RequestEvent<'_>, outcome: Outcome, took: Duration) {
        let what = format!("{} #{} {outcome:?} {}s", arrow(request.direction), request.id, took.as_secs());
        self.note(&request.connection, &what);
    }

    fn notification(&self, notification: &NotificationEvent<'_>) {
        let what = format!("{} {}", arrow(notification.direction), notification.method);
        self.note(&notification.connection, &what);
    }

    fn connection_opened(&self, connection: &ConnectionEvent) {
        self.note(connection, "opened");
    }

    fn connection_closed(&self, connection: &ConnectionEvent, reason: &CloseReason<'_>) {
        let reason = match reason {
            CloseReason::Failed(error) => format!("{:?}", error.kind()),
            other => format!("{other:?}"),
        };
        self.note(connection, &format!("closed {reason}"));
    }

    fn transport_error(&self, connection: &ConnectionEvent, error: &Error) {
        self.note(connection, &format!("error {:?}", error.kind()));
    }
}

fn server(observer: impl Observer) -> Server {
    async fn fail() -> Result<(), ToolError> {
        Err(ToolError::new("no"))
    }
    async fn wait() -> Result<(), ToolError> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(())
    }
    let builder = Server::builder(implementation!()).tool(Tool::new("fail", fail)).tool(Tool::new("wait", wait));
    builder.observer(observer).build()
}

#[tokio::test(start_paused = true)]
async fn a_servers_observer_hears_each_request_begin_and_end() {
    let recorder = Recorder::default();
    let mut peer = Peer::memory(server(recorder.clone()));
    peer.say(&call(1, "fail", json!({}))).await;
    peer.hear().await;
    peer.say(&call(2, "wait", json!({}))).await;
    peer.hear().await;
    peer.say(&call(3, "none", json!({}))).await;
    peer.hear().await;
    peer.say(&ping(4)).await;
    peer.hear().await;
    let heard = recorder.take();
    assert_eq!(
        heard,
        [
            "server memory opened",
            "server memory < tools/call fail #1 2026-07-28",
            "server memory < #1 ToolFailed 0s",
            "server memory < tools/call wait #2 2026-07-28",
            "server memory < #2 Completed 5s",
            "server memory < tools/call none #3 2026-07-28",
            "server memory < #3 Error { code: -32602 } 0s",
            "server memory < ping #4 2025-11-25",
            "server memory < #4 Completed 0s",
        ]
    );
    // Given up, refused before it was served, no message at all, an id that is in flight.
    peer.say(&call(5, "wait", json!({}))).await;
    peer.say(&call(5, "wait", json!({}))).await;
    peer.hear().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    peer.say(cancel).await;
    peer.say(r#"{"jsonrpc":"2.0","id":6,"method":"tools/list"}"#).await;
    peer.hear().await;
    peer.say("garbage").await;
    peer.hear().await;
    peer.end().await.unwrap();
    assert_eq!(
        recorder.take(),
        [
            "server memory < tools/call wait #5 2026-07-28",
            "server memory < tools/call #5 -",
            "server memory < #5 Error { code: -32600 } 0s",
            "server memory < notifications/cancelled",
            "server memory < tools/list #6 -",
            "server memory < #6 Error { code: -32602 } 0s",
            "server memory < #5 Cancelled 1s",
            "server memory error ProtocolInvalid",
            "server memory closed Peer",
        ]
    );
}

#[tokio::test]
async fn a_servers_observer_hears_of_http_and_websocket_too() {
    let recorder = Recorder::default();
    let server = server(recorder.clone());
    let served = Served::start(server.clone()).await;
    served.send(Post::speaking(Revision::LATEST, call(1, "fail", json!({})))).await;
    let refused = Post::speaking(Revision::LATEST, call(2, "fail", json!({}))).never("Mcp-Name");
    assert_eq!(served.send(refused).await.status(), 400);
    assert_eq!(served.send(Post::new("garbage")).await.status(), 400);
    assert_eq!(served.send(Post::new(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#)).await.status(), 202);
    assert_eq!(
        recorder.take(),
        [
            "server http < tools/call fail #1 2026-07-28",
            "server http < #1 ToolFailed 0s",
            "server http < tools/call fail #2 2026-07-28",
            "server http < #2 Error { code: -32020 } 0s",
            "server http error ProtocolInvalid",
            "server http < notifications/x",
        ]
    );
    let served = crate::ws::Served::start(server).await;
    let client = Client::connect(Ws::new(served.url())).await.unwrap();
    client.disconnect().await;
    let heard = recorder.wait(4).await;
    assert_eq!(heard.first().map(String::as_str), Some("server websocket opened"));
    assert_eq!(heard.last().map(String::as_str), Some("server websocket closed Peer"));
}

#[tokio::test(start_paused = true)]
async fn a_clients_observer_hears_each_request_begin_and_end() {
    let recorder = Recorder::default();
    let client = Client::builder(implementation!()).observer(recorder.clone()).revisions([Revision::V2025_11_25]);
    let client = client.connect(server(())).await.unwrap();
    assert_eq!(
        recorder.take(),
        [
            "client memory opened",
            "client memory > initialize #0 -",
            "client memory > #0 Completed 0s",
            "client memory > notifications/initialized",
        ]
    );
    client.call::<Value>("fail", ()).await.unwrap_err();
    client.call::<Value>("none", ()).await.unwrap_err();
    let options = CallOptions::new().timeout(Duration::from_secs(1));
    client.call_with::<Value>("wait", (), options).await.unwrap_err();
    tokio::time::timeout(Duration::from_secs(2), client.call::<Value>("wait", ())).await.unwrap_err();
    client.disconnect().await;
    client.call::<Value>("wait", ()).await.unwrap_err();
    assert_eq!(
        recorder.take(),
        [
            "client memory > tools/call fail #1 2025-11-25",
            "client memory > #1 ToolFailed 0s",
            "client memory > tools/call none #2 2025-11-25",
            "client memory > #2 Error { code: -32602 } 0s",
            "client memory > tools/call wait #3 2025-11-25",
            "client memory > notifications/cancelled",
            "client memory > #3 Failed { kind: Timeout } 1s",
            "client memory > tools/call wait #4 2025-11-25",
            "client memory > notifications/cancelled",
            "client memory > #4 Cancelled 2s",
            "client memory closed Local",
            "client memory > tools/call wait #5 2025-11-25",
            "client memory > #5 Failed { kind: TransportClosed } 0s",
        ]
    );
}

#[tokio::test]
async fn a_client_over_http_opens_when_it_connects_and_closes_when_it_disconnects() {
    let recorder = Recorder::default();
    let served = Served::start(server(())).await;
    let url = format!("http://{}/mcp", served.address);
    let client = Client::builder(implementation!()).observer(recorder.clone()).connect(Http::new(url)).await.unwrap();
    client.disconnect().await;
    client.disconnect().await;
    let heard = recorder.take();
    let of_the_connection: Vec<_> = heard.iter().filter(|line| !line.contains('>')).collect();
    assert_eq!(of_the_connection, ["client http opened", "client http closed Local"]);
}

/// One that panics harms nobody, and the next one hears all the same.
#[tokio::test(start_paused = true)]
async fn an_observers_panic_is_contained() {
    struct Panics;
    impl Observer for Panics {
        fn request_started(&self, _: &RequestEvent<'_>) {
            panic!("a secret");
        }
        fn request_completed(&self, _: &RequestEvent<'_>, _: Outcome, _: Duration) {
            panic!("a secret");
        }
    }
    let recorder = Recorder::default();
    let ok = Tool::new("ok", || async { Ok::<_, ToolError>("ok") });
    let server = Server::builder(implementation!()).tool(ok).observer(Panics).observer(recorder.clone()).build();
    let client = Client::builder(implementation!()).observer(Panics).connect(server).await.unwrap();
    assert_eq!(client.call::<String>("ok", ()).await.unwrap(), "ok");
    let heard = recorder.take();
    assert!(heard.iter().any(|line| line.ends_with("Completed 0s")), "{heard:?}");
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_told() {
    let recorder = Recorder::default();
    let vacant = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::builder(implementation!()).observer(recorder.clone());
    client.connect(Ws::new(format!("ws://{vacant}/mcp"))).await.unwrap_err();
    assert_eq!(recorder.take(), ["client websocket error TransportError"]);
}
