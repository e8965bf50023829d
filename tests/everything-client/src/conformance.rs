//! The client fixture of the official conformance suite: what to do is in the environment.

use std::{
    env,
    error::Error,
    sync::{Arc, OnceLock},
};

use mcp_suite::{
    Client, ClientBuilder, Revision,
    http::Http,
    implementation,
    skills::SkillsClient,
    types::{ElicitParams, ElicitResult},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Runs the scenario that `MCP_CONFORMANCE_SCENARIO` names against the server at `url`.
pub(crate) async fn run(url: &str) -> Result<(), Box<dyn Error>> {
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    if scenario == "sep-2322-client-request-state" {
        return rounds(url).await;
    }
    if scenario.starts_with("auth/") {
        return crate::authorization::run(&scenario, url).await;
    }
    // The user leaves every form as it is.
    let builder = builder()?.on_elicit(|_| async { ElicitResult::accept(()) });
    let client = builder.connect(Http::new(url)).await?;
    match scenario.as_str() {
        "tools_call" => add_numbers(&client).await?,
        "elicitation-sep1034-client-defaults" => call(&client, "test_client_elicitation_defaults").await?,
        "sse-retry" => call(&client, "test_reconnection").await?,
        "http-standard-headers" => use_everything(&client).await?,
        "http-custom-headers" => call_what_the_suite_says(&client).await?,
        "http-invalid-tool-headers" => call_what_is_listed(&client).await?,
        "json-schema-2020-12-preservation" => echo_schema(&client).await?,
        "sep-2640-client-no-prefetch" => drop(SkillsClient::of(&client)?.list().await?),
        "sep-2640-client-verify-digest" | "sep-2640-client-verify-size" | "sep-2640-client-verify-frontmatter" => {
            load_skills(&client).await?;
        }
        // What they watch is the connection itself, and any request.
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" | "" => drop(client.tools().await?),
        other => return Err(format!("no scenario `{other}`").into()),
    }
    client.disconnect().await;
    Ok(())
}

/// The suite may name the revision to be spoken.
pub(crate) fn builder() -> Result<ClientBuilder, Box<dyn Error>> {
    let builder = Client::builder(implementation!());
    match env::var("MCP_CONFORMANCE_PROTOCOL_VERSION") {
        Ok(version) => {
            let revision = Revision::parse(&version).ok_or_else(|| format!("no revision `{version}`"))?;
            Ok(builder.revisions([revision]))
        }
        Err(_) => Ok(builder),
    }
}

async fn call(client: &Client, tool: &str) -> Result<(), Box<dyn Error>> {
    client.tools().await?;
    let answer: Value = client.call(tool, json!({})).await?;
    println!("{answer}");
    Ok(())
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

/// One of everything that has a name.
async fn use_everything(client: &Client) -> Result<(), Box<dyn Error>> {
    if let Some(tool) = client.tools().await?.first() {
        client.call_raw(&tool.definition().name, json!({})).await?;
    }
    if let Some(resource) = client.resources().await?.first() {
        client.read_resource(&resource.uri).await?;
    }
    if let Some(prompt) = client.prompts().await?.first() {
        client.get_prompt(&prompt.name, ()).await?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instructions {
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: Value,
}

async fn call_what_the_suite_says(client: &Client) -> Result<(), Box<dyn Error>> {
    client.tools().await?;
    let instructions: Instructions = serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?;
    for call in instructions.tool_calls {
        client.call_raw(&call.name, call.arguments).await?;
    }
    Ok(())
}

async fn call_what_is_listed(client: &Client) -> Result<(), Box<dyn Error>> {
    for tool in client.tools().await? {
        client.call_raw(&tool.definition().name, json!({ "region": "us-west1" })).await?;
    }
    Ok(())
}

/// The schema goes back as it came.
async fn echo_schema(client: &Client) -> Result<(), Box<dyn Error>> {
    let tools = client.tools().await?;
    let tool = tools.iter().find(|tool| tool.definition().name == "json_schema_2020_12_tool");
    let schema = &tool.ok_or("the server does not list the tool")?.definition().input_schema;
    client.call_raw("json_schema_echo", json!({ "schema": schema })).await?;
    Ok(())
}

/// Loads each skill, and reads all of its files if that succeeds.
async fn load_skills(client: &Client) -> Result<(), Box<dyn Error>> {
    let skills = SkillsClient::of(client)?;
    for skill in skills.list().await? {
        match skills.load(skill).await {
            Ok(loaded) => {
                for path in loaded.paths() {
                    loaded.read(&path).await?;
                }
            }
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}

/// Calls of several rounds, with another call while the user thinks.
async fn rounds(url: &str) -> Result<(), Box<dyn Error>> {
    let connected = Arc::<OnceLock<Client>>::default();
    let between = connected.clone();
    let answer = move |_: ElicitParams| {
        let client = between.get().cloned();
        async move {
            if let Some(client) = client {
                client.call_raw("test_mrtr_unrelated", ()).await?;
            }
            ElicitResult::accept(json!({ "confirmed": true }))
        }
    };
    let client = builder()?.on_elicit(answer).connect(Http::new(url)).await?;
    let client = connected.get_or_init(|| client);
    for tool in ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"] {
        client.call_raw(tool, ()).await?;
    }
    client.disconnect().await;
    Ok(())
}
