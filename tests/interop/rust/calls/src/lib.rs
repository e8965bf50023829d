//! What every peer here shares: the command line it is given, the JSON lines it prints, and what its tools have in common.
//! The README of the folder above has both.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

pub const QUESTION: &str = "What is your name?";
pub const RESOURCE: &str = "test://static-text";
pub const RESOURCE_TEXT: &str = "This is the content of the static text resource.";
pub const PROMPT: &str = "test_prompt_with_arguments";

/// The command line: `server WIRE`, or `client ERA CALLS WIRE TARGET...`.
pub enum Role {
    Server { wire: String },
    Client { era: String, calls: String, wire: String, target: Vec<String> },
}

impl Role {
    pub fn of_arguments() -> Result<Self> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        match words.as_slice() {
            [role, wire] if role == "server" => Ok(Self::Server { wire: wire.clone() }),
            [role, era, calls, wire, target @ ..] if role == "client" => {
                Ok(Self::Client { era: era.clone(), calls: calls.clone(), wire: wire.clone(), target: target.to_vec() })
            }
            _ => bail!("usage: server WIRE | client ERA CALLS WIRE TARGET..."),
        }
    }
}

/// A client, as far as the calls need it.
#[allow(async_fn_in_trait, reason = "nobody needs its futures to be Send")]
pub trait Peer {
    /// Calls a tool.
    async fn call(&self, tool: &str, arguments: Value) -> Result<Answer>;
    /// The text of a resource.
    async fn read(&self, uri: &str) -> Result<String>;
    /// The text of a prompt.
    async fn get(&self, prompt: &str, arguments: Value) -> Result<String>;
    /// Calls a tool, and gives it up once it tells of progress.
    async fn give_up(&self, tool: &str) -> Result<()>;
    /// Calls a tool that changes the list of tools, and hears of it.
    async fn hear_change(&self, tool: &str, arguments: Value) -> Result<()>;
    /// The names of all tools.
    async fn tools(&self) -> Result<Vec<String>>;
}

/// The answer of a tool.
pub struct Answer {
    pub text: String,
    pub failed: bool,
    pub progress: Vec<f64>,
}

/// Prints one line of the report.
pub fn report(line: &Value) {
    println!("{line}");
}

/// Makes every call and reports it.
pub async fn make_calls(calls: &str, peer: &impl Peer) -> Result<()> {
    for wanted in serde_json::from_str::<Vec<Value>>(calls)? {
        let kinds = ["tool", "resource", "prompt", "question", "cancel", "change"];
        let kind = kinds.into_iter().find(|kind| wanted[kind].is_string()).context("no such call")?;
        let mut line = make(kind, &wanted, peer).await.unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
        line[kind] = wanted[kind].clone();
        report(&line);
    }
    Ok(())
}

async fn make(kind: &str, wanted: &Value, peer: &impl Peer) -> Result<Value> {
    let (name, arguments) = (wanted[kind].as_str().unwrap_or_default(), wanted["arguments"].clone());
    let text = match kind {
        "tool" => {
            let Answer { text, failed, progress } = peer.call(name, arguments).await?;
            return Ok(json!({ "text": text, "failed": failed, "progress": progress }));
        }
        "resource" => peer.read(name).await?,
        "prompt" => peer.get(name, arguments).await?,
        "question" => peer.call(name, json!({})).await?.text,
        "cancel" => {
            peer.give_up(name).await?;
            peer.call(wanted["then"].as_str().unwrap_or_default(), json!({})).await?.text
        }
        _ => {
            let before = peer.tools().await?;
            peer.hear_change(name, arguments).await?;
            let added = peer.tools().await?.into_iter().filter(|name| !before.contains(name));
            added.collect::<Vec<_>>().join(" ")
        }
    };
    Ok(json!({ "text": text }))
}

/// What the user says when a server asks; `None` where the question is another than expected.
pub fn answer(question: &str) -> Option<Value> {
    (question == QUESTION).then(|| json!({ "name": "Ada" }))
}

/// The form that the question comes with.
pub fn form() -> Value {
    json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] })
}

/// What the prompt says.
pub fn prompt(argument: impl Fn(&str) -> String) -> String {
    format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2"))
}

/// The calls that hang.
#[derive(Clone)]
pub struct Hanging(watch::Sender<u64>);

/// One of them, until it is dropped.
pub struct Hangs(watch::Sender<u64>);

impl Hanging {
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub fn one_more(&self) -> Hangs {
        self.0.send_modify(|calls| *calls += 1);
        Hangs(self.0.clone())
    }

    /// Waits until nothing hangs.
    pub async fn stopped(&self) {
        // The sender that is held here keeps it from failing.
        let _ = self.0.subscribe().wait_for(|calls| *calls == 0).await;
    }
}

impl Default for Hanging {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Hangs {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

/// A listener on a free port, which says where it is.
pub async fn listener(scheme: &str) -> Result<TcpListener> {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    eprintln!("listening on {scheme}://{}/mcp", listener.local_addr()?);
    Ok(listener)
}
