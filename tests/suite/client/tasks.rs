//! Calls that become tasks: awaited as any other, or come back for.
//!
//! Specification: *Tasks extension*.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_http::Routes;
use mcp_suite::{
    Blame, ClientBuilder, Context, ErrorKind, Limits, Server, Tool, ToolError,
    client::{CallOptions, Called, CancellationToken, TaskHandle},
    jsonrpc::Raw,
    observer::{Observer, RequestEvent},
    store::{TaskId, TaskStatus},
    types::{ElicitParams, ElicitResult, NotificationFilter, TaskParams, UpdateTaskParams},
    ws::Ws,
};
use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    http::Served,
    peer::memory::{close, rest, serve},
    process::listening,
    ws::Served as WsServed,
};

/// A client that knows what a task is, and whose user agrees to everything; and how often that one was asked.
fn coming_back() -> (ClientBuilder, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let counted = asked.clone();
    let client = Client::builder(implementation!()).tasks().on_elicit(move |asked: ElicitParams| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let wants_name = asked.message.starts_with("Who");
            ElicitResult::accept(if wants_name { json!({ "name": "Ada" }) } else { json!({ "confirm": true }) })
        }
    });
    (client, asked)
}

/// What the tools that run as tasks come to, awaited like any other.
async fn awaits(client: &Client, asked: &AtomicUsize) {
    let call = async |name: &str, arguments: Value| soon(client.call::<String>(name, arguments)).await;
    let slow = call("slow_compute", json!({ "seconds": 0.1, "label": "it" })).await;
    assert_eq!(slow.unwrap(), "it took 0.1 s");
    assert_eq!(call("confirm_delete", json!({ "filename": "f" })).await.unwrap(), "f is deleted");
    assert_eq!(call("multi_input", json!({})).await.unwrap(), "Ada says true");
    assert_eq!(call("test_tool_with_task", json!({})).await.unwrap(), "Hello, Ada, from a task");
    assert_eq!(asked.swap(0, Ordering::SeqCst), 4);
    let failed = call("failing_job", json!({})).await.unwrap_err();
    assert_eq!((failed.kind(), failed.to_string()), (ErrorKind::HandlerFailed, "The job failed".into()));
    let broken = call("protocol_error_job", json!({})).await.unwrap_err();
    assert_eq!((broken.kind(), broken.blame()), (ErrorKind::InternalError, Blame::Peer));
    assert_eq!(call("greet", json!({ "name": "Ada" })).await.unwrap(), "Hello, Ada!");
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_awaited_like_any_other_on_every_wire() {
    let server = everything_server::server;
    let (client, asked) = coming_back();
    awaits(&client.connect(server()).await.unwrap(), &asked).await;
    let (client, asked) = coming_back();
    let ws = WsServed::start(server()).await;
    awaits(&client.connect(Ws::new(ws.url())).await.unwrap(), &asked).await;
    let (client, asked) = coming_back();
    let served = Served::with(Routes::new(server()), "127.0.0.1").await;
    let http = Http::new(format!("http://{}/mcp", served.address));
    awaits(&client.connect(http).await.unwrap(), &asked).await;
}

async fn begun(client: &Client, name: &str, arguments: Value) -> TaskHandle {
    match soon(client.call_as_task(name, arguments)).await.unwrap() {
        Called::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

/// Its id is all that is to be kept of a task.
#[tokio::test(start_paused = true)]
async fn a_task_is_come_back_for_by_another_client() {
    let server = everything_server::server();
    let first = coming_back().0.connect(server.clone()).await.unwrap();
    let task = begun(&first, "slow_compute", json!({ "seconds": 600, "label": "it" })).await;
    let (id, begun_at) = (task.id().to_owned(), Instant::now());
    assert_eq!(task.get().await.unwrap().status, TaskStatus::Working);
    first.disconnect().await;
    let second = coming_back().0.connect(server.clone()).await.unwrap();
    let result = second.task(&id).wait().await.unwrap();
    assert_eq!(result.to_text(), "it took 600 s");
    assert!(begun_at.elapsed() < Duration::from_secs(601), "it is told of, and not only asked for seldom");
    assert_eq!(second.task(&id).wait().await.unwrap(), result, "as often as one likes");
    let unknown = second.task("0".repeat(32)).get().await.unwrap_err();
    assert_eq!((unknown.kind(), unknown.blame()), (ErrorKind::InvalidParams, Blame::Peer));
    // A tool that is no task, and a client that knows of none.
    assert!(matches!(second.call_as_task("greet", json!({ "name": "x" })).await.unwrap(), Called::Done(_)));
    let plain = Client::connect(server).await.unwrap();
    let outcome = plain.call_as_task("slow_compute", json!({ "seconds": 0, "label": "it" })).await.unwrap();
    assert!(matches!(outcome, Called::Done(_)));
    let refused = plain.call_raw("failing_job", ()).await.unwrap_err();
    assert_eq!(refused.object().unwrap().code, -32021);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_an_awaited_task_calls_it_off() {
    let dropped = Arc::<AtomicUsize>::default();
    let in_handler = dropped.clone();
    let forever = move || {
        let guard = OnDrop(in_handler.clone());
        async move {
            let _guard = guard;
            sleep(Duration::from_secs(3000)).await;
            Ok::<_, ToolError>(())
        }
    };
    let server = Server::builder(implementation!()).tool(Tool::new("forever", forever).task()).build();
    let client = coming_back().0.connect(server).await.unwrap();
    let over = async |times: usize| {
        while dropped.load(Ordering::SeqCst) < times {
            sleep(Duration::from_millis(5)).await;
        }
    };
    // By its time, by a token, by being dropped.
    let options = || CallOptions::new().at_most(Duration::from_secs(20));
    let late = client.call_with::<()>("forever", (), options()).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout);
    soon(over(1)).await;
    let token = CancellationToken::new();
    let call = client.call_with::<()>("forever", (), options().cancel_with(token.clone()));
    let (given_up, ()) = tokio::join!(call, async {
        sleep(Duration::from_secs(5)).await;
        token.cancel();
    });
    assert_eq!(given_up.unwrap_err().kind(), ErrorKind::RequestCancelled);
    soon(over(2)).await;
    assert!(tokio::time::timeout(Duration::from_secs(5), client.call::<()>("forever", ())).await.is_err());
    soon(over(3)).await;
    // Whoever has a handle decides.
    let task = begun(&client, "forever", json!({})).await;
    assert!(tokio::time::timeout(Duration::from_secs(5), task.wait()).await.is_err());
    sleep(Duration::from_secs(60)).await;
    assert_eq!((dropped.load(Ordering::SeqCst), task.get().await.unwrap().status), (3, TaskStatus::Working));
    task.cancel().await.unwrap();
    soon(over(4)).await;
    assert_eq!(task.wait().await.unwrap_err().kind(), ErrorKind::RequestCancelled);
    // Whoever disconnects at once has given it up all the same.
    assert!(tokio::time::timeout(Duration::from_secs(5), client.call::<()>("forever", ())).await.is_err());
    client.disconnect().await;
    soon(over(5)).await;
}

/// Tasks that are kept in memory are gone with their process, and whoever comes back for one is told so.
#[tokio::test]
async fn a_server_that_was_killed_and_begins_anew_knows_no_old_tasks() {
    let (mut old, url) = listening("127.0.0.1:0").await;
    let client = coming_back().0.connect(Http::new(url)).await.unwrap();
    let working = begun(&client, "slow_compute", json!({ "seconds": 600 })).await;
    let asking = begun(&client, "confirm_delete", json!({ "filename": "f" })).await;
    assert_eq!(soon(working.get()).await.unwrap().status, TaskStatus::Working);
    old.kill().await.unwrap();
    let (_new, url) = listening("127.0.0.1:0").await;
    let client = coming_back().0.connect(Http::new(url)).await.unwrap();
    for id in [working.id(), asking.id()] {
        let task = client.task(id);
        let answers = BTreeMap::from([("confirm".to_owned(), Raw::encode(&ElicitResult::decline()).unwrap())]);
        let refused = [
            soon(task.get()).await.map(drop),
            soon(task.update(answers)).await,
            soon(task.cancel()).await,
            soon(task.wait()).await.map(drop),
        ];
        for refused in refused.map(Result::unwrap_err) {
            assert_eq!((refused.kind(), refused.blame()), (ErrorKind::InvalidParams, Blame::Peer), "{refused}");
            let object = refused.object().unwrap();
            assert_eq!((object.code, &*object.message), (-32602, "Invalid params: Task not found"));
        }
    }
    // It answers for those that it has.
    let task = begun(&client, "slow_compute", json!({ "seconds": 0.01, "label": "it" })).await;
    assert_eq!(soon(task.wait()).await.unwrap().to_text(), "it took 0.01 s");
}

/// A server that makes a task of each call, and answers `tasks/get` with these, one after another, and so on with the last.
fn scripted(states: Vec<Value>) -> ScriptedPeer {
    let seen = AtomicUsize::new(0);
    let task = json!({ "taskId": "t-1", "createdAt": "", "lastUpdatedAt": "", "ttlMs": null, "pollIntervalMs": 0 });
    let with = move |members: &Value| {
        let mut task = task.clone();
        let members = members.as_object().unwrap().clone();
        task.as_object_mut().unwrap().extend(members);
        task
    };
    ScriptedPeer::modern([
        serve(move |message| {
            let result = match message["method"].as_str().unwrap_or_default() {
                "tools/call" => with(&json!({ "resultType": "task", "status": "working" })),
                "tasks/get" => {
                    let state = &states[seen.fetch_add(1, Ordering::SeqCst).min(states.len() - 1)];
                    let mut state = with(state);
                    state["resultType"] = "complete".into();
                    state
                }
                "tasks/update" | "tasks/cancel" => json!({ "resultType": "complete" }),
                _ => return vec![json!({ "id": message["id"], "error": { "code": -32601, "message": "" } })],
            };
            vec![json!({ "id": message["id"], "result": result })]
        }),
        rest(),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_seen_often_is_answered_once() {
    let question = json!({ "method": "elicitation/create", "params": {
        "message": "Go on?", "requestedSchema": { "type": "object", "properties": { "confirm": { "type": "boolean" } } } } });
    let asking = |keys: &[&str]| {
        let requests: serde_json::Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), question.clone())).collect();
        json!({ "status": "input_required", "inputRequests": requests })
    };
    let peer = scripted(vec![
        asking(&["a"]),
        asking(&["a"]),
        asking(&["a", "b"]),
        json!({ "status": "working" }),
        json!({ "status": "completed", "result": text("b") }),
    ]);
    let (client, asked) = coming_back();
    let client = client.connect(peer.clone()).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let updates: Vec<_> = peer.received().into_iter().filter(|seen| seen["method"] == "tasks/update").collect();
    let answer = json!({ "action": "accept", "content": { "confirm": true } });
    let told: Vec<_> = updates.iter().map(|update| update["params"]["inputResponses"].clone()).collect();
    assert_eq!(told, [json!({ "a": answer.clone() }), json!({ "b": answer })]);
}

/// A client whose user never answers; how often it was asked, and how many of these questions are let go.
fn pondering() -> (ClientBuilder, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (asked, dropped) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (counted, let_go) = (asked.clone(), dropped.clone());
    let client = Client::builder(implementation!()).tasks().on_elicit(move |_: ElicitParams| {
        counted.fetch_add(1, Ordering::SeqCst);
        let guard = OnDrop(let_go.clone());
        async move {
            let _guard = guard;
            sleep(Duration::from_secs(1_000_000)).await;
            ElicitResult::accept(json!({}))
        }
    });
    (client, asked, dropped)
}

/// While its user thinks, it looks on.
#[tokio::test(start_paused = true)]
async fn a_question_is_let_go_when_its_task_does_not_wait_for_it_any_more() {
    let question = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": {} } });
    let asking = |keys: &[&str]| {
        let requests: serde_json::Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), question.clone())).collect();
        json!({ "status": "input_required", "inputRequests": requests })
    };
    for (end, kind) in [
        (json!({ "status": "cancelled" }), Some(ErrorKind::RequestCancelled)),
        (json!({ "status": "failed", "error": { "code": -32603, "message": "no" } }), Some(ErrorKind::InternalError)),
        (json!({ "status": "completed", "result": text("done") }), None),
    ] {
        let peer = scripted(vec![asking(&["a", "b"]), asking(&["b", "c"]), json!({ "status": "working" }), end]);
        let (client, asked, dropped) = pondering();
        let client = client.connect(peer.clone()).await.unwrap();
        let task = client.task("t-1");
        let waiting = tokio::spawn(async move { task.wait().await });
        let counts = || (asked.load(Ordering::SeqCst), dropped.load(Ordering::SeqCst));
        let looks = || peer.methods().iter().filter(|method| *method == "tasks/get").count();
        for (look, expected) in [(1, (2, 0)), (2, (3, 1)), (3, (3, 3))] {
            soon(async {
                while looks() < look + 1 && counts() != expected {
                    sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            assert_eq!(counts(), expected, "at look {look}");
        }
        let outcome = soon(waiting).await.unwrap();
        assert_eq!(outcome.err().map(|error| error.kind()), kind);
        assert!(!peer.methods().contains(&"tasks/update".to_owned()));
    }
}

/// When somebody asked for a task.
#[derive(Clone, Default)]
struct Looks(Arc<Mutex<Vec<Instant>>>);

impl Observer for Looks {
    fn request_started(&self, request: &RequestEvent<'_>) {
        assert!(request.name.is_none() || !request.method.starts_with("tasks/"), "an id is told");
        if request.method == "tasks/get" {
            self.0.lock().unwrap().push(Instant::now());
        }
    }
}

/// However often it is told of changes.
#[tokio::test(start_paused = true)]
async fn a_task_is_looked_at_no_more_often_than_it_says() {
    async fn tells(context: Context) -> Result<String, ToolError> {
        for step in 0..2000 {
            context.task_message(step.to_string()).await?;
            sleep(Duration::from_millis(10)).await;
        }
        Ok("done".into())
    }
    let (looks, interval) = (Looks::default(), Duration::from_secs(3));
    let builder = Server::builder(implementation!()).limits(Limits::default().task_poll_interval(interval));
    let server = builder.tool(Tool::new("tells", tells).task()).observer(looks.clone()).build();
    let client = coming_back().0.observer(looks.clone()).connect(server).await.unwrap();
    assert_eq!(client.call::<String>("tells", ()).await.unwrap(), "done");
    // Each was seen by the client and by the server.
    let looks: Vec<_> = looks.0.lock().unwrap().iter().step_by(2).copied().collect();
    assert!(looks.len() > 5, "{}", looks.len());
    assert!(looks.windows(2).all(|pair| pair[1] - pair[0] >= interval), "{looks:?}");
}

/// The whole is never shorter than what one answer may take, and answers about a task are as good as progress.
#[tokio::test(start_paused = true)]
async fn a_task_is_awaited_for_as_long_as_its_call_may_take() {
    let client = coming_back().0.connect(everything_server::server()).await.unwrap();
    let call = async |seconds: u64, options: CallOptions| {
        client.call_with::<String>("slow_compute", json!({ "seconds": seconds, "label": "it" }), options).await
    };
    let secs = Duration::from_secs;
    assert_eq!(call(60, CallOptions::new().timeout(secs(5))).await.unwrap(), "it took 60 s");
    assert_eq!(call(590, CallOptions::new()).await.unwrap(), "it took 590 s");
    assert_eq!(call(610, CallOptions::new()).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(call(1200, CallOptions::new().timeout(secs(1300))).await.unwrap(), "it took 1200 s");
    let short = CallOptions::new().timeout(secs(1300)).at_most(secs(60));
    assert_eq!(call(70, short).await.unwrap_err().kind(), ErrorKind::Timeout);
}

/// Whoever has the id of a task that is nobody's has the task.
#[tokio::test(start_paused = true)]
async fn what_is_logged_of_a_task_does_not_show_its_id() {
    let client = coming_back().0.connect(everything_server::server()).await.unwrap();
    let handle = begun(&client, "slow_compute", json!({ "seconds": 600 })).await;
    let (task, filter) = (handle.get().await.unwrap(), NotificationFilter::new().task(handle.id()));
    let changed = mcp_suite::client::Changed::Task(handle.id().into());
    let params = json!({ "taskId": handle.id(), "inputResponses": {} });
    let asked: TaskParams = serde_json::from_value(params.clone()).unwrap();
    let told: UpdateTaskParams = serde_json::from_value(params).unwrap();
    let id = TaskId::parse(handle.id()).unwrap();
    let shown = format!("{handle:?} {task:?} {filter:?} {changed:?} {asked:?} {told:?} {id:?}");
    assert_eq!(shown.matches(&handle.id()[..6]).count(), 7, "{shown}");
    assert!(!shown.contains(&handle.id()[..9]), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_ends_badly_is_an_error_that_says_how() {
    for (state, kind) in [
        (json!({ "status": "failed", "error": { "code": -32603, "message": "no" } }), ErrorKind::InternalError),
        (json!({ "status": "failed" }), ErrorKind::ProtocolInvalid),
        (json!({ "status": "completed" }), ErrorKind::ProtocolInvalid),
        (json!({ "status": "cancelled" }), ErrorKind::RequestCancelled),
        (json!({ "status": "levitating" }), ErrorKind::ProtocolInvalid),
    ] {
        let client = coming_back().0.connect(scripted(vec![state.clone()])).await.unwrap();
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap_err().kind(), kind, "{state}");
    }
    let odd = json!({ "status": "input_required", "inputRequests": { "k": { "params": {} } } });
    let client = coming_back().0.connect(scripted(vec![odd])).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap_err().kind(), ErrorKind::ProtocolInvalid);
    // What the user cannot be asked ends the call, and calls the task off.
    let question = json!({ "k": { "method": "roots/list" } });
    let peer = scripted(vec![json!({ "status": "input_required", "inputRequests": question })]);
    let client = coming_back().0.connect(peer.clone()).await.unwrap();
    soon(client.call::<String>("a", ())).await.unwrap_err();
    let called_off = async {
        while !peer.methods().contains(&"tasks/cancel".to_owned()) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    soon(called_off).await;
}

/// A task may be over before it is told of; its result is not told with it.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_over_at_once_is_asked_for_its_result() {
    let task = |members: Value| {
        let mut task =
            json!({ "taskId": "t", "status": "completed", "createdAt": "", "lastUpdatedAt": "", "ttlMs": 1 });
        task.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        send(json!({ "id": "$id", "result": task }))
    };
    let script = vec![
        expect(json!({ "method": "tools/call" })),
        task(json!({ "resultType": "task" })),
        expect(json!({ "method": "tasks/get", "params": { "taskId": "t" } })),
        task(json!({ "resultType": "complete", "result": text("b") })),
    ];
    let client = coming_back().0.connect(ScriptedPeer::modern(script)).await.unwrap();
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
}

/// Only calls of tools become tasks.
#[tokio::test(start_paused = true)]
async fn a_task_in_place_of_another_result_is_invalid() {
    let task = json!({ "resultType": "task", "taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttlMs": 1 });
    let script = vec![expect(json!({ "method": "prompts/get" })), send(json!({ "id": "$id", "result": task }))];
    let client = coming_back().0.connect(ScriptedPeer::modern(script)).await.unwrap();
    assert_eq!(client.get_prompt("p", ()).await.unwrap_err().kind(), ErrorKind::ProtocolInvalid);
}

/// Whoever listens hears of a task that it may know of, until its end.
#[tokio::test(start_paused = true)]
async fn changes_of_a_task_can_be_listened_to() {
    let client = coming_back().0.connect(everything_server::server()).await.unwrap();
    let task = begun(&client, "slow_compute", json!({ "seconds": 5 })).await;
    let filter = NotificationFilter::new().task(task.id()).task("0".repeat(32));
    let mut changes = client.listen(filter).await.unwrap();
    assert_eq!(changes.acknowledged().task_ids, [task.id()]);
    // As it is, and then as it comes to its end.
    for status in [TaskStatus::Working, TaskStatus::Completed] {
        assert_eq!(changes.next().await, Some(mcp_suite::client::Changed::Task(task.id().into())));
        assert_eq!(task.get().await.unwrap().status, status);
    }
}

/// A task as a server tells of it that wants to be asked every 100 ms, with these members.
fn told(members: &Value) -> Value {
    let mut task = json!({ "taskId": "t-1", "createdAt": "", "lastUpdatedAt": "", "ttlMs": null,
        "resultType": "complete", "pollIntervalMs": 100 });
    task.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    task
}

fn asking(keys: &[&str]) -> Value {
    let question = json!({ "method": "elicitation/create", "params": { "message": "?", "requestedSchema": {} } });
    let requests: serde_json::Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), question.clone())).collect();
    told(&json!({ "status": "input_required", "inputRequests": requests }))
}

fn working() -> Value {
    told(&json!({ "status": "working" }))
}

fn completed() -> Value {
    told(&json!({ "status": "completed", "result": text("b") }))
}

fn refused(code: i64) -> Value {
    json!({ "error": { "code": code, "message": "no" } })
}

/// A server that answers requests about a task: with a task, or an error, or not at all.
fn about(answer: impl Fn(&str) -> Option<Value> + Send + Sync + 'static) -> ScriptedPeer {
    ScriptedPeer::modern([
        serve(move |message| {
            let answered = match message["method"].as_str().unwrap_or_default() {
                "tools/call" => Some(told(&json!({ "resultType": "task", "status": "working" }))),
                "subscriptions/listen" => answer("subscriptions/listen").filter(|answer| answer["error"].is_object()),
                "tasks/cancel" => Some(json!({ "resultType": "complete" })),
                method => answer(method),
            };
            let Some(answered) = answered else { return vec![] };
            let (member, value) = match answered.get("error").filter(|_| answered.get("taskId").is_none()) {
                Some(error) => ("error", error.clone()),
                None => ("result", answered.clone()),
            };
            vec![json!({ "id": message["id"], member: value })]
        }),
        rest(),
    ])
}

/// The `n`th of them, and so on with the last.
fn nth(answers: &[Value], n: usize) -> Value {
    answers[n.min(answers.len() - 1)].clone()
}

/// Its question is gone because it has the answer: whoever gives that is not to be called off.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_on_its_way_is_not_called_off() {
    let looks = AtomicUsize::new(0);
    let states = [asking(&["a"]), working(), working(), working(), completed()];
    let peer = about(move |method| match method {
        "tasks/get" => Some(nth(&states, looks.fetch_add(1, Ordering::SeqCst))),
        "tasks/update" => None,
        _ => Some(refused(-32601)),
    });
    let client = coming_back().0.connect(peer.clone()).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    let methods = peer.methods();
    let last_look = methods.iter().rposition(|method| method == "tasks/get").unwrap();
    let called_off = methods.iter().position(|method| method == "notifications/cancelled");
    assert!(methods.contains(&"tasks/update".to_owned()));
    assert!(called_off.is_none_or(|called_off| called_off > last_look), "{methods:?}");
}

