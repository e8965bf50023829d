//! HTTP, where each message has a request of its own, and its answer is JSON or a stream.

use std::{collections::VecDeque, sync::Arc};

use mcp_core::{
    Limits,
    client::{IntoTransport as _, Transport},
};
use serde_json::Value;
use tokio::sync::{
    Mutex,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

use super::stage::{Heard, Reply, ReplyEnd, Said, Stage, Wanted, cancelled};
use crate::peer::http::{Answer, HttpPeer, Request};

/// How the script wants it.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// Answers are streams.
    pub(super) streams: bool,
    /// Streams are broken off where they end.
    pub(super) cuts: bool,
    /// The era in which a server says something on its own, on a stream that is there for it.
    pub(super) is_legacy: bool,
    /// What `initialize` begins.
    pub(super) session: Option<String>,
    /// The verbs that the script answers itself, and whether it answers notifications.
    pub(super) own: Vec<&'static str>,
    pub(super) notifications: bool,
}

impl Settings {
    /// What is answered at once, without a word in the script.
    fn at_once(&self, request: &Request, pushed: &Pushed) -> Option<Answer> {
        let is_one_way = request.body.get("id").is_none() || request.body.get("method").is_none();
        match request.verb.as_str() {
            verb if self.own.contains(&verb) => None,
            "GET" if self.streams && self.is_legacy => Some(Answer::events("").then_from(pushed.clone())),
            "GET" => Some(Answer::status(405)),
            "DELETE" => Some(Answer::status(204)),
            "POST" if is_one_way && !self.notifications => Some(Answer::status(202)),
            _ => None,
        }
    }
}

type Pushed = Arc<Mutex<UnboundedReceiver<Vec<u8>>>>;

/// A request as it came, and where its answer goes, unless it has one.
struct Asked {
    heard: Heard,
    answer: Option<oneshot::Sender<Answer>>,
}

/// A request whose answer is under way.
struct Exchange {
    id: Value,
    method: String,
    answer: Option<oneshot::Sender<Answer>>,
    /// Where more of a stream goes.
    stream: Option<UnboundedSender<Vec<u8>>>,
    is_answered: bool,
}

/// A scripted server.
pub(super) struct Http {
    settings: Settings,
    peer: HttpPeer,
    asked: UnboundedReceiver<Asked>,
    /// What has come and was not wanted yet.
    arrived: VecDeque<Asked>,
    open: Vec<Exchange>,
    /// What is said on its own.
    push: UnboundedSender<Vec<u8>>,
}

impl Http {
    pub(super) async fn start(settings: Settings) -> Self {
        let (ask, asked) = unbounded_channel();
        let (push, pushed) = unbounded_channel();
        let (pushed, rules) = (Arc::new(Mutex::new(pushed)), settings.clone());
        let peer = HttpPeer::start(move |request: &Request| {
            let (answer, now) = match rules.at_once(request, &pushed) {
                Some(now) => (None, now),
                None => {
                    let (answer, later) = oneshot::channel();
                    (Some(answer), Answer::later(later))
                }
            };
            let _ = ask.send(Asked { heard: Heard::request(request.clone()), answer });
            now
        })
        .await;
        Self { settings, peer, asked, arrived: VecDeque::new(), open: Vec::new(), push }
    }

    fn take(&mut self, index: usize) -> Option<Heard> {
        let Asked { heard, answer } = self.arrived.remove(index)?;
        if let Some(answer) = answer {
            let method = heard.body["method"].as_str().unwrap_or_default().to_owned();
            let id = heard.body["id"].clone();
            self.open.push(Exchange { id, method, answer: Some(answer), stream: None, is_answered: false });
        }
        Some(heard)
    }

    /// The exchange that a message belongs to: the one that it answers, else the last one that waits for its answer.
    fn exchange(&mut self, id: Option<&Value>) -> Option<&mut Exchange> {
        let answered = id.and_then(|id| self.open.iter().rposition(|exchange| exchange.id == *id));
        let waits = || self.open.iter().rposition(|exchange| !exchange.is_answered);
        let index = answered.or_else(waits)?;
        self.open.get_mut(index)
    }

    fn say_in_event(&mut self, message: &[u8]) -> Result<(), String> {
        let body: Value = serde_json::from_slice(message).unwrap_or_default();
        let answers = (body.get("method").is_none()).then(|| body.get("id")).flatten();
        let mut event = b"data: ".to_vec();
        event.extend_from_slice(message);
        event.extend_from_slice(b"\n\n");
        let settings = self.settings.clone();
        match self.exchange(answers) {
            Some(exchange) => {
                exchange.is_answered |= answers.is_some_and(|id| *id == exchange.id);
                exchange.stream(&settings, event);
            }
            None if settings.is_legacy => drop(self.push.send(event)),
            None => return Err("there is no request to say it about".to_owned()),
        }
        Ok(())
    }

