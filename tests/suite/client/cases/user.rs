//! The user of the client: what it calls, what it gets, and what it hears on the way.

use std::{collections::VecDeque, time::Duration};

use mcp_core::{
    Client, Error,
    client::{CallOptions, CancellationToken, Changed, ClientBuilder, Subscription, Transport},
    jsonrpc::Raw,
    types::{CallToolResult, Content, GetPromptResult, LogLevel, NotificationFilter},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::Instant,
};

/// What became of something that was begun: its value as JSON, and how long it took.
pub(super) struct Outcome {
    pub(super) result: Result<String, Error>,
    pub(super) took: Duration,
}

/// A value as JSON, and the client where it is a connection, or what went wrong.
type Ending = Result<(String, Option<Client>), Error>;

/// Something that was begun.
struct Begun {
    task: JoinHandle<(Ending, Duration)>,
    token: CancellationToken,
}

/// Who uses the client.
pub(super) struct User {
    client: Option<Client>,
    /// In the order in which it was begun.
    begun: VecDeque<Begun>,
    hear: UnboundedSender<String>,
    pub(super) heard: UnboundedReceiver<String>,
    /// What listens to changes.
    listening: Vec<JoinHandle<()>>,
    timeout: Option<Duration>,
    at_most: Option<Duration>,
}

impl User {
    pub(super) fn new(timeout: Option<Duration>, at_most: Option<Duration>) -> Self {
        let (hear, heard) = unbounded_channel();
        Self { client: None, begun: VecDeque::new(), hear, heard, listening: Vec::new(), timeout, at_most }
    }

    pub(super) fn connect(&mut self, builder: ClientBuilder, transport: Box<dyn Transport>) {
        let hear = self.hear.clone();
        let builder = builder.on_log(move |message| drop(hear.send(json_of(&message))));
        self.begin(CancellationToken::new(), async move {
            let client = builder.connect(transport).await?;
            Ok((json_of(client.verdict()), Some(client)))
        });
    }

    fn begin<F>(&mut self, token: CancellationToken, does: F)
    where
        F: Future<Output = Ending> + Send + 'static,
    {
        let start = Instant::now();
        let task = tokio::spawn(async move { (does.await, start.elapsed()) });
        self.begun.push_back(Begun { task, token });
    }

    /// Begins what asks the client for something.
    fn ask<F>(&mut self, does: impl FnOnce(Client, CallOptions) -> F) -> Result<(), String>
    where
        F: Future<Output = Result<String, Error>> + Send + 'static,
    {
        let client = self.client.clone().ok_or("there is no client yet")?;
        let (token, hear) = (CancellationToken::new(), self.hear.clone());
        let mut options = CallOptions::new().cancel_with(token.clone());
        options = options.on_progress(move |progress| drop(hear.send(json_of(&progress))));
        if let Some(timeout) = self.timeout {
            options = options.timeout(timeout);
        }
        if let Some(at_most) = self.at_most {
            options = options.at_most(at_most);
        }
        let asked = does(client, options);
        self.begin(token, async move { Ok((asked.await?, None)) });
        Ok(())
    }

