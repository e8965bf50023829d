//! What stands on the wire.

use mcp_core::Revision;
use mcp_test::RawClient;
use serde_json::Value;
use tracing::{Event, Instrument, Subscriber};
use tracing_subscriber::{Layer, layer, layer::SubscriberExt, registry::LookupSpan};

use super::*;
use crate::{
    http::{Post, Served},
    server::rounds::answers,
};

fn members(value: &Value) -> Vec<&str> {
    let mut members: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    members
}

/// The members that each task has, with these.
fn of_a_task<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut members =
        ["_meta", "createdAt", "lastUpdatedAt", "pollIntervalMs", "resultType", "status", "taskId", "ttlMs"].to_vec();
    members.extend(more);
    members.sort_unstable();
    members
}

async fn fails() -> Result<(), ToolError> {
    Err(ToolError::new("no luck"))
}

async fn panics() -> Result<(), ToolError> {
    panic!("this one does")
}

/// What the client cannot do is an error of the protocol.
async fn faulty(context: Context) -> Result<String, ToolError> {
    let page = mcp_core::types::ElicitParams::url("Log in", "https://example.com", "visit-1");
    Ok(context.elicit("page", page).await?.action.as_str().to_owned())
}

/// The members of each status and no others: the seed is flat, has no state to be sent again, and the result is the call's.
#[tokio::test(start_paused = true)]
async fn a_task_has_the_members_of_its_status() {
    let tools = [
        Tool::new("waits", waits).task(),
        Tool::new("asks", asks).task(),
        Tool::new("fails", fails).task(),
        Tool::new("panics", panics).task(),
        Tool::new("faulty", faulty).task(),
    ];
    let server = server(tools);
    let created = call(&server, None, "waits").await;
    assert_eq!(members(&created["result"]), of_a_task(&[]), "{created}");
    assert_eq!(created["result"]["resultType"], "task");
    assert_eq!(created["result"]["status"], "working");
    assert_eq!((&created["result"]["ttlMs"], &created["result"]["pollIntervalMs"]), (&json!(3_600_000), &json!(1000)));
    let id = created["result"]["taskId"].as_str().unwrap();
    let working = get(&server, id).await;
    assert_eq!(members(&working), of_a_task(&[]));
    assert_eq!((&working["status"], &working["createdAt"]), (&json!("working"), &created["result"]["createdAt"]));
    super::open(&server);
    let completed = until(&server, id, "completed").await;
    assert_eq!(members(&completed), of_a_task(&["result"]));
    let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": "done" }] });
    assert_eq!(completed["result"], result);

    let asking = begin(&server, "asks").await;
    let asking = until(&server, &asking, "input_required").await;
    assert_eq!(members(&asking), of_a_task(&["inputRequests"]));
    assert_eq!(asking["inputRequests"]["who"]["method"], "elicitation/create");
    let id = asking["taskId"].as_str().unwrap();
    let acknowledged = cancel(&server, id).await;
    assert_eq!(members(&acknowledged["result"]), ["_meta", "resultType"], "{acknowledged}");
    assert_eq!(acknowledged["result"]["resultType"], "complete");
    assert_eq!(members(&until(&server, id, "cancelled").await), of_a_task(&[]));

    let failed = begin(&server, "fails").await;
    let failed = until(&server, &failed, "completed").await;
    assert_eq!((text(&failed), &failed["result"]["isError"]), ("no luck", &json!(true)));
    for (tool, code) in [("panics", -32603), ("faulty", -32021)] {
        let faulty = begin(&server, tool).await;
        let faulty = until(&server, &faulty, "failed").await;
        assert_eq!(members(&faulty), of_a_task(&["error", "statusMessage"]), "{tool}");
        assert_eq!(faulty["statusMessage"], faulty["error"]["message"]);
        assert!(faulty["error"]["code"] == code && !faulty.to_string().contains("this one does"), "{faulty}");
    }
}

