//! What a task asks its client, in place; and what it has asked while it was a call.

use mcp_core::types::{CreateMessageParams, ElicitParams, PromptMessage};

use super::*;
use crate::server::rounds::{answers, asked, state};

async fn question(server: &Server, id: &str, keys: &[&str]) -> Value {
    let task = until(server, id, "input_required").await;
    assert_eq!(open_questions(&task), keys);
    task
}

async fn give(server: &Server, id: &str, given: &[(&str, &str)]) {
    update(server, id, answers(given)).await;
}

/// One after the other; the handler runs once.
#[tokio::test(start_paused = true)]
async fn users_models_and_directories_are_asked_in_place() {
    async fn all(context: Context) -> Result<String, ToolError> {
        let _running = Running::of(&context)?;
        let name = name(&context, "name").await?;
        let said = context.sample("said", CreateMessageParams::new([PromptMessage::user("Well?")], 9)).await?.to_text();
        let roots = context.roots("roots").await?.len();
        Ok(format!("{name} {said} {roots}"))
    }
    let server = server([Tool::new("all", all).task()]);
    let id = begin(&server, "all").await;
    let task = question(&server, &id, &["name"]).await;
    assert_eq!(task["inputRequests"]["name"]["method"], "elicitation/create");
    assert_eq!(task["inputRequests"]["name"]["params"]["message"], "name");
    give(&server, &id, &[("name", "Ada")]).await;
    until(&server, &id, "input_required").await;
    sleep(Duration::from_millis(1)).await;
    let task = question(&server, &id, &["said"]).await;
    assert_eq!(task["inputRequests"]["said"]["method"], "sampling/createMessage");
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "Well." }, "model": "m" });
    update(&server, &id, json!({ "said": said })).await;
    sleep(Duration::from_millis(1)).await;
    let task = question(&server, &id, &["roots"]).await;
    assert_eq!(task["inputRequests"]["roots"]["method"], "roots/list");
    update(&server, &id, json!({ "roots": { "roots": [{ "uri": "file:///a" }] } })).await;
    assert_eq!(text(&until(&server, &id, "completed").await), "Ada Well. 1");
    assert_eq!(Seen::counts(&server), (1, 1));
}

/// Some now and some later; what nobody has asked, or asks no more, changes nothing.
#[tokio::test(start_paused = true)]
async fn several_questions_at_once_are_answered_in_any_order() {
    async fn both(context: Context) -> Result<String, ToolError> {
        let (one, other) = tokio::join!(name(&context, "one"), name(&context, "other"));
        let third = name(&context, "third").await?;
        Ok(format!("{} {} {third}", one?, other?))
    }
    let server = server([Tool::new("both", both).task()]);
    let id = begin(&server, "both").await;
    let asking = question(&server, &id, &["one", "other"]).await;
    for nothing in [json!({}), answers(&[("third", "too early"), ("unasked", "x")]), json!({ "": null, "x": 5 })] {
        update(&server, &id, nothing).await;
        assert_eq!(get(&server, &id).await, asking);
    }
    give(&server, &id, &[("other", "Bob"), ("third", "too early")]).await;
    question(&server, &id, &["one"]).await;
    give(&server, &id, &[("other", "too late")]).await;
    question(&server, &id, &["one"]).await;
    give(&server, &id, &[("one", "Ada"), ("other", "too late")]).await;
    sleep(Duration::from_millis(1)).await;
    question(&server, &id, &["third"]).await;
    give(&server, &id, &[("one", "too late"), ("third", "Eve")]).await;
    assert_eq!(text(&until(&server, &id, "completed").await), "Ada Bob Eve");
    let done = get(&server, &id).await;
    give(&server, &id, &[("one", "too late")]).await;
    assert_eq!(get(&server, &id).await, done);
}