    /// Whether that step is the user's; if so, it is taken.
    pub(super) async fn act(&mut self, step: &str, text: &str) -> Result<bool, String> {
        let owned = text.to_owned();
        match step {
            "call" => {
                let (name, arguments) = call_of(text)?;
                self.ask(|client, options| async move {
                    Ok(client.call_with::<Value>(&name, arguments, options).await?.to_string())
                })?;
            }
            "raw" => {
                let (name, arguments) = call_of(text)?;
                self.ask(|client, options| async move {
                    Ok(of_result(&client.call_raw_with(&name, arguments, options).await?))
                })?;
            }
            "prompt" => {
                let (name, arguments) = call_of(text)?;
                self.ask(|client, options| async move {
                    Ok(of_prompt(&client.get_prompt_with(&name, arguments, options).await?))
                })?;
            }
            "read" => {
                let uri = call_of(text)?.0;
                self.ask(
                    |client, options| async move { Ok(json_of(&client.read_resource_with(&uri, options).await?)) },
                )?;
            }
            "list" => self.ask(|client, _| async move { list(&client, &owned).await })?,
            "ping" => self.ask(|client, _| async move { client.ping().await.map(|()| "null".to_owned()) })?,
            "log" => {
                let level = LogLevel::parse(text).ok_or_else(|| format!("`{text}` is no level"))?;
                self.ask(|client, _| async move { client.set_log_level(level).await.map(|()| "null".to_owned()) })?;
            }
            "listen" => self.listen(text)?,
            "unlisten" => {
                for listening in self.listening.drain(..) {
                    listening.abort();
                    let _ = listening.await;
                }
            }
            "drop" => self.leave().await?,
            "cancel" => self.begun.back().ok_or("there is nothing to cancel")?.token.cancel(),
            "disconnect" => self.client.as_ref().ok_or("there is no client yet")?.disconnect().await,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn listen(&mut self, text: &str) -> Result<(), String> {
        let filter = text.split_whitespace().fold(NotificationFilter::new(), |filter, word| match word {
            "tools" => filter.tools(),
            "prompts" => filter.prompts(),
            "resources" => filter.resources(),
            uri => filter.resource(uri),
        });
        let (hear, (keep, kept)) = (self.hear.clone(), tokio::sync::oneshot::channel());
        self.listening.push(tokio::spawn(async move {
            if let Ok(subscription) = kept.await {
                listen(subscription, &hear).await;
            }
        }));
        self.ask(|client, _| async move {
            let subscription = client.listen(filter).await?;
            let agreed = json_of(subscription.acknowledged());
            let _ = keep.send(subscription);
            Ok(agreed)
        })
    }

    /// Gives up what was begun last, as a caller does who does not wait any more.
    async fn leave(&mut self) -> Result<(), String> {
        let begun = self.begun.pop_back().ok_or("there is nothing to give up")?;
        begun.task.abort();
        match begun.task.await {
            Err(error) if error.is_cancelled() => Ok(()),
            _ => Err("it was over already".to_owned()),
        }
    }

    /// What became of what was begun first.
    pub(super) async fn outcome(&mut self) -> Result<Outcome, String> {
        let begun = self.begun.pop_front().ok_or("there is nothing that could have come of anything")?;
        let (result, took) = begun.task.await.map_err(|error| error.to_string())?;
        let result = result.map(|(value, client)| {
            self.client = client.or_else(|| self.client.take());
            value
        });
        Ok(Outcome { result, took })
    }

    /// Awaits what was begun last, which must end well.
    pub(super) async fn last(&mut self) -> Result<(), String> {
        let begun = self.begun.pop_back().ok_or("nothing was begun")?;
        let (result, _) = begun.task.await.map_err(|error| error.to_string())?;
        result.map(drop).map_err(|error| format!("{error:?}"))
    }

    pub(super) fn waits(&self) -> bool {
        !self.begun.is_empty()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Leaves for good.
    pub(super) fn go(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
        self.client = None;
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.go();
        self.begun.iter().for_each(|begun| begun.task.abort());
    }
}

async fn listen(mut subscription: Subscription, hear: &UnboundedSender<String>) {
    while let Some(changed) = subscription.next().await {
        let said = match changed {
            Changed::Tools => json!("tools"),
            Changed::Prompts => json!("prompts"),
            Changed::Resources => json!("resources"),
            Changed::Resource(uri) => json!({ "resource": uri }),
            other => json!(format!("{other:?}")),
        };
        let _ = hear.send(said.to_string());
    }
}

/// A name, in quotation marks where it needs them, and arguments.
fn call_of(text: &str) -> Result<(String, Option<Raw>), String> {
    let (name, rest) = if text.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let name = values.next().ok_or("no name")?.map_err(|error| error.to_string())?;
        (name, &text[values.byte_offset()..])
    } else {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        (name.to_owned(), rest)
    };
    let arguments = Some(rest.trim()).filter(|rest| !rest.is_empty());
    let arguments = arguments.map(|text| Raw::parse(text.to_owned())).transpose().map_err(|error| error.to_string())?;
    Ok((name, arguments))
}

async fn list(client: &Client, what: &str) -> Result<String, Error> {
    Ok(match what {
        "tools" => {
            let tools = client.tools().await?;
            json_of(&tools.iter().map(mcp_core::Tool::definition).collect::<Vec<_>>())
        }
        "prompts" => json_of(&client.prompts().await?),
        "resources" => json_of(&client.resources().await?),
        _ => json_of(&client.resource_templates().await?),
    })
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it can be written")
}

/// A result as text, in which digits are as they came.
fn of_result(result: &CallToolResult) -> String {
    let blocks: Vec<_> = result.content.iter().map(of_block).collect();
    let structured = result.structured_content.as_ref().map(|raw| format!(r#","structuredContent":{}"#, raw.as_str()));
    let meta = result.meta.as_ref().map(|raw| format!(r#","_meta":{}"#, raw.as_str()));
    format!(
        r#"{{"content":[{}],"isError":{}{}{}}}"#,
        blocks.join(","),
        result.is_error,
        structured.unwrap_or_default(),
        meta.unwrap_or_default()
    )
}

fn of_prompt(prompt: &GetPromptResult) -> String {
    let messages = prompt
        .messages
        .iter()
        .map(|message| format!(r#"{{"role":{},"content":{}}}"#, json_of(&message.role), of_block(&message.content)));
    let description = json_of(&prompt.description);
    format!(r#"{{"description":{description},"messages":[{}]}}"#, messages.collect::<Vec<_>>().join(","))
}

fn of_block(block: &Content) -> String {
    let tagged = |kind: &str, block: Result<Value, serde_json::Error>| {
        let mut block = block.expect("it can be written");
        block["type"] = kind.into();
        block.to_string()
    };
    match block {
        Content::Text(text) => tagged("text", serde_json::to_value(text)),
        Content::Image(media) => tagged("image", serde_json::to_value(media)),
        Content::Audio(media) => tagged("audio", serde_json::to_value(media)),
        Content::ResourceLink(link) => tagged("resource_link", serde_json::to_value(link)),
        Content::Resource(embedded) => tagged("resource", serde_json::to_value(embedded)),
        Content::Other(raw) => raw.as_str().to_owned(),
        other => json_of(&format!("{other:?}")),
    }
}
