//! A call and its answer as plain types, read and written by `serde_json`: what an application would do that knew of no
//! other method and checked nothing.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub(super) struct Call {
    pub(super) jsonrpc: String,
    pub(super) id: u64,
    pub(super) method: String,
    pub(super) params: Params,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Params {
    pub(super) name: String,
    pub(super) arguments: Addends,
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Addends {
    pub(super) a: i64,
    pub(super) b: i64,
}

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) version: String,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub(super) client: Implementation,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) capabilities: Capabilities,
}

#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Implementation {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct Capabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) roots: Option<Capability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sampling: Option<Capability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) elicitation: Option<Capability>,
}

#[derive(Clone, Default, Deserialize, Serialize)]
pub(super) struct Capability {}

#[derive(Deserialize, Serialize)]
pub(super) struct Answer {
    pub(super) jsonrpc: String,
    pub(super) id: u64,
    pub(super) result: CallResult,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult {
    pub(super) result_type: Option<String>,
    pub(super) content: Vec<Block>,
    #[serde(default)]
    pub(super) is_error: bool,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Block {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
}

/// Reads a call of `add`, adds, and writes the answer.
pub(super) fn answer(message: &[u8]) -> Result<Vec<u8>> {
    let call: Call = serde_json::from_slice(message)?;
    ensure!(call.method == "tools/call" && call.params.name == "add", "no call of `add`");
    let Addends { a, b } = call.params.arguments;
    let block = Block { kind: "text".to_owned(), text: (a + b).to_string() };
    let result = CallResult { result_type: Some("complete".to_owned()), content: vec![block], is_error: false };
    Ok(serde_json::to_vec(&Answer { jsonrpc: "2.0".to_owned(), id: call.id, result })?)
}
