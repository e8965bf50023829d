//! The client. By itself it speaks the legacy era; it is told to find out.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};
use calls::{Answer, make_calls, report};
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        GetPromptRequestParams, Implementation, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        ResourceContents, SubscriptionFilter,
    },
    service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::{process::Command, sync::Notify};

/// What the server says on its own.
#[derive(Clone, Default)]
struct Hearer(Arc<Heard>);

#[derive(Default)]
struct Heard {
    steps: Mutex<Vec<f64>>,
    stepped: Notify,
    changed: Notify,
}

impl ClientHandler for Hearer {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("rmcp-peer", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = match question {
            ElicitRequestParams::FormElicitationParams { message, .. } => calls::answer(&message),
            _ => None,
        };
        Ok(match answer {
            Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.steps().push(step.progress);
        self.0.stepped.notify_one();
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.notify_one();
    }
}

impl Heard {
    fn steps(&self) -> impl std::ops::DerefMut<Target = Vec<f64>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Peer {
    client: RunningService<RoleClient, Hearer>,
    heard: Arc<Heard>,
}

pub(crate) async fn visit(era: &str, calls: &str, wire: &str, target: &[String]) -> Result<()> {
    let hearer = Hearer::default();
    let heard = hearer.0.clone();
    let client = match (wire, target) {
        ("stdio", [program, arguments @ ..]) => {
            let mut command = Command::new(program);
            command.args(arguments);
            hearer.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle(era)?).await?
        }
        (_, [url]) => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            hearer.serve_with_lifecycle(transport, lifecycle(era)?).await?
        }
        _ => bail!("no wire {wire} to {target:?}"),
    };
    let info = client.peer_info().context("the server says nothing of itself")?;
    report(&json!({ "revision": info.protocol_version.as_str() }));
    make_calls(calls, &Peer { client, heard }).await
}

fn lifecycle(era: &str) -> Result<ClientLifecycleMode> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        "modern" => Ok(ClientLifecycleMode::Discover { preferred_versions }),
        "legacy" => Ok(ClientLifecycleMode::Initialize),
        "either" => Ok(ClientLifecycleMode::Auto { preferred_versions, legacy_version: None }),
        _ => bail!("no era {era}"),
    }
}

fn request(tool: &str, arguments: Value) -> Result<CallToolRequestParams> {
    let mut request = CallToolRequestParams::new(tool.to_owned());
    request.arguments = serde_json::from_value(arguments)?;
    Ok(request)
}

impl calls::Peer for Peer {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Answer> {
        self.heard.steps().clear();
        let result = self.client.call_tool(request(tool, arguments)?).await?;
        let text = result.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
        let progress = mem::take(&mut *self.heard.steps());
        Ok(Answer { text, failed: result.is_error.unwrap_or_default(), progress })
    }

    async fn read(&self, uri: &str) -> Result<String> {
        let result = self.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        let texts = result.contents.into_iter().map(|contents| match contents {
            ResourceContents::TextResourceContents { text, .. } => text,
            _ => "(no text)".to_owned(),
        });
        Ok(texts.collect())
    }

    async fn get(&self, prompt: &str, arguments: Value) -> Result<String> {
        let mut request = GetPromptRequestParams::new(prompt);
        request.arguments = serde_json::from_value(arguments)?;
        let result = self.client.get_prompt(request).await?;
        Ok(result.messages.iter().filter_map(|message| Some(message.content.as_text()?.text.as_str())).collect())
    }

    async fn give_up(&self, tool: &str) -> Result<()> {
        tokio::select! {
            ended = self.client.call_tool(request(tool, json!({}))?) => bail!("{tool} has ended: {ended:?}"),
            () = self.heard.stepped.notified() => Ok(()),
        }
    }

    async fn hear_change(&self, tool: &str, arguments: Value) -> Result<()> {
        let is_modern =
            self.client.peer_info().is_some_and(|info| info.protocol_version == ProtocolVersion::V_2026_07_28);
        if !is_modern {
            self.call(tool, arguments).await?;
            self.heard.changed.notified().await;
            return Ok(());
        }
        let mut changes = self.client.listen(SubscriptionFilter::builder().tools_list_changed().build()).await?;
        self.call(tool, arguments).await?;
        changes.next().await?.context("the subscription has ended")?;
        Ok(changes.cancel().await?)
    }

    async fn tools(&self) -> Result<Vec<String>> {
        Ok(self.client.list_all_tools().await?.into_iter().map(|tool| tool.name.into_owned()).collect())
    }
}
