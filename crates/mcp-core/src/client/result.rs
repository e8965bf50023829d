//! Client path 5 of 5: a response becomes the result of its method. Before: `crates/mcp-core/src/client/duplex.rs` | `crates/mcp-http/src/client/read.rs`.

use std::{
    any::{Any, TypeId, type_name},
    fmt::Display,
};

use mcp_jsonrpc::{ByteString, Members, Raw, Response};
use serde::de::DeserializeOwned;

use crate::{
    Blame, Era, Error, ErrorKind,
    client::input::InputRequired,
    method::{CallTool, Method},
    shown::{misfit, shown},
    types::{CallToolResult, Task},
};

/// What a server answers a request with.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result, as it came.
    Complete(Raw),
    /// It wants to know something first.
    InputRequired(InputRequired),
    /// It is a task from now on.
    Task(Box<Task>),
}

/// The answer to the method that was called, or the error that it was answered with.
pub(crate) fn answer<M: Method>(response: Response, era: Era) -> Result<Answer, Error> {
    let result = response.outcome.map_err(Error::from_object)?;
    match kind_of(&result, era)?.as_deref() {
        None | Some("complete") => Ok(Answer::Complete(result)),
        Some("input_required") if M::MAY_ASK => match result.decode::<InputRequired>() {
            Ok(asked) if asked.input_requests.is_some() || asked.request_state.is_some() => {
                Ok(Answer::InputRequired(asked))
            }
            Ok(_) => Err(invalid("the server wants input and does not say which")),
            Err(error) => Err(misshapen("what the server wants to know does not have its shape".into(), error)),
        },
        Some("task") if M::NAME == CallTool::NAME => match result.decode() {
            Ok(task) => Ok(Answer::Task(task)),
            Err(error) => Err(misshapen("the task that the call has become does not have its shape".into(), error)),
        },
        Some(other) => {
            let message = format!("the result is of the type '{}', which this client does not handle", shown(other));
            Err(invalid(message))
        }
    }
}

/// A result that is complete.
pub(crate) fn decode<M: Method>(result: &Raw) -> Result<M::Result, Error> {
    result.decode().map_err(|error| misshapen(format!("the result of `{}` does not have its shape", M::NAME), error))
}

/// The result of a method that asks nothing.
pub(crate) fn read<M: Method>(response: Response, era: Era) -> Result<M::Result, Error> {
    match answer::<M>(response, era)? {
        Answer::Complete(result) => decode::<M>(&result),
        Answer::InputRequired(_) | Answer::Task(_) => Err(invalid("the server wants input where it may not ask")),
    }
}

/// An absent `resultType` counts as `complete`, and in the legacy era there is none.
///
/// Specification: *Overview, ResultType*.
fn kind_of(result: &Raw, era: Era) -> Result<Option<ByteString>, Error> {
    if era == Era::Legacy {
        return Ok(None);
    }
    let members = Members::scan(result.as_str(), &["resultType"]).map_err(|_| invalid("the result is no object"))?;
    let kind = members.get_some(0).map(|kind| result.slice(kind).to_string_value());
    kind.transpose().map_err(|_| invalid("`resultType` is no string"))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
}

fn misshapen(message: String, error: serde_json::Error) -> Error {
    invalid(format!("{message}: {}", misfit(&error)))
}

/// What a tool came to as a value of the caller's type, or its failure in its own words. `who` is what was called.
pub(crate) fn success<T>(who: impl Display, outcome: &CallToolResult) -> Result<T, Error>
where
    T: DeserializeOwned + 'static,
{
    if outcome.is_error {
        let words = Some(outcome.to_text()).filter(|text| !text.trim().is_empty());
        let words = words.unwrap_or_else(|| format!("{who} failed and did not say why"));
        return Err(Error::new(ErrorKind::HandlerFailed, words).blaming(Blame::Peer));
    }
    value(outcome).map_err(|text| {
        // What a tool says may be nobody else's to read, and errors end up in logs.
        let (wanted, bytes) = (type_name::<T>(), text.len());
        let message = format!(
            "the result of {who}, {bytes} bytes of text, does not fit `{wanted}`; `call_raw` has it as it came"
        );
        Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
    })
}

