//! How many there are, how long they live, and how they end before they are done.

use futures_util::future::join_all;
use mcp_test::RawClient;
use serde::Deserialize;

use super::*;

fn is_busy(answer: &Value) -> bool {
    answer["error"]["code"] == -32603 && answer.to_string().contains("busy")
}

/// What runs counts, for as long as it does.
#[tokio::test(start_paused = true)]
async fn so_many_tasks_a_principal_and_so_many_in_all() {
    let limits = Limits::default().tasks(2).all_tasks(100).task_ttl(HOUR);
    let server = builder(limits, [Tool::new("waits", waits).task()]).build();
    for who in [Some("ada"), Some("bob"), None] {
        for _ in 0..2 {
            assert_eq!(call(&server, who, "waits").await["result"]["resultType"], "task", "{who:?}");
        }
        let refused = call(&server, who, "waits").await;
        assert_eq!(refused["error"]["message"], "Server busy: there is no room for another task");
    }
    sleep(HOUR - Duration::from_millis(1)).await;
    assert_eq!(Seen::counts(&server), (6, 0), "what was refused has not begun");
    assert!(is_busy(&call(&server, Some("ada"), "waits").await));
    sleep(Duration::from_millis(1)).await;
    for _ in 0..2 {
        assert_eq!(call(&server, Some("ada"), "waits").await["result"]["resultType"], "task");
    }

    let server = builder(Limits::default().all_tasks(3), [Tool::new("waits", waits).task()]).build();
    for who in [Some("ada"), Some("bob"), None] {
        assert_eq!(call(&server, who, "waits").await["result"]["resultType"], "task");
    }
    for who in [Some("ada"), Some("eve"), None] {
        assert!(is_busy(&call(&server, who, "waits").await), "{who:?}");
    }
}

/// A tool that is called often is not refused for what has long ended; nobody else's tasks make room, nor do those that run.
#[tokio::test(start_paused = true)]
async fn what_has_ended_makes_room_for_what_begins() {
    let limits = Limits::default().tasks(3).all_tasks(4);
    let server = builder(limits, [Tool::new("waits", waits).task()]).build();
    let begin = async |who| {
        let begun = call(&server, who, "waits").await;
        begun["result"]["taskId"].as_str().map(ToOwned::to_owned)
    };
    let done = async |who| {
        open(&server);
        let id = begin(who).await.unwrap();
        sleep(Duration::from_millis(1)).await;
        id
    };
    let (first, second, other) = (done(None).await, done(None).await, done(Some("ada")).await);
    let runs = begin(None).await.unwrap();
    let third = begin(None).await.unwrap();
    assert!(is_unknown(&get_for(&server, None, &first).await), "the oldest of those that have ended");
    assert_eq!(text(&get(&server, &second).await), "done");
    let fourth = begin(None).await.unwrap();
    assert!(is_unknown(&get_for(&server, None, &second).await));
    assert_eq!(begin(None).await, None);
    assert_eq!(begin(Some("eve")).await, None, "nothing of hers has ended");
    for id in [runs, third, fourth] {
        assert_eq!(get(&server, &id).await["status"], "working");
    }
    assert_eq!(get_for(&server, Some("ada"), &other).await["result"]["status"], "completed");
}

