//! One run of a case: the script on a stage, and the user at the other end.

use std::time::Duration;

use mcp_core::{Client, Era, Error, Revision, implementation};
use mcp_test::{
    mismatch,
    transcript::{Case, Step, Variant, Words, unescape},
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{
    CAPABILITIES, patience,
    stage::{Reply, ReplyEnd, Said, Stage, Wanted},
    user::User,
};
use crate::{
    duplex::Wire,
    peer::log::Warnings,
    transcript::{accepts, limits},
};

/// A request that no case makes: whether the client still works is asked with it.
const FENCE: &str = "still there";

pub(super) struct Run<'a, S> {
    case: &'a Case,
    words: Words<'a>,
    speaks: Option<Revision>,
    wire: Wire,
    stage: S,
    user: User,
    /// The ids of the requests that were heard, as they came.
    ids: Vec<String>,
    /// The token for progress of the last one.
    token: String,
    /// The last message that was heard, as it came.
    message: String,
    /// The last value or change that the user got, as text.
    value: String,
    took: Duration,
    /// Whether nobody is connected any more.
    is_over: bool,
    warnings: Warnings,
    warned: usize,
}

impl<'a, S: Stage> Run<'a, S> {
    pub(super) fn new(case: &'a Case, variant: &'a Variant, wire: Wire, stage: S) -> Result<Self, String> {
        let ms = |name| case.setting(name).map(|ms| ms.parse().map(Duration::from_millis)).transpose();
        let bad = |_| "no number of ms".to_owned();
        let words = Words::new(variant);
        Ok(Self {
            case,
            words: stage.port().map_or(words.clone(), |port| words.with("port", port.to_string())),
            speaks: variant.speaks,
            wire,
            stage,
            user: User::new(ms("timeout").map_err(bad)?, ms("at_most").map_err(bad)?),
            ids: Vec::new(),
            token: String::new(),
            message: String::new(),
            value: String::new(),
            took: Duration::ZERO,
            is_over: true,
            warnings: Warnings::listen(),
            warned: 0,
        })
    }

    pub(super) async fn play(mut self) -> Result<(), String> {
        if let Some(revision) = self.speaks {
            self.open(revision).await.map_err(|why| format!("at the opening: {why}"))?;
        }
        let mut steps = self.case.steps.as_slice();
        while let Some(first) = steps.first() {
            let (now, later) = steps.split_at(together(steps));
            self.steps(now).await.map_err(|why| format!("line {}: {why}", first.line))?;
            steps = later;
        }
        self.close().await.map_err(|why| format!("at the end: {why}"))
    }