/// Specification: *Tasks extension, Task Polling*: until it has come to its end.
#[tokio::test(start_paused = true)]
async fn a_server_that_fails_is_asked_again() {
    let (looks, updates) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let asked = asking(&["a"]);
    let peer = about(move |method| match (method, updates.load(Ordering::SeqCst)) {
        ("tasks/get", _) if looks.fetch_add(1, Ordering::SeqCst) % 2 == 1 => Some(refused(-32603)),
        ("tasks/get", 0 | 1) => Some(asked.clone()),
        ("tasks/get", _) => Some(completed()),
        ("tasks/update", _) => {
            let is_first = updates.fetch_add(1, Ordering::SeqCst) == 0;
            Some(if is_first { refused(-32603) } else { json!({ "resultType": "complete" }) })
        }
        _ => Some(refused(-32601)),
    });
    let (client, asked) = coming_back();
    let client = client.connect(peer.clone()).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(!peer.methods().contains(&"tasks/cancel".to_owned()));
}

/// What an answer fails at may be that nobody waits for it any more.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_refused_fails_what_still_waits_for_it_alone() {
    for (now, outcome) in [(completed(), Some("b")), (asking(&["b"]), Some("b")), (asking(&["a"]), None)] {
        let updates = AtomicUsize::new(0);
        let peer = about(move |method| match (method, updates.load(Ordering::SeqCst)) {
            ("tasks/get", 0) => Some(asking(&["a"])),
            ("tasks/get", 1) => Some(now.clone()),
            ("tasks/get", _) => Some(completed()),
            ("tasks/update", count) => {
                updates.fetch_add(1, Ordering::SeqCst);
                Some(if count == 0 { refused(-32602) } else { json!({ "resultType": "complete" }) })
            }
            _ => Some(refused(-32601)),
        });
        let client = coming_back().0.connect(peer.clone()).await.unwrap();
        let said = client.call::<String>("a", ()).await;
        assert_eq!(said.as_deref().ok(), outcome, "{said:?}");
    }
}

