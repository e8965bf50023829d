//! Calls of several rounds in the modern era: what runs when, and what the state may be used for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Context, Limits, Principal, Prompt, Resource, Server, ServerBuilder, Tool, ToolError, implementation,
    jsonrpc::Raw,
    server::{Arrival, Peer, PromptArguments, StateKeys},
    types::{CreateMessageParams, ElicitParams, PromptMessage, SamplingMessage},
};
use serde_json::{Value, json};

pub(super) async fn name(context: &Context, key: &str) -> Result<String, ToolError> {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
    let answer = context.elicit(key, ElicitParams::form(key, Raw::parse(schema)?)).await?;
    let content: Value = answer.content.unwrap_or(Raw::empty_object()).decode()?;
    Ok(content["name"].as_str().unwrap_or_default().to_owned())
}

/// How often the handler ran, and how often what is to be done once was done.
#[derive(Clone, Default)]
struct Counts {
    runs: Arc<AtomicU32>,
    once: Arc<AtomicU32>,
}

/// Two questions at once, and then one that depends on their answers.
fn server(counts: &Counts, with: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    let counts = counts.clone();
    let meet = move |context: Context| {
        let counts = counts.clone();
        async move {
            counts.runs.fetch_add(1, Ordering::Relaxed);
            let plan: u32 = context
                .once("plan", || async { Ok::<_, ToolError>(counts.once.fetch_add(1, Ordering::Relaxed) + 7) })
                .await?;
            let (one, other) = tokio::join!(name(&context, "one"), name(&context, "other"));
            let third = name(&context, &format!("for {} and {}", one?, other?)).await?;
            Ok::<_, ToolError>(format!("{third} by plan {plan}"))
        }
    };
    async fn endless(context: Context) -> Result<(), ToolError> {
        for round in 0.. {
            name(&context, &round.to_string()).await?;
        }
        Ok(())
    }
    async fn heavy(context: Context) -> Result<String, ToolError> {
        context.once("much", || async { Ok::<_, ToolError>("x".repeat(20_000)) }).await?;
        name(&context, "one").await
    }
    let builder = Server::builder(implementation!()).tool(Tool::new("meet", meet));
    with(builder.tool(Tool::new("endless", endless)).tool(Tool::new("heavy", heavy))).build()
}

/// Calls a tool, as a client that can do all but show web pages.
pub(super) async fn ask(server: &Server, who: Option<&str>, params: Value) -> Value {
    request(server, who, "tools/call", params).await
}

async fn request(server: &Server, who: Option<&str>, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    send(server, who, method, params.to_string()).await
}

fn meta() -> Value {
    let mut meta = super::modern_meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    meta
}

async fn send(server: &Server, who: Option<&str>, method: &str, params: String) -> Value {
    let request = mcp_jsonrpc::Request::new(1u64.into(), method, Some(Raw::parse(params).unwrap()));
    let peer = Peer::new().principal(who.map(Principal::new));
    let exchange = server.accept(request, Arrival::alone().of(&peer)).unwrap();
    serde_json::from_slice(&server.encode(&server.call(exchange).await)).unwrap()
}

pub(super) fn answers(names: &[(&str, &str)]) -> Value {
    let answer = |name: &str| json!({ "action": "accept", "content": { "name": name } });
    names.iter().map(|(key, name)| ((*key).to_owned(), answer(name))).collect::<serde_json::Map<_, _>>().into()
}

pub(super) fn asked(answer: &Value) -> Vec<&str> {
    let requests = answer["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{answer}"));
    requests.keys().map(String::as_str).collect()
}

