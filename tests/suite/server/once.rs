//! What is done once in a call of several rounds, whatever the client is asked meanwhile.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_core::{Context, Server, Tool, ToolError, implementation, server::form};
use mcp_test::RawClient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::rounds::{answers, ask, asked, name, state};

/// How often something was begun, and how often it came to its end.
#[derive(Clone, Default)]
struct Deeds(Arc<(AtomicU32, AtomicU32)>);

impl Deeds {
    fn of(context: &Context) -> Result<Self, ToolError> {
        context.state::<Self>().cloned()
    }

    async fn charge(self) -> Result<u32, ToolError> {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(self.0.1.fetch_add(1, Ordering::Relaxed))
    }

    fn counts(&self) -> (u32, u32) {
        (self.0.0.load(Ordering::Relaxed), self.0.1.load(Ordering::Relaxed))
    }
}

async fn charged(context: &Context) -> Result<u32, ToolError> {
    let deeds = Deeds::of(context)?;
    context.once("charge", || deeds.charge()).await
}

fn spawn_charging(context: &Context) -> JoinHandle<Result<u32, ToolError>> {
    let context = context.clone();
    tokio::spawn(async move { charged(&context).await })
}

/// A server of its own for each tool, so that deeds can be counted.
fn server(tool: Tool) -> (Server, Deeds) {
    let deeds = Deeds::default();
    (Server::builder(implementation!()).state(deeds.clone()).tool(tool).build(), deeds)
}

async fn call(server: &Server) -> Value {
    ask(server, None, json!({ "name": "does" })).await
}

async fn again(server: &Server, before: &Value, given: Value) -> Value {
    ask(server, None, json!({ "name": "does", "requestState": state(before), "inputResponses": given })).await
}

/// The handler is not dropped in the middle of it; the question waits.
#[tokio::test(start_paused = true)]
async fn what_is_done_beside_a_question_comes_to_its_end_and_is_not_done_again() {
    async fn beside(context: Context) -> Result<String, ToolError> {
        let (number, name) = tokio::join!(charged(&context), name(&context, "who"));
        Ok(format!("{} is {}", name?, number?))
    }
    async fn before(context: Context) -> Result<String, ToolError> {
        let (name, number) = tokio::join!(name(&context, "who"), charged(&context));
        Ok(format!("{} is {}", name?, number?))
    }
    async fn spawned(context: Context) -> Result<String, ToolError> {
        let deed = spawn_charging(&context);
        tokio::task::yield_now().await;
        Ok(format!("{} is {}", name(&context, "who").await?, deed.await??))
    }
    // The task comes to it when the call is over, so it leaves it to the next run.
    async fn spawned_late(context: Context) -> Result<String, ToolError> {
        let deed = spawn_charging(&context);
        Ok(format!("{} is {}", name(&context, "who").await?, deed.await??))
    }
    async fn by_hand(context: Context) -> Result<String, ToolError> {
        #[derive(Deserialize, JsonSchema)]
        struct Name {
            name: String,
        }
        let deed = spawn_charging(&context);
        tokio::task::yield_now().await;
        let question = form::<Name>("Who are you?");
        let Some(answer) = context.answer("who", &question) else {
            let asking = context.input_required();
            asking.elicit("who", &question)?;
            return Err(asking.into());
        };
        Ok(format!("{} is {}", answer?.name, deed.await??))
    }
    for (how, tool, at_first) in [
        ("beside", Tool::new("does", beside), (1, 1)),
        ("before", Tool::new("does", before), (1, 1)),
        ("spawned", Tool::new("does", spawned), (1, 1)),
        ("spawned late", Tool::new("does", spawned_late), (0, 0)),
        ("by hand", Tool::new("does", by_hand), (1, 1)),
    ] {
        let (server, deeds) = server(tool);
        let first = call(&server).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!((asked(&first), deeds.counts()), (vec!["who"], at_first), "{how}");
        let last = again(&server, &first, answers(&[("who", "Ada")])).await;
        assert_eq!((super::text(&last), deeds.counts()), ("Ada is 0", (1, 1)), "{how}");
    }
}

