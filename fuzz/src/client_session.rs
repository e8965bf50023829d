//! A client and a server that answers whatever it likes, in either era.

use std::time::Duration;

use mcp_core::{
    Client, Error, FrameSink as _, FrameSource as _, Limits, MemorySink, MemorySource, Wire as _, implementation,
    jsonrpc::{Bytes, Frame},
};
use serde_json::{Value, json};

use crate::{choices::Choices, ends, ledger::Ledger, run};

/// No panic; every call ends, with a value or an error; so does the connection. No question of the server's is answered twice,
/// and nothing else is answered.
pub fn client_session(data: &[u8]) {
    run(async {
        let (here, there) = mcp_core::memory();
        let (source, sink) = there.split();
        let mut ledger = Ledger::default();
        ledger.has_batches = true;
        let server = HostileServer { choices: Choices::new(data), source, sink, ledger };
        let using = async {
            let limits = Limits::default().message_bytes(16 << 10).in_flight(4).queue_messages(16).max_pages(4);
            let client = Client::builder(implementation!()).limits(limits);
            let Ok(client) = ends("connecting", client.connect(here)).await else { return };
            let one = async {
                let _: Result<Value, Error> = client.call("add", json!({ "a": 1, "b": 2 })).await;
                let _: Result<String, Error> = client.call("echo", json!({ "text": "x" })).await;
            };
            let other = async {
                drop(client.tools().await);
                drop(client.read_resource("x:one").await);
            };
            let third = async {
                drop(client.prompts().await);
                drop(tokio::time::timeout(Duration::from_secs(1), client.ping()).await);
            };
            ends("a call", async { tokio::join!(one, other, third) }).await;
            ends("disconnecting", client.disconnect()).await;
        };
        tokio::select! {
            () = using => {}
            () = server.serve() => panic!("it serves for ever"),
        }
    });
}

struct HostileServer<'a> {
    choices: Choices<'a>,
    source: MemorySource,
    sink: MemorySink,
    /// Of what it asks the client.
    ledger: Ledger,
}

impl HostileServer<'_> {
    async fn serve(mut self) {
        while let Ok(Some(Frame::Line(frame))) = self.source.next().await {
            let request: Value = serde_json::from_slice(&frame).expect("a client writes JSON");
            assert_eq!(request["jsonrpc"], "2.0");
            if request.get("method").is_none() {
                assert!(request["result"].is_object() != request["error"].is_object(), "{request}");
                self.ledger.heard(&request);
                self.ledger.check();
            }
            for _ in 0..=self.choices.below(3) {
                if self.react(&request).await.is_err() {
                    break;
                }
            }
        }
        std::future::pending().await
    }

    async fn react(&mut self, request: &Value) -> std::io::Result<()> {
        match self.choices.below(12) {
            // Behind the input's end it is a good server, so that sessions get somewhere.
            0..=4 => {
                let result = self.result(request["method"].as_str().unwrap_or_default());
                self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await
            }
            5 => {
                let (code, message) =
                    (self.choices.one_of(&[-32601, -32600, -32602, -32022, -32002, 0]), self.choices.text());
                let data = self.choices.one_of(&["null", r#"{"supported":["2026-07-28"]}"#, "[]"]);
                let error = json!({ "code": code, "message": message, "data": serde_json::from_str::<Value>(data).expect("JSON") });
                self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await
            }
            6 => {
                let (id, kind) = (self.id(request), self.choices.text());
                self.say(json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": kind } })).await
            }
            7 => {
                let (method, params) = self.notification(request);
                self.say(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await
            }
            8 => {
                const METHODS: [&str; 5] = ["ping", "sampling/createMessage", "elicitation/create", "roots/list", "x"];
                let (id, method, message) = (self.id(request), self.choices.one_of(&METHODS), self.choices.text());
                let params = json!({ "message": message });
                self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await
            }
            9 => {
                let raw = Bytes::copy_from_slice(self.choices.bytes());
                self.send(raw).await
            }
            10 => {
                let result = self.result(request["method"].as_str().unwrap_or_default());
                let mut bytes =
                    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string().into_bytes();
                let place = (usize::from(self.choices.byte()) << 8 | usize::from(self.choices.byte())) % bytes.len();
                bytes[place] = self.choices.byte();
                self.send(bytes.into()).await
            }
            _ => {
                tokio::time::sleep(Duration::from_secs(self.choices.byte().into())).await;
                Ok(())
            }
        }
    }

    fn id(&mut self, request: &Value) -> Value {
        match self.choices.below(6) {
            0..=2 => request["id"].clone(),
            3 => json!(self.choices.byte()),
            4 => json!(self.choices.text()),
            _ => Value::Null,
        }
    }

    fn notification(&mut self, request: &Value) -> (&'static str, Value) {
        let token = self.id(request);
        match self.choices.below(6) {
            0 => ("notifications/progress", json!({ "progressToken": token, "progress": self.choices.byte() })),
            1 => ("notifications/tools/list_changed", json!({})),
            2 => ("notifications/message", json!({ "level": self.choices.text(), "data": [] })),
            3 => ("notifications/cancelled", json!({ "requestId": token })),
            4 => ("notifications/subscriptions/acknowledged", json!({ "notifications": {} })),
            _ => ("x", Value::Null),
        }
    }

    fn result(&mut self, method: &str) -> Value {
        let complete = if self.choices.byte() < 200 { json!("complete") } else { json!(self.choices.text()) };
        match method {
            "server/discover" => json!({
                "resultType": complete, "supportedVersions": [self.choices.one_of(&["2026-07-28", "2025-11-25", "1999-01-01"])],
                "capabilities": { "tools": {}, "resources": {}, "prompts": {} },
            }),
            "initialize" => json!({
                "protocolVersion": self.choices.one_of(&["2025-11-25", "2025-03-26", "2026-07-28", "1999-01-01"]),
                "capabilities": { "tools": { "listChanged": true }, "resources": {}, "prompts": {} },
                "serverInfo": { "name": self.choices.text(), "version": "0" },
            }),
            "tools/list" => {
                json!({ "resultType": complete, "tools": [{ "name": self.choices.text(), "inputSchema": { "type": "object" } }], "nextCursor": self.cursor() })
            }
            "prompts/list" => {
                json!({ "resultType": complete, "prompts": [{ "name": self.choices.text() }], "nextCursor": self.cursor() })
            }
            "resources/read" => {
                json!({ "resultType": complete, "contents": [{ "uri": self.choices.text(), "text": "" }] })
            }
            "tools/call" if self.choices.byte() > 200 => json!({
                "resultType": "input_required", "requestState": self.choices.text(),
                "inputRequests": { "a": { "method": self.choices.one_of(&["elicitation/create", "roots/list", "x"]), "params": {} } },
            }),
            _ => {
                json!({ "resultType": complete, "content": [{ "type": self.choices.one_of(&["text", "image", "hologram"]), "text": self.choices.text() }] })
            }
        }
    }

    fn cursor(&mut self) -> Value {
        match self.choices.below(4) {
            0 => Value::Null,
            1 => json!(""),
            _ => json!(self.choices.text()),
        }
    }

    async fn say(&mut self, message: Value) -> std::io::Result<()> {
        self.send(message.to_string().into()).await
    }

    async fn send(&mut self, frame: Bytes) -> std::io::Result<()> {
        self.ledger.sent(&frame);
        self.sink.send(&mut vec![frame]).await
    }
}
