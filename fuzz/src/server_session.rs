//! Any row of messages to a server, in either era, be they right, mangled or said before.

use std::time::Duration;

use mcp_core::{
    FrameSink as _, FrameSource as _, MemorySink, MemorySource, Wire as _,
    jsonrpc::{Bytes, Frame},
};
use serde_json::{Value, json};

use crate::{FOREVER, choices::Choices, ends, ledger::Ledger, run, server::server};

/// In paused time: until nothing is ready to run any more.
const MOMENT: Duration = Duration::from_millis(1);

const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// No panic; every request is answered once, or cancelled; nothing else is answered; the connection ends in good order.
pub fn server_session(data: &[u8]) {
    run(async {
        let (here, there) = mcp_core::memory();
        let serving = tokio::spawn(mcp_core::server::serve(server(), there));
        let (source, sink) = here.split();
        let mut talk = Talk::new(data, source, sink);
        talk.begin().await;
        for _ in 0..64 {
            if !talk.choices.are_left() {
                break;
            }
            talk.act().await;
            talk.ledger.check();
        }
        talk.end().await;
        let served = ends("the connection", serving).await.expect("no panic");
        assert!(served.is_ok(), "{served:?}");
    });
}

struct Talk<'a> {
    choices: Choices<'a>,
    source: MemorySource,
    sink: MemorySink,
    ledger: Ledger,
    is_modern: bool,
    last: Vec<u8>,
    /// The ids of the server's questions that are open.
    asked: Vec<Value>,
    state: Option<Value>,
}

impl<'a> Talk<'a> {
    fn new(data: &'a [u8], source: MemorySource, sink: MemorySink) -> Self {
        let mut choices = Choices::new(data);
        let is_modern = choices.byte() % 2 == 0;
        let ledger = Ledger::default();
        Self { choices, source, sink, ledger, is_modern, last: Vec::new(), asked: Vec::new(), state: None }
    }

