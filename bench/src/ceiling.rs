//! The least that a server can do with a call: read it into a struct made for it, add, and write the answer by hand.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Request<'a> {
    id: Option<u64>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: &'a str,
    arguments: Addends,
}

#[derive(Deserialize)]
struct Addends {
    a: i64,
    b: i64,
}

/// Answers `initialize` and calls of `add`; a notification has no answer.
///
/// # Errors
/// When the message is nothing of that.
pub fn answer(message: &[u8]) -> anyhow::Result<Option<String>> {
    let request: Request<'_> = serde_json::from_slice(message)?;
    let (Some(id), Some(params)) = (request.id, request.params) else { return Ok(None) };
    if request.method == "initialize" {
        return Ok(Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)));
    }
    let Params { name, arguments: Addends { a, b } } = serde_json::from_str(params.get())?;
    anyhow::ensure!(request.method == "tools/call" && name == "add", "no call of `add`");
    let sum = a + b;
    Ok(Some(format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":"{sum}"}}]}}}}"#
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_and_a_notification_is_not() {
        let call =
            br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":5}}}"#;
        assert!(answer(call).unwrap().unwrap().contains(r#""text":"7""#));
        assert_eq!(answer(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).unwrap(), None);
    }

    #[test]
    fn another_tool_is_an_error() {
        let call =
            br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"sub","arguments":{"a":2,"b":5}}}"#;
        assert!(answer(call).is_err());
    }
}
