//! Sessions whose records are kept elsewhere: by stores that take their time, that fail, and that several servers share.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use mcp_core::{
    BoxFuture, Error, ErrorKind, Limits, Revision,
    observer::{ConnectionEvent, Observer},
    store::{EventLog, LoggedEvent, MemoryEventLog, MemorySessions, SessionId, SessionRecord, SessionStore, StreamId},
};
use mcp_http::{Routes, Sessions};
use serde_json::json;

use super::{
    Connection, Post,
    session::{Doors, Host, INITIALIZED, WATCHED, builder, call, hello, hello_of, ping, request},
};
use crate::server::until;

/// Sessions and events that several servers share. Each step of theirs takes a while, fails while they are down, and waits
/// while it is held.
#[derive(Debug, Clone)]
struct Shared(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    sessions: MemorySessions,
    log: MemoryEventLog,
    pause: Duration,
    is_down: AtomicBool,
    /// The name of the steps that wait, and how many have come to it.
    held: Mutex<Option<&'static str>>,
    waiting: AtomicU64,
}

impl Shared {
    fn new(pause: Duration) -> Self {
        let limits = Limits::default();
        let (sessions, log) = (MemorySessions::new(limits.sessions), MemoryEventLog::new(&limits));
        let (is_down, held, waiting) = (AtomicBool::new(false), Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Inner { sessions, log, pause, is_down, held, waiting }))
    }

    /// Lets steps of that name wait, and all others go on.
    fn hold(&self, step: Option<&'static str>) {
        *self.0.held.lock().unwrap() = step;
    }

    async fn is_held(&self, count: u64) {
        until("somebody waits", async || self.0.waiting.load(Ordering::SeqCst) == count).await;
    }

    async fn pass(&self, step: &str) {
        if *self.0.held.lock().unwrap() == Some(step) {
            self.0.waiting.fetch_add(1, Ordering::SeqCst);
        }
        while *self.0.held.lock().unwrap() == Some(step) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn down(&self, is_down: bool) {
        self.0.is_down.store(is_down, Ordering::SeqCst);
    }

    fn slowly<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        step: BoxFuture<'a, Result<T, Error>>,
    ) -> BoxFuture<'a, Result<T, Error>> {
        Box::pin(async move {
            tokio::time::sleep(self.0.pause).await;
            self.pass(name).await;
            if self.0.is_down.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorKind::TransportError, "the store is down"));
            }
            let done = step.await;
            tokio::time::sleep(self.0.pause).await;
            done
        })
    }

    /// A server of its own that keeps its sessions here.
    async fn within(&self, limits: Limits) -> Host {
        let (doors, observer) = (Doors::default(), Counting::default());
        let server = builder(&doors, limits).observer(observer.clone()).build();
        let sessions = Sessions::with_stores(&server, self.clone(), self.clone());
        observer.0.set(sessions.clone()).unwrap();
        Host::serve(Routes::new(server.clone()).with_sessions(sessions), server, doors).await
    }

    async fn host(&self) -> Host {
        self.within(Limits::default()).await
    }
}

impl SessionStore for Shared {
    fn create(&self, id: SessionId, record: SessionRecord, ttl: Duration) -> BoxFuture<'_, Result<bool, Error>> {
        self.slowly("create", Box::pin(async move { self.0.sessions.create(id, record, ttl).await }))
    }

    fn load_and_touch(
        &self,
        id: SessionId,
        principal: Option<[u8; 32]>,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Option<SessionRecord>, Error>> {
        self.slowly("load_and_touch", Box::pin(async move { self.0.sessions.load_and_touch(id, principal, ttl).await }))
    }

    fn touch(&self, id: SessionId, ttl: Duration) -> BoxFuture<'_, Result<bool, Error>> {
        self.slowly("touch", Box::pin(async move { self.0.sessions.touch(id, ttl).await }))
    }

    fn save(&self, id: SessionId, record: SessionRecord) -> BoxFuture<'_, Result<bool, Error>> {
        self.slowly("save", Box::pin(async move { self.0.sessions.save(id, record).await }))
    }

    fn remove(&self, id: SessionId) -> BoxFuture<'_, Result<bool, Error>> {
        self.slowly("remove", Box::pin(async move { self.0.sessions.remove(id).await }))
    }

    fn ids(&self) -> BoxFuture<'_, Result<Vec<SessionId>, Error>> {
        self.slowly("ids", Box::pin(async move { self.0.sessions.ids().await }))
    }
}