    fn say_as_json(&mut self, message: Vec<u8>) -> Result<(), String> {
        let body: Value = serde_json::from_slice(&message).unwrap_or_default();
        let settings = self.settings.clone();
        let exchange = self.exchange(body.get("id")).ok_or("there is no request to answer")?;
        exchange.is_answered = true;
        exchange.answer(settings.in_session(Answer::new(200, "application/json", message), &exchange.method))
    }
}

impl Settings {
    fn in_session(&self, answer: Answer, method: &str) -> Answer {
        match &self.session {
            Some(session) if method == "initialize" => answer.header("Mcp-Session-Id", session),
            _ => answer,
        }
    }
}

impl Exchange {
    fn answer(&mut self, answer: Answer) -> Result<(), String> {
        // Where the client has gone meanwhile, nobody hears it.
        self.answer.take().map(|later| drop(later.send(answer))).ok_or_else(|| "it is answered already".to_owned())
    }

    /// More of the stream that is its answer, which begins with it.
    fn stream(&mut self, settings: &Settings, bytes: Vec<u8>) {
        if let Some(later) = self.answer.take() {
            let (more, source) = unbounded_channel();
            let answer = Answer::events("").then_from(Arc::new(Mutex::new(source)));
            let answer = if settings.cuts { answer.broken_off() } else { answer };
            let _ = later.send(settings.in_session(answer, &self.method));
            self.stream = Some(more);
        }
        if let Some(stream) = &self.stream {
            let _ = stream.send(bytes);
        }
    }
}

/// An answer as the peer gives it.
fn answer(reply: Reply) -> Answer {
    let bare = Answer::new(reply.status, "", reply.body);
    let answer = reply.headers.iter().fold(bare, |answer, (name, value)| answer.header(name, value));
    match reply.end {
        ReplyEnd::InOrder => answer,
        ReplyEnd::Open => answer.without_end(),
        ReplyEnd::Cut if reply.status == 0 => Answer::hang_up(),
        ReplyEnd::Cut => answer.broken_off(),
    }
}

impl Stage for Http {
    fn transport(&self, limits: &Limits) -> Result<Box<dyn Transport>, String> {
        let http = mcp_suite::http::Http::new(self.peer.url());
        Ok(Box::new(http.into_transport(limits).map_err(|error| error.to_string())?))
    }

    fn port(&self) -> Option<u16> {
        self.peer.origin().rsplit_once(':')?.1.parse().ok()
    }

    async fn hear(&mut self, wanted: &Wanted) -> Result<Heard, String> {
        loop {
            let found = self.arrived.iter().position(|asked| wanted.why_not(&asked.heard).is_none());
            if let Some(heard) = found.and_then(|index| self.take(index)) {
                return Ok(heard);
            }
            let why = || {
                let seen = self.arrived.iter().map(|asked| {
                    let why = wanted.why_not(&asked.heard).unwrap_or_default();
                    format!("\n  not {}: {why}", asked.heard.shown())
                });
                format!("nothing came that is like {wanted:?}{}", seen.collect::<String>())
            };
            match tokio::time::timeout(super::REAL_PATIENCE, self.asked.recv()).await {
                Ok(Some(asked)) => self.arrived.push_back(asked),
                _ => return Err(why()),
            }
        }
    }

    async fn say(&mut self, said: Said) -> Result<(), String> {
        let settings = self.settings.clone();
        match said {
            Said::Message(message) if settings.streams => self.say_in_event(&message),
            Said::Message(message) => self.say_as_json(message),
            Said::Raw(bytes) => {
                let exchange = self.open.last_mut().ok_or("there is no stream")?;
                exchange.stream(&settings, bytes);
                Ok(())
            }
            Said::Reply(reply) => {
                let exchange = self.exchange(None).ok_or("there is no request to answer")?;
                exchange.is_answered = true;
                exchange.answer(answer(reply))
            }
            Said::Frame(..) => Err("there are no frames over HTTP".to_owned()),
        }
    }

    async fn end(&mut self, in_order: bool) -> Result<(), String> {
        let (settings, mut exchange) = (self.settings.clone(), self.open.pop().ok_or("there is nothing to end")?);
        if in_order && settings.streams {
            exchange.stream(&settings, Vec::new());
            return Ok(());
        }
        if exchange.answer.is_some() { exchange.answer(Answer::hang_up()) } else { Ok(()) }
    }

    async fn taken_back(&mut self, id: &Value) -> Result<(), String> {
        if self.settings.is_legacy {
            return self.hear(&cancelled(id)).await.map(drop);
        }
        self.peer.given_up_id(id).await;
        Ok(())
    }

    async fn rest(&mut self) -> Result<Vec<Heard>, String> {
        while let Ok(asked) = self.asked.try_recv() {
            self.arrived.push_back(asked);
        }
        let is_expected = |heard: &Heard| {
            let Some(Request { verb, path, .. }) = &heard.request else { return false };
            let verb = verb.as_str();
            ["GET", "DELETE"].contains(&verb) && path == "/mcp" && !self.settings.own.contains(&verb)
        };
        Ok(self.arrived.drain(..).map(|asked| asked.heard).filter(|heard| !is_expected(heard)).collect())
    }
}
