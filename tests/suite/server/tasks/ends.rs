//! What becomes of tasks when their server ends.

use mcp_http::Routes;
use mcp_test::RawClient;
use tokio::{net::TcpListener, sync::oneshot};

use super::{stores::Moody, *};

const ENDED: &str = "The server that ran this task has ended";

fn has_ended(task: &Value) -> bool {
    task["status"] == "failed"
        && task["error"] == json!({ "code": -32603, "message": ENDED })
        && task["statusMessage"] == ENDED
}

fn tools() -> [Tool; 2] {
    [Tool::new("waits", waits).task(), Tool::new("asks", asks).task()]
}

/// All that wait for it are told, and nothing begins any more.
#[tokio::test(start_paused = true)]
async fn all_tasks_end_with_their_server() {
    let server = server(tools());
    let (waiting, asking) = (begin(&server, "waits").await, begin(&server, "asks").await);
    let done = begin(&server, "waits").await;
    until(&server, &asking, "input_required").await;
    open(&server);
    sleep(Duration::from_millis(1)).await;
    let mut client = RawClient::modern(server.clone());
    let listen = json!({ "notifications": { "taskIds": [asking] }, "_meta": meta() });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen })).await;
    client.hear().await;
    client.hear().await;
    server.end_tasks().await;
    assert_eq!(Seen::counts(&server), (3, 3), "their handlers were dropped");
    assert!(has_ended(&client.hear().await["params"]));
    let states = [get(&server, &waiting).await, get(&server, &done).await];
    assert_eq!(states.iter().filter(|task| has_ended(task)).count(), 1, "{states:?}");
    assert_eq!(states.iter().filter(|task| task["status"] == "completed").count(), 1);
    let refused = call(&server, None, "waits").await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    assert_eq!(Seen::counts(&server), (3, 3));
    server.end_tasks().await;
}

/// A call, and what a handler has left running, do not keep it.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_dropped_ends_its_tasks() {
    async fn leaves_behind(context: Context) -> Result<String, ToolError> {
        let (left, server) = (context.clone(), context.server().clone());
        tokio::spawn(async move {
            sleep(HOUR * 2).await;
            drop((left, server));
        });
        waits(context).await
    }
    let store = Moody::new();
    let server = store.server([Tool::new("leaves_behind", leaves_behind).task()]);
    let seen = server.state::<Seen>().unwrap().clone();
    let id = begin(&server, "leaves_behind").await;
    let clone = server.clone();
    drop(server);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&clone, &id).await["status"], "working");
    drop(clone);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(seen.gone.load(Ordering::SeqCst), 1);
    let record = store.only().await;
    assert_eq!(record.error().map(|error| &*error.message), Some(ENDED));
}

/// Whoever stops it does not wait for ever.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_holds_up_no_end() {
    let store = Moody::new();
    let server = store.server(tools());
    begin(&server, "waits").await;
    store.pause(3_600_000);
    let begun = tokio::time::Instant::now();
    server.end_tasks().await;
    assert_eq!(begun.elapsed(), Limits::default().shutdown_grace);
    assert_eq!(Seen::counts(&server), (1, 1));
}

#[tokio::test]
async fn a_listener_that_ends_ends_its_servers_tasks() {
    let (server, listener) = (waiting(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let id = begin(&server, "waits").await;
    mcp_stdio::serve_listener_until(server.clone(), listener, async {}).await;
    let task = get(&server, &id).await;
    assert!(has_ended(&task), "{task}");
}

#[tokio::test]
async fn a_server_that_stops_over_http_ends_its_tasks() {
    let (server, listener) = (waiting(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = Routes::new(server.clone()).serve_until(listener, async move { drop(stopped.await) });
    let id = begin(&server, "waits").await;
    let (served, ()) = tokio::join!(serving, async { stop.send(()).unwrap() });
    served.unwrap();
    let task = get(&server, &id).await;
    assert!(has_ended(&task), "{task}");
}