impl EventLog for Shared {
    fn append(&self, session: SessionId, event: LoggedEvent) -> BoxFuture<'_, Result<(), Error>> {
        self.slowly("append", Box::pin(async move { self.0.log.append(session, event).await }))
    }

    fn after(
        &self,
        session: SessionId,
        stream: StreamId,
        seq: u64,
    ) -> BoxFuture<'_, Result<Option<Vec<LoggedEvent>>, Error>> {
        self.slowly("after", Box::pin(async move { self.0.log.after(session, stream, seq).await }))
    }

    fn forget(&self, session: SessionId) -> BoxFuture<'_, Result<(), Error>> {
        self.slowly("forget", Box::pin(async move { self.0.log.forget(session).await }))
    }
}

/// An observer that looks at the sessions whenever one comes or goes.
#[derive(Clone, Default)]
struct Counting(Arc<OnceLock<Sessions>>);

impl Observer for Counting {
    fn connection_opened(&self, _: &ConnectionEvent) {
        let _ = self.0.get().map(Sessions::count);
    }

    fn connection_closed(&self, _: &ConnectionEvent, _: &mcp_core::observer::CloseReason<'_>) {
        let _ = self.0.get().map(Sessions::count);
    }
}

const PAUSE: Duration = Duration::from_millis(5);