/// For as long as the call may take; a task that is waited for by its handle, for as long as a call may take.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for() {
    let silent_until = |seconds: u64| {
        let back = Instant::now() + Duration::from_secs(seconds);
        about(move |method| match method {
            "tasks/get" => (Instant::now() >= back).then(completed),
            _ => Some(refused(-32601)),
        })
    };
    let client = coming_back().0.connect(silent_until(500)).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    let client = coming_back().0.connect(silent_until(500)).await.unwrap();
    assert_eq!(client.task("t-1").wait().await.unwrap().to_text(), "b");
    let (client, began) = (coming_back().0.connect(silent_until(1_000_000)).await.unwrap(), Instant::now());
    assert_eq!(client.task("t-1").wait().await.unwrap_err().kind(), ErrorKind::Timeout);
    assert!((600..700).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

/// There is nothing to wait for.
#[tokio::test(start_paused = true)]
async fn a_wire_that_is_over_is_not_waited_for() {
    let task = told(&json!({ "resultType": "task", "status": "working" }));
    let script = vec![expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "result": task })), close()];
    let client = coming_back().0.connect(ScriptedPeer::modern(script)).await.unwrap();
    let began = Instant::now();
    assert_eq!(client.call::<String>("a", ()).await.unwrap_err().kind(), ErrorKind::TransportClosed);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_wants_to_be_asked_seldom_is() {
    let looks = Looks::default();
    let states = [working(), working(), completed()].map(|mut task| {
        task["pollIntervalMs"] = 300_000.into();
        task
    });
    let seen = AtomicUsize::new(0);
    let peer = about(move |method| match method {
        "tasks/get" => Some(nth(&states, seen.fetch_add(1, Ordering::SeqCst))),
        _ => Some(refused(-32601)),
    });
    let client = coming_back().0.observer(looks.clone()).connect(peer).await.unwrap();
    client.task("t-1").wait().await.unwrap();
    let looks = looks.0.lock().unwrap().clone();
    assert_eq!(looks.len(), 3);
    assert!(looks.windows(2).all(|pair| pair[1] - pair[0] >= Duration::from_secs(300)), "{looks:?}");
    // Longer than a clock can tell.
    let peer = about(|_| Some(told(&json!({ "status": "working", "pollIntervalMs": u64::MAX }))));
    let client = coming_back().0.connect(peer).await.unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap_err().kind(), ErrorKind::Timeout);
}

