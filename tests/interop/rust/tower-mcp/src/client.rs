//! The client: it is told the era, and does not find out by itself.

use std::{
    mem,
    ops::DerefMut,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, bail};
use async_trait::async_trait;
use calls::{Answer, make_calls, report};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower_mcp::{
    JsonRpcError,
    client::{
        ClientHandler, HttpClientTransport, McpClient, ServerNotification, StdioClientTransport,
        WebSocketClientTransport,
    },
    protocol::{ElicitRequestParams, ElicitResult, SubscriptionFilter},
};

/// What the server says on its own.
#[derive(Clone, Default)]
struct Hearer(Arc<Heard>);

#[derive(Default)]
struct Heard {
    steps: Mutex<Vec<f64>>,
    stepped: Notify,
    changed: Notify,
}

impl Heard {
    fn steps(&self) -> impl DerefMut<Target = Vec<f64>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, notification: ServerNotification) {
        match notification {
            ServerNotification::Progress(step) => {
                self.steps().push(step.progress);
                self.stepped.notify_one();
            }
            ServerNotification::ToolsListChanged => self.changed.notify_one(),
            ServerNotification::Subscription { notification, .. } => self.hear(*notification),
            _ => {}
        }
    }
}

#[async_trait]
impl ClientHandler for Hearer {
    async fn handle_elicit(&self, question: ElicitRequestParams) -> Result<ElicitResult, JsonRpcError> {
        let answer = match question {
            ElicitRequestParams::Form(form) => calls::answer(&form.message),
            _ => None,
        };
        let content = answer.and_then(|content| serde_json::from_value(content).ok());
        Ok(content.map_or_else(ElicitResult::decline, ElicitResult::accept))
    }

    async fn on_notification(&self, notification: ServerNotification) {
        self.0.hear(notification);
    }
}

struct Peer {
    client: McpClient,
    heard: Arc<Heard>,
    is_modern: bool,
}

pub(crate) async fn visit(era: &str, calls: &str, wire: &str, target: &[String]) -> Result<()> {
    let (builder, hearer) = (McpClient::builder().with_elicitation().request_progress(), Hearer::default());
    let heard = hearer.0.clone();
    let client = match (wire, target) {
        ("stdio", [program, arguments @ ..]) => {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            builder.connect(StdioClientTransport::spawn(program, &arguments).await?, hearer).await?
        }
        ("ws", [url]) => builder.connect(WebSocketClientTransport::connect(url).await?, hearer).await?,
        (_, [url]) => builder.connect(HttpClientTransport::new(url), hearer).await?,
        _ => bail!("no wire {wire} to {target:?}"),
    };
    let is_modern = era == "modern";
    let revision = if is_modern {
        client.discover("tower-mcp-peer", "1.0.0").await?;
        client.selected_protocol_version().await
    } else {
        Some(client.initialize("tower-mcp-peer", "1.0.0").await?.protocol_version)
    };
    report(&json!({ "revision": revision }));
    let peer = Peer { client, heard, is_modern };
    make_calls(calls, &peer).await?;
    Ok(peer.client.shutdown().await?)
}

impl calls::Peer for Peer {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Answer> {
        self.heard.steps().clear();
        let result = self.client.call_tool(tool, arguments).await?;
        let progress = mem::take(&mut *self.heard.steps());
        Ok(Answer { text: result.all_text(), failed: result.is_error, progress })
    }

    async fn read(&self, uri: &str) -> Result<String> {
        let contents = self.client.read_resource(uri).await?.contents;
        Ok(contents.into_iter().filter_map(|contents| contents.text).collect())
    }

    async fn get(&self, prompt: &str, arguments: Value) -> Result<String> {
        let messages = self.client.get_prompt(prompt, serde_json::from_value(arguments)?).await?.messages;
        Ok(messages.iter().filter_map(|message| message.content.as_text()).collect())
    }

    async fn give_up(&self, tool: &str) -> Result<()> {
        tokio::select! {
            ended = self.client.call_tool(tool, json!({})) => bail!("{tool} has ended: {ended:?}"),
            () = self.heard.stepped.notified() => Ok(()),
        }
    }

    async fn hear_change(&self, tool: &str, arguments: Value) -> Result<()> {
        let filter = SubscriptionFilter { tools_list_changed: Some(true), ..Default::default() };
        let subscription = match self.is_modern {
            true => {
                let mut subscription = self.client.listen_subscriptions(filter).await?;
                subscription.acknowledged().await?;
                Some(subscription)
            }
            false => None,
        };
        self.call(tool, arguments).await?;
        self.heard.changed.notified().await;
        if let Some(subscription) = subscription {
            subscription.cancel().await?;
        }
        Ok(())
    }

    async fn tools(&self) -> Result<Vec<String>> {
        Ok(self.client.list_all_tools().await?.into_iter().map(|tool| tool.name).collect())
    }
}
