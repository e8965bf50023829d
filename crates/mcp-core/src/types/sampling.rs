use mcp_jsonrpc::Raw;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{Content, PromptMessage, Role, content::Written};
use crate::Revision;

/// A request to the model of a client: the parameters of `sampling/createMessage`.
///
/// ```
/// use mcp_core::types::{CreateMessageParams, SamplingMessage};
///
/// let params = CreateMessageParams::new([SamplingMessage::user("Say hello")], 100).system_prompt("Be brief.");
/// ```
///
/// Specification: *Sampling, Creating Messages*.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// What was said so far.
    pub messages: Vec<SamplingMessage>,
    /// How many tokens the answer may have.
    #[serde(deserialize_with = "super::lenient::whole")]
    pub max_tokens: u64,
    /// What the model is to be told first; the client may change it.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Whose context the client is to add: `none`, `thisServer` or `allServers`. The last two are for clients that say they
    /// can; newer revisions advise against them.
    #[serde(default)]
    pub include_context: Option<String>,
    /// How random the answer is to be.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Texts at which the model is to stop.
    #[serde(default, deserialize_with = "super::lenient::or_default")]
    pub stop_sequences: Vec<String>,
    /// Which model is wanted, an object as it stands on the wire.
    #[serde(default)]
    pub model_preferences: Option<Raw>,
    /// The tools that the model may call, an array as it stands on the wire. From 2025-11-25 on.
    #[serde(default)]
    pub tools: Option<Raw>,
    /// Whether the model may, or must, call one, an object as it stands on the wire.
    #[serde(default)]
    pub tool_choice: Option<Raw>,
    /// Parameters for the model's provider, an object as it stands on the wire.
    #[serde(default)]
    pub metadata: Option<Raw>,
}

impl CreateMessageParams {
    /// What was said so far, and how many tokens the answer may have.
    pub fn new(messages: impl IntoIterator<Item = impl Into<SamplingMessage>>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into_iter().map(Into::into).collect(),
            max_tokens,
            system_prompt: None,
            include_context: None,
            temperature: None,
            stop_sequences: Vec::new(),
            model_preferences: None,
            tools: None,
            tool_choice: None,
            metadata: None,
        }
    }

    /// Sets what the model is to be told first.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
        self
    }

    /// Says whose context the client is to add.
    #[must_use]
    pub fn include_context(mut self, whose: impl Into<String>) -> Self {
        self.include_context = Some(whose.into());
        self
    }

    /// Sets how random the answer is to be.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the tools that the model may call, an array of the specification's `Tool` objects.
    #[must_use]
    pub fn tools(mut self, tools: Raw) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Sets whether the model may, or must, call a tool, the specification's `ToolChoice` object.
    #[must_use]
    pub fn tool_choice(mut self, choice: Raw) -> Self {
        self.tool_choice = Some(choice);
        self
    }
}

/// One message of what a model is to go on with.
///
/// Specification: *Sampling, Creating Messages*.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SamplingMessage {
    /// Who says it.
    #[serde(deserialize_with = "Role::or_user")]
    pub role: Role,
    /// What is said: one block, or several where tools are called.
    #[serde(deserialize_with = "one_or_several")]
    pub content: Vec<Content>,
}

impl SamplingMessage {
    /// What the user says.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: vec![content.into()] }
    }

    /// What the model says.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: vec![content.into()] }
    }

    /// The same message with a further block.
    #[must_use]
    pub fn and(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }
}

impl From<PromptMessage> for SamplingMessage {
    fn from(message: PromptMessage) -> Self {
        Self { role: message.role, content: vec![message.content] }
    }
}

/// What the model said, to go on with.
impl From<CreateMessageResult> for SamplingMessage {
    fn from(said: CreateMessageResult) -> Self {
        Self { role: said.role, content: said.content }
    }
}

/// What the model of a client said.
///
/// Specification: *Sampling, Creating Messages*.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// Who says it.
    #[serde(deserialize_with = "Role::or_assistant")]
    pub role: Role,
    /// What is said: one block, or several where tools are called.
    #[serde(deserialize_with = "one_or_several")]
    pub content: Vec<Content>,
    /// Which model said it.
    pub model: String,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a reason of the provider's own.
    #[serde(default)]
    pub stop_reason: Option<String>,
}

impl CreateMessageResult {
    /// What that model said.
    pub fn new(model: impl Into<String>, content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: vec![content.into()], model: model.into(), stop_reason: None }
    }

    /// The same answer with a further block.
    #[must_use]
    pub fn and(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Says why the model stopped.
    #[must_use]
    pub fn stop_reason(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// The text of all blocks that are text.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    let several = raw.as_str().trim_start().starts_with('[');
    if several { raw.decode() } else { raw.decode().map(|block| vec![block]) }.map_err(D::Error::custom)
}

/// How something of a sampling is written in a revision.
pub(crate) struct WrittenSampling<'a, T>(pub(crate) &'a T, pub(crate) Revision);