/// Whoever asks for what is not there, or is not theirs, or is over, learns the same.
#[tokio::test(start_paused = true)]
async fn what_is_not_there_for_whoever_asks_is_unknown_alike() {
    let server = waiting();
    let adas = call(&server, Some("ada"), "waits").await["result"]["taskId"].as_str().unwrap().to_owned();
    let nobodys = begin(&server, "waits").await;
    let is_there = async |who, id: &str| {
        let mut is_there = Vec::new();
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let answer = request(&server, who, method, json!({ "taskId": id, "inputResponses": {} })).await;
            assert!(is_unknown(&answer) || answer["result"].is_object(), "{answer}");
            is_there.push(answer["result"].is_object());
        }
        is_there.dedup();
        assert_eq!(is_there.len(), 1);
        is_there[0]
    };
    let (upper, missing) = (adas.to_uppercase(), "0".repeat(32));
    for foreign in ["", "1", "../x", &upper, &adas[1..], &missing] {
        assert!(!is_there(Some("ada"), foreign).await, "{foreign}");
    }
    assert!(
        !is_there(Some("bob"), &adas).await && !is_there(None, &adas).await && !is_there(Some("ada"), &nobodys).await
    );
    assert_eq!(
        get_for(&server, Some("ada"), &adas).await["result"]["status"],
        "working",
        "nobody else has cancelled it"
    );
    sleep(HOUR - Duration::from_millis(1)).await;
    assert_eq!(get_for(&server, Some("ada"), &adas).await["result"]["status"], "working");
    sleep(Duration::from_millis(1)).await;
    assert!(!is_there(Some("ada"), &adas).await && !is_there(None, &nobodys).await);
    for (params, word) in
        [(json!({ "taskId": 5 }), "taskId"), (json!({ "taskId": null }), "taskId"), (json!({}), "taskId")]
    {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let mut params = params.clone();
            params["inputResponses"] = json!({});
            let answer = request(&server, None, method, params).await;
            assert!(answer["error"]["code"] == -32602 && answer.to_string().contains(word), "{answer}");
        }
    }
    for responses in
        [json!({}), json!({ "inputResponses": null }), json!({ "inputResponses": 5 }), json!({ "inputResponses": [] })]
    {
        let mut params = responses;
        params["taskId"] = "1".into();
        let answer = request(&server, None, "tasks/update", params).await;
        assert!(answer["error"]["code"] == -32602 && answer.to_string().contains("inputResponses"), "{answer}");
    }
}

/// It need not have heard of tasks; then it is told what it would have to know, or gets the result in its call.
#[tokio::test(start_paused = true)]
async fn a_client_that_knows_no_tasks() {
    let only = Tool::new("only", waits).task().task_only();
    let when_told = Tool::new("when_told", waits).task_when_told().task_only();
    let server = server([Tool::new("waits", waits).task(), only, when_told]);
    let id = begin(&server, "waits").await;
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let listen = json!({ "notifications": { "taskIds": [id] } });
    for (method, mut params) in [
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/get", json!({ "taskId": "unknown" })),
        ("tasks/update", json!({ "taskId": id, "inputResponses": {} })),
        ("tasks/cancel", json!({ "taskId": id })),
        ("tools/call", json!({ "name": "only" })),
        ("tools/call", json!({ "name": "when_told" })),
        ("subscriptions/listen", listen),
    ] {
        params["_meta"] = crate::server::modern_meta();
        let mut client = RawClient::modern(server.clone());
        client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await;
        let answer = client.hear().await;
        assert_eq!(answer["error"]["code"], -32021, "{method}: {answer}");
        assert_eq!(answer["error"]["data"]["requiredCapabilities"], extension, "{method}");
    }
    assert_eq!((Seen::counts(&server), &get(&server, &id).await["status"]), ((1, 0), &json!("working")));

    open(&server);
    until(&server, &id, "completed").await;
    for mut client in [RawClient::legacy(server.clone()).await, RawClient::modern(server.clone())] {
        open(&server);
        assert_eq!(crate::server::text(&client.call("waits", json!({})).await), "done");
    }
    let mut client = RawClient::legacy(server.clone()).await;
    for tool in ["only", "when_told"] {
        let answer = client.call(tool, json!({})).await;
        let says_so = answer["error"]["message"].as_str().unwrap().contains("io.modelcontextprotocol/tasks");
        assert!(answer["error"]["code"] == -32602 && says_so, "{answer}");
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = client.request(method, json!({ "taskId": id, "inputResponses": {} })).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
}

/// Only what something backs is there.
#[tokio::test]
async fn a_server_has_tasks_if_a_tool_has() {
    let methods = ["tasks/get", "tasks/update", "tasks/cancel"];
    for (tool, has_tasks) in [
        (Tool::new("waits", waits), false),
        (Tool::new("waits", waits).task(), true),
        (Tool::new("waits", waits).task_when_told(), true),
        (Tool::new("waits", waits).task_only(), true),
    ] {
        let server = server([tool]);
        let discovered = request(&server, None, "server/discover", json!({})).await;
        let extensions = &discovered["result"]["capabilities"]["extensions"];
        let expected = if has_tasks { json!({ "io.modelcontextprotocol/tasks": {} }) } else { Value::Null };
        assert_eq!(extensions, &expected, "{discovered}");
        for method in methods {
            let answer = request(&server, None, method, json!({ "taskId": "x", "inputResponses": {} })).await;
            assert_eq!(answer["error"]["code"], if has_tasks { -32602 } else { -32601 }, "{answer}");
        }
        for method in ["tasks/list", "tasks/result"] {
            let answer = request(&server, None, method, json!({ "taskId": "x" })).await;
            assert_eq!(answer["error"]["code"], -32601, "{answer}");
        }
        server.tools().remove("waits");
        let answer = request(&server, None, "tasks/get", json!({ "taskId": "x" })).await;
        assert_eq!(answer["error"]["code"], if has_tasks { -32602 } else { -32601 }, "{answer}");
    }
}

/// Whatever lies between routes by it.
#[tokio::test]
async fn over_http_a_header_says_which_task() {
    let server = waiting();
    let served = Served::start(server.clone()).await;
    let id = begin(&server, "waits").await;
    let other = begin(&server, "waits").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": id, "inputResponses": {}, "_meta": meta() });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let post = || Post::speaking(Revision::LATEST, body.clone());
        for post in [post().never("Mcp-Name"), post().header("Mcp-Name", other.clone()), post().header("Mcp-Name", "")]
        {
            let response = served.send(post).await;
            assert_eq!((response.status(), &response.json()["error"]["code"]), (400, &json!(-32020)), "{method}");
        }
        assert_eq!(get(&server, &id).await["status"], "working");
        let response = served.send(post()).await;
        assert_eq!(
            (response.status(), &response.json()["result"]["resultType"]),
            (200, &json!("complete")),
            "{method}"
        );
        // Two readers of one message must not see two tasks.
        let twice = body.replacen(r#""taskId""#, &format!(r#""taskId":"{other}","taskId""#), 1);
        let response = served.send(Post::speaking(Revision::LATEST, twice).header("Mcp-Name", id.clone())).await;
        assert_eq!(response.json()["error"]["code"], -32602, "{method}");
    }
    assert_eq!(get(&server, &id).await["status"], "cancelled");
    assert_eq!(get(&server, &other).await["status"], "working");
}

/// A task has been answered: what it tells of its progress, or logs, goes nowhere, and never to another call.
#[tokio::test(start_paused = true)]
async fn a_task_tells_of_no_progress() {
    async fn tells(context: Context) -> Result<String, ToolError> {
        context.progress(1.0, None, "begun").await;
        let is_task = context.go_on_as_task().await;
        context.log(mcp_core::types::LogLevel::Error, "", "said").await;
        context.progress(2.0, None, "half").await;
        waits(context).await?;
        Ok(is_task.to_string())
    }
    let tools = [Tool::new("at_once", tells).task(), Tool::new("when_told", tells).task_when_told()];
    let server = builder(Limits::default(), tools).logging(true).build();
    for (tool, progress) in [("at_once", 0), ("when_told", 1)] {
        let mut client = RawClient::modern(server.clone());
        let mut meta = meta();
        meta["progressToken"] = "t".into();
        meta["io.modelcontextprotocol/logLevel"] = "debug".into();
        client
            .say(
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "_meta": meta } }),
            )
            .await;
        for _ in 0..progress {
            assert_eq!(client.hear().await["params"]["progress"], 1.0);
        }
        let created = client.hear().await;
        assert_eq!(created["result"]["resultType"], "task", "{created}");
        open(&server);
        let done = until(&server, created["result"]["taskId"].as_str().unwrap(), "completed").await;
        assert_eq!(text(&done), "true");
        client.silence().await.unwrap();
    }
}