/// What is kept of a task can be told, as the answer to whoever asks and to whoever listens.
#[tokio::test(start_paused = true)]
async fn a_result_that_is_kept_can_be_told() {
    const MOST: usize = 8 << 10;
    async fn returns(Size { bytes }: Size) -> Result<String, ToolError> {
        Ok("x".repeat(bytes))
    }
    async fn says(context: Context, Size { bytes }: Size) -> Result<bool, ToolError> {
        // Each of these is two bytes on the wire.
        Ok(context.task_message("\"".repeat(bytes)).await.is_ok())
    }
    let tools = [Tool::new("returns", returns).task(), Tool::new("says", says).task()];
    let server = builder(Limits::default().message_bytes(MOST), tools).build();
    let came_to = async |tool: &str, bytes: usize| {
        let begun =
            request(&server, None, "tools/call", json!({ "name": tool, "arguments": { "bytes": bytes } })).await;
        let id = begun["result"]["taskId"].as_str().unwrap().to_owned();
        sleep(Duration::from_millis(1)).await;
        get_for(&server, None, &id).await
    };
    for bytes in (4 << 10..MOST).step_by(16) {
        let told = came_to("returns", bytes).await;
        assert!(told.to_string().len() <= MOST, "{bytes}");
        assert!(told["result"]["status"] == "completed" || bytes > MOST * 3 / 4, "{bytes}");
    }
    for bytes in (1 << 10..MOST).step_by(16) {
        let told = came_to("says", bytes).await;
        assert!(told.to_string().len() <= MOST, "{bytes}");
        let is_kept = told["result"]["status"] == "completed" && text(&told["result"]) == "true";
        assert!(is_kept || bytes > MOST / 3, "{bytes}: {told}");
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Size {
    bytes: usize,
}

/// A task that cannot be kept as it is to be is told so, and comes to its end all the same.
#[tokio::test(start_paused = true)]
async fn what_a_task_holds_is_bounded() {
    async fn returns(Size { bytes }: Size) -> Result<String, ToolError> {
        Ok("x".repeat(bytes))
    }
    async fn says(context: Context, Size { bytes }: Size) -> Result<String, ToolError> {
        context.task_message("x".repeat(bytes)).await?;
        Ok("said".into())
    }
    let begin = async |server: &Server, tool: &str, bytes: usize| {
        let begun = request(server, None, "tools/call", json!({ "name": tool, "arguments": { "bytes": bytes } })).await;
        begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
    };
    let one = Limits::default().message_bytes(8 << 10);
    let all = Limits::default().task_bytes(8 << 10);
    for limits in [one, all] {
        let tools =
            [Tool::new("returns", returns).task(), Tool::new("says", says).task(), Tool::new("asks", asks).task()];
        let server = builder(limits, tools).build();
        let fits = begin(&server, "returns", 4 << 10).await;
        assert_eq!(text(&until(&server, &fits, "completed").await).len(), 4 << 10);
        let large = begin(&server, "returns", 8 << 10).await;
        let failed = until(&server, &large, "failed").await;
        assert_eq!(
            failed["error"],
            json!({ "code": -32603, "message": "There is no room to keep what the task came to" })
        );
        let large = begin(&server, "says", 8 << 10).await;
        let failed = until(&server, &large, "completed").await;
        assert_eq!(
            (text(&failed), &failed["result"]["isError"]),
            ("There is no room to keep that of the task", &json!(true))
        );
        let asking = call(&server, None, "asks").await["result"]["taskId"].as_str().unwrap().to_owned();
        until(&server, &asking, "input_required").await;
        let answer = json!({ "taskId": asking, "inputResponses": { "who": "x".repeat(8 << 10), "unasked": 1 } });
        assert!(is_busy(&request(&server, None, "tasks/update", answer).await));
        update(&server, &asking, json!({ "unasked": "x".repeat(8 << 10) })).await;
        update(&server, &asking, crate::server::rounds::answers(&[("who", "Ada")])).await;
        assert_eq!(text(&until(&server, &asking, "completed").await), "Ada");
    }
    // Where not even a record has room, nothing begins.
    let server = builder(Limits::default().task_bytes(1023), [Tool::new("waits", waits).task()]).build();
    assert!(is_busy(&call(&server, None, "waits").await));
    assert_eq!(Seen::counts(&server), (0, 0));
}

/// They are told as they are kept.
#[tokio::test(start_paused = true)]
async fn a_task_says_how_long_it_is_kept_and_how_often_to_ask() {
    let limits = Limits::default().task_ttl(Duration::from_millis(1500)).task_poll_interval(Duration::from_millis(70));
    let server = builder(limits, [Tool::new("waits", waits).task()]).build();
    let created = call(&server, None, "waits").await["result"].clone();
    assert_eq!((&created["ttlMs"], &created["pollIntervalMs"]), (&json!(1500), &json!(70)));
    let id = created["taskId"].as_str().unwrap();
    sleep(Duration::from_millis(1499)).await;
    assert_eq!((&get(&server, id).await["status"], Seen::counts(&server)), (&json!("working"), (1, 0)));
    sleep(Duration::from_millis(2)).await;
    assert!(is_unknown(&get_for(&server, None, id).await));
    assert_eq!(Seen::counts(&server), (1, 1), "its handler was dropped");
}

/// No limit is a limit like any other.
#[tokio::test(start_paused = true)]
async fn a_task_may_be_kept_for_ever() {
    let limits = Limits::default().task_ttl(Duration::MAX);
    let server = builder(limits, [Tool::new("waits", waits).task()]).build();
    let id = begin(&server, "waits").await;
    sleep(HOUR * 24 * 365).await;
    open(&server);
    assert_eq!(text(&until(&server, &id, "completed").await), "done");
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_its_time_as_a_task_too() {
    let within = Tool::new("waits", waits).task().timeout(Duration::from_secs(2));
    let when_told = async |context: Context| {
        context.go_on_as_task().await;
        waits(context).await
    };
    let tools = [within, Tool::new("when_told", when_told).task_when_told().timeout(Duration::from_secs(2))];
    let server = server(tools);
    for (index, tool) in ["waits", "when_told"].into_iter().enumerate() {
        let id = begin(&server, tool).await;
        sleep(Duration::from_millis(1999)).await;
        assert_eq!(get(&server, &id).await["status"], "working", "{tool}");
        let task = until(&server, &id, "completed").await;
        assert_eq!(text(&task), "The tool did not finish within 2000 ms");
        let count = u32::try_from(index + 1).unwrap();
        assert_eq!((&task["result"]["isError"], Seen::counts(&server)), (&json!(true), (count, count)));
    }
}

/// It stays called off, whatever comes later.
#[tokio::test(start_paused = true)]
async fn cancelling_drops_the_handler_and_is_for_ever() {
    async fn leaves_behind(context: Context) -> Result<String, ToolError> {
        let left = context.clone();
        tokio::spawn(async move {
            left.cancelled().await;
            left.task_message("still here").await.unwrap();
        });
        waits(context).await
    }
    let server = server([Tool::new("leaves_behind", leaves_behind).task()]);
    let id = begin(&server, "leaves_behind").await;
    tokio::task::yield_now().await;
    assert_eq!(Seen::counts(&server), (1, 0));
    assert_eq!(cancel(&server, &id).await["result"]["resultType"], "complete");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(Seen::counts(&server), (1, 1));
    let cancelled = get(&server, &id).await;
    assert_eq!(cancelled["status"], "cancelled");
    open(&server);
    update(&server, &id, json!({ "who": {} })).await;
    assert_eq!(cancel(&server, &id).await["result"]["resultType"], "complete");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(get(&server, &id).await, cancelled);
}

#[tokio::test(start_paused = true)]
async fn cancelling_what_has_ended_is_acknowledged_and_changes_nothing() {
    async fn panics() -> Result<(), ToolError> {
        panic!("this one does")
    }
    let server = server([Tool::new("waits", waits).task(), Tool::new("panics", panics).task()]);
    for (tool, status) in [("waits", "completed"), ("panics", "failed")] {
        open(&server);
        let id = begin(&server, tool).await;
        let ended = until(&server, &id, status).await;
        assert_eq!(cancel(&server, &id).await["result"]["resultType"], "complete");
        assert_eq!(get(&server, &id).await, ended);
    }
}

/// The connection's end is not the task's; nor is a cancelled request.
#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_connection() {
    let server = waiting();
    let mut client = RawClient::modern(server.clone());
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "waits", "_meta": meta() } })).await;
    let id = client.hear().await["result"]["taskId"].as_str().unwrap().to_owned();
    client.say(crate::server::cancel(1)).await;
    client.end().await.unwrap();
    sleep(Duration::from_secs(60)).await;
    open(&server);
    assert_eq!(text(&until(&server, &id, "completed").await), "done");
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Number {
    number: u64,
}

#[tokio::test(start_paused = true)]
async fn two_thousand_at_once_come_to_their_own_results() {
    async fn number(Number { number }: Number) -> Result<String, ToolError> {
        sleep(Duration::from_millis(number * 7919 % 1000)).await;
        Ok(number.to_string())
    }
    let limits = Limits::default().tasks(2000);
    let server = builder(limits, [Tool::new("number", number).task()]).build();
    let create = async |number: u64| {
        let params = json!({ "name": "number", "arguments": { "number": number } });
        request(&server, None, "tools/call", params).await["result"]["taskId"].as_str().unwrap().to_owned()
    };
    let ids = join_all((0..2000).map(create)).await;
    let check = async |(number, id): (usize, &String)| {
        assert_eq!(text(&until(&server, id, "completed").await), number.to_string());
    };
    join_all(ids.iter().enumerate().map(check)).await;
}