    /// The handshake, sometimes left out.
    async fn begin(&mut self) {
        let revision = self.choices.byte();
        if self.is_modern || revision > 250 {
            return;
        }
        let revision = LEGACY[usize::from(revision) % LEGACY.len()];
        let params = json!({
            "protocolVersion": revision,
            "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
            "clientInfo": { "name": "f", "version": "0" },
        });
        self.say(json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params })).await;
        self.hear_for(MOMENT).await;
        self.ledger.has_batches = revision == "2025-03-26";
        self.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }

    async fn act(&mut self) {
        match self.choices.below(12) {
            0..=3 => {
                let request = self.request();
                self.say(request).await;
            }
            4 => {
                let params = json!({ "requestId": self.id() });
                self.say(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
            }
            5 => self.answer().await,
            6 => {
                let raw = self.choices.bytes();
                self.send(raw.to_vec()).await;
            }
            7 => self.mangle().await,
            8 => self.send(self.last.clone()).await,
            9 => {
                let batch: Vec<Value> = (0..self.choices.below(4)).map(|_| self.request()).collect();
                self.say(Value::Array(batch)).await;
            }
            10 => {
                let ms = u64::from(self.choices.byte()) * 100;
                self.hear_for(MOMENT + Duration::from_millis(ms)).await;
            }
            _ => self.hear_for(MOMENT).await,
        }
    }

    fn id(&mut self) -> Value {
        match self.choices.byte() {
            byte @ 0..=7 => json!(byte),
            byte @ 8..=15 => json!((byte - 8).to_string()),
            16 => json!(""),
            17 => json!(-1),
            18 => json!(u64::MAX),
            19 => Value::Null,
            20 => json!(1.5),
            _ => json!(self.choices.text()),
        }
    }

    fn request(&mut self) -> Value {
        let (method, mut params) = self.call();
        if self.is_modern != (self.choices.byte() > 250) {
            let mut meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
                "io.modelcontextprotocol/clientInfo": { "name": "f", "version": "0" },
            });
            if self.choices.byte() % 2 == 0 {
                meta["io.modelcontextprotocol/logLevel"] = json!("debug");
            }
            params["_meta"] = meta;
        }
        if self.choices.byte() % 3 == 0 {
            params["_meta"]["progressToken"] = self.id();
        }
        json!({ "jsonrpc": "2.0", "id": self.id(), "method": method, "params": params })
    }

    fn call(&mut self) -> (&'static str, Value) {
        match self.choices.below(20) {
            0 => ("tools/list", json!({ "cursor": self.choices.text() })),
            1 => ("tools/list", json!({})),
            2 => ("resources/list", json!({})),
            3 => ("prompts/list", json!({})),
            4 => ("resources/templates/list", json!({})),
            5 => ("resources/read", json!({ "uri": self.choices.text() })),
            6 => ("resources/read", json!({ "uri": format!("y://{}", self.choices.text()) })),
            7 => ("prompts/get", json!({ "name": "greet" })),
            8 => (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "a", "value": "" } }),
            ),
            9 => ("ping", json!({})),
            10 => ("logging/setLevel", json!({ "level": self.choices.one_of(&["debug", "error", "loud"]) })),
            11 => ("resources/subscribe", json!({ "uri": self.choices.one_of(&["x:one", "x:two", "x:three", "z"]) })),
            12 => ("resources/unsubscribe", json!({ "uri": "x:one" })),
            13 => (
                "subscriptions/listen",
                json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["x:one"] } }),
            ),
            14 => ("server/discover", json!({})),
            15 => {
                ("tools/call", json!({ "name": "ask", "requestState": self.state, "inputResponses": self.responses() }))
            }
            _ => ("tools/call", self.tool()),
        }
    }

    fn tool(&mut self) -> Value {
        let byte = self.choices.byte();
        match self.choices.below(8) {
            0 => json!({ "name": "add", "arguments": { "a": byte, "b": 1 } }),
            1 => json!({ "name": "echo", "arguments": { "text": self.choices.text() } }),
            2 => json!({ "name": "sleep", "arguments": { "ms": u64::from(byte) * 300 } }),
            3 => json!({ "name": "count", "arguments": { "n": byte } }),
            4 => json!({ "name": "ask" }),
            5 => json!({ "name": "fail", "arguments": self.choices.text() }),
            6 => json!({ "name": self.choices.text() }),
            _ => json!({ "arguments": [byte] }),
        }
    }

    fn responses(&mut self) -> Value {
        let accepted = json!({ "action": "accept", "content": { "name": "n" } });
        match self.choices.below(4) {
            0 => Value::Null,
            1 => json!({ "first": accepted }),
            2 => json!({ "first": accepted, "second": accepted }),
            _ => json!({ "first": self.choices.text() }),
        }
    }

    /// An answer to a question of the server's, or to none.
    async fn answer(&mut self) {
        let id = self.asked.pop().unwrap_or_else(|| json!(self.choices.byte()));
        let result = match self.choices.below(4) {
            0 => json!({ "action": "accept", "content": { "name": "n" } }),
            1 => json!({ "action": "decline" }),
            2 => json!([self.choices.text()]),
            _ => {
                let error = json!({ "code": -1, "message": self.choices.text() });
                return self.say(json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
            }
        };
        self.say(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    /// A message with one byte of it changed.
    async fn mangle(&mut self) {
        let mut bytes = self.request().to_string().into_bytes();
        let place = (usize::from(self.choices.byte()) << 8 | usize::from(self.choices.byte())) % bytes.len();
        bytes[place] = self.choices.byte();
        self.send(bytes).await;
    }

    async fn say(&mut self, message: Value) {
        self.send(message.to_string().into_bytes()).await;
    }

    /// Who does not read is not read from, so both go on at once.
    async fn send(&mut self, bytes: Vec<u8>) {
        self.ledger.sent(&bytes);
        self.last.clone_from(&bytes);
        let mut heard = Vec::new();
        {
            let frames = &mut vec![Bytes::from(bytes)];
            let mut sending = std::pin::pin!(self.sink.send(frames));
            loop {
                tokio::select! {
                    biased;
                    sent = &mut sending => break sent.expect("the server reads"),
                    frame = self.source.next() => heard.push(frame),
                    () = tokio::time::sleep(FOREVER) => panic!("the server neither reads nor writes"),
                }
            }
        }
        heard.into_iter().for_each(|frame| self.hear_frame(frame));
    }

    /// Reads what comes until it is quiet for so long.
    async fn hear_for(&mut self, quiet: Duration) {
        while let Ok(frame) = tokio::time::timeout(quiet, self.source.next()).await {
            self.hear_frame(frame);
        }
    }

    fn hear_frame(&mut self, frame: std::io::Result<Option<Frame>>) {
        let Some(Frame::Line(frame)) = frame.expect("a frame") else { panic!("the server has ended") };
        self.hear(&frame);
    }

    fn hear(&mut self, frame: &[u8]) {
        match serde_json::from_slice(frame).expect("JSON") {
            Value::Array(items) => items.iter().for_each(|item| self.hear_one(item)),
            message => self.hear_one(&message),
        }
    }

    fn hear_one(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0");
        if message["method"].is_string() {
            // Null stands for none.
            self.asked.extend(message.get("id").cloned());
            return;
        }
        assert!(message["result"].is_object() != message["error"].is_object(), "{message}");
        if let Some(state) = message["result"].get("requestState") {
            self.state = Some(state.clone());
        }
        self.ledger.heard(message);
    }

    /// Nothing more is said; what runs ends, and so does the connection.
    async fn end(&mut self) {
        self.hear_for(Duration::from_secs(600)).await;
        self.sink.close().await.expect("it closes");
        while let Some(Frame::Line(frame)) = ends("the output", self.source.next()).await.expect("a frame") {
            self.hear(&frame);
        }
        self.ledger.close();
    }
}