/// What a call says at its very end, its answer, and the renewal of its session come at once: none is lost over another.
#[tokio::test]
async fn with_a_slow_store_each_call_has_all_of_its_answer() {
    let host = Shared::new(PAUSE).host().await;
    let session = host.open().await;
    for id in 1..=10 {
        let work = json!({ "say": id % 3, "door": "a", "then": id % 2 });
        let calling = host.send(session.post(call(id, work)));
        let opening = async {
            host.doors.running(1).await;
            host.doors.open("a");
        };
        let (response, ()) = tokio::join!(calling, opening);
        let messages = response.text().matches(r#""jsonrpc""#).count() as u64;
        assert_eq!((messages, response.text().contains("done")), (id % 3 + id % 2 + 1, true), "{}", response.text());
    }
}

#[tokio::test]
async fn with_a_slow_store_a_session_ends_once_and_all_at_once() {
    let host = Shared::new(PAUSE).host().await;
    let session = host.open().await;
    let mut stream = host.listen(&session).await;
    let deletes = join_all((0..4).map(|_| host.send(session.delete())));
    let pings = join_all((0..4).map(|id| host.send(session.post(ping(id)))));
    let (deletes, pings) = tokio::join!(deletes, pings);
    let statuses: Vec<_> = deletes.iter().map(super::Response::status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
    assert!(pings.iter().all(|ping| matches!(ping.status(), 200 | 404)));
    assert!(stream.rest().await.is_empty());
    assert_eq!(host.sessions.count(), 0);
    assert_eq!(host.send(session.post(ping(1))).await.status(), 404);
}

#[tokio::test]
async fn with_a_slow_store_messages_come_in_order_and_none_is_lost() {
    let host = Shared::new(PAUSE).host().await;
    let session = host.open().await;
    for number in 0..5 {
        assert!(host.push(&session, number).await);
    }
    let pushing = async {
        for number in 5..15 {
            assert!(host.push(&session, number).await);
        }
    };
    let reading = async { host.listen(&session).await.numbers(15).await };
    let ((), numbers) = tokio::join!(pushing, reading);
    assert_eq!(numbers, (0..15).collect::<Vec<_>>());
}

/// What cannot be looked up is not gone: 503, and no client is told to start anew.
#[tokio::test]
async fn a_store_that_is_down_loses_nothing() {
    let store = Shared::new(Duration::ZERO);
    let (here, there) = (store.host().await, store.host().await);
    let session = here.open().await;
    store.down(true);
    let refusal = here.send(Post::new(hello(Revision::V2025_11_25))).await;
    assert_eq!((refusal.status(), &refusal.json()["id"]), (503, &json!(0)));
    let refusal = there.send(session.post(ping(1))).await;
    assert_eq!((refusal.status(), &refusal.json()["id"]), (503, &json!(1)));
    assert_eq!(here.send(session.post(ping(1))).await.status(), 200, "what lives here is served");
    assert!(here.work(&session, 2, json!({ "say": 2 })).await.text().contains("done"));
    store.down(false);
    assert_eq!(here.send(session.post(ping(1))).await.status(), 200);
    assert_eq!(there.send(session.post(ping(1))).await.status(), 200);
}

/// A session that one server has begun goes on at another: what it was told, and what it may still come back for.
#[tokio::test]
async fn servers_that_share_a_store_share_their_sessions() {
    let store = Shared::new(Duration::ZERO);
    let (here, there) = (store.host().await, store.host().await);
    let session = here.open().await;
    for (id, body) in [
        (1, request(1, "logging/setLevel", json!({ "level": "error" }))),
        (2, request(2, "resources/subscribe", json!({ "uri": WATCHED }))),
    ] {
        assert_eq!(here.send(session.post(body)).await.json()["id"], id);
    }
    let mut stream = here.stream(&session.post(call(3, json!({}))).header("Accept", "text/event-stream")).await;
    let cursor = stream.next().await.unwrap().id.unwrap();
    assert_eq!(stream.rest().await.len(), 1);
    assert!(!there.server.resource_updated(WATCHED), "it is not known there yet");
    assert_eq!(there.resume(&session, &cursor).await.rest().await[0].message["id"], 3);
    assert!(!there.work(&session, 4, json!({ "say": 1 })).await.is_stream(), "its log level came along");
    let mut standalone = there.listen(&session).await;
    assert!(there.server.resource_updated(WATCHED));
    assert_eq!(standalone.hear().await.unwrap().message["params"]["uri"], WATCHED);
    assert_eq!(there.send(session.post(INITIALIZED)).await.status(), 202);
    // Its end at one is its end at the other.
    assert_eq!(there.send(session.delete()).await.status(), 204);
    assert_eq!(here.send(session.post(ping(5))).await.status(), 404);
    assert_eq!(here.send(session.delete()).await.status(), 404);
    assert_eq!((here.sessions.count(), there.sessions.count()), (0, 0));
}

/// What a batch changes of a session is kept as what any other request changes.
#[tokio::test]
async fn what_a_batch_changes_of_a_session_goes_along_with_it() {
    let store = Shared::new(Duration::ZERO);
    let (here, there) = (store.host().await, store.host().await);
    let session = here.speaking(Revision::V2025_03_26).await;
    let batch = [
        request(1, "logging/setLevel", json!({ "level": "error" })),
        request(2, "resources/subscribe", json!({ "uri": WATCHED })),
    ];
    let response = here.send(session.post(format!("[{}]", batch.join(",")))).await;
    assert_eq!(response.json().as_array().unwrap().len(), 2);
    assert!(!there.work(&session, 3, json!({ "say": 1 })).await.is_stream(), "its log level came along");
    assert!(there.server.resource_updated(WATCHED), "so did its subscription");
}

/// Nor is it lost with a connection that did not wait for the answer.
#[tokio::test]
async fn what_a_call_changes_whose_connection_is_lost_goes_along_too() {
    let store = Shared::new(Duration::ZERO);
    let slow = tower::layer::layer_fn(|inner| super::sessions::Slow { inner });
    let doors = Doors::default();
    let server = builder(&doors, Limits::default()).layer(slow).build();
    let sessions = Sessions::with_stores(&server, store.clone(), store.clone());
    let here = Host::serve(Routes::new(server.clone()).with_sessions(sessions), server, doors).await;
    let there = store.host().await;
    let session = here.open().await;
    let mut connection = Connection::open(here.address).await;
    let post = session.post(request(1, "logging/setLevel", json!({ "level": "error" })));
    connection.write(&post.bytes(here.address)).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    connection.abort();
    let kept = async || {
        let id = SessionId::parse(&session.id).unwrap();
        let record = store.0.sessions.load_and_touch(id, None, Duration::from_secs(3600)).await.unwrap();
        record.unwrap().log_level == mcp_core::types::LogLevel::Error
    };
    until("it is kept", kept).await;
    assert!(!there.work(&session, 2, json!({ "say": 1 })).await.is_stream());
}

/// A question of one process is answered there alone, however late the answer comes and wherever.
#[tokio::test]
async fn no_two_processes_ask_questions_of_one_id() {
    let store = Shared::new(Duration::ZERO);
    let (here, there) = (store.host().await, store.host().await);
    let hello = hello_of(Revision::V2025_11_25, &json!({ "elicitation": {} }));
    let session = here.initialize(Post::new(hello), Revision::V2025_11_25).await;
    let ask = session.post(request(1, "tools/call", json!({ "name": "ask" })));
    let (mut one, mut other) = (here.stream(&ask).await, there.stream(&ask).await);
    let (first, second) = (one.hear().await.unwrap().message, other.hear().await.unwrap().message);
    let answer = |question: &serde_json::Value, action: &str| {
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action } }).to_string()
    };
    assert_eq!(there.send(session.post(answer(&first, "decline"))).await.status(), 202);
    assert_eq!(there.send(session.post(answer(&second, "accept"))).await.status(), 202);
    assert_eq!(other.hear().await.unwrap().text(), "accept");
}

