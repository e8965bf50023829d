//! The least that a server can do with a call: read it into a struct made for it, do it, and write the answer by hand.

use std::borrow::Cow;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Arguments<'a>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputResponses")]
    answers: Option<&'a RawValue>,
}

/// Those of all tools.
#[derive(Deserialize)]
struct Arguments<'a> {
    a: Option<i64>,
    b: Option<i64>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
}

/// What a message is answered with.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the programs of this package name all of them")]
pub enum Answer {
    /// One message.
    Json(String),
    /// The answer to `initialize`, with which a session may begin.
    Handshake(String),
    /// The events of a stream.
    Events(String),
    /// A notification has none.
    Nothing,
}

impl Answer {
    /// The one message that it is, if it is one.
    #[must_use]
    pub fn json(self) -> Option<String> {
        match self {
            Self::Json(text) | Self::Handshake(text) => Some(text),
            Self::Events(_) | Self::Nothing => None,
        }
    }
}

const INITIALIZED: &str =
    r#""protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"ceiling","version":"1"}"#;

const DISCOVERED: &str = concat!(
    r#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"#,
    r#""cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"ceiling","version":"1"}}"#
);

const LISTED: &str = concat!(
    r#""resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"add","inputSchema":"#,
    r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}}]"#
);

const ASKED: &str = concat!(
    r#""resultType":"input_required","requestState":"approve","inputRequests":{"approve":{"method":"#,
    r#""elicitation/create","params":{"mode":"form","message":"Add them?","requestedSchema":{"type":"object","#,
    r#""properties":{"go":{"type":"boolean"}},"required":["go"]}}}}"#
);

/// Answers handshakes and calls of the benchmark's tools.
///
/// # Errors
/// When the message is nothing of that.
pub fn answer(message: &[u8]) -> anyhow::Result<Answer> {
    let request: Request<'_> = serde_json::from_slice(message)?;
    let Some(id) = request.id else { return Ok(Answer::Nothing) };
    match request.method {
        "tools/call" => call(id.get(), request.params.context("a call without parameters")?),
        "initialize" => Ok(Answer::Handshake(reply(id.get(), INITIALIZED))),
        "server/discover" => Ok(Answer::Json(reply(id.get(), DISCOVERED))),
        "tools/list" => Ok(Answer::Json(reply(id.get(), LISTED))),
        other => bail!("no method `{other}`"),
    }
}

fn call(id: &str, params: &RawValue) -> anyhow::Result<Answer> {
    let params: Params<'_> = serde_json::from_str(params.get())?;
    let sum = || params.arguments.a.zip(params.arguments.b).map(|(a, b)| a + b).context("no numbers");
    Ok(match params.name {
        "add" => Answer::Json(sum_of(id, sum()?)),
        "echo" => Answer::Json(echo(id, params.arguments.text.as_deref().context("no text")?)?),
        "progress" => Answer::Events(events(id, sum()?, params.meta.context("no `_meta`")?)?),
        "ask" if params.answers.is_none() => Answer::Json(reply(id, ASKED)),
        "ask" => Answer::Json(sum_of(id, sum()?)),
        other => bail!("no tool `{other}`"),
    })
}

fn reply(id: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{members}}}}}"#)
}

fn sum_of(id: &str, sum: i64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"{sum}"}}]}}}}"#
    )
}

fn echo(id: &str, text: &str) -> anyhow::Result<String> {
    let text = serde_json::to_string(text)?;
    Ok(reply(id, &format!(r#""resultType":"complete","content":[{{"type":"text","text":{text}}}]"#)))
}

fn events(id: &str, sum: i64, meta: &RawValue) -> anyhow::Result<String> {
    let token = serde_json::from_str::<Meta<'_>>(meta.get())?.token;
    let reply = sum_of(id, sum);
    Ok(format!(
        "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\
         \"progress\":1,\"total\":2,\"message\":\"adding\"}}}}\n\ndata: {reply}\n\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str, rest: &str) -> anyhow::Result<Answer> {
        let params = format!(r#"{{"name":"{name}","arguments":{arguments}{rest}}}"#);
        answer(format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{params}}}"#).as_bytes())
    }

    #[test]
    fn a_call_is_answered_and_a_notification_is_not() {
        let sum = call("add", r#"{"a":2,"b":5}"#, "").unwrap().json().unwrap();
        assert!(sum.contains(r#""text":"7""#), "{sum}");
        assert_eq!(answer(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).unwrap(), Answer::Nothing);
    }

    #[test]
    fn a_text_comes_back_as_it_was_written() {
        let echo = call("echo", r#"{"text":"\"one\"\ntwo"}"#, "").unwrap().json().unwrap();
        assert!(echo.contains(r#""text":"\"one\"\ntwo""#), "{echo}");
    }

    #[test]
    fn progress_is_two_events() {
        let meta = r#","_meta":{"progressToken":9}"#;
        let Answer::Events(events) = call("progress", r#"{"a":2,"b":5}"#, meta).unwrap() else { panic!("events") };
        assert_eq!(events.matches("data: ").count(), 2);
        assert!(events.contains(r#""progressToken":9"#) && events.contains(r#""text":"7""#), "{events}");
    }

    #[test]
    fn a_question_comes_before_the_answer() {
        let ask = |rest| call("ask", r#"{"a":2,"b":5}"#, rest).unwrap().json().unwrap();
        assert!(ask("").contains("input_required"));
        assert!(ask(r#","inputResponses":{"approve":{}}"#).contains(r#""text":"7""#));
    }

    #[test]
    fn another_tool_is_an_error() {
        assert!(call("sub", r#"{"a":2,"b":5}"#, "").is_err());
    }
}
