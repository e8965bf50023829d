//! Clients that listen to their tasks, and ask no more.

use mcp_core::{Revision, server::serve_peer};
use mcp_test::RawClient;

use super::*;
use crate::{
    duplex::Peer as Other,
    http::{Post, Served},
    server::rounds::answers,
};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn listen_to(id: u64, tasks: &Value) -> Value {
    let params = json!({ "notifications": { "taskIds": tasks }, "_meta": meta() });
    json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params })
}

/// Listens; which ids are acknowledged.
async fn listen(client: &mut RawClient, id: u64, tasks: Value) -> Value {
    client.say(listen_to(id, &tasks)).await;
    let acknowledged = client.hear().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    acknowledged["params"]["notifications"]["taskIds"].clone()
}

/// The next that is told of a task, in that subscription.
async fn told(client: &mut RawClient, id: u64) -> Value {
    let told = client.hear().await;
    assert_eq!(told["method"], "notifications/tasks", "{told}");
    assert_eq!(told["params"]["_meta"], json!({ SUBSCRIPTION: id }));
    assert!(told["params"].get("resultType").is_none(), "{told}");
    told["params"].clone()
}

/// What `tasks/get` says, as it is told.
async fn shown(server: &Server, id: &str, subscription: u64) -> Value {
    let mut task = get(server, id).await;
    task.as_object_mut().unwrap().remove("resultType");
    task["_meta"] = json!({ SUBSCRIPTION: subscription });
    task
}

/// From how it is when somebody begins to listen, to its end.
#[tokio::test(start_paused = true)]
async fn each_change_is_told_as_the_task_would_be_shown() {
    async fn tells(context: Context) -> Result<String, ToolError> {
        waits(context.clone()).await?;
        context.task_message("half").await?;
        let name = name(&context, "who").await?;
        waits(context).await?;
        Ok(name)
    }
    let server = server([Tool::new("tells", tells).task()]);
    let id = begin(&server, "tells").await;
    let mut client = RawClient::modern(server.clone());
    assert_eq!(listen(&mut client, 7, json!([id])).await, json!([id]));
    assert_eq!(told(&mut client, 7).await, shown(&server, &id, 7).await);
    client.silence().await.unwrap();
    open(&server);
    let asking = told(&mut client, 7).await;
    assert_eq!((&asking["status"], &asking["statusMessage"]), (&json!("input_required"), &json!("half")));
    assert_eq!(asking, shown(&server, &id, 7).await);
    client.silence().await.unwrap();
    update(&server, &id, answers(&[("who", "Ada")])).await;
    let working = told(&mut client, 7).await;
    assert_eq!((&working["status"], working.get("inputRequests")), (&json!("working"), None));
    open(&server);
    let mut last = told(&mut client, 7).await;
    while last["status"] == "working" {
        last = told(&mut client, 7).await;
    }
    assert_eq!((&last["status"], text(&last)), (&json!("completed"), "Ada"));
    assert_eq!(last, shown(&server, &id, 7).await);
    client.silence().await.unwrap();
}

/// A client that listens after the end, or while it is asked, would else wait for ever.
#[tokio::test(start_paused = true)]
async fn what_happened_before_anybody_listened_is_told() {
    async fn panics() -> Result<(), ToolError> {
        panic!("this one does")
    }
    let tools = [Tool::new("waits", waits).task(), Tool::new("panics", panics).task(), Tool::new("asks", asks).task()];
    let server = server(tools);
    open(&server);
    let mut ids = Vec::new();
    for (tool, status) in [("waits", "completed"), ("panics", "failed"), ("asks", "input_required")] {
        ids.push(begin(&server, tool).await);
        until(&server, ids.last().unwrap(), status).await;
    }
    let mut client = RawClient::modern(server.clone());
    assert_eq!(listen(&mut client, 1, json!(ids)).await, json!(ids));
    for id in &ids {
        assert_eq!(told(&mut client, 1).await, shown(&server, id, 1).await);
    }
    client.silence().await.unwrap();
    cancel(&server, &ids[2]).await;
    assert_eq!(told(&mut client, 1).await["status"], "cancelled");
}

/// A thousand changes before a client has been told of the first are one to it.
#[tokio::test(start_paused = true)]
async fn a_burst_is_told_in_few_words() {
    async fn chatters(context: Context) -> Result<String, ToolError> {
        waits(context.clone()).await?;
        for number in 0..1000 {
            context.task_message(number.to_string()).await?;
        }
        Ok("quiet".into())
    }
    let server = server([Tool::new("chatters", chatters).task()]);
    let id = begin(&server, "chatters").await;
    let mut client = RawClient::modern(server.clone());
    listen(&mut client, 1, json!([id])).await;
    open(&server);
    let mut count = 1;
    let mut last = told(&mut client, 1).await;
    while last["status"] == "working" {
        last = told(&mut client, 1).await;
        count += 1;
    }
    assert_eq!((text(&last), &last["statusMessage"]), ("quiet", &json!("999")));
    assert!(count < 100, "{count}");
}

