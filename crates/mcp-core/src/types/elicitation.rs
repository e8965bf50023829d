use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

/// A question to the user of a client: the parameters of `elicitation/create`.
///
/// Specification: *Elicitation*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ElicitParams {
    /// How it is asked; a form where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ElicitMode>,
    /// What the user reads.
    pub message: String,
    /// The JSON Schema of the answer: an object of texts, numbers, booleans and choices. A form's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Raw>,
    /// Where the user is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What names the visit to that place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<String>,
}

/// How a user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitMode {
    /// With a form that the client shows.
    Form,
    /// On a web page, so that the client does not see the answer. From 2025-11-25 on.
    Url,
}

impl ElicitParams {
    /// A form of that schema.
    pub fn form(message: impl Into<String>, requested_schema: Raw) -> Self {
        let requested_schema = Some(requested_schema);
        Self { mode: None, message: message.into(), requested_schema, url: None, elicitation_id: None }
    }

    /// A web page to visit; `id` names the visit, and must be unique.
    pub fn url(message: impl Into<String>, url: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            mode: Some(ElicitMode::Url),
            message: message.into(),
            requested_schema: None,
            url: Some(url.into()),
            elicitation_id: Some(id.into()),
        }
    }
}

/// What the user made of a question.
///
/// Specification: *Elicitation, Response Actions*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// Whether there is an answer.
    pub action: ElicitAction,
    /// The answer to a form, an object of the schema that was asked for; not to be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Raw>,
}

impl ElicitResult {
    /// The answer to a form, which must be an object; `()` where there is nothing to fill in.
    ///
    /// ```
    /// use mcp_core::types::ElicitResult;
    ///
    /// let answer = ElicitResult::accept(serde_json::json!({ "name": "Ada" }))?;
    /// # Ok::<(), mcp_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be written as a JSON object.
    pub fn accept(content: impl Serialize) -> Result<Self, Error> {
        let invalid = "the answer to a form must be an object";
        let raw = Raw::encode(&content).map_err(|error| Error::caused(ErrorKind::InvalidParams, invalid, error))?;
        let content = Some(raw).filter(|raw| !raw.is_null());
        match &content {
            Some(raw) if !raw.is_object() => Err(Error::new(ErrorKind::InvalidParams, invalid)),
            _ => Ok(Self { action: ElicitAction::Accept, content }),
        }
    }

    /// The user agrees to visit the page.
    #[must_use]
    pub fn agree() -> Self {
        Self { action: ElicitAction::Accept, content: None }
    }

    /// The user said no.
    #[must_use]
    pub fn decline() -> Self {
        Self { action: ElicitAction::Decline, content: None }
    }

    /// The user said nothing.
    #[must_use]
    pub fn cancel() -> Self {
        Self { action: ElicitAction::Cancel, content: None }
    }
}

/// Whether a user answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitAction {
    /// The user answered.
    Accept,
    /// The user said no.
    Decline,
    /// The user said nothing.
    Cancel,
}

impl ElicitAction {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}
