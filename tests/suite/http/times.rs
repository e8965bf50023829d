//! How long sessions live, to the second: on a clock that stands still, and so without sockets.

use std::time::Duration;

use axum::{Router, body::Body};
use futures_util::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use mcp_core::{Context, Limits, Revision, Server, Tool, ToolError, implementation};
use mcp_http::{Routes, Sessions};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt as _;

use super::session::{Doors, INITIALIZED, builder, call, hello, hello_of, ping, request};

/// A server without a socket.
struct Local {
    router: Router,
    sessions: Sessions,
    doors: Doors,
}

const ACCEPT: &str = "application/json, text/event-stream";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Local {
    fn within(limits: Limits) -> Self {
        let doors = Doors::default();
        Self::of(builder(&doors, limits).build(), doors)
    }

    fn of(server: Server, doors: Doors) -> Self {
        let routes = Routes::new(server);
        let sessions = routes.sessions().unwrap().clone();
        Self { router: routes.into_router(), sessions, doors }
    }

    async fn send(&self, method: Method, id: Option<&str>, last: Option<&str>, body: &str) -> Response<Body> {
        let request = Request::builder().method(method).uri("/mcp").header("host", "localhost");
        let mut request = request.header("content-type", "application/json").header("accept", ACCEPT);
        for (name, value) in [("mcp-session-id", id), ("last-event-id", last)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn post(&self, id: &str, body: &str) -> StatusCode {
        self.send(Method::POST, Some(id), None, body).await.status()
    }

    async fn initialize(&self) -> String {
        let response = self.send(Method::POST, None, None, &hello(Revision::V2025_11_25)).await;
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    async fn open(&self) -> String {
        let id = self.initialize().await;
        assert_eq!(self.post(&id, INITIALIZED).await, StatusCode::ACCEPTED);
        id
    }

    async fn lives(&self, id: &str) -> bool {
        self.post(id, &ping(1)).await == StatusCode::OK
    }

    async fn get(&self, id: &str, last: Option<&str>) -> Response<Body> {
        self.send(Method::GET, Some(id), last, "").await
    }
}

/// The next that comes of a stream.
async fn chunk(stream: &mut axum::body::BodyDataStream) -> Option<String> {
    let chunk = stream.next().await?.unwrap();
    Some(String::from_utf8(chunk.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_for_an_hour_and_each_request_begins_it_anew() {
    let local = Local::within(Limits::default());
    let id = local.open().await;
    for _ in 0..3 {
        sleep(seconds(3599)).await;
        assert!(local.lives(&id).await);
    }
    sleep(seconds(3600)).await;
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(local.send(method, Some(&id), None, &ping(1)).await.status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(local.sessions.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn after_initialize_alone_it_lives_for_a_minute_and_after_one_request_for_all_of_its_time() {
    let local = Local::within(Limits::default());
    let (unused, used) = (local.initialize().await, local.initialize().await);
    sleep(seconds(59)).await;
    assert!(local.lives(&used).await);
    sleep(seconds(1)).await;
    assert!(!local.lives(&unused).await);
    sleep(seconds(3598)).await;
    assert!(local.lives(&used).await);
    let brief = Local::within(Limits::default().session_idle(seconds(30)));
    let unused = brief.initialize().await;
    sleep(seconds(30)).await;
    assert!(!brief.lives(&unused).await, "never longer than others");
}

#[tokio::test(start_paused = true)]
async fn a_time_below_the_lease_is_a_lease_where_there_are_streams() {
    for (streams, lives) in [(1, 15), (0, 1)] {
        let local = Local::within(Limits::default().session_idle(seconds(1)).session_streams(streams));
        let id = local.open().await;
        for _ in 0..3 {
            sleep(seconds(lives) - Duration::from_millis(1)).await;
            assert!(local.lives(&id).await);
        }
        sleep(seconds(lives)).await;
        assert!(!local.lives(&id).await);
    }
}

/// D05, with the times that servers have unless told otherwise, and with very short ones.
#[tokio::test(start_paused = true)]
async fn d05_a_call_of_a_day_is_answered_and_its_session_has_all_of_its_time_behind_it() {
    for limits in [Limits::default(), Limits::default().session_idle(seconds(1)).session_streams(0)] {
        let idle = limits.session_idle;
        let local = Local::within(limits);
        let id = local.open().await;
        for (body, is_slow) in
            [(json!({ "door": "a" }), true), (json!({ "say": 1, "door": "a" }), true), (json!({}), false)]
        {
            if is_slow {
                let opening = async {
                    sleep(seconds(24 * 3600)).await;
                    local.doors.open("a");
                };
                let calling = async {
                    let response = local.send(Method::POST, Some(&id), None, &call(1, body)).await;
                    assert_eq!(response.status(), StatusCode::OK);
                    axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap()
                };
                let ((), body) = tokio::join!(opening, calling);
                assert!(String::from_utf8_lossy(&body).contains("done"), "{body:?}");
            }
            sleep(idle - Duration::from_millis(10)).await;
            assert!(local.lives(&id).await);
        }
        sleep(idle).await;
        assert!(!local.lives(&id).await);
    }
}

/// D05: a stream that is read holds its session; one that is gone does not.
#[tokio::test(start_paused = true)]
async fn d05_a_stream_of_a_day_holds_its_session() {
    let local = Local::within(Limits::default().session_idle(seconds(20)));
    let id = local.open().await;
    let mut stream = local.get(&id, None).await.into_body().into_data_stream();
    assert!(chunk(&mut stream).await.unwrap().contains("data: \n\n"));
    let start = Instant::now();
    let mut comments = 0;
    while start.elapsed() < seconds(24 * 3600) {
        assert_eq!(chunk(&mut stream).await.as_deref(), Some(": keep-alive\n\n"));
        comments += 1;
        assert_eq!(start.elapsed(), seconds(15 * comments), "a sign of life every 15 s");
    }
    drop(stream);
    sleep(seconds(20)).await;
    assert!(!local.lives(&id).await);
}

#[tokio::test(start_paused = true)]
async fn a_stream_too_many_is_refused_after_a_second_in_which_an_old_one_may_fall() {
    let local = Local::within(Limits::default());
    let id = local.open().await;
    let first = local.get(&id, None).await;
    let start = Instant::now();
    assert_eq!((local.get(&id, None).await.status(), start.elapsed()), (StatusCode::CONFLICT, seconds(1)));
    let start = Instant::now();
    let falling = async {
        sleep(Duration::from_millis(500)).await;
        drop(first);
    };
    let (second, ()) = tokio::join!(local.get(&id, None), falling);
    assert_eq!((second.status(), start.elapsed()), (StatusCode::OK, Duration::from_millis(500)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_come_back_for_within_five_minutes() {
    let local = Local::within(Limits::default());
    let id = local.open().await;
    let response = local.send(Method::POST, Some(&id), None, &call(1, json!({ "say": 1 }))).await;
    let mut stream = response.into_body().into_data_stream();
    let priming = chunk(&mut stream).await.unwrap();
    let cursor = priming.strip_prefix("id: ").and_then(|rest| rest.split('\n').next()).unwrap();
    while chunk(&mut stream).await.is_some() {}
    sleep(seconds(299)).await;
    for _ in 0..2 {
        let mut again = local.get(&id, Some(cursor)).await.into_body().into_data_stream();
        assert!(chunk(&mut again).await.unwrap().contains("notifications/message"));
        assert!(chunk(&mut again).await.unwrap().contains("done"));
        assert_eq!(chunk(&mut again).await, None);
    }
    sleep(seconds(1)).await;
    let mut fresh = local.get(&id, Some(cursor)).await.into_body().into_data_stream();
    assert!(
        chunk(&mut fresh).await.unwrap().contains("data: \n\n"),
        "a stream of its own, as of one who knows nothing"
    );
    assert!(timeout(seconds(10), chunk(&mut fresh)).await.is_err());
}

/// A call of a session runs in its connection's own task, until it says something.
#[tokio::test(start_paused = true)]
async fn a_call_that_says_nothing_has_no_task_and_one_that_does_has_one() {
    async fn tasks(context: Context) -> Result<String, ToolError> {
        context.progress(1.0, None, "begun");
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        Ok(format!("{} tasks", tokio::runtime::Handle::current().metrics().num_alive_tasks()))
    }
    let server = Server::builder(implementation!()).tool(Tool::new("tasks", tasks)).build();
    let local = Local::of(server, Doors::default());
    let id = local.open().await;
    // One looks for sessions that expire.
    for (meta, count) in [(json!({}), "1 tasks"), (json!({ "progressToken": 1 }), "2 tasks")] {
        let call = request(1, "tools/call", json!({ "name": "tasks", "_meta": meta }));
        let response = local.send(Method::POST, Some(&id), None, &call).await;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains(count), "{body:?}");
    }
    let left = || tokio::runtime::Handle::current().metrics().num_alive_tasks() == 1;
    crate::server::until("the call's task ends", async || left()).await;
}

/// One task looks for all sessions that expire, and none where there are none.
#[tokio::test(start_paused = true)]
async fn when_all_sessions_have_expired_nothing_runs_any_more() {
    let local = Local::within(Limits::default());
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..100 {
        local.open().await;
    }
    assert_eq!(tasks(), before + 1);
    sleep(seconds(3630)).await;
    assert_eq!((local.sessions.count(), tasks()), (0, before));
    local.open().await;
    assert_eq!((local.sessions.count(), tasks()), (1, before + 1));
}

/// A machine that was asleep for longer than any session lives: those that are over are, with what was open in them, and new
/// ones are begun.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_ends_sessions_whole_or_not_at_all() {
    let local = Local::within(Limits::default());
    let (idle, listening, calling) = (local.open().await, local.open().await, local.open().await);
    let mut stream = local.get(&listening, None).await.into_body().into_data_stream();
    assert!(chunk(&mut stream).await.is_some());
    let call = call(1, json!({ "door": "a", "say": 1 }));
    let mut answer = local.send(Method::POST, Some(&calling), None, &call).await.into_body().into_data_stream();
    assert!(chunk(&mut answer).await.is_some());
    tokio::time::advance(seconds(3 * 24 * 3600)).await;
    assert!(!local.lives(&idle).await);
    for (id, open) in [(listening, &mut stream), (calling, &mut answer)] {
        let lives = local.lives(&id).await;
        let ends = timeout(seconds(60), async { while chunk(open).await.is_some() {} }).await.is_ok();
        assert_eq!(lives, !ends, "a stream is open as long as its session lives");
    }
    let next = local.open().await;
    assert!(local.lives(&next).await);
}

/// Whatever is asked with whichever headers: no failure of the server's, and nothing of another's session.
#[tokio::test(start_paused = true)]
async fn whatever_is_asked_nothing_fails_and_nothing_of_another_session_is_told() {
    const ROUNDS: u32 = 3000;
    let local = Local::within(Limits::default().sessions(8));
    let mut seed = 7u64;
    let mut pick = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % most
    };
    // A secret of each session: what was pushed to it, and nobody else may read.
    let (mut ids, mut cursors) = (vec![local.open().await, local.open().await], vec!["1-1".to_owned(), String::new()]);
    ids.extend(["gone-1".to_owned(), "0".repeat(32)]);
    for round in 0..ROUNDS {
        if ids.len() < 12 && pick(10) == 0 {
            let response = local.send(Method::POST, None, None, &hello(Revision::V2025_11_25)).await;
            ids.extend(response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned()));
        }
        let id = ids[pick(ids.len())].clone();
        if let Some(known) = mcp_core::store::SessionId::parse(&id) {
            let params = mcp_core::jsonrpc::Raw::encode(&json!({ "of": id })).unwrap();
            local.sessions.push(known, "notifications/x", Some(params)).await;
        }
        let bodies =
            [ping(1), INITIALIZED.into(), call(2, json!({ "say": pick(4) })), "{".into(), format!("[{}]", ping(3))];
        let method =
            [Method::POST, Method::POST, Method::GET, Method::GET, Method::DELETE, Method::PUT][pick(6)].clone();
        let method = if method == Method::DELETE && pick(10) > 0 { Method::POST } else { method };
        let id = (pick(20) > 0).then_some(id);
        let last = (pick(2) > 0).then(|| cursors[pick(cursors.len())].clone());
        let response = local.send(method.clone(), id.as_deref(), last.as_deref(), &bodies[pick(bodies.len())]).await;
        let status = response.status();
        assert!(status.as_u16() < 500 || status == StatusCode::SERVICE_UNAVAILABLE, "{round}: {method} {status}");
        let mut stream = response.into_body().into_data_stream();
        while let Ok(Some(chunk)) = timeout(Duration::from_millis(1), chunk(&mut stream)).await {
            cursors.extend(chunk.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned));
            for other in ids.iter().filter(|other| Some(*other) != id.as_ref() && other.len() == 32) {
                assert!(!chunk.contains(other.as_str()), "{round}: something of another session");
            }
        }
    }
    assert!(local.sessions.count() <= 8);
}

/// A client that takes questions, and asks for nothing but JSON.
async fn askable(local: &Local) -> String {
    let hello = hello_of(Revision::V2025_11_25, &json!({ "elicitation": {} }));
    let response = local.send(Method::POST, None, None, &hello).await;
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    assert_eq!(local.post(&id, INITIALIZED).await, StatusCode::ACCEPTED);
    id
}

/// Calls the tool that asks; the text of its answer.
fn ask(local: &Local, id: &str) -> impl Future<Output = String> + use<> {
    let body = request(1, "tools/call", json!({ "name": "ask" }));
    let request = Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    let request = request.header("accept", "application/json").header("mcp-session-id", id);
    let answering = local.router.clone().oneshot(request.body(Body::from(body)).unwrap());
    async move {
        let body = axum::body::to_bytes(answering.await.unwrap().into_body(), usize::MAX).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

/// Reads a question and answers it.
async fn answer(local: &Local, id: &str, stream: &mut axum::body::BodyDataStream) {
    loop {
        let chunk = chunk(stream).await.unwrap();
        let Some(data) = chunk.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
        let Ok(question) = serde_json::from_str::<serde_json::Value>(data) else { continue };
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } });
        assert_eq!(local.post(id, &answer.to_string()).await, StatusCode::ACCEPTED);
        return;
    }
}

/// A question waits for a client that has lost its stream just now, and for no other.
#[tokio::test(start_paused = true)]
async fn a_call_without_a_stream_asks_only_where_somebody_listens_or_did_within_a_lease() {
    let local = Local::within(Limits::default());
    let id = askable(&local).await;
    let lease = Limits::default().session_lease;
    let fails = async || {
        let start = Instant::now();
        let text = ask(&local, &id).await;
        assert!(text.contains("listens to no questions"), "{text}");
        assert_eq!(start.elapsed(), Duration::ZERO, "at once");
    };
    fails().await;
    let mut stream = local.get(&id, None).await.into_body().into_data_stream();
    let (text, ()) = tokio::join!(ask(&local, &id), answer(&local, &id, &mut stream));
    assert_eq!(text, "accept");
    drop(stream);
    sleep(lease / 3).await;
    let coming_back = async {
        sleep(lease / 3).await;
        let mut stream = local.get(&id, None).await.into_body().into_data_stream();
        answer(&local, &id, &mut stream).await;
    };
    let (text, ()) = tokio::join!(ask(&local, &id), coming_back);
    assert_eq!(text, "accept");
    sleep(lease).await;
    fails().await;
}

/// A future may be dropped where there is no runtime any more, and what it takes back then goes nowhere.
#[test]
fn a_call_that_asks_may_be_dropped_outside_of_any_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = Local::within(Limits::default());
    let (call, _stream) = runtime.block_on(async {
        let id = askable(&local).await;
        let mut stream = local.get(&id, None).await.into_body().into_data_stream();
        let mut call = Box::pin(ask(&local, &id));
        tokio::select! {
            text = &mut call => panic!("{text}"),
            () = async { while !chunk(&mut stream).await.unwrap().contains("elicitation/create") {} } => {}
        }
        (call, stream)
    });
    drop(call);
}