    /// Connects in that revision, as with a server that does all as it should.
    async fn open(&mut self, revision: Revision) -> Result<(), String> {
        self.connect(&[revision])?;
        match revision.era() {
            Era::Modern => {
                self.hear(&wanted(r#"{"method":"server/discover"}"#)?).await?;
                let revision = revision.as_str();
                let found = format!(r#"{{"supportedVersions":["{revision}"],"capabilities":{CAPABILITIES}}}"#);
                self.answer(&found).await?;
            }
            _ => {
                self.hear(&wanted(r#"{"method":"initialize"}"#)?).await?;
                let (revision, server) = (revision.as_str(), r#"{"name":"scripted","version":"1"}"#);
                let agreed = format!(
                    r#"{{"protocolVersion":"{revision}","capabilities":{CAPABILITIES},"serverInfo":{server}}}"#
                );
                self.answer(&agreed).await?;
                self.hear(&wanted(r#"{"method":"notifications/initialized"}"#)?).await?;
            }
        }
        self.ids.clear();
        let outcome = self.outcome().await?;
        outcome.map(drop).map_err(|error| format!("{error:?}"))
    }

    fn connect(&mut self, revisions: &[Revision]) -> Result<(), String> {
        let limits = limits(self.case)?;
        let transport = self.stage.transport(&limits)?;
        let builder = Client::builder(implementation!()).limits(limits);
        let builder = if revisions.is_empty() { builder } else { builder.revisions(revisions.iter().copied()) };
        self.user.connect(builder, transport);
        Ok(())
    }

    async fn steps(&mut self, steps: &[Step]) -> Result<(), String> {
        let texts = steps.iter().map(|step| self.fill(&step.text)).collect::<Result<Vec<_>, _>>()?;
        let (mark, text) = (steps[0].mark.as_str(), texts[0].as_str());
        match mark {
            ">" => self.hear(&request(&texts)?).await,
            ">=" => holds(mark, text, self.message.contains(text), &self.message),
            ">!" => holds(mark, text, !self.message.contains(text), &self.message),
            ">-" => self.nothing_more().await,
            ">cancel" => self.taken_back(text).await,
            ">f" => self.frame(text).await,
            "connect" => {
                let revisions = accepts(self.case)?;
                self.connect(&revisions)
            }
            "=" | "=~" | "!" | "took" => self.judge(mark, text).await,
            "heard" => self.heard(text).await,
            "warned" => self.warned(text),
            "wait" => {
                let ms = text.parse().map_err(|_| format!("`{text}` is no number of ms"))?;
                sleep(Duration::from_millis(ms)).await;
                Ok(())
            }
            "close" | "cut" => {
                self.is_over |= self.wire != Wire::Http;
                self.stage.end(mark == "close").await
            }
            "disconnect" => {
                self.is_over = true;
                self.user.act(mark, text).await.map(drop)
            }
            "<x" => self.flood(text).await,
            "<ok" => self.answer(text).await,
            _ if mark.starts_with('<') => self.stage.say(said(steps, &texts)?).await,
            _ if self.user.act(mark, text).await? => Ok(()),
            other => Err(format!("`{other}` is no step of a conversation with a client")),
        }
    }

    /// What the text stands for in this run and at this place.
    fn fill(&self, text: &str) -> Result<String, String> {
        let mut text = self.words.expand(text).map_err(String::from)?;
        if text.contains("$token") {
            text = text.replace("$token", &self.token);
        }
        for (index, id) in self.ids.iter().enumerate().rev() {
            text = text.replace(&format!("$id{}", index + 1), id);
        }
        Ok(match self.ids.last() {
            Some(id) => text.replace("$id", id),
            None => text,
        })
    }

    async fn hear(&mut self, wanted: &Wanted) -> Result<(), String> {
        let heard = self.in_time("what is expected", async |run| run.stage.hear(wanted).await).await??;
        if heard.is_request() {
            self.ids.push(heard.body["id"].to_string());
            self.token = heard.body["params"]["_meta"]["progressToken"].to_string();
        }
        self.message = heard.text;
        Ok(())
    }

    async fn in_time<T>(&mut self, what: &str, does: impl AsyncFnOnce(&mut Self) -> T) -> Result<T, String> {
        let patience = patience(self.wire);
        timeout(patience, does(self)).await.map_err(|_| format!("waited in vain for {what}"))
    }

    async fn answer(&mut self, result: &str) -> Result<(), String> {
        let result = match serde_json::from_str(result) {
            Ok(Value::String(_)) => format!(r#"{{"content":[{{"type":"text","text":{result}}}]}}"#),
            _ => result.to_owned(),
        };
        let message = self.fill(&format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#))?;
        self.stage.say(Said::Message(message.into_bytes())).await
    }

    async fn flood(&mut self, text: &str) -> Result<(), String> {
        let (count, message) = text.split_once(' ').ok_or("how often, and what")?;
        for _ in 0..count.parse().map_err(|_| format!("`{count}` is no number"))? {
            self.stage.say(Said::Message(message.as_bytes().to_vec())).await?;
        }
        Ok(())
    }

    async fn taken_back(&mut self, text: &str) -> Result<(), String> {
        let id = if text.is_empty() { self.ids.last().cloned().ok_or("no request came")? } else { text.to_owned() };
        let id: Value = serde_json::from_str(&id).map_err(|error| error.to_string())?;
        self.in_time("the cancellation", async |run| run.stage.taken_back(&id).await).await?
    }

    async fn frame(&mut self, text: &str) -> Result<(), String> {
        let (opcode, payload) = text.split_once(' ').unwrap_or((text, ""));
        let payload = unescape(payload).map_err(String::from)?;
        let (came, with) = self.in_time("a frame", async |run| run.stage.frame().await).await??;
        let fits = came.to_string() == opcode && with.starts_with(&payload);
        if fits { Ok(()) } else { Err(format!("frame {came} came, with {}", String::from_utf8_lossy(&with))) }
    }

    async fn outcome(&mut self) -> Result<Result<String, Error>, String> {
        let was_connected = self.user.is_connected();
        let outcome = self.in_time("an outcome", async |run| run.user.outcome().await).await??;
        self.took = outcome.took;
        // Connected, or connected anew.
        self.is_over &= was_connected || !self.user.is_connected();
        Ok(outcome.result)
    }

    async fn judge(&mut self, mark: &str, text: &str) -> Result<(), String> {
        match mark {
            "=" => {
                self.value = self.outcome().await?.map_err(|error| format!("{:?} {error:?}", error.kind()))?;
                like(text, &self.value)
            }
            "!" => {
                let outcome = self.outcome().await?;
                let error = outcome.err().ok_or("there is no error")?;
                is_error(text, &error)
            }
            "=~" => holds(mark, text, self.value.contains(text), &self.value),
            _ => {
                let ms = self.took.as_millis().to_string();
                let fits = ms == text || !self.wire.has_made_up_time();
                if fits { Ok(()) } else { Err(format!("it took {ms} ms")) }
            }
        }
    }

    async fn heard(&mut self, text: &str) -> Result<(), String> {
        let heard = self.in_time("what is heard", async |run| run.user.heard.recv().await).await?;
        self.value = heard.ok_or("nothing more is heard")?;
        like(text, &self.value)
    }

    /// One warning more, which has this text in it; without a text, none.
    fn warned(&mut self, text: &str) -> Result<(), String> {
        let lines = self.warnings.lines();
        if text.is_empty() {
            return holds("warned", text, lines.len() == self.warned, &lines.concat());
        }
        let line = lines.get(self.warned).ok_or_else(|| format!("there are {} warnings", lines.len()))?;
        self.warned += 1;
        holds("warned", text, line.contains(text), line)
    }

    /// Nothing that nobody expects is on its way, and the client still works: a call is the next that comes, and is
    /// answered.
    async fn nothing_more(&mut self) -> Result<(), String> {
        let (kept, open) = (self.ids.clone(), self.user.waits());
        self.user.act("call", &format!("{FENCE:?}")).await?;
        self.hear(&wanted(&format!(r#"{{"method":"tools/call","params":{{"name":{FENCE:?}}}}}"#))?).await?;
        self.answer(r#""yes""#).await?;
        self.ids = kept;
        if open {
            // What is waited for is not known yet, and the call was begun last.
            return self.in_time("the last call", async |run| run.user.last().await).await?;
        }
        match self.outcome().await? {
            Ok(value) if value == r#""yes""# => Ok(()),
            other => Err(format!("a call that is answered ends as {other:?}")),
        }
    }

    async fn close(mut self) -> Result<(), String> {
        if self.user.waits() {
            return Err("nobody asked what became of what was begun".to_owned());
        }
        if !self.is_over {
            self.nothing_more().await?;
        }
        if let Ok(heard) = self.user.heard.try_recv() {
            return Err(format!("nobody asked for what was heard: {heard}"));
        }
        let says_warnings = self.case.steps.iter().any(|step| step.mark == "warned");
        if let Some(line) = self.warnings.lines().get(self.warned).filter(|_| says_warnings) {
            return Err(format!("a warning too many: {line}"));
        }
        self.user.go();
        let rest = self.in_time("the end", async |run| run.stage.rest().await).await??;
        match rest.first() {
            Some(heard) => Err(format!("a message that nothing expects: {}", heard.shown())),
            None => Ok(()),
        }
    }
}

/// How many steps belong together: the lines of one request, or of one answer in HTTP.
fn together(steps: &[Step]) -> usize {
    let is_body = |step: &Step| step.text.starts_with(['{', '[']);
    let first = &steps[0];
    match first.mark.as_str() {
        ">" if !is_body(first) => {
            let head = steps[1..].iter().take_while(|step| step.mark == ">" && !is_body(step) && !is_start(step));
            let length = 1 + head.count();
            length + usize::from(steps.get(length).is_some_and(|step| step.mark == ">" && is_body(step)))
        }
        "<status" => 1 + steps[1..].iter().take_while(|step| ["<", "<b"].contains(&step.mark.as_str())).count(),
        _ => 1,
    }
}

fn is_start(step: &Step) -> bool {
    ["GET /", "POST /", "DELETE /"].iter().any(|start| step.text.starts_with(start))
}

fn wanted(body: &str) -> Result<Wanted, String> {
    json(body).map(Wanted::message)
}

/// The request that these lines are.
fn request(texts: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for text in texts {
        if text.starts_with(['{', '[']) {
            wanted.body = Some(json(text)?);
        } else if let Some(name) = text.strip_prefix('-') {
            wanted.absent.push(name.to_owned());
        } else if let Some((name, value)) = text.split_once(": ") {
            wanted.headers.push((name.to_owned(), value.to_owned()));
        } else {
            let (verb, path) = text.split_once(' ').ok_or_else(|| format!("`{text}` is no line of a request"))?;
            wanted.verb_and_path = Some((verb.to_owned(), path.to_owned()));
        }
    }
    Ok(wanted)
}

/// What these lines say.
fn said(steps: &[Step], texts: &[String]) -> Result<Said, String> {
    let text = texts[0].as_str();
    let bytes = |text: &str| unescape(text).map_err(String::from);
    Ok(match steps[0].mark.as_str() {
        "<status" => Said::Reply(reply(steps, texts)?),
        "<" => Said::Message(text.as_bytes().to_vec()),
        "<b" => Said::Message(bytes(text)?),
        "<raw" => Said::Raw(bytes(text)?),
        "<f" => {
            let (opcode, payload) = text.split_once(' ').unwrap_or((text, ""));
            let (is_last, opcode) = opcode.strip_suffix('+').map_or((true, opcode), |opcode| (false, opcode));
            let opcode = opcode.parse().map_err(|_| format!("`{opcode}` is no opcode"))?;
            Said::Frame(is_last, opcode, bytes(payload)?)
        }
        other => return Err(format!("`{other}` is no step of a conversation with a client")),
    })
}

fn reply(steps: &[Step], texts: &[String]) -> Result<Reply, String> {
    let mut words = texts[0].splitn(3, ' ');
    let status = words.next().and_then(|status| status.parse().ok()).ok_or("no status")?;
    let mut reply = Reply { status, ..Reply::default() };
    if let Some(media_type) = words.next() {
        reply.headers.push(("Content-Type".to_owned(), media_type.to_owned()));
    }
    reply.body.extend_from_slice(words.next().unwrap_or_default().as_bytes());
    let mut lines = steps.iter().zip(texts).skip(1);
    for (_, text) in lines.by_ref() {
        match text.split_once(": ") {
            _ if text.is_empty() => break,
            Some((name, value)) => {
                let value = unescape(value).map_err(String::from)?;
                reply.headers.push((name.to_owned(), String::from_utf8_lossy(&value).into_owned()));
            }
            None => reply.end = end(text)?,
        }
    }
    for (index, (step, text)) in lines.enumerate() {
        if step.mark == "<" && index > 0 {
            reply.body.push(b'\n');
        }
        let bytes = if step.mark == "<b" { unescape(text).map_err(String::from)? } else { text.clone().into_bytes() };
        reply.body.extend(bytes);
    }
    Ok(reply)
}

fn end(text: &str) -> Result<ReplyEnd, String> {
    match text {
        "open" => Ok(ReplyEnd::Open),
        "cut" => Ok(ReplyEnd::Cut),
        other => Err(format!("`{other}` is no header")),
    }
}

fn holds(mark: &str, text: &str, fits: bool, what: &str) -> Result<(), String> {
    if fits { Ok(()) } else { Err(format!("`{mark} {text}` does not hold for {what:.2000}")) }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}

fn like(expected: &str, actual: &str) -> Result<(), String> {
    match mismatch(&json(expected)?, &json(actual)?) {
        Some(why) => Err(format!("{why}\n  got {actual:.2000}")),
        None => Ok(()),
    }
}

/// Whether it is the error that these words say.
fn is_error(text: &str, error: &Error) -> Result<(), String> {
    let (words, part) = text.split_once('~').unwrap_or((text, ""));
    let shown = format!("{error:?}");
    let facts = [
        format!("{:?}", error.kind()),
        format!("{:?}", error.blame()).to_lowercase(),
        error.status().map(|status| status.to_string()).unwrap_or_default(),
        error.object().map(|object| object.code.to_string()).unwrap_or_default(),
    ];
    let wrong = words.split_whitespace().find(|word| !facts.iter().any(|fact| fact == word));
    match wrong {
        Some(word) => Err(format!("it is not `{word}` but {facts:?}: {shown:.2000}")),
        None if words.trim().is_empty() => Err("an error has a kind".to_owned()),
        None => holds("!", part, shown.contains(part), &shown),
    }
}