/// Whoever comes first: what has begun holds the round, and what comes after it is left to the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_on_other_threads_do_it_once_too() {
    async fn quick(deeds: Deeds) -> Result<u32, ToolError> {
        deeds.0.0.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        Ok(deeds.0.1.fetch_add(1, Ordering::Relaxed))
    }
    async fn races(context: Context) -> Result<String, ToolError> {
        let (other, deeds) = (context.clone(), Deeds::of(&context)?);
        let deed = tokio::spawn(async move { other.once("charge", || quick(deeds)).await });
        Ok(format!("{} is {}", name(&context, "who").await?, deed.await??))
    }
    for _ in 0..300 {
        let (server, deeds) = server(Tool::new("does", races));
        let first = call(&server).await;
        let last = again(&server, &first, answers(&[("who", "Ada")])).await;
        assert_eq!((super::text(&last), deeds.counts()), ("Ada is 0", (1, 1)));
    }
}

/// The question would wait for ever.
#[tokio::test(start_paused = true)]
async fn what_never_ends_is_ended_by_its_time_and_by_the_client() {
    async fn endless(context: Context) -> Result<String, ToolError> {
        let deed = context.once("wait", pending::<Result<(), ToolError>>);
        let (done, name) = tokio::join!(deed, name(&context, "who"));
        done?;
        name
    }
    let (server, _) = server(Tool::new("does", endless).timeout(Duration::from_secs(1)));
    assert_eq!(super::text(&call(&server).await), "The tool did not finish within 1000 ms");
    let (server, _) = self::server(Tool::new("does", endless));
    let mut client = RawClient::modern(server);
    let mut params = json!({ "name": "does", "_meta": super::modern_meta() });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    client.silence().await.unwrap();
    client.say(super::cancel(1)).await;
    client.silence().await.unwrap();
    client.end().await.unwrap();
}

/// What waits for the client itself cannot come to its end in this run: it begins anew with the answer, as a handler does.
#[tokio::test(start_paused = true)]
async fn a_question_within_what_is_done_once_is_asked() {
    async fn approved(context: Context) -> Result<String, ToolError> {
        let deeds = Deeds::of(&context)?;
        let approve = async || {
            let name = name(&context, "who").await?;
            Ok::<_, ToolError>(format!("{name} is {}", deeds.charge().await?))
        };
        let nested = context.once("outer", || context.once("inner", approve)).await?;
        name(&context, "other").await?;
        Ok(nested)
    }
    let (server, deeds) = server(Tool::new("does", approved).timeout(Duration::from_secs(9)));
    let first = call(&server).await;
    assert_eq!((asked(&first), deeds.counts()), (vec!["who"], (0, 0)));
    let second = again(&server, &first, answers(&[("who", "Ada")])).await;
    assert_eq!((asked(&second), deeds.counts()), (vec!["other"], (1, 1)));
    let last = again(&server, &second, answers(&[("other", "Bob")])).await;
    assert_eq!((super::text(&last), deeds.counts()), ("Ada is 0", (1, 1)));
}

/// Else the later runs would know only one of them.
#[tokio::test(start_paused = true)]
async fn two_things_of_one_key_are_an_error() {
    async fn one_after_the_other(context: Context) -> Result<String, ToolError> {
        let (one, other) = (charged(&context).await?, charged(&context).await?);
        Ok(format!("{} {one} {other}", name(&context, "who").await?))
    }
    async fn at_once(context: Context) -> Result<String, ToolError> {
        let (one, other) = tokio::join!(charged(&context), charged(&context));
        Ok(format!("{} {} {}", name(&context, "who").await?, one?, other?))
    }
    async fn in_a_later_run(context: Context) -> Result<String, ToolError> {
        let one = charged(&context).await?;
        let name = name(&context, "who").await?;
        Ok(format!("{name} {one} {}", charged(&context).await?))
    }
    for (tool, asks) in [
        (Tool::new("does", one_after_the_other), false),
        (Tool::new("does", at_once), true),
        (Tool::new("does", in_a_later_run), true),
    ] {
        let (server, deeds) = server(tool);
        let mut answer = call(&server).await;
        if asks {
            answer = again(&server, &answer, answers(&[("who", "Ada")])).await;
        }
        assert_eq!(super::text(&answer), "The key `charge` names two things that are done once");
        assert_eq!(deeds.counts(), (1, 1));
    }
}