/// It is asked for the task meanwhile.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_says_what_it_tells_of_holds_up_nothing() {
    let states = [working(), working(), completed()];
    let seen = AtomicUsize::new(0);
    let peer = about(move |method| match method {
        "tasks/get" => Some(nth(&states, seen.fetch_add(1, Ordering::SeqCst))),
        _ => None,
    });
    let (client, began) = (coming_back().0.connect(peer.clone()).await.unwrap(), Instant::now());
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?} {:?}", began.elapsed(), peer.methods());
    assert!(peer.methods().contains(&"subscriptions/listen".to_owned()));
}

/// Not even of a user who answers none.
#[tokio::test(start_paused = true)]
async fn a_task_does_not_ask_without_end() {
    let seen = AtomicUsize::new(0);
    let peer = about(move |method| {
        let look = seen.fetch_add(1, Ordering::SeqCst);
        let keys: Vec<_> = (0..20).map(|key| format!("{look}-{key}")).collect();
        let keys: Vec<_> = keys.iter().map(String::as_str).collect();
        Some(if method == "tasks/get" { asking(&keys) } else { refused(-32601) })
    });
    let (client, asked, _) = pondering();
    let client = client.connect(peer).await.unwrap();
    let refused = client.call::<String>("a", ()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
    assert!(asked.load(Ordering::SeqCst) <= 1000, "{asked:?}");
}

/// What a task comes to is read as what a call comes to.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_task_is_read_like_any_other() {
    let client = coming_back().0.connect(everything_server::server()).await.unwrap();
    let task = begun(&client, "slow_compute", json!({ "seconds": 1, "label": "it" })).await;
    assert_eq!(task.wait_for::<String>().await.unwrap(), "it took 1 s");
    let task = begun(&client, "failing_job", json!({})).await;
    let failed = task.wait_for::<String>().await.unwrap_err();
    assert_eq!((failed.kind(), failed.to_string()), (ErrorKind::HandlerFailed, "The job failed".into()));
}
