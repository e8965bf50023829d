//! What every message of a server must be, whatever is expected of it.

use std::fmt;

use mcp_core::Era;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::Failure;

/// What a message may be in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// One message.
    One,
    /// One message or a batch of them.
    OneOrBatch,
}

/// Reads a message and checks it: one line of UTF-8 without a byte order mark, no member twice, and what JSON-RPC and the
/// era, where one is known, ask of it.
///
/// # Errors
/// When it is not so.
pub fn well_formed(frame: &[u8], shape: Shape, era: Option<Era>) -> Result<Value, Failure> {
    check(frame, shape, era).map_err(Failure::from)
}

fn check(frame: &[u8], shape: Shape, era: Option<Era>) -> Result<Value, String> {
    let text = std::str::from_utf8(frame).map_err(|error| format!("not UTF-8: {error}"))?;
    if text.contains(['\n', '\r']) {
        return Err("a line end within a message".to_owned());
    }
    if text.starts_with('\u{feff}') {
        return Err("a byte order mark".to_owned());
    }
    let Strict(value) = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    match &value {
        Value::Array(items) if shape == Shape::OneOrBatch && !items.is_empty() => {
            items.iter().try_for_each(|item| message(item, era))?;
        }
        one => message(one, era)?,
    }
    Ok(value)
}

fn message(value: &Value, era: Option<Era>) -> Result<(), String> {
    let members = value.as_object().ok_or("a message is an object")?;
    if members.get("jsonrpc") != Some(&Value::from("2.0")) {
        return Err("`jsonrpc` is not \"2.0\"".to_owned());
    }
    if let Some(odd) =
        members.keys().find(|name| !["jsonrpc", "id", "method", "params", "result", "error"].contains(&name.as_str()))
    {
        return Err(format!("a stray member `{odd}`"));
    }
    match (members.get("method"), members.get("result"), members.get("error")) {
        (Some(Value::String(_)), None, None) => notification(members),
        (None, Some(result), None) => {
            if !is_id(members.get("id")) {
                return Err("a result without the id of a request".to_owned());
            }
            era.map_or(Ok(()), |era| result_of(result, era))
        }
        (None, None, Some(error)) => {
            if !(is_id(members.get("id")) || members.get("id") == Some(&Value::Null)) {
                return Err("an error without an id".to_owned());
            }
            error_object(error)
        }
        _ => Err("not exactly one of `method`, `result` and `error`".to_owned()),
    }
}

fn is_id(id: Option<&Value>) -> bool {
    id.is_some_and(|id| id.is_string() || id.is_number())
}

/// A server has nothing to ask yet, so what names a method is a notification.
fn notification(members: &Map<String, Value>) -> Result<(), String> {
    if members.contains_key("id") { Err("a request from a server".to_owned()) } else { Ok(()) }
}

fn result_of(result: &Value, era: Era) -> Result<(), String> {
    let members = result.as_object().ok_or("a result is an object")?;
    let kind = members.get("resultType");
    match era {
        // What asks for input is no result yet, and has no cache hints.
        Era::Modern if kind == Some(&Value::from("input_required")) => Ok(()),
        Era::Modern if kind == Some(&Value::from("task")) && is_task(members) => Ok(()),
        Era::Modern if kind != Some(&Value::from("complete")) => Err("`resultType` is not \"complete\"".to_owned()),
        // A list of resources has them, what is in a directory has not; the two look alike.
        Era::Modern if members.contains_key("resources") => Ok(()),
        Era::Modern if (is_cacheable(members) || is_task(members)) != members.contains_key("ttlMs") => {
            Err("lists, skills and the discovery have cache hints, and nothing else has".to_owned())
        }
        Era::Legacy if kind.is_some() || members.contains_key("ttlMs") => {
            Err("a member that the legacy era does not have".to_owned())
        }
        _ if members.get("nextCursor").is_some_and(|cursor| cursor.as_str().is_none_or(str::is_empty)) => {
            Err("a cursor that is no cursor".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_cacheable(result: &Map<String, Value>) -> bool {
    ["tools", "supportedVersions", "prompts", "resourceTemplates", "contents", "skills", "skill"]
        .iter()
        .any(|member| result.contains_key(*member))
}

fn error_object(error: &Value) -> Result<(), String> {
    let message = error.get("message").and_then(Value::as_str).ok_or("an error without a message")?;
    if !error.get("code").is_some_and(Value::is_i64) {
        return Err("an error without an integer code".to_owned());
    }
    // What came in may be repeated, but not without bound.
    if message.is_empty() || message.len() > 2000 {
        return Err(format!("an error's message of {} bytes", message.len()));
    }
    Ok(())
}

/// A value in which no object has a member twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Strict(value))) = map.next_entry::<String, Strict>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("the member `{name}` twice")));
            }
            members.insert(name, value);
        }
        Ok(members.into())
    }
}

/// A task has a time to live of its own.
fn is_task(result: &Map<String, Value>) -> bool {
    result.contains_key("taskId")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_messages_pass() {
        for (frame, era) in [
            (r#"{"jsonrpc":"2.0","id":"a","result":{}}"#, Some(Era::Legacy)),
            (r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete"}}"#, Some(Era::Modern)),
            (r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"task","taskId":"a","ttlMs":1}}"#, Some(Era::Modern)),
            (
                r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","taskId":"a","ttlMs":1}}"#,
                Some(Era::Modern),
            ),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}"#, None),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"a":[1,1.5,true,null]}}"#, None),
        ] {
            well_formed(frame.as_bytes(), Shape::One, era).unwrap();
        }
        well_formed(br#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, Shape::OneOrBatch, None).unwrap();
    }

    #[test]
    fn bad_messages_are_told_from_good_ones() {
        for (frame, era, why) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#, None, "twice"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1,"b":1}}}"#, None, "twice"),
            (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, None, "without the id"),
            (r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#, None, "without an id"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"m"}}"#, None, "integer code"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, None, "without a message"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"result":{}}"#, None, "exactly one"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, None, "from a server"),
            (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, None, "jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"x":1}"#, None, "stray"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(Era::Modern), "resultType"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#, Some(Era::Legacy), "legacy era"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[]}}"#, Some(Era::Modern), "hints"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":""}}"#, Some(Era::Legacy), "cursor"),
            ("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}", None, "line end"),
            ("\u{feff}{}", None, "byte order mark"),
            ("[]", None, "object"),
            ("{", None, "not JSON"),
        ] {
            let error = well_formed(frame.as_bytes(), Shape::One, era).unwrap_err().to_string();
            assert!(error.contains(why), "{frame}: {error}");
        }
        assert!(well_formed(b"[]", Shape::OneOrBatch, None).is_err());
        assert!(well_formed(b"\"\xff\"", Shape::One, None).unwrap_err().to_string().contains("UTF-8"));
    }
}
