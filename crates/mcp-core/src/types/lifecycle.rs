use mcp_jsonrpc::Raw;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Implementation, ServerCapabilities, lenient};

/// The parameters of `initialize`.
///
/// Specification: *2025-11-25, Lifecycle*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeParams {
    /// The newest revision that the client speaks, known to the server or not.
    pub protocol_version: String,
    /// What the client can do.
    pub capabilities: Raw,
    /// Who the client is.
    pub client_info: Raw,
}

/// The result of `initialize`.
///
/// Specification: *2025-11-25, Lifecycle*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// The revision that the connection speaks from now on, unless the client leaves.
    pub protocol_version: String,
    /// What the server offers.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub capabilities: ServerCapabilities,
    /// Who the server is; without a name where it does not say.
    #[serde(default = "nobody", deserialize_with = "named_or_nobody")]
    pub server_info: Implementation,
    /// How to use the server, for a model.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

fn nobody() -> Implementation {
    Implementation::new("", "")
}

/// A name is for people and logs: nothing hangs on it.
fn named_or_nobody<'de, D: Deserializer<'de>>(reader: D) -> Result<Implementation, D::Error> {
    Ok(lenient::or_default::<_, Option<Implementation>>(reader)?.unwrap_or_else(nobody))
}

/// The result of `server/discover`.
///
/// Specification: *Discovery*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// Every revision that the server accepts, newest first.
    #[serde(deserialize_with = "lenient::items")]
    pub supported_versions: Vec<String>,
    /// What the server offers.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub capabilities: ServerCapabilities,
    /// How to use the server, for a model.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Where the server says who it is.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}