/// What the process has forgotten is unknown: nothing is left of a task but what its store has kept.
#[tokio::test(start_paused = true)]
async fn a_server_that_begins_anew_knows_no_old_tasks() {
    let old = begin(&waiting(), "waits").await;
    let server = waiting();
    assert!(is_unknown(&get_for(&server, None, &old).await));
    let asking = self::server([Tool::new("asks", asks).task()]);
    let id = begin(&asking, "asks").await;
    until(&asking, &id, "input_required").await;
    let params = json!({ "taskId": id, "inputResponses": answers(&[("who", "Ada")]) });
    assert!(is_unknown(&request(&server, None, "tasks/update", params).await));
}

/// What was logged within a span.
#[derive(Clone, Default)]
struct Within(Arc<AtomicU32>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Within {
    fn on_event(&self, event: &Event<'_>, context: layer::Context<'_, S>) {
        let names = context.event_scope(event).into_iter().flatten().map(|span| span.name());
        if event.metadata().target() == module_path!() && names.into_iter().any(|name| name == "of the caller") {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Whoever reads the log finds what belongs together.
#[tokio::test(start_paused = true)]
async fn a_task_logs_within_the_span_of_its_call() {
    async fn logs() -> Result<String, ToolError> {
        sleep(Duration::from_millis(1)).await;
        tracing::info!("here");
        Ok("done".into())
    }
    let within = Within::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(within.clone()));
    let server = server([Tool::new("logs", logs).task()]);
    let id = begin(&server, "logs").instrument(tracing::info_span!("of the caller")).await;
    until(&server, &id, "completed").await;
    assert_eq!(within.0.load(Ordering::SeqCst), 1);
}