/// After a restart, say: what the old process sent is there, and nobody but the new one sends more.
#[tokio::test]
async fn c098_a_standalone_stream_of_another_process_goes_on_here() {
    let store = Shared::new(Duration::ZERO);
    let (here, there) = (store.host().await, store.host().await);
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25] {
        let session = here.speaking(revision).await;
        let mut stream = here.listen(&session).await;
        assert!(here.push(&session, 1).await && here.push(&session, 2).await);
        let cursor = stream.hear().await.unwrap().id;
        assert_eq!(stream.numbers(1).await, [2]);
        drop(stream);
        let mut again = there.resume(&session, &cursor).await;
        assert_eq!(again.numbers(1).await, [2]);
        assert!(there.push(&session, 3).await);
        let third = again.hear().await.unwrap();
        assert_eq!(third.number(), 3);
        drop(again);
        let mut again = there.resume(&session, &third.id).await;
        assert!(there.push(&session, 4).await);
        assert_eq!(again.numbers(1).await, [4]);
    }
}

/// A client that leaves while its stream is looked up has not come: whoever comes next has the stream.
#[tokio::test]
async fn a_resumption_that_is_cut_midway_takes_no_stream() {
    let store = Shared::new(Duration::ZERO);
    let host = store.host().await;
    let session = host.open().await;
    assert!(host.push(&session, 1).await);
    let cursor = host.listen(&session).await.hear().await.unwrap().id;
    store.hold(Some("after"));
    let mut connection = Connection::open(host.address).await;
    connection.write(&session.get().header("Last-Event-ID", cursor).bytes(host.address)).await;
    store.is_held(1).await;
    connection.abort();
    let mut fresh = host.listen(&session).await;
    assert!(host.push(&session, 2).await);
    assert_eq!(fresh.numbers(1).await, [2]);
}

/// One message is on its way into the log, and a later one waits for a reader, when the client comes back.
#[tokio::test]
async fn what_is_being_logged_while_a_stream_is_resumed_comes_before_what_waits() {
    let store = Shared::new(Duration::ZERO);
    let host = store.host().await;
    let session = host.open().await;
    let mut stream = host.listen(&session).await;
    assert!(host.push(&session, 0).await);
    let cursor = stream.hear().await.unwrap().id;
    store.hold(Some("append"));
    let first = host.push(&session, 1);
    let rest = async {
        store.is_held(1).await;
        stream.connection.abort();
        // Where that is not seen in time, the second message follows the first on its own way, and this shows nothing.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let (second, resumed, ()) = tokio::join!(host.push(&session, 2), host.resume(&session, &cursor), async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            store.hold(None);
        });
        assert!(second);
        let mut resumed = resumed;
        resumed.numbers(2).await
    };
    let (first, numbers) = tokio::join!(first, rest);
    assert_eq!((first, numbers), (true, vec![1, 2]));
}

