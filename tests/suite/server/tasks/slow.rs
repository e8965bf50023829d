//! Stores that answer late, or never: nothing of a task is lost with whoever does not wait so long.

use mcp_core::store::TaskStatus;
use mcp_test::RawClient;
use tokio::{runtime::Handle, time::timeout};

use super::{stores::Moody, *};
use crate::server::rounds::answers;

/// Longer than a step of a store may take.
const HANGS: u32 = u32::MAX;

fn tools() -> [Tool; 2] {
    [Tool::new("waits", waits).task(), Tool::new("asks", asks).task()]
}

/// Sends a request and gives it up, once the store has kept what it changes and before it says so.
async fn given_up(server: &Server, store: &Moody, method: &str, params: Value) {
    store.late(1000);
    let answer = timeout(Duration::from_millis(500), request(server, None, method, params)).await;
    assert!(answer.is_err(), "{answer:?}");
    store.late(0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_its_task_though_its_client_has_left() {
    let store = Moody::new();
    let server = store.server(tools());
    let id = begin(&server, "asks").await;
    until(&server, &id, "input_required").await;
    let params = json!({ "taskId": id, "inputResponses": answers(&[("who", "Ada")]) });
    given_up(&server, &store, "tasks/update", params).await;
    assert_eq!(text(&until(&server, &id, "completed").await), "Ada");
}

/// And whoever listens to it is told.
#[tokio::test(start_paused = true)]
async fn a_task_is_called_off_though_its_client_has_left() {
    let store = Moody::new();
    let server = store.server(tools());
    let id = begin(&server, "waits").await;
    let mut client = RawClient::modern(server.clone());
    let listen = json!({ "notifications": { "taskIds": [id] }, "_meta": meta() });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen })).await;
    client.hear().await;
    assert_eq!(client.hear().await["params"]["status"], "working");
    given_up(&server, &store, "tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(client.hear().await["params"]["status"], "cancelled");
    assert_eq!(Seen::counts(&server), (1, 1), "its handler was dropped");
}

/// It was there before the server was told to stop.
#[tokio::test(start_paused = true)]
async fn what_a_task_has_come_to_is_kept_though_its_server_stops() {
    let store = Moody::new();
    let server = store.server(tools());
    begin(&server, "waits").await;
    store.pause(1000);
    open(&server);
    sleep(Duration::from_millis(500)).await;
    assert_eq!(Seen::counts(&server), (1, 1), "it is done");
    server.end_tasks().await;
    assert!(store.only().await.result().is_some());
}

/// Not once alone.
#[tokio::test(start_paused = true)]
async fn that_a_task_ends_with_its_server_waits_for_the_store() {
    let store = Moody::new();
    let server = store.server(tools());
    begin(&server, "waits").await;
    store.is_down(true);
    tokio::join!(server.end_tasks(), async {
        sleep(Duration::from_secs(2)).await;
        store.is_down(false);
    });
    assert_eq!(store.only().await.status(), TaskStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_once_holds_up_no_task() {
    let store = Moody::new();
    let server = store.server(tools());
    let id = begin(&server, "waits").await;
    store.pause(HANGS);
    open(&server);
    sleep(Duration::from_millis(1)).await;
    store.pause(0);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(text(&get(&server, &id).await), "done");
}

/// It fails as one does that says so.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_an_internal_error() {
    let store = Moody::new();
    let server = store.server(tools());
    let id = begin(&server, "waits").await;
    store.pause(HANGS);
    let params = json!({ "name": "waits", "taskId": id, "inputResponses": {} });
    for method in ["tools/call", "tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = timeout(Duration::from_secs(20), request(&server, None, method, params.clone())).await;
        assert_eq!(answer.unwrap()["error"]["code"], -32603, "{method}");
    }
    assert_eq!(Seen::counts(&server), (1, 0));
}

/// Whoever calls and leaves, again and again.
#[tokio::test(start_paused = true)]
async fn tasks_that_are_being_made_are_bounded() {
    let store = Moody::new();
    let server = store.server(tools());
    store.pause(HANGS);
    let alive = || Handle::current().metrics().num_alive_tasks();
    for _ in 0..2000 {
        assert!(timeout(Duration::from_millis(1), call(&server, None, "waits")).await.is_err() || alive() == 1024);
    }
    assert_eq!(alive(), 1024);
    let refused = timeout(Duration::from_millis(1), call(&server, None, "waits")).await.unwrap();
    assert_eq!(refused["error"]["message"], "Server busy: there is no room for another task");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(alive(), 0);
    store.pause(0);
    begin(&server, "waits").await;
}

/// And a server that stops does not wait for them.
#[tokio::test(start_paused = true)]
async fn what_is_being_made_ends_with_its_server() {
    let store = Moody::new();
    let server = store.server(tools());
    store.pause(HANGS);
    let (refused, ended) = tokio::join!(call(&server, None, "waits"), async {
        sleep(Duration::from_secs(1)).await;
        timeout(Duration::from_millis(1), server.end_tasks()).await
    });
    assert_eq!((&refused["error"]["code"], ended), (&json!(-32603), Ok(())));
}

/// It is not hammered, nor is the log.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_tried_ever_more_seldom() {
    let store = Moody::new();
    let limits = Limits::default().task_poll_interval(Duration::from_millis(10));
    let server = builder(limits, tools()).task_store(store.clone()).build();
    let id = begin(&server, "waits").await;
    store.is_down(true);
    open(&server);
    sleep(Duration::from_millis(350)).await;
    let soon = store.tries();
    sleep(Duration::from_secs(600)).await;
    assert!(soon >= 2 && store.tries() < 140, "{soon} and {}", store.tries());
    store.is_down(false);
    sleep(Duration::from_secs(6)).await;
    assert_eq!(text(&get(&server, &id).await), "done");
}

/// Nobody waits for its answer any more.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_given_up_is_taken_back_once_the_store_is_there() {
    async fn gives_up(context: Context) -> Result<String, ToolError> {
        drop(timeout(Duration::from_secs(1), name(&context, "who")).await);
        waits(context).await
    }
    let store = Moody::new();
    let server = store.server([Tool::new("gives_up", gives_up).task()]);
    let id = begin(&server, "gives_up").await;
    until(&server, &id, "input_required").await;
    store.is_down(true);
    sleep(Duration::from_secs(10)).await;
    store.is_down(false);
    assert_eq!(get(&server, &id).await["status"], "input_required");
    sleep(Duration::from_secs(6)).await;
    assert_eq!(get(&server, &id).await["status"], "working");
}
