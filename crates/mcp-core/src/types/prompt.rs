use std::collections::BTreeMap;

use mcp_jsonrpc::{ByteString, Raw};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Content, content::Written, lenient};
use crate::Revision;

/// What a server tells of a prompt.
///
/// Specification: *Prompts, Data Types*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptDefinition {
    /// The name that gets it.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Pictures, as the specification's `Icon` objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
    /// What it can be filled in with.
    #[serde(default, deserialize_with = "lenient::null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Something that a prompt can be filled in with.
///
/// Specification: *Prompts, Data Types*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether there is no prompt without it.
    #[serde(default, deserialize_with = "lenient::null_is_default")]
    pub required: bool,
}

impl PromptArgument {
    /// An argument that may be left out.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, required: false }
    }

    /// Says what it is.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Names it for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// There is no prompt without it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

/// Who says something in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// A message is not lost for who is said to say it.
    pub(super) fn or_user<'de, D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Ok(lenient::or_default::<_, Option<Self>>(reader)?.unwrap_or(Self::User))
    }

    /// The same for what can only be the model's.
    pub(super) fn or_assistant<'de, D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Ok(lenient::or_default::<_, Option<Self>>(reader)?.unwrap_or(Self::Assistant))
    }
}

/// One message of a prompt.
///
/// Specification: *Prompts, PromptMessage*.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who says it; the user where it is nobody that this version knows, since nobody has less authority.
    #[serde(deserialize_with = "Role::or_user")]
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl PromptMessage {
    /// What the user says.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// What the model says.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// How a message is written in a revision.
pub(crate) struct WrittenMessage<'a>(pub(crate) &'a PromptMessage, pub(crate) Revision);

impl Serialize for WrittenMessage<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            role: Role,
            content: Written<'a>,
        }
        Wire { role: self.0.role, content: Written(&self.0.content, self.1) }.serialize(serializer)
    }
}

/// The parameters of `prompts/get`.
///
/// Specification: *Prompts, Getting a Prompt*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetPromptParams {
    /// The prompt's name.
    pub name: String,
    /// What it is filled in with.
    #[serde(default, deserialize_with = "lenient::null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
}

/// The result of `prompts/get`.
///
/// It reads from the wire; writing it is the server's, since the revision decides what may be in it.
///
/// Specification: *Prompts, Getting a Prompt*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What it is for.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub description: Option<String>,
    /// What is said.
    #[serde(default, deserialize_with = "lenient::null_is_default")]
    pub messages: Vec<PromptMessage>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Several messages are collected into a result.
impl FromIterator<PromptMessage> for GetPromptResult {
    fn from_iter<I: IntoIterator<Item = PromptMessage>>(messages: I) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }
}

/// The result of `prompts/list`, as a client reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// The prompts of this page, each still as its own JSON.
    pub prompts: Vec<Raw>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ByteString>,
}
