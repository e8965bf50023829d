//! Client path 5 of 5: a response becomes the result of its method. Before: `crates/mcp-core/src/client/duplex.rs` | `crates/mcp-http/src/client/read.rs`.

use std::any::{Any, TypeId};

use mcp_jsonrpc::{Members, Raw, Response};
use serde::de::DeserializeOwned;

use crate::{Blame, Era, Error, ErrorKind, method::Method, shown, types::CallToolResult};

/// The result of the method that was called, or the error that it was answered with.
pub(crate) fn read<M: Method>(response: Response, era: Era) -> Result<M::Result, Error> {
    let result = response.outcome.map_err(Error::from_object)?;
    if era == Era::Modern {
        check_type(&result)?;
    }
    result.decode().map_err(|error| {
        let message = format!("the result of `{}` does not have its shape", M::NAME);
        Error::caused(ErrorKind::ProtocolInvalid, message, error).blaming(Blame::Peer)
    })
}

/// An absent `resultType` counts as `complete`, and one that is not known is invalid.
///
/// Specification: *Overview, ResultType*.
fn check_type(result: &Raw) -> Result<(), Error> {
    let invalid = |message: String| Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer);
    let members =
        Members::scan(result.as_str(), &["resultType"]).map_err(|_| invalid("the result is no object".into()))?;
    let Some(kind) = members.get_some(0) else { return Ok(()) };
    match result.slice(kind).to_string_value().as_deref() {
        Ok("complete") => Ok(()),
        Ok(other) => {
            Err(invalid(format!("the result is of the type '{}', which this client does not handle", shown(other))))
        }
        Err(_) => Err(invalid("`resultType` is no string".into())),
    }
}

/// A tool's result as a value of the caller's type: its structured content if there is some and it fits; else its text,
/// as JSON if it parses, and as a string if not. No content is `null`.
pub(crate) fn value<T: DeserializeOwned + 'static>(result: &CallToolResult) -> Result<T, Error> {
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
        return slot.ok_or_else(|| misfit(&text));
    }
    let json = if text.is_empty() { "null" } else { &text };
    let as_text = || T::deserialize(serde_json::Value::from(text.as_str()));
    serde_json::from_str(json).or_else(|_| as_text()).map_err(|_| misfit(&text))
}

fn misfit(text: &str) -> Error {
    let message = format!("the tool's result does not fit the type asked for: '{}'", shown(text));
    Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::CallTool;

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
    fn text_as_a_value() {
        let text = |text: &str| CallToolResult::text(text);
        assert_eq!(value::<i64>(&text("7")).unwrap(), 7);
        assert_eq!(value::<String>(&text("7")).unwrap(), "7");
        assert_eq!(value::<String>(&text("\"quoted\"")).unwrap(), "\"quoted\"");
        assert_eq!(value::<serde_json::Value>(&text("plain")).unwrap(), "plain");
        assert_eq!(value::<Vec<u8>>(&text("[1]")).unwrap(), [1]);
        value::<()>(&CallToolResult::default()).unwrap();
        assert_eq!(value::<Option<u8>>(&CallToolResult::default()).unwrap(), None);
        assert_eq!(value::<i64>(&text("seven")).unwrap_err().kind(), ErrorKind::ProtocolInvalid);
        let structured = CallToolResult::text("8").structured(Raw::parse("9").unwrap());
        assert_eq!(value::<i64>(&structured).unwrap(), 9);
    }
}
