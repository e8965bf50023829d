//! Messages that are read, and nothing more.

use std::{hint::black_box, time::Instant};

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use mcp_suite::jsonrpc::{Inbound, Message};
use rmcp::model::ClientJsonRpcMessage;
use serde_json::{Value, json};
use tower_mcp::protocol::JsonRpcRequest;

use super::{
    Effort, Score,
    call::{Era, Template, Work},
    float,
};
use crate::{Who, ours};

/// How long a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the programs of this package name both")]
pub enum Size {
    /// A call of `add`.
    Small,
    /// A call of some 175 KB.
    Large,
}

impl Size {
    /// The message.
    #[must_use]
    pub fn message(self) -> Bytes {
        match self {
            Self::Small => Template::new(Work::Add, Era::Modern).into_bytes().into(),
            Self::Large => large().to_string().into(),
        }
    }
}

/// A text with escapes, and what a program would send: objects in lists in objects.
fn large() -> Value {
    let text = "The 2nd line of \"three\":\tnaïve, 日本語, and a path C:\\temp.\n".repeat(1500);
    let entry = |index: u32| {
        json!({
            "id": index, "name": format!("entry {index}"), "tags": ["one", "two", null, true],
            "size": { "width": f64::from(index) * 1.5, "height": index },
        })
    };
    let entries: Vec<Value> = (0..750).map(entry).collect();
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "store",
            "arguments": { "text": text, "index": { "entries": entries } },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {}
            }
        }
    })
}

/// Reads a message over and over, in MB a second.
///
/// # Errors
/// When it is read as something else.
pub fn drive(who: Who, size: Size, effort: Effort) -> Result<Score> {
    let message = size.message();
    match who {
        Who::Value => repeat(effort, &message, || {
            let value: Value = serde_json::from_slice(&message)?;
            ensure!(value["method"] == "tools/call", "another method");
            Ok(value)
        }),
        Who::Ours => {
            let server = ours::server(crate::TOOLS)?;
            repeat(effort, &message, || match server.decode(message.clone()) {
                Inbound::One(Message::Request(request)) if &*request.method == "tools/call" => Ok(request),
                other => bail!("not read as a call: {other:?}"),
            })
        }
        Who::Rmcp => repeat(effort, &message, || {
            let message: ClientJsonRpcMessage = serde_json::from_slice(&message)?;
            ensure!(matches!(message, ClientJsonRpcMessage::Request(_)), "not read as a request");
            Ok(message)
        }),
        Who::TowerMcp => repeat(effort, &message, || {
            let request: JsonRpcRequest = serde_json::from_slice(&message)?;
            ensure!(request.method == "tools/call", "another method");
            Ok(request)
        }),
        other => bail!("nothing of {other} reads messages"),
    }
}

fn repeat<T>(effort: Effort, message: &Bytes, mut read: impl FnMut() -> Result<T>) -> Result<Score> {
    let (start, mut calls) = (Instant::now(), 0);
    while effort.goes_on(start, calls) {
        black_box(read()?);
        calls += 1;
    }
    let megabytes = float(calls * message.len() as u64) / 1e6;
    Ok(Score::new(megabytes / start.elapsed().as_secs_f64(), calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_message_has_its_size_and_escapes() {
        let message = Size::Large.message();
        assert!((170_000..180_000).contains(&message.len()), "{}", message.len());
        assert!(memchr::memmem::find(&message, br#"\"three\":\tna"#).is_some());
    }

    #[test]
    fn everybody_reads_both_messages() {
        for who in [Who::Value, Who::Ours, Who::Rmcp, Who::TowerMcp] {
            for size in [Size::Small, Size::Large] {
                assert_eq!(drive(who, size, Effort::Calls(2)).unwrap().calls, 2, "{who}");
            }
        }
    }
}
