//! The calls that are made, what the answer must be, and what was heard.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// A call and its right answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Call {
    /// `tools/list`; this tool must be among them.
    List { having: &'static str },
    /// `tools/call`.
    Tool(Tool),
    /// `resources/read`.
    Resource { uri: &'static str, text: &'static str },
    /// `prompts/get`.
    Prompt { name: &'static str, arguments: &'static str, text: &'static str },
    /// A tool is called that asks for the user's name, and greets by it.
    Question { tool: &'static str, text: &'static str },
    /// A tool that never ends is called, and given up once it tells of progress; the other answers once it has stopped.
    Cancel { tool: &'static str, then: &'static str },
    /// A tool that adds one is called, and its client hears of it and lists the new one.
    Change { tool: &'static str, added: &'static str },
    /// The connection is closed, and the server agrees.
    Close,
    /// The session is ended, and is not there any more.
    End,
}

/// A tool's call and its right result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// An object, as JSON.
    pub(crate) arguments: &'static str,
    /// The whole text of the result.
    pub(crate) text: &'static str,
    pub(crate) fails: bool,
    /// How often progress is told: 1, 2, 3 and so on.
    pub(crate) steps: u32,
}

pub(crate) const LIST: Call = Call::List { having: "add" };
pub(crate) const ADD: Call =
    Call::Tool(Tool { name: "add", arguments: r#"{"a":2,"b":5}"#, text: "7", fails: false, steps: 0 });
pub(crate) const FAIL: Call = fail("on purpose");
pub(crate) const COUNT: Call =
    Call::Tool(Tool { name: "count", arguments: r#"{"n":3}"#, text: "3", fails: false, steps: 3 });

pub(crate) const RESOURCE: Call =
    Call::Resource { uri: "test://static-text", text: "This is the content of the static text resource." };
pub(crate) const PROMPT: Call = Call::Prompt {
    name: "test_prompt_with_arguments",
    arguments: r#"{"arg1":"one","arg2":"two"}"#,
    text: "Prompt with arguments: arg1='one', arg2='two'",
};
/// Every client answers that its user is Ada, if the question is the right one.
pub(crate) const QUESTION: Call = Call::Question { tool: "question", text: "Hello, Ada!" };
pub(crate) const CANCEL: Call = Call::Cancel { tool: "hang", then: "stopped" };
pub(crate) const CHANGE: Call = Call::Change { tool: "register", added: "later" };

/// What is tried with whoever has the whole protocol.
pub(crate) const ALL: &[Call] = &[ADD, FAIL, COUNT, RESOURCE, PROMPT, QUESTION, CANCEL, CHANGE];
/// The same by our client, which lists first.
pub(crate) const OURS: &[Call] = &[LIST, ADD, FAIL, COUNT, RESOURCE, PROMPT, QUESTION, CANCEL, CHANGE];

/// It still counts when a client that has lost its connection comes back, which takes a second.
pub(crate) const COUNT_SLOWLY: Call =
    Call::Tool(Tool { name: "count", arguments: r#"{"n":5,"ms":500}"#, text: "5", fails: false, steps: 5 });
/// The server itself ends the connection, and has the answer when the client comes back.
pub(crate) const RECONNECTION: Call = Call::Tool(Tool {
    name: "test_reconnection",
    arguments: "{}",
    text: "Reconnection test completed successfully. If you received this, the client properly reconnected after stream \
           closure.",
    fails: false,
    steps: 0,
});
/// It speaks in log messages, without being asked for progress.
pub(crate) const LOGGING: Call = Call::Tool(Tool {
    name: "test_tool_with_logging",
    arguments: "{}",
    text: "Tool with logging executed successfully",
    fails: false,
    steps: 0,
});

/// `fail`, where the server puts words of its own around the message.
pub(crate) const fn fail(text: &'static str) -> Call {
    Call::Tool(Tool { name: "fail", arguments: r#"{"message":"on purpose"}"#, text, fails: true, steps: 0 })
}

impl Call {
    /// The tool's name, or what is done.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::List { .. } => "list",
            Self::Tool(tool) => tool.name,
            Self::Resource { .. } => "resource",
            Self::Prompt { .. } => "prompt",
            Self::Question { .. } => "question",
            Self::Cancel { .. } => "cancel",
            Self::Change { .. } => "change",
            Self::Close => "close",
            Self::End => "end",
        }
    }

    /// The method; empty where the call is no request.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::List { .. } => "tools/list",
            Self::Tool(_) | Self::Question { .. } | Self::Cancel { .. } | Self::Change { .. } => "tools/call",
            Self::Resource { .. } => "resources/read",
            Self::Prompt { .. } => "prompts/get",
            Self::Close | Self::End => "",
        }
    }

    /// What `tools/list` and `tools/call` are sent with, where they are written by hand.
    pub(crate) fn params(&self) -> Value {
        match self {
            Self::Tool(tool) => json!({ "name": tool.name, "arguments": tool.arguments() }),
            _ => json!({}),
        }
    }

    /// The call as the programs read it. Whether the tools are listed is up to the program, and so is its end.
    pub(crate) fn told(&self) -> Option<Value> {
        match self {
            Self::List { .. } | Self::Close | Self::End => None,
            Self::Tool(tool) => Some(json!({ "tool": tool.name, "arguments": tool.arguments() })),
            Self::Resource { uri, .. } => Some(json!({ "resource": uri })),
            Self::Prompt { name, arguments, .. } => Some(json!({ "prompt": name, "arguments": object(arguments) })),
            Self::Question { tool, .. } => Some(json!({ "question": tool })),
            Self::Cancel { tool, then } => Some(json!({ "cancel": tool, "then": then })),
            Self::Change { tool, added } => Some(json!({ "change": tool, "arguments": { "name": added } })),
        }
    }

    /// Whether what was heard is the right answer, where progress may be `lossy`.
    pub(crate) fn judge(&self, heard: &Heard, lossy: bool) -> Result {
        if let Some(error) = &heard.error {
            return Err(Error::new(error.clone()));
        }
        let fits = match self {
            Self::List { having } => heard.tools.iter().flatten().any(|name| name == having),
            Self::Tool(tool) => tool.fits(heard, lossy),
            Self::Resource { text, .. } | Self::Prompt { text, .. } | Self::Question { text, .. } => {
                heard.text.as_deref() == Some(text)
            }
            Self::Cancel { then, .. } => heard.text.as_deref() == Some(then),
            Self::Change { added, .. } => heard.text.as_deref() == Some(added),
            Self::Close => heard.closed == Some(NORMAL_CLOSURE),
            Self::End => heard.ended == Some(NOT_FOUND),
        };
        if fits { Ok(()) } else { Err(Error::new(format!("{self:?} was answered with {heard:?}"))) }
    }
}

impl Tool {
    pub(crate) fn arguments(&self) -> Value {
        object(self.arguments)
    }

    fn fits(&self, heard: &Heard, lossy: bool) -> bool {
        let expected: Vec<f64> = (1..=self.steps).map(f64::from).collect();
        let progress = if lossy { is_part(&heard.progress, &expected) } else { heard.progress == expected };
        heard.text.as_deref() == Some(self.text) && heard.failed == self.fails && progress
    }
}

/// Arguments; what is none becomes null, which a test finds.
fn object(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// What a WebSocket is closed with when all is well.
const NORMAL_CLOSURE: u16 = 1000;

/// The status of what names a session that has ended.
const NOT_FOUND: u16 = 404;

/// Whether `part` is `whole` with nothing, something or everything left out, in the same order.
fn is_part(part: &[f64], whole: &[f64]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|step| rest.any(|other| other == step))
}

/// One line that a client program prints; `tests/interop/README.md` has them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Heard {
    pub(crate) revision: Option<String>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    question: Option<String>,
    cancel: Option<String>,
    change: Option<String>,
    pub(crate) closed: Option<u16>,
    pub(crate) ended: Option<u16>,
    text: Option<String>,
    failed: bool,
    progress: Vec<f64>,
    error: Option<String>,
}

impl Heard {
    /// The same from a result as it stands on the wire.
    pub(crate) fn of_result(result: &Value) -> Self {
        let texts = |list: &Value, member: &str| -> Option<Vec<String>> {
            let entries = list.as_array()?.iter();
            Some(entries.filter_map(|entry| Some(entry[member].as_str()?.to_owned())).collect())
        };
        Self {
            tools: texts(&result["tools"], "name"),
            text: texts(&result["content"], "text").map(|texts| texts.concat()),
            failed: result["isError"].as_bool().unwrap_or_default(),
            ..Self::default()
        }
    }

    pub(crate) fn is_about(&self, call: &Call) -> bool {
        match call {
            Call::List { .. } => self.tools.is_some(),
            Call::Tool(tool) => self.tool.as_deref() == Some(tool.name),
            Call::Resource { uri, .. } => self.resource.as_deref() == Some(uri),
            Call::Prompt { name, .. } => self.prompt.as_deref() == Some(name),
            Call::Question { tool, .. } => self.question.as_deref() == Some(tool),
            Call::Cancel { tool, .. } => self.cancel.as_deref() == Some(tool),
            Call::Change { tool, .. } => self.change.as_deref() == Some(tool),
            Call::Close => self.closed.is_some(),
            Call::End => self.ended.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::PEERS;

    fn judge(call: &Call, result: &Value) -> Result {
        call.judge(&Heard::of_result(result), false)
    }

    #[test]
    fn the_list_must_have_add_and_not_only_a_name_that_begins_with_it() {
        assert!(judge(&LIST, &json!({ "tools": [{ "name": "echo" }, { "name": "add" }] })).is_ok());
        assert!(judge(&LIST, &json!({ "tools": [{ "name": "add_all" }] })).is_err());
        assert!(judge(&LIST, &json!({})).is_err());
    }

    #[test]
    fn a_seven_elsewhere_in_the_answer_does_not_count() {
        assert!(judge(&ADD, &json!({ "content": [{ "type": "text", "text": "7" }] })).is_ok());
        assert!(judge(&ADD, &json!({ "content": [{ "type": "text", "text": "17" }] })).is_err());
        let elsewhere = json!({ "content": [{ "type": "text", "text": "no" }], "_meta": { "since": "2026-07-28" } });
        assert!(judge(&ADD, &elsewhere).is_err());
    }

    #[test]
    fn a_failure_must_be_told_as_one() {
        let content = json!([{ "type": "text", "text": "on purpose" }]);
        assert!(judge(&FAIL, &json!({ "content": content, "isError": true })).is_ok());
        assert!(judge(&FAIL, &json!({ "content": content })).is_err());
    }

    #[test]
    fn progress_must_be_whole_and_in_order_unless_the_peer_loses_it() {
        let heard =
            |progress: &[f64]| Heard { text: Some("3".to_owned()), progress: progress.to_vec(), ..Heard::default() };
        assert!(COUNT.judge(&heard(&[1.0, 2.0, 3.0]), false).is_ok());
        assert!(COUNT.judge(&heard(&[1.0, 3.0, 2.0]), false).is_err());
        assert!(COUNT.judge(&heard(&[1.0, 3.0]), false).is_err());
        assert!(COUNT.judge(&heard(&[1.0, 3.0]), true).is_ok());
        assert!(COUNT.judge(&heard(&[3.0, 1.0]), true).is_err());
        assert!(ADD.judge(&heard(&[1.0]), true).is_err(), "nobody told of progress");
    }

    #[test]
    fn a_change_is_heard_when_the_new_tool_and_no_other_is_there() {
        let heard = |text: &str| Heard { text: Some(text.to_owned()), ..Heard::default() };
        assert!(CHANGE.judge(&heard("later"), false).is_ok());
        assert!(CHANGE.judge(&heard(""), false).is_err());
        assert!(CANCEL.judge(&heard("stopped"), false).is_ok());
        assert!(CANCEL.judge(&heard("hang"), false).is_err());
    }

    #[test]
    fn a_connection_that_is_gone_without_a_close_is_not_closed_well() {
        let heard = |code| Heard { closed: Some(code), ..Heard::default() };
        assert!(Call::Close.judge(&heard(1000), false).is_ok());
        assert!(Call::Close.judge(&heard(1006), false).is_err());
    }

    #[test]
    fn a_session_that_is_still_there_has_not_ended() {
        let heard = |status| Heard { ended: Some(status), ..Heard::default() };
        assert!(Call::End.judge(&heard(404), false).is_ok());
        assert!(Call::End.judge(&heard(200), false).is_err());
    }

    #[test]
    fn an_error_is_passed_on_in_its_own_words() {
        let heard = Heard { error: Some("no such tool".to_owned()), ..Heard::default() };
        assert_eq!(ADD.judge(&heard, false).unwrap_err().to_string(), "no such tool");
    }

    #[test]
    fn the_arguments_of_every_call_are_an_object() {
        for call in PEERS.iter().flat_map(|peer| peer.calls.iter().chain(peer.resumes)) {
            let told = call.told().unwrap_or_default();
            assert!(!told["arguments"].is_null() || told.get("arguments").is_none(), "{told}");
        }
    }
}