pub(super) fn state(answer: &Value) -> &str {
    answer["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn two_questions_come_at_once_and_then_the_one_that_depends_on_them_in_three_runs() {
    let counts = Counts::default();
    let server = server(&counts, |builder| builder);
    let first = ask(&server, None, json!({ "name": "meet" })).await;
    assert_eq!(asked(&first), ["one", "other"]);
    // One of them is answered now, and the other is asked again.
    let params = json!({ "name": "meet", "requestState": state(&first), "inputResponses": answers(&[("one", "Ada")]) });
    let second = ask(&server, None, params).await;
    assert_eq!(asked(&second), ["other"]);
    let params =
        json!({ "name": "meet", "requestState": state(&second), "inputResponses": answers(&[("other", "Bob")]) });
    let third = ask(&server, None, params).await;
    assert_eq!(asked(&third), ["for Ada and Bob"]);
    assert_ne!(state(&third), state(&second));
    let given = answers(&[("for Ada and Bob", "Eve"), ("one", "nobody that was asked for")]);
    let last =
        ask(&server, None, json!({ "name": "meet", "requestState": state(&third), "inputResponses": given })).await;
    assert_eq!(super::text(&last), "Eve by plan 7");
    assert_eq!((counts.runs.load(Ordering::Relaxed), counts.once.load(Ordering::Relaxed)), (4, 1));
}

/// Without the state the answers are still matched by key; what was done once is done again.
#[tokio::test]
async fn answers_without_state_are_taken_too() {
    let counts = Counts::default();
    let server = server(&counts, |builder| builder);
    let given = answers(&[("one", "Ada"), ("other", "Bob"), ("for Ada and Bob", "Eve")]);
    let answer = ask(&server, None, json!({ "name": "meet", "inputResponses": given })).await;
    assert_eq!(super::text(&answer), "Eve by plan 7");
}

/// Whoever else, whatever else, however late: all are refused alike.
#[tokio::test]
async fn state_is_good_for_the_same_request_of_the_same_caller_alone() {
    let counts = Counts::default();
    let server = server(&counts, |builder| builder);
    let first = ask(&server, Some("ada"), json!({ "name": "meet", "arguments": { "a": 1 } })).await;
    let state = state(&first).to_owned();
    let again = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments, "requestState": state });
    assert_eq!(asked(&ask(&server, Some("ada"), again("meet", json!({ "a": 1 }))).await), ["one", "other"]);
    let mut refusals = Vec::new();
    for (who, params) in [
        (Some("bob"), again("meet", json!({ "a": 1 }))),
        (None, again("meet", json!({ "a": 1 }))),
        (Some("ada"), again("meet", json!({ "a": 2 }))),
        (Some("ada"), again("meet", json!({}))),
        (Some("ada"), again("endless", json!({ "a": 1 }))),
        (Some("ada"), json!({ "name": "meet", "arguments": { "a": 1 }, "requestState": format!("{state}-TAMPERED") })),
        (Some("ada"), json!({ "name": "meet", "arguments": { "a": 1 }, "requestState": &state[1..] })),
    ] {
        let answer = ask(&server, who, params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        refusals.push(answer["error"]["message"].as_str().unwrap().to_owned());
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
}

/// Clients write the same arguments again, and not always in the same way.
#[tokio::test]
async fn state_is_bound_to_what_the_arguments_mean() {
    let counts = Counts::default();
    let server = server(&counts, |builder| builder);
    let call = async |arguments: &str, state: Option<&str>| {
        let state = state.map_or_else(String::new, |state| format!(r#""requestState":"{state}","#));
        let params = format!(r#"{{"name":"meet","arguments":{arguments},{state}"_meta":{}}}"#, meta());
        send(&server, None, "tools/call", params).await
    };
    let first = call(r#"{"a":{"b":[1,"\u00e9"],"c":null},"d":1.0}"#, None).await;
    for (arguments, is_same) in [
        (r#"{"a":{"b":[1,"é"],"c":null},"d":1.0}"#, true),
        (r#" { "d" : 1.0 , "a" : { "c" : null , "b" : [ 1 , "\u00E9" ] } } "#, true),
        (r#"{"\u0061":{"b":[1,"é"],"c":null},"d":1.0}"#, true),
        (r#"{"a":{"b":[1,"é"],"c":null},"d":1}"#, false),
        (r#"{"a":{"b":["é",1],"c":null},"d":1.0}"#, false),
        (r#"{"a":{"b":[1,"e"],"c":null},"d":1.0}"#, false),
        (r#"{"a":{"b":["1","é"],"c":null},"d":1.0}"#, false),
        (r#"{"a":{"b":[1,"é"],"c":{}},"d":1.0}"#, false),
        (r#"{"a":{"b":[1,"é"]},"c":null,"d":1.0}"#, false),
        (r#"{"a":{"b":[1,"é"],"c":null},"d":1.0,"d":2.0}"#, false),
        (r#"{"a":0,"a":{"b":[1,"é"],"c":null},"d":1.0}"#, false),
    ] {
        let answer = call(arguments, Some(state(&first))).await;
        assert_eq!(answer["result"].is_object(), is_same, "{arguments}: {answer}");
    }
}

/// A tool, a prompt and a resource that ask the same under one name are not the same; nor are two resources.
#[tokio::test]
async fn state_is_bound_to_the_method_and_to_the_resource() {
    async fn tool(context: Context) -> Result<String, ToolError> {
        name(&context, "one").await
    }
    async fn prompt(context: Context, _: PromptArguments) -> Result<String, ToolError> {
        name(&context, "one").await
    }
    let builder = Server::builder(implementation!()).tool(Tool::new("asks", tool)).prompt(Prompt::new("asks", prompt));
    let builder = builder.resource(Resource::new("x:a", "asks", tool)).resource(Resource::new("x:b", "asks", tool));
    let server = builder.build();
    let requests = [
        ("tools/call", json!({ "name": "asks" })),
        ("prompts/get", json!({ "name": "asks" })),
        ("resources/read", json!({ "uri": "x:a" })),
        ("resources/read", json!({ "uri": "x:b" })),
    ];
    for (index, (method, params)) in requests.iter().enumerate() {
        let first = request(&server, None, method, params.clone()).await;
        for (other, (method, params)) in requests.iter().enumerate() {
            let mut params = params.clone();
            params["requestState"] = state(&first).into();
            let answer = request(&server, None, method, params).await;
            assert_eq!(answer["result"].is_object(), index == other, "{method}: {answer}");
        }
    }
}

#[tokio::test]
async fn state_grows_old() {
    let counts = Counts::default();
    let ttl = Limits::default().request_state_ttl(Duration::ZERO);
    let server = server(&counts, |builder| builder.limits(ttl));
    let first = ask(&server, None, json!({ "name": "meet" })).await;
    let late = ask(&server, None, json!({ "name": "meet", "requestState": state(&first) })).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
}

/// Keys change while calls are under way, and services that share keys do not share state.
#[tokio::test]
async fn keys_rotate_and_an_audience_is_one_service() {
    let counts = Counts::default();
    let with = |keys: StateKeys| server(&counts, |builder| builder.state_keys(keys));
    let old = with(StateKeys::new([1; 32]).audience("a"));
    let first = ask(&old, None, json!({ "name": "meet" })).await;
    let again = json!({ "name": "meet", "requestState": state(&first) });
    for (keys, is_good) in [
        (StateKeys::new([1; 32]).audience("a"), true),
        (StateKeys::new([2; 32]).and([1; 32]).audience("a"), true),
        (StateKeys::new([2; 32]).audience("a"), false),
        (StateKeys::new([1; 32]).audience("b"), false),
        (StateKeys::new([1; 32]), false),
    ] {
        let answer = ask(&with(keys), None, again.clone()).await;
        assert_eq!(answer["result"].is_object(), is_good, "{answer}");
    }
    assert!(!format!("{:?}", StateKeys::new([77; 32])).contains("77"));
}

#[tokio::test]
async fn rounds_and_the_size_of_what_is_carried_are_bounded() {
    let counts = Counts::default();
    let server = server(&counts, |builder| builder.limits(Limits::default().input_rounds(3)));
    let mut params = json!({ "name": "endless" });
    for round in 0..3 {
        let answer = ask(&server, None, params).await;
        let key = round.to_string();
        assert_eq!(asked(&answer), [&key]);
        params =
            json!({ "name": "endless", "requestState": state(&answer), "inputResponses": answers(&[(&key, "x")]) });
    }
    let answer = ask(&server, None, params).await;
    assert!(answer["error"]["code"] == -32602 && answer.to_string().contains("3 times"), "{answer}");
    let answer = ask(&server, None, json!({ "name": "heavy" })).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    // The client's own answers may be too long as well, and it is told.
    let first = ask(&server, None, json!({ "name": "endless" })).await;
    let given = answers(&[("0", &"x".repeat(20_000))]);
    let params = json!({ "name": "endless", "requestState": state(&first), "inputResponses": given });
    let answer = ask(&server, None, params).await;
    assert!(answer["error"]["code"] == -32602 && answer.to_string().contains("16384 bytes"), "{answer}");
}

/// What is carried may have as many bytes as the limit says, and not one more.
#[tokio::test]
async fn state_of_just_the_bytes_that_it_may_have_is_carried() {
    let counts = Counts::default();
    let first = ask(&server(&counts, |builder| builder), None, json!({ "name": "meet" })).await;
    let length = state(&first).len();
    for (most, fits) in [(length, true), (length - 1, false)] {
        let limits = Limits::default().request_state_bytes(most);
        let server = server(&Counts::default(), |builder| builder.limits(limits));
        let first = ask(&server, None, json!({ "name": "meet" })).await;
        assert_eq!(first["result"].is_object(), fits, "{first}");
        if fits {
            let again = json!({ "name": "meet", "requestState": state(&first) });
            assert_eq!(asked(&ask(&server, None, again).await), ["one", "other"]);
        }
    }
}

/// Whatever a handler does, there is one outcome.
#[tokio::test(start_paused = true)]
async fn odd_handlers_have_defined_outcomes() {
    async fn swallows(context: Context) -> Result<String, ToolError> {
        Ok(name(&context, "one").await.unwrap_or_else(|_| "swallowed".into()))
    }
    async fn spawns(context: Context) -> Result<String, ToolError> {
        tokio::spawn(async move { name(&context, "one").await.map_err(|error| error.into_message()) })
            .await?
            .map_err(ToolError::new)
    }
    async fn twice(context: Context) -> Result<String, ToolError> {
        let (one, again) = tokio::join!(name(&context, "one"), name(&context, "one"));
        Ok(format!("{} {}", one?, again?))
    }
    async fn two_of_one_key(context: Context) -> Result<String, ToolError> {
        let other = ElicitParams::form("another", Raw::empty_object());
        let (one, other) = tokio::join!(name(&context, "one"), context.elicit("one", other));
        other?;
        one
    }
    async fn asks_and_hangs(context: Context) -> Result<String, ToolError> {
        tokio::join!(name(&context, "one"), std::future::pending::<()>()).0
    }
    let tools = [
        Tool::new("swallows", swallows),
        Tool::new("spawns", spawns),
        Tool::new("twice", twice),
        Tool::new("two_of_one_key", two_of_one_key),
        Tool::new("asks_and_hangs", asks_and_hangs).timeout(Duration::from_secs(1)),
    ];
    let server = tools.into_iter().fold(Server::builder(implementation!()), ServerBuilder::tool).build();
    for (tool, text) in [
        ("swallows", "Ada"),
        ("spawns", "Ada"),
        ("twice", "The key `one` names two questions"),
        ("asks_and_hangs", "The tool did not finish within 1000 ms"),
    ] {
        let first = ask(&server, None, json!({ "name": tool })).await;
        assert_eq!(asked(&first), ["one"], "{tool}");
        let params =
            json!({ "name": tool, "requestState": state(&first), "inputResponses": answers(&[("one", "Ada")]) });
        assert_eq!(super::text(&ask(&server, None, params).await), text, "{tool}");
    }
    // The first of them is asked; whoever waits for both does not see before that the other one failed.
    let first = ask(&server, None, json!({ "name": "two_of_one_key" })).await;
    assert_eq!(first["result"]["inputRequests"]["one"]["params"]["message"], "one");
    let given = answers(&[("one", "Ada")]);
    let params = json!({ "name": "two_of_one_key", "requestState": state(&first), "inputResponses": given });
    assert_eq!(super::text(&ask(&server, None, params).await), "The key `one` names two questions");
    tokio::task::yield_now().await;
    let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(alive, 0, "what the handlers have left running has ended");
}

async fn sure(context: &Context, message: &str) -> Result<&'static str, ToolError> {
    let answer = context.elicit("go", ElicitParams::form(message, Raw::empty_object())).await?;
    Ok(answer.action.as_str())
}

async fn said(context: &Context, key: &str) -> Result<String, ToolError> {
    Ok(context.sample(key, CreateMessageParams::new([PromptMessage::user("Well?")], 9)).await?.to_text())
}

/// An answer is one to the question that was asked, and to no other that has its key.
#[tokio::test]
async fn the_answer_to_one_question_answers_no_other() {
    async fn dangerous(context: Context) -> Result<String, ToolError> {
        let draft = sure(&context, "Delete the draft?").await?;
        Ok(format!("{draft} {}", sure(&context, "Delete the database?").await?))
    }
    async fn of_two_kinds(context: Context) -> Result<String, ToolError> {
        let sure = sure(&context, "Delete the draft?").await?;
        Ok(format!("{sure} {}", said(&context, "go").await?))
    }
    async fn directories(context: Context) -> Result<String, ToolError> {
        let sure = sure(&context, "Delete the draft?").await?;
        Ok(format!("{sure} {}", context.roots("go").await?.len()))
    }
    async fn by_hand(context: Context) -> Result<String, ToolError> {
        sure(&context, "Delete the draft?").await?;
        let question = ElicitParams::form("Delete the database?", Raw::empty_object());
        match context.answer("go", &question) {
            Some(answer) => Ok(answer?.action.as_str().to_owned()),
            None => Ok("not asked".into()),
        }
    }
    async fn asking_by_hand(context: Context) -> Result<String, ToolError> {
        sure(&context, "Delete the draft?").await?;
        let asking = context.input_required();
        asking.elicit("go", &ElicitParams::form("Delete the database?", Raw::empty_object()))?;
        Err(asking.into())
    }
    let tools = [
        Tool::new("dangerous", dangerous),
        Tool::new("of_two_kinds", of_two_kinds),
        Tool::new("directories", directories),
        Tool::new("by_hand", by_hand),
        Tool::new("asking_by_hand", asking_by_hand),
    ];
    let server = tools.into_iter().fold(Server::builder(implementation!()), ServerBuilder::tool).build();
    for tool in ["dangerous", "of_two_kinds", "directories", "by_hand", "asking_by_hand"] {
        let given = json!({ "go": { "action": "accept" } });
        let first = ask(&server, None, json!({ "name": tool })).await;
        assert_eq!(first["result"]["inputRequests"]["go"]["params"]["message"], "Delete the draft?");
        let params = json!({ "name": tool, "requestState": state(&first), "inputResponses": given });
        let with_state = ask(&server, None, params).await;
        let without = ask(&server, None, json!({ "name": tool, "inputResponses": given })).await;
        for answer in [with_state, without] {
            assert_eq!(super::text(&answer), "The key `go` names two questions", "{tool}");
        }
    }
}

/// With its state a call says what it was asked, and nothing else has an answer: nobody has shown the user a question
/// that comes later.
#[tokio::test]
async fn answers_to_what_was_not_asked_are_ignored() {
    async fn guarded(context: Context) -> Result<String, ToolError> {
        let name = name(&context, "one").await?;
        Ok(format!("{name} {}", sure(&context, "Delete the database?").await?))
    }
    let server = Server::builder(implementation!()).tool(Tool::new("guarded", guarded)).build();
    let yes = json!({ "action": "accept" });
    let first = ask(&server, None, json!({ "name": "guarded" })).await;
    let given = json!({ "go": yes, "one": { "action": "maybe" } });
    let params = json!({ "name": "guarded", "requestState": state(&first), "inputResponses": given });
    let second = ask(&server, None, params).await;
    assert_eq!(asked(&second), ["one"]);
    let given = json!({ "go": yes, "one": answers(&[("one", "Ada")])["one"] });
    let params = json!({ "name": "guarded", "requestState": state(&second), "inputResponses": given });
    let third = ask(&server, None, params).await;
    assert_eq!(asked(&third), ["go"]);
    let params = json!({ "name": "guarded", "requestState": state(&third), "inputResponses": { "go": yes } });
    assert_eq!(super::text(&ask(&server, None, params).await), "Ada accept");
}

/// A question that comes out otherwise in each run is never answered; whoever wrote it shall know.
#[tokio::test]
async fn a_question_is_the_same_in_every_run() {
    let runs = Arc::<AtomicU32>::default();
    let drawn = move |context: Context| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move { sure(&context, &format!("Sure, at {run} o'clock?")).await }
    };
    let server = Server::builder(implementation!()).tool(Tool::new("drawn", drawn)).build();
    let first = ask(&server, None, json!({ "name": "drawn" })).await;
    let unanswered = ask(&server, None, json!({ "name": "drawn", "requestState": state(&first) })).await;
    assert_eq!(unanswered["result"]["inputRequests"]["go"]["params"]["message"], "Sure, at 1 o'clock?");
    let given = json!({ "go": { "action": "accept" } });
    let params = json!({ "name": "drawn", "requestState": state(&unanswered), "inputResponses": given });
    assert_eq!(super::text(&ask(&server, None, params).await), "The key `go` names two questions");
}

/// A task that has not come to its question yet finds the answer in the next round: the user is not asked again.
#[tokio::test(start_paused = true)]
async fn answers_that_a_run_does_not_come_to_are_kept() {
    let runs = Arc::<AtomicU32>::default();
    let late = move |context: Context| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        async move {
            let slow = async {
                tokio::time::sleep(Duration::from_secs(run.into())).await;
                name(&context, "slow").await
            };
            let quick = async { Ok::<_, ToolError>(name(&context, "one").await? + &name(&context, "two").await?) };
            let (quick, slow) = tokio::join!(quick, slow);
            Ok::<_, ToolError>(quick? + &slow?)
        }
    };
    let server = Server::builder(implementation!()).tool(Tool::new("late", late)).build();
    let first = ask(&server, None, json!({ "name": "late" })).await;
    assert_eq!(asked(&first), ["one", "slow"]);
    let given = answers(&[("one", "Ada "), ("slow", "Bob")]);
    let params = json!({ "name": "late", "requestState": state(&first), "inputResponses": given });
    let second = ask(&server, None, params).await;
    assert_eq!(asked(&second), ["two"]);
    let params =
        json!({ "name": "late", "requestState": state(&second), "inputResponses": answers(&[("two", "and ")]) });
    assert_eq!(super::text(&ask(&server, None, params).await), "Ada and Bob");
}

/// By hand as in place.
#[tokio::test]
async fn a_client_is_asked_by_hand_only_in_the_ways_that_it_can_ask_its_user() {
    fn page() -> ElicitParams {
        ElicitParams::url("Log in", "https://example.com/login", "visit-1")
    }
    async fn in_place(context: Context) -> Result<(), ToolError> {
        context.elicit("login", page()).await.map(drop)
    }
    async fn by_hand(context: Context) -> Result<(), ToolError> {
        let asking = context.input_required();
        asking.elicit("login", &page())?;
        Err(asking.into())
    }
    let builder = Server::builder(implementation!());
    let server = builder.tool(Tool::new("in_place", in_place)).tool(Tool::new("by_hand", by_hand)).build();
    for tool in ["in_place", "by_hand"] {
        let answer = ask(&server, None, json!({ "name": tool })).await;
        assert_eq!(answer["error"]["code"], -32021, "{tool}: {answer}");
        let missing = json!({ "requiredCapabilities": { "elicitation": { "url": {} } } });
        assert_eq!(answer["error"]["data"], missing, "{tool}");
    }
}

#[tokio::test]
async fn a_handler_may_ask_by_hand() {
    async fn greet(context: Context) -> Result<String, ToolError> {
        let schema = r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;
        let question = ElicitParams::form("who", Raw::parse(schema)?);
        match context.answer("name", &question) {
            Some(answer) => Ok(answer?.content.unwrap_or(Raw::empty_object()).as_str().to_owned()),
            None => {
                let asking = context.input_required();
                asking.elicit("name", &question)?;
                Err(asking.into())
            }
        }
    }
    let server = Server::builder(implementation!()).tool(Tool::new("greet", greet)).build();
    let first = ask(&server, None, json!({ "name": "greet" })).await;
    assert_eq!(asked(&first), ["name"]);
    let params =
        json!({ "name": "greet", "requestState": state(&first), "inputResponses": answers(&[("name", "Ada")]) });
    assert_eq!(super::text(&ask(&server, None, params).await), r#"{"name":"Ada"}"#);
}

/// Of each kind, and each for its own question only.
#[tokio::test]
async fn what_was_asked_by_hand_is_found_by_hand() {
    fn prompt(text: &str) -> CreateMessageParams {
        CreateMessageParams::new([SamplingMessage::user(text)], 9)
    }
    async fn by_hand(context: Context) -> Result<String, ToolError> {
        let said = context.answer_sample("model", &prompt("Well?"));
        if let (Some(said), Some(roots)) = (said, context.answer_roots("roots")) {
            let other = context.answer_sample("model", &prompt("And?")).map(|said| said.unwrap_err().into_message());
            let taken = context.answer_roots("model").map(|roots| roots.unwrap_err().into_message());
            assert_eq!(other.as_deref(), Some("The key `model` names two questions"));
            assert_eq!(taken, other);
            assert!(context.answer_sample("else", &prompt("Well?")).is_none());
            return Ok(format!("{} in {}", said?.to_text(), roots?[0].uri));
        }
        let asking = context.input_required();
        asking.sample("model", &prompt("Well?"))?;
        asking.roots("roots")?;
        Err(asking.into())
    }
    let server = Server::builder(implementation!()).tool(Tool::new("by_hand", by_hand)).build();
    let first = ask(&server, None, json!({ "name": "by_hand" })).await;
    assert_eq!(asked(&first), ["model", "roots"]);
    let said = json!({ "role": "assistant", "content": { "type": "text", "text": "Ada" }, "model": "m" });
    let given = json!({ "model": said, "roots": { "roots": [{ "uri": "file:///a" }] } });
    let params = json!({ "name": "by_hand", "requestState": state(&first), "inputResponses": given });
    assert_eq!(super::text(&ask(&server, None, params).await), "Ada in file:///a");
}

/// What it does after it has noted its questions is not cut short: they are asked when it returns.
#[tokio::test(start_paused = true)]
async fn a_handler_that_asks_by_hand_comes_to_its_end() {
    let saved = Arc::<AtomicU32>::default();
    let counted = saved.clone();
    let saves = move |context: Context| {
        let saved = counted.clone();
        async move {
            let question = ElicitParams::form("Sure?", Raw::empty_object());
            if let Some(answer) = context.answer("go", &question) {
                return Ok(answer?.action.as_str());
            }
            let asking = context.input_required();
            asking.elicit("go", &question)?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            let error = ToolError::from(asking);
            tokio::time::sleep(Duration::from_secs(1)).await;
            saved.fetch_add(1, Ordering::Relaxed);
            Err(error)
        }
    };
    async fn thinks_better(context: Context) -> Result<&'static str, ToolError> {
        context.input_required().elicit("go", &ElicitParams::form("Sure?", Raw::empty_object()))?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok("no need to ask")
    }
    async fn succeeds(context: Context) -> Result<&'static str, ToolError> {
        let asking = context.input_required();
        asking.elicit("go", &ElicitParams::form("Sure?", Raw::empty_object()))?;
        let _ = ToolError::from(asking);
        Ok("no need to ask")
    }
    let builder = Server::builder(implementation!()).tool(Tool::new("succeeds", succeeds));
    let server = builder.tool(Tool::new("saves", saves)).tool(Tool::new("thinks_better", thinks_better)).build();
    let first = ask(&server, None, json!({ "name": "saves" })).await;
    assert_eq!((asked(&first), saved.load(Ordering::Relaxed)), (vec!["go"], 1));
    let given = json!({ "go": { "action": "accept" } });
    let params = json!({ "name": "saves", "requestState": state(&first), "inputResponses": given });
    assert_eq!(super::text(&ask(&server, None, params).await), "accept");
    for tool in ["thinks_better", "succeeds"] {
        assert_eq!(super::text(&ask(&server, None, json!({ "name": tool })).await), "no need to ask", "{tool}");
    }
}

/// A server that has too much to do may say so without a question: the client comes again, with its state.
#[tokio::test]
async fn a_handler_that_has_nothing_to_ask_may_have_the_client_come_again() {
    async fn later(context: Context) -> Result<String, ToolError> {
        let first = context.once("first", async || Ok::<_, ToolError>(context.sequence())).await?;
        if first == context.sequence() {
            return Err(context.input_required().into());
        }
        Ok("now".into())
    }
    async fn never(context: Context) -> Result<String, ToolError> {
        Err(context.input_required().into())
    }
    let builder = Server::builder(implementation!()).limits(Limits::default().input_rounds(2));
    let server = builder.tool(Tool::new("later", later)).tool(Tool::new("never", never)).build();
    let first = ask(&server, None, json!({ "name": "later" })).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    assert!(first["result"].get("inputRequests").is_none(), "{first}");
    let again = ask(&server, None, json!({ "name": "later", "requestState": state(&first) })).await;
    assert_eq!(super::text(&again), "now");
    let mut answer = ask(&server, None, json!({ "name": "never" })).await;
    for _ in 0..2 {
        answer = ask(&server, None, json!({ "name": "never", "requestState": state(&answer) })).await;
    }
    assert!(answer["error"]["code"] == -32602 && answer.to_string().contains("2 times"), "{answer}");
}

/// The very same handler text, asked in place.
#[tokio::test(start_paused = true)]
async fn a_legacy_client_is_asked_the_same_in_one_run() {
    let counts = Counts::default();
    let mut peer = crate::duplex::Peer::memory(server(&counts, |builder| builder));
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "0" } });
    peer.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()).await;
    peer.hear().await;
    peer.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"meet"}}"#).await;
    for name in ["Ada", "Bob", "Eve"] {
        let question = peer.hear().await;
        let result = json!({ "action": "accept", "content": { "name": name } });
        peer.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string()).await;
    }
    assert_eq!(super::text(&peer.hear().await), "Eve by plan 7");
    assert_eq!((counts.runs.load(Ordering::Relaxed), counts.once.load(Ordering::Relaxed)), (1, 1));
}