/// What the log has dropped by the time it is looked up, but was sent since the client came back, comes all the same.
#[tokio::test]
async fn what_is_sent_while_a_stream_is_looked_up_comes_though_the_log_drops_it() {
    let store = Shared::new(Duration::ZERO);
    let host = store.within(Limits::default().queue_messages(5000).session_streams(2)).await;
    let session = host.open().await;
    let mut stream = host.listen(&session).await;
    assert!(host.push(&session, 0).await);
    let cursor = stream.hear().await.unwrap().id;
    store.hold(Some("after"));
    let pushing = async {
        store.is_held(1).await;
        // More than the log keeps.
        for number in 1..=1500 {
            assert!(host.push(&session, number).await);
        }
        store.hold(None);
    };
    let (mut resumed, ()) = tokio::join!(host.resume(&session, &cursor), pushing);
    assert_eq!(resumed.numbers(1500).await, (1..=1500).collect::<Vec<_>>());
}

/// A session that could not be removed is not ended: whoever wants its end is told to try again, and nobody is served.
#[tokio::test]
async fn a_session_that_the_store_does_not_let_go_ends_all_the_same_and_is_let_go_later() {
    let store = Shared::new(Duration::ZERO);
    let brief = Limits::default().session_provisional(Duration::from_secs(1));
    let (patient, brief, there) = (store.host().await, store.within(brief).await, store.host().await);
    for (here, is_asked_again) in [(&patient, true), (&brief, false)] {
        let session = here.open().await;
        let mut stream = here.listen(&session).await;
        store.down(true);
        for _ in 0..2 {
            assert_eq!(here.send(session.delete()).await.status(), 503);
        }
        assert!(stream.rest().await.is_empty());
        assert_eq!(here.send(session.post(ping(1))).await.status(), 404);
        assert_eq!((here.sessions.count(), here.sessions.ids()), (0, vec![]));
        assert!(!here.push(&session, 1).await);
        store.down(false);
        assert_eq!(here.send(session.post(ping(1))).await.status(), 404);
        if is_asked_again {
            assert_eq!(here.send(session.delete()).await.status(), 204);
            assert_eq!(here.send(session.delete()).await.status(), 404);
            assert_eq!(there.send(session.post(ping(1))).await.status(), 404);
        }
        until("the store has let it go", async || there.send(session.post(ping(1))).await.status() == 404).await;
    }
}

#[tokio::test]
async fn a_delete_whose_client_leaves_midway_ends_its_session_all_the_same() {
    let store = Shared::new(Duration::ZERO);
    let host = store.within(Limits::default().session_provisional(Duration::from_secs(1))).await;
    let there = store.host().await;
    let session = host.open().await;
    store.hold(Some("remove"));
    let mut connection = Connection::open(host.address).await;
    connection.write(&session.delete().bytes(host.address)).await;
    store.is_held(1).await;
    assert_eq!(host.send(session.post(ping(1))).await.status(), 404, "it ends at once");
    connection.abort();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((host.send(session.post(ping(1))).await.status(), host.sessions.count()), (404, 0));
    store.hold(None);
    until("the store has let it go", async || there.send(session.post(ping(1))).await.status() == 404).await;
}

#[tokio::test]
async fn a_session_that_is_ended_elsewhere_leaves_no_events_behind() {
    let store = Shared::new(Duration::ZERO);
    let (here, there) = (store.host().await, store.host().await);
    let session = here.open().await;
    let id = SessionId::parse(&session.id).unwrap();
    let cursor = here.working(&session, 1, json!({ "say": 1 })).await.rest().await.pop().unwrap().id;
    let (stream, _) = LoggedEvent::parse_id(&cursor).unwrap();
    let events = async || store.0.log.after(id, stream, 0).await.unwrap();
    assert!(events().await.is_some());
    assert!(there.sessions.end(id).await);
    assert_eq!(events().await, None);
}
