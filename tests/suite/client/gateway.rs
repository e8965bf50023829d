//! A client, a server that mounts another, and that other one: whichever era each side speaks, the call at one end is the
//! call at the other.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_http::Routes;
use mcp_suite::{
    ClientBuilder, Context, ErrorKind, Prompt, Resource, ResourceTemplate, Server, Tool, ToolError,
    client::{CallOptions, Changed},
    server::{PromptArguments, form},
    types::{
        CompleteParams, Completion, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
        NotificationFilter, PromptArgument, Root, SamplingMessage,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::http::Served;

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn name(context: &Context, key: &str) -> Result<String, ToolError> {
    Ok(context.elicit(key, form::<Name>(key)).await?.name)
}

/// What the far server has done and seen.
#[derive(Clone, Default)]
struct Seen {
    started: Arc<AtomicU32>,
    cancelled: Arc<AtomicU32>,
}

fn far(seen: &Seen) -> Server {
    let conversation = {
        let seen = seen.clone();
        move |context: Context| {
            let seen = seen.clone();
            async move {
                context.once("count", async || Ok::<_, ToolError>(seen.started.fetch_add(1, Ordering::SeqCst))).await?;
                let (left, right) = tokio::join!(name(&context, "left"), name(&context, "right"));
                context.progress(1.0, Some(2.0), "halfway");
                let question = CreateMessageParams::new([SamplingMessage::user("Say it")], 10);
                let said = context.sample("say", question).await?.to_text();
                let roots = context.roots("where").await?;
                Ok::<_, ToolError>(format!("{} {} {said} {}", left?, right?, roots[0].uri))
            }
        }
    };
    let waits = {
        let seen = seen.clone();
        move |context: Context| {
            let seen = seen.clone();
            let ended = context.cancelled();
            tokio::spawn(async move {
                ended.await;
                seen.cancelled.fetch_add(1, Ordering::SeqCst);
            });
            async move {
                context.progress(1.0, None, "started");
                std::future::pending::<Result<(), ToolError>>().await
            }
        }
    };
    async fn fails() -> Result<(), ToolError> {
        Err(ToolError::new("out of paper"))
    }
    async fn asks(context: Context) -> Result<String, ToolError> {
        name(&context, "who").await
    }
    let read = |_: Context, variables: mcp_suite::uri_template::Variables| async move {
        Ok::<_, ToolError>(format!("row {}", variables.get("id").unwrap_or_default()))
    };
    let greet = |_: Context, arguments: PromptArguments| async move {
        Ok::<_, ToolError>(format!("Hello, {}", arguments.get("whom").unwrap_or_default()))
    };
    let complete = |_: Context, value: String, _: PromptArguments| async move {
        Ok::<_, ToolError>(Completion::of([format!("{value}!")]))
    };
    Server::builder(implementation!())
        .tool(Tool::new("conversation", conversation))
        .tool(Tool::new("waits", waits))
        .tool(Tool::new("fails", fails))
        .resource(Resource::new("x:asks", "asks", asks))
        .template(ResourceTemplate::new("x:rows/{id}", "rows", read))
        .prompt(Prompt::new("greet", greet).argument(PromptArgument::new("whom").required()).complete("whom", complete))
        .build()
}

fn of_era(builder: ClientBuilder, era: Era) -> ClientBuilder {
    builder.revisions(Revision::ALL.iter().copied().filter(|revision| revision.era() == era))
}

fn person() -> ClientBuilder {
    Client::builder(implementation!())
        .on_elicit(|question: ElicitParams| async move { ElicitResult::accept(json!({ "name": question.message })) })
        .on_sample(|_| async { Ok(CreateMessageResult::new("test", "it")) })
        .on_roots(|| async { Ok(vec![Root::new("file:///home")]) })
}

/// The two eras on both sides, and two wires to the far server: the client that speaks to the gateway, and the far server.
async fn gateways() -> Vec<(String, Client, Server, Server, Seen)> {
    let mut all = Vec::new();
    for there in ERAS {
        for here in ERAS {
            for http in [false, true] {
                let seen = Seen::default();
                let far = far(&seen);
                let to_far = of_era(Client::builder(implementation!()), there).pass_questions();
                let to_far = if http {
                    let served = Served::with(Routes::new(far.clone()), "127.0.0.1").await;
                    let client = to_far.connect(Http::new(format!("http://{}/mcp", served.address))).await.unwrap();
                    // For as long as the test runs.
                    std::mem::forget(served);
                    client
                } else {
                    to_far.connect(far.clone()).await.unwrap()
                };
                let gateway = Server::builder(implementation!()).build();
                gateway.mount("far", to_far).await.unwrap();
                let client = of_era(person(), here).connect(gateway.clone()).await.unwrap();
                let wire = if http { "http" } else { "memory" };
                all.push((format!("{here:?} -> {there:?} over {wire}"), client, gateway, far, seen));
            }
        }
    }
    all
}

#[tokio::test]
async fn a_call_asks_tells_and_ends_through_a_gateway_as_without() {
    for (which, client, _gateway, _far, seen) in gateways().await {
        let heard = Arc::<Mutex<Vec<f64>>>::default();
        let hearing = heard.clone();
        let options = CallOptions::new().on_progress(move |told| hearing.lock().unwrap().push(told.progress));
        let said = soon(client.call_with::<String>("far_conversation", (), options)).await;
        assert_eq!(said.unwrap_or_else(|error| panic!("{which}: {error:?}")), "left right it file:///home", "{which}");
        assert_eq!(seen.started.load(Ordering::SeqCst), 1, "{which}");
        assert!(heard.lock().unwrap().contains(&1.0), "{which}");
        let failed = client.call::<()>("far_fails", ()).await.unwrap_err();
        assert_eq!((failed.kind(), failed.to_string()), (ErrorKind::HandlerFailed, "out of paper".into()), "{which}");
        let read = soon(client.read_resource("x:asks")).await.unwrap();
        assert_eq!(read.contents[0].as_text(), Some("who"), "{which}");
        let row = client.read_resource("x:rows/7").await.unwrap();
        assert_eq!((row.contents[0].as_text(), &*row.contents[0].uri), (Some("row 7"), "x:rows/7"), "{which}");
        let prompt = client.get_prompt("far_greet", json!({ "whom": "Ada" })).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("Hello, Ada"), "{which}");
        let completion = client.complete(CompleteParams::prompt("far_greet", "whom", "A")).await.unwrap();
        assert_eq!(completion.values, ["A!"], "{which}");
    }
}

#[tokio::test]
async fn many_conversations_at_once_are_not_mixed_up() {
    for (which, client, ..) in gateways().await {
        // A legacy server on a shared wire does not say which call it asks about.
        if which == "Legacy -> Legacy over memory" || which == "Modern -> Legacy over memory" {
            let (one, two) = tokio::join!(
                client.call::<String>("far_conversation", ()),
                client.call::<String>("far_conversation", ())
            );
            let failed = [one, two].into_iter().filter(Result::is_err).count();
            assert!(failed >= 1, "{which}");
            continue;
        }
        let calls = (0..20).map(|_| client.call::<String>("far_conversation", ()));
        for said in soon(futures_util::future::join_all(calls)).await {
            assert_eq!(said.unwrap(), "left right it file:///home", "{which}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_here_ends_there() {
    for (which, client, _gateway, _far, seen) in gateways().await {
        println!("{which}");
        let token = CancellationToken::new();
        let started = token.clone();
        let options = CallOptions::new().cancel_with(token).on_progress(move |_| started.cancel());
        let error = soon(client.call_with::<()>("far_waits", (), options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestCancelled, "{which}");
        let ended = async {
            while seen.cancelled.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(ended).await;
    }
}

#[tokio::test]
async fn what_changes_there_changes_here() {
    async fn new() -> Result<&'static str, ToolError> {
        Ok("new")
    }
    for (which, client, gateway, far, _) in gateways().await {
        println!("{which}");
        let filter = NotificationFilter::new().tools().resource("x:asks");
        let mut changes = client.listen(filter).await.unwrap();
        assert!(changes.acknowledged().tools_list_changed, "{which}");
        far.tools().add(Tool::new("new", new)).unwrap();
        assert_eq!(soon(changes.next()).await, Some(Changed::Tools), "{which}");
        assert_eq!(client.call::<String>("far_new", ()).await.unwrap(), "new", "{which}");
        far.tools().remove("new");
        assert_eq!(soon(changes.next()).await, Some(Changed::Tools), "{which}");
        assert!(client.call::<String>("far_new", ()).await.is_err(), "{which}");
        // Until the gateway listens there, too.
        println!("listens");
        let updated = async {
            while !far.resource_updated("x:asks") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(updated).await;
        assert_eq!(soon(changes.next()).await, Some(Changed::Resource("x:asks".into())), "{which}");
        println!("told");
        drop(changes);
        let forgotten = async {
            while far.resource_updated("x:asks") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(forgotten).await;
        assert_eq!(gateway.tools().len(), 3, "{which}");
    }
}

#[tokio::test]
async fn a_mount_leaves_as_it_came_and_takes_nobodys_place() {
    async fn own() -> Result<&'static str, ToolError> {
        Ok("own")
    }
    let (gateway, far) =
        (Server::builder(implementation!()).tool(Tool::new("far_fails", own)).build(), far(&Seen::default()));
    let mount = gateway.mount("far", Client::connect(far.clone()).await.unwrap()).await.unwrap();
    let other = gateway.mount("", Client::connect(far.clone()).await.unwrap()).await.unwrap();
    let client = Client::connect(gateway.clone()).await.unwrap();
    assert_eq!(client.call::<String>("far_fails", ()).await.unwrap(), "own");
    assert!(client.call::<()>("fails", ()).await.is_err());
    assert_eq!((gateway.tools().len(), gateway.resources().len(), gateway.prompts().len()), (6, 1, 2));
    mount.unmount().await;
    assert_eq!((gateway.tools().len(), gateway.resources().len(), gateway.prompts().len()), (4, 0, 1));
    other.unmount().await;
    assert_eq!((gateway.tools().len(), gateway.templates().len(), gateway.prompts().len()), (1, 0, 0));
    // A client that disconnects takes its mount with it.
    let third = Client::connect(far).await.unwrap();
    gateway.mount("third", third.clone()).await.unwrap();
    assert_eq!(gateway.tools().len(), 4);
    third.disconnect().await;
    let left = async {
        while gateway.tools().len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    soon(left).await;
}
