//! A key names one thing in a run of a handler: the same in both eras.

use std::time::{Duration, Instant};

use mcp_core::{Context, Era, Server, ServerBuilder, Tool, ToolError, implementation};
use mcp_test::RawClient;
use serde_json::{Value, json};

use super::rounds::{answers, ask, name, state};

/// Calls a tool, answers all that it asks with "Ada", and gives what comes of it.
async fn outcome(era: Era, server: &Server, tool: &str) -> String {
    match era {
        Era::Modern => in_rounds(server, tool).await,
        _ => in_place(server, tool).await,
    }
}

async fn in_rounds(server: &Server, tool: &str) -> String {
    let mut params = json!({ "name": tool });
    loop {
        let answer = ask(server, None, params).await;
        let Some(asked) = answer["result"]["inputRequests"].as_object() else { return super::text(&answer).to_owned() };
        let given: Vec<_> = asked.keys().map(|key| (key.as_str(), "Ada")).collect();
        params = json!({ "name": tool, "requestState": state(&answer), "inputResponses": answers(&given) });
    }
}

async fn in_place(server: &Server, tool: &str) -> String {
    let mut client = RawClient::connect(server.clone());
    let params = json!({
        "protocolVersion": mcp_core::Revision::LATEST_LEGACY.as_str(), "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "t", "version": "0" },
    });
    client.say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    client.hear().await;
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool } })).await;
    loop {
        let message = client.hear().await;
        if message.get("method").is_none() {
            return super::text(&message).to_owned();
        }
        let result = answers(&[("one", "Ada")])["one"].take();
        client.say(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
    }
}

async fn one_after_the_other(context: Context) -> Result<String, ToolError> {
    Ok(name(&context, "one").await? + &name(&context, "one").await?)
}

async fn at_once(context: Context) -> Result<String, ToolError> {
    let (one, other) = tokio::join!(name(&context, "one"), name(&context, "one"));
    Ok(one? + &other?)
}

/// Until the user says what there is no such user for.
async fn insists(context: Context) -> Result<String, ToolError> {
    while name(&context, "one").await? != "Bob" {}
    Ok("at last".into())
}

async fn twice_once(context: Context) -> Result<String, ToolError> {
    let done = async || context.once("one", async || Ok::<_, ToolError>(1)).await;
    Ok(format!("{} {}", done().await?, done().await?))
}

async fn of_two_kinds(context: Context) -> Result<String, ToolError> {
    let name = name(&context, "one").await?;
    Ok(format!("{name} {}", context.once("one", async || Ok::<_, ToolError>(1)).await?))
}

/// What came to nothing may be tried again.
async fn tries_again(context: Context) -> Result<String, ToolError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let done = context.once("one", async || if tries < 3 { Err(ToolError::new("no")) } else { Ok(tries) });
        if let Ok(tries) = done.await {
            return Ok(format!("{} after {tries}", name(&context, "two").await?));
        }
    }
}

#[tokio::test]
async fn a_key_that_is_taken_is_an_error_in_both_eras() {
    let tools = [
        Tool::new("one_after_the_other", one_after_the_other),
        Tool::new("at_once", at_once),
        Tool::new("insists", insists),
        Tool::new("twice_once", twice_once),
        Tool::new("of_two_kinds", of_two_kinds),
        Tool::new("tries_again", tries_again),
    ];
    let tools = tools.into_iter().map(|tool| tool.timeout(Duration::from_secs(5)));
    let server = tools.fold(Server::builder(implementation!()), ServerBuilder::tool).build();
    let two_questions = "The key `one` names two questions";
    for (tool, expected) in [
        ("one_after_the_other", two_questions),
        ("at_once", two_questions),
        ("insists", two_questions),
        ("twice_once", "The key `one` names two things that are done once"),
        ("of_two_kinds", "Ada 1"),
        ("tries_again", "Ada after 3"),
    ] {
        for era in [Era::Modern, Era::Legacy] {
            assert_eq!(outcome(era, &server, tool).await, expected, "{era:?} {tool}");
        }
    }
}

/// Nothing in such a loop waits for anything, so it must not keep the others, or its own end, from coming.
#[tokio::test]
async fn a_handler_that_asks_and_asks_is_ended_by_its_time() {
    async fn spins(context: Context, once: bool) -> Result<String, ToolError> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            let _: Result<String, ToolError> = match once {
                true => context.once("one", async || Ok::<_, ToolError>("Ada".to_owned())).await,
                false => name(&context, "one").await,
            };
        }
        Ok("nothing ended it".into())
    }
    let tools = [
        Tool::new("asks", |context: Context| spins(context, false)),
        Tool::new("does", |context: Context| spins(context, true)),
    ];
    let tools = tools.into_iter().map(|tool| tool.timeout(Duration::from_millis(50)));
    let server = tools.fold(Server::builder(implementation!()), ServerBuilder::tool).build();
    for tool in ["asks", "does"] {
        let given: Value = answers(&[("one", "Ada")]);
        let answer = ask(&server, None, json!({ "name": tool, "inputResponses": given })).await;
        assert_eq!(super::text(&answer), "The tool did not finish within 50 ms", "{tool}");
    }
}