/// One block stands alone; several, or none, are an array.
impl Serialize for WrittenSampling<'_, Vec<Content>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [block] => Written(block, self.1).serialize(serializer),
            blocks => serializer.collect_seq(blocks.iter().map(|block| Written(block, self.1))),
        }
    }
}

impl Serialize for WrittenSampling<'_, SamplingMessage> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            role: Role,
            content: WrittenSampling<'a, Vec<Content>>,
        }
        Wire { role: self.0.role, content: WrittenSampling(&self.0.content, self.1) }.serialize(serializer)
    }
}

impl Serialize for WrittenSampling<'_, CreateMessageParams> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            messages: Vec<WrittenSampling<'a, SamplingMessage>>,
            max_tokens: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            system_prompt: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            include_context: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            temperature: Option<f64>,
            #[serde(skip_serializing_if = "<[String]>::is_empty")]
            stop_sequences: &'a [String],
            #[serde(skip_serializing_if = "Option::is_none")]
            model_preferences: Option<&'a Raw>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tools: Option<&'a Raw>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tool_choice: Option<&'a Raw>,
            #[serde(skip_serializing_if = "Option::is_none")]
            metadata: Option<&'a Raw>,
        }
        let Self(params, revision) = self;
        Wire {
            messages: params.messages.iter().map(|message| WrittenSampling(message, *revision)).collect(),
            max_tokens: params.max_tokens,
            system_prompt: params.system_prompt.as_deref(),
            include_context: params.include_context.as_deref(),
            temperature: params.temperature,
            stop_sequences: &params.stop_sequences,
            model_preferences: params.model_preferences.as_ref(),
            tools: params.tools.as_ref(),
            tool_choice: params.tool_choice.as_ref(),
            metadata: params.metadata.as_ref(),
        }
        .serialize(serializer)
    }
}

impl Serialize for WrittenSampling<'_, CreateMessageResult> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            role: Role,
            content: WrittenSampling<'a, Vec<Content>>,
            model: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            stop_reason: Option<&'a str>,
        }
        let Self(said, revision) = self;
        Wire {
            role: said.role,
            content: WrittenSampling(&said.content, *revision),
            model: &said.model,
            stop_reason: said.stop_reason.as_deref(),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'a, T>(it: &'a T) -> String
    where
        WrittenSampling<'a, T>: Serialize,
    {
        serde_json::to_string(&WrittenSampling(it, Revision::LATEST_LEGACY)).unwrap()
    }

    #[test]
    fn only_what_is_said_is_written() {
        let params = CreateMessageParams::new([SamplingMessage::user("hi")], 100);
        let message = r#"{"role":"user","content":{"type":"text","text":"hi"}}"#;
        assert_eq!(written(&params), format!(r#"{{"messages":[{message}],"maxTokens":100}}"#));
        let more = written(&params.system_prompt("x").temperature(0.5));
        assert!(more.contains(r#""systemPrompt":"x","temperature":0.5"#));
    }

    #[test]
    fn an_answer_is_one_block_or_several() {
        for (content, text) in [
            (r#"{"type":"text","text":"a"}"#, "a"),
            (r#"[{"type":"text","text":"a"},{"type":"tool_use","id":"1"},{"type":"text","text":"b"}]"#, "ab"),
            ("[]", ""),
        ] {
            let json = format!(r#"{{"role":"assistant","content":{content},"model":"m","stopReason":"endTurn"}}"#);
            let read = serde_json::from_str::<CreateMessageResult>(&json).unwrap();
            assert_eq!(read.to_text(), text);
            assert_eq!(written(&read), json);
        }
        assert!(
            serde_json::from_str::<CreateMessageResult>(r#"{"role":"assistant","content":5,"model":"m"}"#).is_err()
        );
    }

    #[test]
    fn a_request_reads_back_as_it_was_written() {
        let use_it = Content::tool_use("u1", "add", Raw::parse(r#"{"a":1}"#).unwrap());
        let result = Content::tool_result("u1", [Content::text("2")]);
        let params = CreateMessageParams::new(
            [
                SamplingMessage::user("1+1?"),
                SamplingMessage::assistant("wait").and(use_it),
                SamplingMessage::user(result),
            ],
            100,
        )
        .tool_choice(Raw::parse(r#"{"mode":"none"}"#).unwrap())
        .include_context("thisServer");
        let text = written(&params);
        assert!(text.contains(r#""includeContext":"thisServer""#));
        assert_eq!(serde_json::from_str::<CreateMessageParams>(&text).unwrap(), params, "{text}");
        assert!(text.contains(r#"{"type":"tool_result","toolUseId":"u1","content":[{"type":"text","text":"2"}]}"#));
    }
}
