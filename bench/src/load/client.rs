//! Clients: calls of a server that does the least that it can, over HTTP.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use mcp_suite::{
    Client,
    http::{Http, reqwest},
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::{RoleClient, ServiceExt, model::CallToolRequestParams, service::RunningService};
use serde_json::json;
use tokio::{runtime, task::JoinSet};
use tower_mcp::client::{HttpClientTransport, McpClient};

use super::{
    Score,
    call::{ADDEND, FIRST},
    typed::{Addends, Answer, Call, Capabilities, Implementation, Meta, Params},
};
use crate::Who;

/// Keeps `depth` calls in flight, all in one thread.
///
/// # Errors
/// When a sum is wrong, or does not come.
pub fn drive(who: Who, address: SocketAddr, depth: u64, time: Duration) -> Result<Score> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let caller = Arc::new(Caller::connect(who, &format!("http://{address}/mcp")).await?);
        // What is opened by the first call shall not be timed with it.
        ensure!(caller.add(1).await? == 6, "another sum");
        let (start, next) = (Instant::now(), Arc::new(AtomicU64::new(FIRST)));
        let mut tasks = JoinSet::new();
        for _ in 0..depth {
            tasks.spawn(calls(Arc::clone(&caller), Arc::clone(&next), start, time));
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(Score::since(start, next.load(Ordering::Relaxed) - FIRST))
    })
}

/// One call after another.
async fn calls(caller: Arc<Caller>, next: Arc<AtomicU64>, start: Instant, time: Duration) -> Result<()> {
    while start.elapsed() < time {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let sum = caller.add(number).await?;
        ensure!(sum == number + ADDEND, "{sum} as the sum of {number} and {ADDEND}");
    }
    Ok(())
}

/// A client that is connected.
enum Caller {
    /// A pooled client of HTTP, which knows what it will get.
    Ceiling(reqwest::Client, String),
    Ours(Client),
    Rmcp(Box<RunningService<RoleClient, ()>>),
    TowerMcp(Box<McpClient>),
}

impl Caller {
    async fn connect(who: Who, url: &str) -> Result<Self> {
        Ok(match who {
            Who::Ceiling => Self::Ceiling(reqwest::Client::new(), url.to_owned()),
            Who::Ours => Self::Ours(Client::connect(Http::new(url)).await?),
            Who::Rmcp => Self::Rmcp(Box::new(().serve(StreamableHttpClientTransport::from_uri(url)).await?)),
            Who::TowerMcp => {
                let client = McpClient::connect(HttpClientTransport::new(url)).await?;
                client.initialize("bench", "1").await?;
                Self::TowerMcp(Box::new(client))
            }
            other => anyhow::bail!("no client of {other}"),
        })
    }

    /// Adds [`ADDEND`] to `number`.
    async fn add(&self, number: u64) -> Result<u64> {
        let arguments = || json!({ "a": number, "b": ADDEND });
        match self {
            Self::Ceiling(client, url) => post(client, url, number).await,
            Self::Ours(client) => Ok(client.call("add", arguments()).await?),
            Self::Rmcp(client) => {
                let arguments = arguments().as_object().cloned().unwrap_or_default();
                let result = client.call_tool(CallToolRequestParams::new("add").with_arguments(arguments)).await?;
                let text = result.content.first().and_then(|block| block.as_text()).context("no text")?;
                Ok(text.text.parse()?)
            }
            Self::TowerMcp(client) => Ok(client.call_tool_text("add", arguments()).await?.parse()?),
        }
    }
}

async fn post(client: &reqwest::Client, url: &str, number: u64) -> Result<u64> {
    let request = client.post(url).body(serde_json::to_vec(&call(number))?);
    let request = request.header("Content-Type", "application/json");
    let request = request.header("Accept", "application/json, text/event-stream");
    let request = request.header("MCP-Protocol-Version", "2026-07-28");
    let request = request.header("Mcp-Method", "tools/call").header("Mcp-Name", "add");
    let answer = request.send().await?.error_for_status()?.bytes().await?;
    let answer: Answer = serde_json::from_slice(&answer)?;
    ensure!(answer.id == number && !answer.result.is_error, "the answer to another call, or a failure");
    Ok(answer.result.content.first().context("no text")?.text.parse()?)
}

fn call(number: u64) -> Call {
    let client = Implementation { name: "bench".to_owned(), version: "1".to_owned() };
    let meta = Meta { version: "2026-07-28".to_owned(), client, capabilities: Capabilities::default() };
    let arguments = Addends { a: number.cast_signed(), b: ADDEND.cast_signed() };
    let params = Params { name: "add".to_owned(), arguments, meta };
    Call { jsonrpc: "2.0".to_owned(), id: number, method: "tools/call".to_owned(), params }
}