/// A tool's result as a value of the caller's type: its structured content if there is some and it fits; else its text,
/// as JSON if it parses, and as a string if not. No content is `null`. Where nothing fits, the text.
fn value<T: DeserializeOwned + 'static>(result: &CallToolResult) -> Result<T, String> {
    if let Some(value) = result.structured_content.as_ref().and_then(|raw| raw.decode().ok()) {
        return Ok(value);
    }
    let text = result.to_text();
    if TypeId::of::<T>() == TypeId::of::<String>() {
        let mut slot: Option<T> = None;
        // Whoever asks for text gets it as it is, even where it happens to be JSON.
        if let Some(slot) = (&mut slot as &mut dyn Any).downcast_mut::<Option<String>>() {
            *slot = Some(text.clone());
        }
        return slot.ok_or(text);
    }
    let json = if text.is_empty() { "null" } else { &text };
    let as_text = || T::deserialize(serde_json::Value::from(text.as_str()));
    serde_json::from_str(json).or_else(|_| as_text()).map_err(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(result: &str) -> Response {
        Response::new(1u64.into(), Ok(Raw::parse(result).unwrap()))
    }

    #[test]
    fn result_types() {
        for (result, good) in [
            (r#"{"content":[]}"#, true),
            (r#"{"resultType":"complete","content":[]}"#, true),
            (r#"{"resultType":null}"#, true),
            (r#"{"resultType":"hologram"}"#, false),
            (r#"{"resultType":5}"#, false),
            ("[]", false),
        ] {
            assert_eq!(read::<CallTool>(response(result), Era::Modern).is_ok(), good, "{result}");
        }
        assert!(read::<CallTool>(response(r#"{"resultType":"hologram"}"#), Era::Legacy).is_ok());
    }

    #[test]
    fn what_a_server_wants_to_know() {
        use crate::method::ListTools;
        let asked =
            r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}"#;
        let Ok(Answer::InputRequired(input)) = answer::<CallTool>(response(asked), Era::Modern) else { panic!() };
        assert_eq!(input.input_requests.unwrap()["k"].method, "roots/list");
        assert_eq!(input.request_state.unwrap().as_str(), "\"s\"");
        assert!(answer::<ListTools>(response(asked), Era::Modern).is_err());
        for bad in [r#"{"resultType":"input_required"}"#, r#"{"resultType":"input_required","inputRequests":5}"#] {
            assert!(answer::<CallTool>(response(bad), Era::Modern).is_err(), "{bad}");
        }
    }

    #[test]
    fn text_as_a_value() {
        let text = |text: &str| CallToolResult::text(text);
        assert_eq!(value::<i64>(&text("7")).unwrap(), 7);
        assert_eq!(value::<String>(&text("7")).unwrap(), "7");
        assert_eq!(value::<String>(&text("\"quoted\"")).unwrap(), "\"quoted\"");
        assert_eq!(value::<serde_json::Value>(&text("plain")).unwrap(), "plain");
        assert_eq!(value::<Vec<u8>>(&text("[1]")).unwrap(), [1]);
        value::<()>(&CallToolResult::default()).unwrap();
        assert_eq!(value::<Option<u8>>(&CallToolResult::default()).unwrap(), None);
        assert_eq!(value::<i64>(&text("seven")).unwrap_err(), "seven");
        assert_eq!(success::<i64>("t", &text("seven")).unwrap_err().kind(), ErrorKind::ProtocolInvalid);
        let structured = CallToolResult::text("8").structured(Raw::parse("9").unwrap());
        assert_eq!(value::<i64>(&structured).unwrap(), 9);
    }
}
