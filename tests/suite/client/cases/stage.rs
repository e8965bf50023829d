//! The server's side of a conversation: it hears and says what the script has next, whatever wire it is on.

use mcp_core::{Limits, client::Transport};
use mcp_test::mismatch;
use serde_json::Value;

use crate::peer::http::Request;

/// What a client has sent.
#[derive(Debug)]
pub(super) struct Heard {
    /// As JSON; null where it is none.
    pub(super) body: Value,
    /// As it came.
    pub(super) text: String,
    /// What it came in, over HTTP.
    pub(super) request: Option<Request>,
}

impl Heard {
    pub(super) fn message(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Self { body: serde_json::from_slice(bytes).unwrap_or_default(), text, request: None }
    }

    pub(super) fn request(request: Request) -> Self {
        Self { body: request.body.clone(), text: request.text.clone(), request: Some(request) }
    }

    /// Whether it waits for an answer.
    pub(super) fn is_request(&self) -> bool {
        self.body.get("id").is_some() && self.body.get("method").is_some()
    }

    pub(super) fn shown(&self) -> String {
        let head = self.request.as_ref().map(|request| format!("{} {} ", request.verb, request.path));
        format!("{}{:.500}", head.unwrap_or_default(), self.text)
    }
}

/// What is to come: a message, or a request of HTTP with these headers and without those.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) verb_and_path: Option<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) absent: Vec<String>,
    pub(super) body: Option<Value>,
}

impl Wanted {
    pub(super) fn message(body: Value) -> Self {
        Self { body: Some(body), ..Self::default() }
    }

    /// Why it is not this, if it is not.
    pub(super) fn why_not(&self, heard: &Heard) -> Option<String> {
        let body = self.body.as_ref().and_then(|body| mismatch(body, &heard.body)).map(|why| why.to_string());
        body.or_else(|| match &heard.request {
            Some(request) => self.why_not_in(request),
            None if self.verb_and_path.is_some() => Some("it came in no request of HTTP".to_owned()),
            None => None,
        })
    }

    fn why_not_in(&self, request: &Request) -> Option<String> {
        if let Some((verb, path)) = &self.verb_and_path
            && (*verb != request.verb || *path != request.path)
        {
            return Some(format!("expected {verb} {path}"));
        }
        let wrong = self.headers.iter().find(|(name, value)| !has_header(request, name, value));
        let stray = self.absent.iter().find(|name| request.header(name).is_some());
        wrong
            .map(|(name, value)| format!("expected {name}: {value}, got {:?}", request.header(name)))
            .or_else(|| stray.map(|name| format!("there is a header {name}")))
    }
}

fn has_header(request: &Request, name: &str, value: &str) -> bool {
    request.header(name).is_some_and(|actual| match value.strip_prefix('~') {
        Some(part) => actual.contains(part),
        None => actual == value,
    })
}

/// An answer in HTTP, to the letter.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) end: ReplyEnd,
}

/// What becomes of the connection behind an answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyEnd {
    #[default]
    InOrder,
    Open,
    Cut,
}

/// What the server says.
#[derive(Debug)]
pub(super) enum Said {
    /// A message, in the framing of the wire.
    Message(Vec<u8>),
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// A frame of WebSocket: whether it is the last of its message, its opcode, and what is in it.
    Frame(bool, u8, Vec<u8>),
    /// An answer in HTTP.
    Reply(Reply),
}

/// A scripted server on one wire.
pub(super) trait Stage {
    /// How a client gets here.
    fn transport(&self, limits: &Limits) -> Result<Box<dyn Transport>, String>;

    /// Where it listens, if it does.
    fn port(&self) -> Option<u16> {
        None
    }

    /// What comes next; where each message has a request of its own, the first that is as wanted.
    async fn hear(&mut self, wanted: &Wanted) -> Result<Heard, String>;

    /// Says it; where there is a choice, as the answer to the request that was heard last.
    async fn say(&mut self, said: Said) -> Result<(), String>;

    /// Ends the connection, or over HTTP the answer: in good order, or by breaking it off.
    async fn end(&mut self, in_order: bool) -> Result<(), String>;

    /// Hears that the client takes the request of that id back.
    async fn taken_back(&mut self, id: &Value) -> Result<(), String>;

    /// Hears a frame of WebSocket.
    async fn frame(&mut self) -> Result<(u8, Vec<u8>), String> {
        Err("there are no frames on this wire".to_owned())
    }

    /// What else has come, once the client is gone.
    async fn rest(&mut self) -> Result<Vec<Heard>, String>;
}

/// What tells the server by a notification that a request is taken back.
pub(super) fn cancelled(id: &Value) -> Wanted {
    Wanted::message(serde_json::json!({
        "id": "!absent", "method": "notifications/cancelled", "params": { "requestId": id },
    }))
}
