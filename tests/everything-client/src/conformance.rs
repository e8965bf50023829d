//! The client fixture of the official conformance suite: what to do is in the environment.

use std::{env, error::Error};

use mcp_suite::{Client, ClientBuilder, Revision, http::Http, implementation};
use serde_json::{Value, json};

/// Runs the scenario that `MCP_CONFORMANCE_SCENARIO` names against the server at `url`.
pub(crate) async fn run(url: &str) -> Result<(), Box<dyn Error>> {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let client = builder()?.connect(Http::new(url)).await?;
    match scenario.as_str() {
        "tools_call" => add_numbers(&client).await?,
        // What they watch is the connection itself, and any request.
        "initialize" | "request-metadata" | "" => drop(client.tools().await?),
        other => return Err(format!("no scenario `{other}`").into()),
    }
    client.disconnect().await;
    Ok(())
}

/// The suite may name the revision to be spoken.
fn builder() -> Result<ClientBuilder, Box<dyn Error>> {
    let builder = Client::builder(implementation!());
    match env::var("MCP_CONFORMANCE_PROTOCOL_VERSION") {
        Ok(version) => {
            let revision = Revision::parse(&version).ok_or_else(|| format!("no revision `{version}`"))?;
            Ok(builder.revisions([revision]))
        }
        Err(_) => Ok(builder),
    }
}

async fn add_numbers(client: &Client) -> Result<(), Box<dyn Error>> {
    let tools = client.tools().await?;
    if !tools.iter().any(|tool| tool.definition().name == "add_numbers") {
        return Err("the server does not list `add_numbers`".into());
    }
    let answer: Value = client.call("add_numbers", json!({ "a": 5, "b": 3 })).await?;
    println!("{answer}");
    Ok(())
}