/// Each key names one question: one that is asked again has another, though the handler uses that one too.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_asked_for_again_under_a_new_key() {
    async fn numbered(context: Context) -> Result<String, ToolError> {
        let (one, other) = tokio::join!(name(&context, "who"), name(&context, "who-2"));
        Ok(format!("{} {}", one?, other?))
    }
    let server = server([Tool::new("asks", asks).task(), Tool::new("numbered", numbered).task()]);
    let id = begin(&server, "asks").await;
    let first = question(&server, &id, &["who"]).await;
    update(&server, &id, json!({ "who": 5 })).await;
    sleep(Duration::from_millis(1)).await;
    let second = question(&server, &id, &["who-2"]).await;
    assert_eq!(second["inputRequests"]["who-2"], first["inputRequests"]["who"]);
    give(&server, &id, &[("who", "of the first")]).await;
    update(&server, &id, json!({ "who-2": { "action": "accept", "content": { "name": 5 } } })).await;
    sleep(Duration::from_millis(1)).await;
    question(&server, &id, &["who-3"]).await;
    give(&server, &id, &[("who-3", "Ada")]).await;
    assert_eq!(text(&until(&server, &id, "completed").await), "Ada");

    let id = begin(&server, "numbered").await;
    question(&server, &id, &["who", "who-2"]).await;
    update(&server, &id, json!({ "who": 5 })).await;
    sleep(Duration::from_millis(1)).await;
    let asking = question(&server, &id, &["who-2", "who-3"]).await;
    assert_eq!(asking["inputRequests"]["who-3"]["params"]["message"], "who");
    give(&server, &id, &[("who-2", "Bob"), ("who-3", "Ada")]).await;
    assert_eq!(text(&until(&server, &id, "completed").await), "Ada Bob");
}

/// In the end it is a failure of the tool's, as in a call.
#[tokio::test(start_paused = true)]
async fn answers_that_never_fit_come_to_an_end() {
    let server = builder(Limits::default().input_rounds(3), [Tool::new("asks", asks).task()]).build();
    let id = begin(&server, "asks").await;
    for key in ["who", "who-2", "who-3"] {
        sleep(Duration::from_millis(1)).await;
        question(&server, &id, &[key]).await;
        update(&server, &id, json!({ key: null })).await;
    }
    let task = until(&server, &id, "completed").await;
    assert!(text(&task).contains("do not have the shape") && task["result"]["isError"] == true, "{task}");
}

/// Nobody waits for its answer: it is shown no more, and what is asked later under its key is another question.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_given_up_is_taken_back() {
    async fn impatient(context: Context) -> Result<String, ToolError> {
        let patience = Duration::from_secs(5);
        let first = tokio::time::timeout(patience, name(&context, "who")).await;
        waits(context.clone()).await?;
        let other = context.elicit("who", ElicitParams::form("Delete it all?", Raw::empty_object())).await?;
        Ok(format!("{} {}", first.is_err(), other.action.as_str()))
    }
    let server = server([Tool::new("impatient", impatient).task()]);
    let id = begin(&server, "impatient").await;
    question(&server, &id, &["who"]).await;
    sleep(Duration::from_secs(6)).await;
    assert_eq!(get(&server, &id).await["status"], "working");
    give(&server, &id, &[("who", "too late")]).await;
    open(&server);
    let task = question(&server, &id, &["who-2"]).await;
    assert_eq!(task["inputRequests"]["who-2"]["params"]["message"], "Delete it all?");
    update(&server, &id, json!({ "who": { "action": "accept" } })).await;
    question(&server, &id, &["who-2"]).await;
    update(&server, &id, json!({ "who-2": { "action": "decline" } })).await;
    assert_eq!(text(&until(&server, &id, "completed").await), "true decline");
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_task() {
    type Said = tokio::sync::mpsc::UnboundedSender<String>;
    async fn spawns(context: Context) -> Result<String, ToolError> {
        let left = context.clone();
        tokio::spawn(async move {
            let failure = name(&left, "left").await.unwrap_err();
            left.state::<Said>().unwrap().send(failure.into_message()).unwrap();
        });
        asks(context).await
    }
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel::<String>();
    let server = builder(Limits::default(), [Tool::new("spawns", spawns).task()]).state(said).build();
    let id = begin(&server, "spawns").await;
    question(&server, &id, &["left", "who"]).await;
    cancel(&server, &id).await;
    give(&server, &id, &[("left", "x"), ("who", "x")]).await;
    let cancelled = get(&server, &id).await;
    assert_eq!((&cancelled["status"], cancelled.get("inputRequests")), (&json!("cancelled"), None));
    assert_eq!(heard.recv().await.unwrap(), "The call is over");
    assert_eq!(Seen::counts(&server), (1, 1));
    // So it is when the task's time is over.
    let id = begin(&server, "spawns").await;
    question(&server, &id, &["left", "who"]).await;
    sleep(HOUR).await;
    assert!(is_unknown(&get_for(&server, None, &id).await));
    assert_eq!(heard.recv().await.unwrap(), "The call is over");
}

