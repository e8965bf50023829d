//! Any text for a cursor, on every list, while the list changes.

use mcp_core::{Server, Tool, ToolError, implementation};
use serde_json::{Value, json};

use crate::{choices::Choices, run, server::limits};

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

fn tool(name: String) -> Tool {
    Tool::new(name, nothing)
}

/// A page or -32602; a page's own cursor is good; a walk ends, has no tool twice, and misses none that stayed.
pub fn cursors(data: &[u8]) {
    run(async {
        let mut choices = Choices::new(data);
        let count = 1 + choices.below(16);
        let mut server = Server::builder(implementation!()).limits(limits());
        for name in 0..count {
            server = server.tool(tool(format!("t{name}")));
        }
        let server = server.build();
        let any = list(&server, json!(choices.text())).await;
        assert!(any["result"].is_object() || any["error"]["code"] == -32602, "{any}");
        let mut walked: Vec<String> = Vec::new();
        let mut cursor = Value::Null;
        // What is removed is never added again, and what is added is behind all that was there.
        for _ in 0..64 {
            let page = list(&server, cursor.clone()).await;
            let tools = page["result"]["tools"].as_array().unwrap_or_else(|| panic!("its own cursor: {page}"));
            assert!(tools.len() <= 2);
            walked.extend(tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()));
            match page["result"].get("nextCursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
            match choices.below(4) {
                0 => _ = server.tools().remove(&format!("t{}", choices.below(count))),
                1 if walked.len() < 32 => drop(server.tools().add([tool(format!("n{}", choices.byte()))])),
                _ => {}
            }
        }
        let mut names = walked.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), walked.len(), "a tool came twice: {walked:?}");
        let whole = list(&server, Value::Null).await;
        assert!(whole["result"]["tools"].is_array());
    });
}

async fn list(server: &Server, cursor: Value) -> Value {
    let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params }).to_string();
    let answer = server.handle(request).await.expect("an answer");
    serde_json::from_slice(&answer).expect("JSON")
}
