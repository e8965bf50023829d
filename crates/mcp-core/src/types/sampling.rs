use mcp_jsonrpc::Raw;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{Content, PromptMessage, Role, prompt::WrittenMessage};
use crate::Revision;

/// A request to the model of a client: the parameters of `sampling/createMessage`.
///
/// ```
/// use mcp_core::types::{CreateMessageParams, PromptMessage};
///
/// let params = CreateMessageParams::new([PromptMessage::user("Say hello")], 100).system_prompt("Be brief.");
/// ```
///
/// Specification: *Sampling, Creating Messages*.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CreateMessageParams {
    /// What was said so far.
    pub messages: Vec<PromptMessage>,
    /// How many tokens the answer may have.
    pub max_tokens: u64,
    /// What the model is to be told first; the client may change it.
    pub system_prompt: Option<String>,
    /// How random the answer is to be.
    pub temperature: Option<f64>,
    /// Texts at which the model is to stop.
    pub stop_sequences: Vec<String>,
    /// Which model is wanted, an object as it stands on the wire.
    pub model_preferences: Option<Raw>,
    /// The tools that the model may call, an array as it stands on the wire. From 2025-11-25 on.
    pub tools: Option<Raw>,
    /// Whether the model may, or must, call one, an object as it stands on the wire.
    pub tool_choice: Option<Raw>,
}

impl CreateMessageParams {
    /// What was said so far, and how many tokens the answer may have.
    pub fn new(messages: impl IntoIterator<Item = PromptMessage>, max_tokens: u64) -> Self {
        Self {
            messages: messages.into_iter().collect(),
            max_tokens,
            system_prompt: None,
            temperature: None,
            stop_sequences: Vec::new(),
            model_preferences: None,
            tools: None,
            tool_choice: None,
        }
    }

    /// Sets what the model is to be told first.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.system_prompt = Some(text.into());
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
}

/// How it is written in a revision.
pub(crate) struct WrittenSampling<'a>(pub(crate) &'a CreateMessageParams, pub(crate) Revision);

impl Serialize for WrittenSampling<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            messages: Vec<WrittenMessage<'a>>,
            max_tokens: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            system_prompt: Option<&'a str>,
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
        }
        let Self(params, revision) = self;
        Wire {
            messages: params.messages.iter().map(|message| WrittenMessage(message, *revision)).collect(),
            max_tokens: params.max_tokens,
            system_prompt: params.system_prompt.as_deref(),
            temperature: params.temperature,
            stop_sequences: &params.stop_sequences,
            model_preferences: params.model_preferences.as_ref(),
            tools: params.tools.as_ref(),
            tool_choice: params.tool_choice.as_ref(),
        }
        .serialize(serializer)
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
    pub role: Role,
    /// What is said: one block, or several where tools are called.
    #[serde(deserialize_with = "one_or_several")]
    pub content: Vec<Content>,
    /// Which model said it.
    pub model: String,
    /// Why it stopped.
    #[serde(default)]
    pub stop_reason: Option<String>,
}

impl CreateMessageResult {
    /// The text of all blocks that are text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Content::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    let raw = Raw::deserialize(deserializer)?;
    let several = raw.as_str().trim_start().starts_with('[');
    if several { raw.decode() } else { raw.decode().map(|block| vec![block]) }.map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_is_written() {
        let params = CreateMessageParams::new([PromptMessage::user("hi")], 100);
        let written = |params: &CreateMessageParams| {
            serde_json::to_string(&WrittenSampling(params, Revision::LATEST_LEGACY)).unwrap()
        };
        let message = r#"{"role":"user","content":{"type":"text","text":"hi"}}"#;
        assert_eq!(written(&params), format!(r#"{{"messages":[{message}],"maxTokens":100}}"#));
        assert!(
            written(&params.system_prompt("x").temperature(0.5)).contains(r#""systemPrompt":"x","temperature":0.5"#)
        );
    }

    #[test]
    fn an_answer_is_one_block_or_several() {
        for (content, text) in [
            (r#"{"type":"text","text":"a"}"#, "a"),
            (r#"[{"type":"text","text":"a"},{"type":"tool_use","id":"1"},{"type":"text","text":"b"}]"#, "ab"),
            ("[]", ""),
        ] {
            let json = format!(r#"{{"role":"assistant","content":{content},"model":"m","stopReason":"endTurn"}}"#);
            assert_eq!(serde_json::from_str::<CreateMessageResult>(&json).unwrap().to_text(), text);
        }
        assert!(
            serde_json::from_str::<CreateMessageResult>(r#"{"role":"assistant","content":5,"model":"m"}"#).is_err()
        );
    }
}