/// What the handler draws once, before and after it is a task.
#[derive(Clone, Default)]
struct Draws(Arc<AtomicU32>);

impl Draws {
    async fn draw(context: &Context, key: &str) -> Result<u32, ToolError> {
        let draws = context.state::<Self>()?.clone();
        context.once(key, async || Ok::<_, ToolError>(draws.0.fetch_add(1, Ordering::SeqCst))).await
    }
}

async fn in_two_parts(context: Context) -> Result<String, ToolError> {
    let _running = Running::of(&context)?;
    let before = Draws::draw(&context, "before").await?;
    let first = name(&context, "first").await?;
    let is_task = context.go_on_as_task().await;
    assert_eq!(context.go_on_as_task().await, is_task, "it is one already");
    context.task_message(format!("{first} is here")).await?;
    let after = Draws::draw(&context, "after").await?;
    let again = context.once("before", async || Ok::<_, ToolError>(99)).await.is_err();
    let second = name(&context, "second").await?;
    Ok(format!("{first} {second} {before} {after} {again} {is_task}"))
}

fn in_parts() -> Server {
    builder(Limits::default(), [Tool::new("parts", in_two_parts).task_when_told()]).state(Draws::default()).build()
}

/// Rounds of the call come first, and nothing of them is left in the task: neither their state nor answers that came too
/// early.
#[tokio::test(start_paused = true)]
async fn what_is_asked_before_it_is_a_task_is_asked_in_the_call() {
    let server = in_parts();
    let first = call(&server, None, "parts").await;
    assert_eq!((&first["result"]["resultType"], asked(&first)), (&json!("input_required"), vec!["first"]));
    let given = answers(&[("first", "Ada"), ("second", "too early")]);
    let params = json!({ "name": "parts", "requestState": state(&first), "inputResponses": given });
    let created = request(&server, None, "tools/call", params.clone()).await["result"].clone();
    assert_eq!(created["resultType"], "task", "{created}");
    assert!(created.get("requestState").is_none() && created.get("inputRequests").is_none(), "{created}");
    let id = created["taskId"].as_str().unwrap();
    let task = question(&server, id, &["second"]).await;
    assert_eq!((task["statusMessage"].as_str(), task.get("requestState")), (Some("Ada is here"), None));
    give(&server, id, &[("second", "Bob")]).await;
    let done = until(&server, id, "completed").await;
    assert_eq!((text(&done), done["result"].get("requestState")), ("Ada Bob 0 1 true true", None));
    assert_eq!(done["statusMessage"], "Ada is here");
    assert_eq!(Seen::counts(&server), (2, 2));
    // Within its time the state begins another task, in which what was done once is known.
    let another = request(&server, None, "tools/call", params).await["result"]["taskId"].as_str().unwrap().to_owned();
    assert_ne!(another, id);
    question(&server, &another, &["second"]).await;
    give(&server, &another, &[("second", "Eve")]).await;
    assert_eq!(text(&until(&server, &another, "completed").await), "Ada Eve 0 2 true true");
}

/// Answers without state are matched by key; but not by the task.
#[tokio::test(start_paused = true)]
async fn answers_that_came_with_the_call_are_not_the_tasks() {
    let server = in_parts();
    let given = answers(&[("first", "Ada"), ("second", "too early")]);
    let created = request(&server, None, "tools/call", json!({ "name": "parts", "inputResponses": given })).await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    question(&server, id, &["second"]).await;
}