/// Nothing was done then.
#[tokio::test(start_paused = true)]
async fn what_failed_or_was_given_up_may_be_tried_again_under_its_key() {
    async fn tries(context: Context) -> Result<String, ToolError> {
        let fails = context.once("charge", async || Err::<u32, _>(ToolError::new("no network"))).await;
        let given_up = tokio::time::timeout(Duration::from_millis(1), charged(&context)).await;
        let number = charged(&context).await?;
        let name = name(&context, "who").await?;
        Ok(format!("{} {} {name} {number}", fails.is_err(), given_up.is_err()))
    }
    let server = Server::builder(implementation!()).state(Deeds::default()).tool(Tool::new("does", tries)).build();
    let first = call(&server).await;
    assert_eq!(asked(&first), ["who"]);
}

/// It was done, so it is not done again; but nobody knows what came of it. Whoever wrote it is told in the first run.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_back_is_an_error_and_not_done_again() {
    async fn vague(context: &Context) -> Result<f64, ToolError> {
        let deeds = Deeds::of(context)?;
        // JSON has no such number.
        context.once("charge", async || deeds.charge().await.map(|_| f64::INFINITY)).await
    }
    async fn tells(context: Context) -> Result<String, ToolError> {
        let much = vague(&context).await?;
        Ok(format!("{} {much}", name(&context, "who").await?))
    }
    async fn swallows(context: Context) -> Result<String, ToolError> {
        let failure = vague(&context).await.unwrap_err();
        Ok(format!("{}: {failure}", name(&context, "who").await?))
    }
    const FAILURE: &str = "What was done under the key `charge` cannot be read back";
    let (server, deeds) = server(Tool::new("does", tells));
    assert_eq!((super::text(&call(&server).await), deeds.counts()), (FAILURE, (1, 1)));
    let (server, deeds) = self::server(Tool::new("does", swallows));
    let first = call(&server).await;
    let last = again(&server, &first, answers(&[("who", "Ada")])).await;
    assert_eq!((super::text(&last), deeds.counts()), (&*format!("Ada: {FAILURE}"), (1, 1)));
}

/// What is left out of the JSON is left out in the first run too, and not missed in the second one only.
#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_the_same_in_every_run() {
    #[derive(serde::Serialize, Deserialize)]
    struct Plan {
        steps: u32,
        #[serde(skip)]
        secret: u32,
    }
    async fn plans(context: Context) -> Result<String, ToolError> {
        let plan = context.once("plan", async || Ok::<_, ToolError>(Plan { steps: 3, secret: 7 })).await?;
        name(&context, &format!("{} {}", plan.steps, plan.secret)).await
    }
    let (server, _) = server(Tool::new("does", plans));
    let first = call(&server).await;
    assert_eq!(asked(&first), ["3 0"]);
    assert_eq!(super::text(&again(&server, &first, answers(&[("3 0", "Ada")])).await), "Ada");
}

/// A task that is left behind hears that its call is over before anybody has answered. Whatever it makes of that, it
/// does nothing more in the name of the call.
#[tokio::test]
async fn what_outlives_its_run_can_neither_ask_nor_do_anything_once() {
    async fn goes_on(context: Context) -> [String; 3] {
        let swallowed = name(&context, "who").await.map_err(ToolError::into_message).unwrap_or_else(|error| error);
        let asked = name(&context, "more").await.map_err(ToolError::into_message).unwrap_or_else(|error| error);
        let done = charged(&context).await.map_or_else(ToolError::into_message, |number| number.to_string());
        [swallowed, asked, done]
    }
    async fn spawns(context: Context) -> Result<String, ToolError> {
        let said = Said::of(&context)?;
        tokio::spawn(async move { said.send(goes_on(context).await) }).await??;
        Ok("done".into())
    }
    fn blocks(context: Context) -> Result<String, ToolError> {
        let said = Said::of(&context)?;
        said.send(tokio::runtime::Handle::current().block_on(goes_on(context)))?;
        Ok("done".into())
    }
    type Words = tokio::sync::mpsc::UnboundedSender<[String; 3]>;
    struct Said(Words);
    impl Said {
        fn of(context: &Context) -> Result<Words, ToolError> {
            Ok(context.state::<Self>()?.0.clone())
        }
    }
    for tool in [Tool::new("does", spawns), Tool::blocking("does", blocks)] {
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let builder = Server::builder(implementation!()).state(Deeds::default()).state(Said(said));
        let server = builder.tool(tool).build();
        let first = call(&server).await;
        assert_eq!(asked(&first), ["who"]);
        assert_eq!(heard.recv().await.unwrap(), ["The call is over"; 3]);
        assert_eq!(server.state::<Deeds>().unwrap().counts(), (0, 0));
    }
}