/// Only those that are there, for whoever asks; of the others nothing is told, whatever becomes of them.
#[tokio::test(start_paused = true)]
async fn somebody_elses_tasks_are_not_told_of() {
    let server = waiting();
    let mut ids = Vec::new();
    for who in [Some("ada"), Some("bob"), None] {
        ids.push(call(&server, who, "waits").await["result"]["taskId"].as_str().unwrap().to_owned());
    }
    let (here, there) = mcp_core::memory();
    let peer = Peer::new().principal(Some(Principal::new("ada")));
    let mut ada = RawClient::over(here, serve_peer(server.clone(), there, peer));
    let wanted = json!([ids[1], "x", ids[0], "0".repeat(32), ids[2], ids[0].to_uppercase()]);
    assert_eq!(listen(&mut ada, 1, wanted).await, json!([ids[0]]));
    assert_eq!(told(&mut ada, 1).await["taskId"], ids[0].as_str());
    for id in [&ids[1], &ids[2]] {
        for who in [Some("bob"), None] {
            request(&server, who, "tasks/cancel", json!({ "taskId": id })).await;
        }
    }
    ada.silence().await.unwrap();
    open(&server);
    let last = told(&mut ada, 1).await;
    assert_eq!((&last["taskId"], &last["status"]), (&json!(ids[0]), &json!("completed")));
    ada.silence().await.unwrap();
    // One whose time is over is no more there, and nothing is said of it.
    assert_eq!(listen(&mut ada, 2, json!([ids[1]])).await, Value::Null);
    ada.silence().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_that_listen_are_both_told() {
    let server = waiting();
    let id = begin(&server, "waits").await;
    let (mut one, mut other) = (RawClient::modern(server.clone()), RawClient::modern(server.clone()));
    listen(&mut one, 1, json!([id])).await;
    assert_eq!(told(&mut one, 1).await["status"], "working");
    listen(&mut other, 2, json!([id])).await;
    assert_eq!(told(&mut other, 2).await["status"], "working");
    listen(&mut other, 3, json!([id])).await;
    assert_eq!(told(&mut other, 3).await["status"], "working");
    other.say(crate::server::cancel(3)).await;
    other.silence().await.unwrap();
    open(&server);
    assert_eq!(text(&told(&mut one, 1).await), "done");
    assert_eq!(text(&told(&mut other, 2).await), "done");
    one.silence().await.unwrap();
    other.silence().await.unwrap();
}

/// There is nothing to show any more.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_tasks_time_is_silent() {
    let limits = Limits::default().task_ttl(Duration::from_secs(1));
    let server = builder(limits, [Tool::new("waits", waits).task()]).build();
    let id = begin(&server, "waits").await;
    let mut client = RawClient::modern(server.clone());
    listen(&mut client, 1, json!([id])).await;
    assert_eq!(told(&mut client, 1).await["status"], "working");
    client.silence().await.unwrap();
    assert!(is_unknown(&get_for(&server, None, &id).await));
    assert_eq!(Seen::counts(&server), (1, 1));
}

/// In memory, as lines, and over a WebSocket.
#[tokio::test]
async fn on_shared_wires_the_end_is_told() {
    for name in ["memory", "lines", "ws"] {
        let server = waiting();
        let mut peer = match name {
            "memory" => Other::memory(server.clone()),
            "lines" => Other::lines(server.clone()),
            _ => Other::ws(server.clone()).await,
        };
        let id = begin(&server, "waits").await;
        assert_eq!(listen(&mut peer, 5, json!([id, "x"])).await, json!([id]), "{name}");
        assert_eq!(told(&mut peer, 5).await["status"], "working", "{name}");
        open(&server);
        assert_eq!(text(&told(&mut peer, 5).await), "done", "{name}");
    }
}

/// Over HTTP it comes on the stream of the request.
#[tokio::test]
async fn over_http_the_end_is_told() {
    let server = waiting();
    let served = Served::start(server.clone()).await;
    let id = begin(&server, "waits").await;
    let mut connection = served.connect().await;
    let post = Post::speaking(Revision::LATEST, listen_to(5, &json!([id, "x"])).to_string());
    connection.write(&post.bytes(served.address)).await;
    let head = connection.head().await.unwrap();
    assert_eq!((head.status, head.header("Content-Type")), (200, Some("text/event-stream")));
    let mut next = async || {
        let chunk = String::from_utf8(connection.chunk().await.unwrap()).unwrap();
        let data = chunk.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{chunk}")).to_owned();
        serde_json::from_str::<Value>(&data).unwrap()
    };
    assert_eq!(next().await["params"]["notifications"]["taskIds"], json!([id]));
    assert_eq!(next().await["params"]["status"], "working");
    open(&server);
    let last = next().await;
    assert_eq!((&last["method"], text(&last["params"])), (&json!("notifications/tasks"), "done"));
    assert_eq!(last["params"]["_meta"], json!({ SUBSCRIPTION: 5 }));
}