/// Where it is no task it asks in its call to the end, and its messages go nowhere.
#[tokio::test(start_paused = true)]
async fn without_tasks_the_same_handler_asks_in_rounds() {
    let server = in_parts();
    let mut params = json!({ "name": "parts" });
    let mut answer = Value::Null;
    for given in [&[("first", "Ada")][..], &[("second", "Bob")], &[]] {
        params["_meta"] = crate::server::modern_meta();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        answer = send(&server, None, "tools/call", params.clone()).await;
        if let Some(state) = answer["result"]["requestState"].as_str() {
            params["requestState"] = state.into();
            params["inputResponses"] = answers(given);
        }
    }
    assert_eq!(crate::server::text(&answer), "Ada Bob 0 1 true false");
}

/// A handler's own task may say so, and asks what it likes: all of it is the task's.
#[tokio::test(start_paused = true)]
async fn a_task_of_the_handlers_own_may_make_it_a_task() {
    async fn spawned(context: Context) -> Result<String, ToolError> {
        let other = context.clone();
        let asking = tokio::spawn(async move { (other.go_on_as_task().await, name(&other, "who").await) });
        let (is_task, name) = asking.await?;
        Ok(format!("{} {is_task}", name?))
    }
    async fn beside(context: Context) -> Result<String, ToolError> {
        let (name, is_task) = tokio::join!(name(&context, "who"), context.go_on_as_task());
        Ok(format!("{} {is_task}", name?))
    }
    async fn among_many(context: Context) -> Result<String, ToolError> {
        let (name, is_task) = futures_util::future::join(
            async {
                let asked = futures_util::future::join_all((0..50).map(|_| context.go_on_as_task())).await;
                asked.into_iter().all(|is_task| is_task)
            },
            name(&context, "who"),
        )
        .await;
        Ok(format!("{} {name}", is_task?))
    }
    async fn asks_in_a_task_of_its_own(context: Context) -> Result<String, ToolError> {
        let other = context.clone();
        let asking = tokio::spawn(async move { name(&other, "who").await });
        let is_task = context.go_on_as_task().await;
        Ok(format!("{} {is_task}", asking.await??))
    }
    let tools = [
        Tool::new("spawned", spawned).task_when_told(),
        Tool::new("beside", beside).task_when_told(),
        Tool::new("among_many", among_many).task_when_told(),
        Tool::new("asks_in_a_task_of_its_own", asks_in_a_task_of_its_own).task_when_told(),
    ];
    let server = server(tools);
    for tool in ["spawned", "beside", "among_many", "asks_in_a_task_of_its_own"] {
        let id = begin(&server, tool).await;
        question(&server, &id, &["who"]).await;
        give(&server, &id, &[("who", "Ada")]).await;
        assert_eq!(text(&until(&server, &id, "completed").await), "Ada true", "{tool}");
    }
}

/// It is told so, and nothing waits for an answer that nobody was asked for.
#[tokio::test(start_paused = true)]
async fn a_task_cannot_ask_by_hand() {
    async fn by_hand(context: Context) -> Result<String, ToolError> {
        let question = ElicitParams::form("Who are you?", Raw::empty_object());
        assert!(context.answer("who", &question).is_none());
        let asking = context.input_required();
        asking.elicit("who", &question)?;
        Err(asking.into())
    }
    let server = server([Tool::new("by_hand", by_hand).task()]);
    let id = begin(&server, "by_hand").await;
    let task = until(&server, &id, "completed").await;
    assert_eq!(text(&task), "A task cannot ask by hand: what it asks, it asks in place");
}

/// A tool that may become a task, and need not.
#[tokio::test(start_paused = true)]
async fn what_never_says_so_is_answered_in_its_call() {
    async fn quick() -> Result<String, ToolError> {
        Ok("at once".into())
    }
    let server = server([Tool::new("quick", quick).task_when_told(), Tool::new("asks", asks).task_when_told()]);
    assert_eq!(crate::server::text(&call(&server, None, "quick").await), "at once");
    assert_eq!(asked(&call(&server, None, "asks").await), ["who"]);
}
