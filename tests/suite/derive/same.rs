//! The examples: one server twice, with the macros and with the builders. No byte on the wire tells them apart.

#[path = "../../../crates/mcp-suite/examples/built.rs"]
#[expect(dead_code, reason = "an example has a `main` too")]
mod built;
#[path = "../../../crates/mcp-suite/examples/derived.rs"]
#[expect(dead_code, reason = "an example has a `main` too")]
mod derived;

use mcp_core::{Era, Revision, Server, meta_key, types::TASKS};
use mcp_test::RawClient;
use serde_json::{Value, json};

use super::ERAS;

/// A client that keeps what it is told, as it came.
struct Kept {
    client: RawClient,
    revision: Revision,
    lines: Vec<String>,
}

impl Kept {
    async fn say(&mut self, message: Value) {
        self.client.send(message.to_string()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = self.client.next().await.unwrap();
        let message: Value = serde_json::from_slice(&line).unwrap();
        let mut text = String::from_utf8(line.to_vec()).unwrap();
        // What is drawn anew each time: the state's seal, tasks and their times, and the ids of the server's own requests.
        let id = message["id"].as_str().filter(|_| message["method"].is_string());
        let members = ["requestState", "taskId", "createdAt", "lastUpdatedAt"];
        for drawn in members.map(|member| message["result"][member].as_str()).into_iter().chain([id]).flatten() {
            text = text.replace(drawn, "…");
        }
        self.lines.push(text);
        message
    }

    async fn request(&mut self, method: &str, mut params: Value) -> Value {
        if self.revision.era() == Era::Modern {
            params["_meta"] = json!({
                meta_key::PROTOCOL_VERSION: self.revision.as_str(),
                meta_key::CLIENT_CAPABILITIES: { "elicitation": {}, "extensions": { TASKS: {} } },
            });
        }
        self.say(json!({ "jsonrpc": "2.0", "id": self.lines.len(), "method": method, "params": params })).await;
        self.hear().await
    }

    /// The call that is a task, and its result.
    async fn survey(&mut self) -> String {
        let began = self.request("tools/call", json!({ "name": "survey" })).await;
        let told = self.lines.len();
        let mut result = began["result"].clone();
        while result["status"].is_string() && result["status"] != "completed" {
            if self.lines.len() > told {
                // How often it is asked for is not the server's.
                self.lines.pop();
            }
            let id = began["result"]["taskId"].clone();
            result = self.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
        }
        let result = result.get("result").unwrap_or(&result);
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    async fn greet(&mut self) {
        if self.revision.era() == Era::Modern {
            self.request("server/discover", json!({})).await;
            return;
        }
        let client = json!({ "name": "t", "version": "0" });
        let capabilities = json!({ "elicitation": {} });
        let params =
            json!({ "protocolVersion": self.revision.as_str(), "capabilities": capabilities, "clientInfo": client });
        self.request("initialize", params).await;
        self.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    /// The call that asks, and the answer.
    async fn alert(&mut self) -> Value {
        let mut params = json!({ "name": "alert", "arguments": { "city": "Oslo" } });
        let answer = json!({ "action": "accept", "content": { "go": true } });
        let asked = self.request("tools/call", params.clone()).await;
        if self.revision.era() == Era::Modern {
            params["inputResponses"] = json!({ "approval": answer });
            params["requestState"] = asked["result"]["requestState"].clone();
            return self.request("tools/call", params).await;
        }
        self.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
        self.hear().await
    }
}

async fn transcript(server: Server, revision: Revision) -> Vec<String> {
    let mut kept = Kept { client: RawClient::connect(server), revision, lines: Vec::new() };
    kept.greet().await;
    for list in ["tools/list", "prompts/list", "resources/templates/list", "resources/list"] {
        kept.request(list, json!({})).await;
    }
    for (tool, arguments) in [
        ("add", json!({ "a": 2, "b": 5 })),
        ("add", json!({ "a": 2 })),
        ("add", json!({ "a": i64::MAX, "b": 1 })),
        ("forecast", json!({ "city": "Oslo", "days": 3 })),
        ("forecast", json!({ "city": "Rome" })),
        ("forecast", json!({ "city": "Rome", "days": -1 })),
        ("forecast", json!({})),
    ] {
        kept.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    }
    let alerted = kept.alert().await;
    assert_eq!(alerted["result"]["content"][0]["text"], "Oslo is alerted");
    assert_eq!(kept.survey().await, "rain and sun");
    for arguments in [json!({ "city": "Oslo" }), json!({ "city": "Oslo", "interest": "art" }), json!({})] {
        kept.request("prompts/get", json!({ "name": "plan", "arguments": arguments })).await;
    }
    for uri in ["weather:///Oslo", "weather:///Nowhere"] {
        kept.request("resources/read", json!({ "uri": uri })).await;
    }
    let template = json!({ "type": "ref/resource", "uri": "weather:///{city}" });
    let params = json!({ "ref": template, "argument": { "name": "city", "value": "O" } });
    let completed = kept.request("completion/complete", params).await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["Oslo"]));
    kept.lines
}

#[tokio::test]
async fn the_same_server_with_macros_and_with_builders_says_the_same() {
    for revision in ERAS {
        let (derived, built) =
            (transcript(derived::server(), revision).await, transcript(built::server(), revision).await);
        for (derived, built) in derived.iter().zip(&built) {
            assert_eq!(derived, built, "{revision}");
        }
        assert_eq!(derived.len(), built.len());
        assert!(derived.len() > 18, "{derived:#?}");
    }
}
