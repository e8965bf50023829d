use std::collections::BTreeMap;

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use super::lenient;
use crate::{Blame, Error, ErrorKind, shown};

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
    /// The client's model may call tools: `sampling.tools`.
    SamplingTools,
    /// The client shows forms: `elicitation.form`, or `elicitation` with no mode at all.
    ElicitationForm,
    /// The client shows web pages: `elicitation.url`.
    ElicitationUrl,
    /// The client has the extension of that name.
    Extension(&'static str),
}

impl ClientCapability {
    const ALL: [Self; 6] = [
        Self::Roots,
        Self::Sampling,
        Self::SamplingTools,
        Self::Elicitation,
        Self::ElicitationForm,
        Self::ElicitationUrl,
    ];

    /// The member's name; one within another is named after it and a dot, and an extension by itself.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::Elicitation => "elicitation",
            Self::ElicitationForm => "elicitation.form",
            Self::ElicitationUrl => "elicitation.url",
            Self::Extension(name) => name,
        }
    }

    /// Whether `capabilities` has it.
    #[must_use]
    pub fn is_in(self, capabilities: &ClientCapabilities) -> bool {
        let names_no_mode = || Self::Elicitation.is_named(capabilities) && !Self::ElicitationUrl.is_named(capabilities);
        self.is_named(capabilities) || self == Self::ElicitationForm && names_no_mode()
    }

    /// All that `capabilities` names, of what the specification itself knows.
    pub(crate) fn named_in(capabilities: &ClientCapabilities) -> Vec<Self> {
        Self::ALL.into_iter().filter(|capability| capability.is_named(capabilities)).collect()
    }

    /// The member's name, and the name of the member within it.
    pub(crate) fn path(self) -> (&'static str, Option<&'static str>) {
        if let Self::Extension(name) = self {
            return ("extensions", Some(name));
        }
        self.name().split_once('.').map_or((self.name(), None), |(outer, inner)| (outer, Some(inner)))
    }

    fn is_named(self, capabilities: &ClientCapabilities) -> bool {
        if let Self::Extension(name) = self {
            return capabilities.extensions.contains_key(name);
        }
        let (outer, inner) = self.path();
        let member = match outer {
            "roots" => &capabilities.roots,
            "sampling" => &capabilities.sampling,
            _ => &capabilities.elicitation,
        };
        let member = member.as_ref().filter(|member| member.is_object());
        member
            .is_some_and(|member| inner.is_none_or(|inner| member.member(inner).is_some_and(|inner| inner.is_object())))
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

/// Whether peers can read what is said of extensions: names with a prefix, and settings that are objects.
///
/// # Errors
/// When they cannot.
///
/// Specification: *Overview, Extensions; `_meta`* (names of keys).
pub(crate) fn check_extensions(extensions: &BTreeMap<String, Raw>) -> Result<(), Error> {
    let is_good = |name: &str, settings: &Raw| {
        let has_prefix = name.split_once('/').is_some_and(|(prefix, name)| !prefix.is_empty() && !name.is_empty());
        has_prefix && !name.contains(char::is_whitespace) && settings.is_object()
    };
    match extensions.iter().find(|(name, settings)| !is_good(name, settings)) {
        None => Ok(()),
        Some((name, _)) => {
            let name = shown(name);
            let message = format!("the extension `{name}`: a name is `prefix/name`, and settings are an object");
            Err(Error::new(ErrorKind::InvalidParams, message).blaming(Blame::Caller))
        }
    }
}
