use std::collections::BTreeMap;

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use super::lenient;

/// What a client can do for a server that is answering it. Members that are no objects, or `null`, count as absent.
///
/// Specification: *schema, `ClientCapabilities`*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientCapabilities {
    /// It lists the directories that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<Raw>,
    /// It has a model answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Raw>,
    /// It asks its user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<Raw>,
    /// Extensions and their settings.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Raw>,
    /// What no specification describes.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, Raw>,
}

/// A capability that a tool can declare it needs of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientCapability {
    /// The client lists its roots.
    Roots,
    /// The client has a model answer.
    Sampling,
    /// The client asks its user.
    Elicitation,
}

impl ClientCapability {
    /// The member's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
        }
    }

    /// Whether `capabilities` has it.
    #[must_use]
    pub fn is_in(self, capabilities: &ClientCapabilities) -> bool {
        let member = match self {
            Self::Roots => &capabilities.roots,
            Self::Sampling => &capabilities.sampling,
            Self::Elicitation => &capabilities.elicitation,
        };
        member.as_ref().is_some_and(Raw::is_object)
    }
}

/// What a server offers.
///
/// Specification: *schema, `ServerCapabilities`*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerCapabilities {
    /// It has tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Raw>,
    /// It has resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Raw>,
    /// It has prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<Raw>,
    /// It completes arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Raw>,
    /// It sends log messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Raw>,
    /// Extensions and their settings.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub extensions: BTreeMap<String, Raw>,
    /// What no specification describes.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub experimental: BTreeMap<String, Raw>,
}
