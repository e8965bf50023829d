//! Server path 9 of 11: the exit seam, where the id and the era's members are put around a result. Before: `crates/mcp-core/src/server/tool.rs`. After: `crates/mcp-jsonrpc/src/encode.rs`.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use mcp_jsonrpc::{ByteString, ErrorObject, Malformed, MalformedKind, Raw, RequestId, encode};
use serde::Serialize;

use crate::{Era, Fault, Revision, observer::Outcome};

/// The one answer to a request: a result, or why there is none.
#[derive(Debug, Clone)]
pub struct Reply {
    id: Option<RequestId>,
    revision: Revision,
    outcome: Result<Body, Fault>,
}

/// A result's members, before the era's own are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Body {
    /// The members as JSON text, without the braces and without `_meta`.
    pub(crate) members: BytesMut,
    /// What the result itself puts into `_meta`, an object.
    pub(crate) meta: Option<Raw>,
    /// Whether the modern era wants cache hints with it.
    pub(crate) cacheable: bool,
    /// Whether it says that a tool failed.
    pub(crate) is_failure: bool,
}

impl Body {
    /// The members of a value that serializes as an object.
    pub(crate) fn encode(value: &impl Serialize) -> Result<Self, Fault> {
        let mut members = BytesMut::new();
        encode::value(&mut members, value).map_err(|_| Fault::Internal)?;
        match &*members {
            [b'{', .., b'}'] => {
                members.truncate(members.len() - 1);
                members.advance(1);
                Ok(Self { members, ..Self::default() })
            }
            _ => Err(Fault::Internal),
        }
    }

    pub(crate) fn cacheable(mut self) -> Self {
        self.cacheable = true;
        self
    }
}

impl Reply {
    pub(crate) fn new(id: RequestId, revision: Revision, outcome: Result<Body, Fault>) -> Self {
        Self { id: Some(id), revision, outcome }
    }

    /// The answer to a message that is no request: an error, with the id where one could be read.
    #[must_use]
    pub fn refusal(id: Option<RequestId>, revision: Revision, fault: Fault) -> Self {
        Self { id, revision, outcome: Err(fault) }
    }

    /// The answer to what is no message.
    pub(crate) fn malformed(malformed: Malformed) -> Self {
        // An answer to nothing is not answered under its id, which may be that of a request of the peer's own.
        let id = malformed.id.filter(|_| malformed.kind != MalformedKind::Answer);
        Self::refusal(id, Revision::LATEST_LEGACY, Fault::Malformed(malformed.error))
    }

    /// The id that is answered.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// The revision that is spoken.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Why there is no result.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.outcome.as_ref().err()
    }

    /// How the request ended, as observers are told.
    pub(crate) fn outcome(&self) -> Outcome {
        match &self.outcome {
            Ok(body) if body.is_failure => Outcome::ToolFailed,
            Ok(_) => Outcome::Completed,
            Err(fault) => Outcome::Error { code: fault.to_error(self.revision).code },
        }
    }

    /// The same answer with another fault instead of what it was: for layers that judge results.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.outcome = Err(fault);
        self
    }

    /// The answer as JSON text on one line. `server_info` is the `_meta` member that names the server, if it is told.
    pub(crate) fn encode(&self, server_info: Option<&str>) -> Bytes {
        let (Some(id), Ok(body)) = (&self.id, &self.outcome) else {
            let error = self.fault().unwrap_or(&Fault::Internal).to_error(self.revision);
            return encode::error(self.id.as_ref(), &error);
        };
        let mut out = encode::open_result(id, room(body, server_info));
        write_result(&mut out, self.revision, body, server_info);
        encode::close_result(out)
    }

    /// The answer without its envelope.
    pub(crate) fn into_outcome(self, server_info: Option<&str>) -> Result<Raw, ErrorObject> {
        let body = self.outcome.map_err(|fault| fault.to_error(self.revision))?;
        let mut out = BytesMut::with_capacity(room(&body, server_info));
        write_result(&mut out, self.revision, &body, server_info);
        let text = ByteString::try_from(out.freeze()).map_err(|_| Fault::Internal.to_error(self.revision))?;
        Ok(Raw::assume_valid(text))
    }
}

/// How long a result may get: what this file adds fits into the number here.
fn room(body: &Body, server_info: Option<&str>) -> usize {
    let meta = body.meta.as_ref().map_or(0, |meta| meta.as_bytes().len());
    80 + body.members.len() + meta + server_info.map_or(0, str::len)
}

fn write_result(out: &mut BytesMut, revision: Revision, body: &Body, server_info: Option<&str>) {
    match revision.era() {
        Era::Legacy => write_legacy(out, body),
        Era::Modern => write_modern(out, body, server_info.unwrap_or_default()),
    }
    out.put_slice(&body.members);
    out.put_u8(b'}');
}

fn write_legacy(out: &mut BytesMut, body: &Body) {
    out.put_u8(b'{');
    if let Some(meta) = &body.meta {
        out.put_slice(br#""_meta":"#);
        encode::one_line(out, meta.as_bytes());
        separate(out, &body.members);
    }
}

fn write_modern(out: &mut BytesMut, body: &Body, server_info: &str) {
    let meta = body.meta.as_ref().map_or("", |meta| inner(meta.as_str()));
    out.put_slice(br#"{"resultType":"complete""#);
    if body.cacheable {
        out.put_slice(br#","ttlMs":0,"cacheScope":"private""#);
    }
    if !(meta.is_empty() && server_info.is_empty()) {
        out.put_slice(br#","_meta":{"#);
        out.put_slice(server_info.as_bytes());
        if !server_info.is_empty() {
            separate(out, meta.as_bytes());
        }
        encode::one_line(out, meta.as_bytes());
        out.put_u8(b'}');
    }
    separate(out, &body.members);
}

fn separate(out: &mut BytesMut, members: &[u8]) {
    if !members.is_empty() {
        out.put_u8(b',');
    }
}

/// An object's members, without its braces.
fn inner(object: &str) -> &str {
    object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(revision: Revision, body: Body, info: Option<&str>) -> String {
        let reply = Reply::new(1u64.into(), revision, Ok(body));
        String::from_utf8(reply.encode(info).to_vec()).unwrap()
    }

    fn body(members: &str, meta: Option<&str>) -> Body {
        let meta = meta.map(|meta| Raw::parse(meta).unwrap());
        Body { members: members.as_bytes().into(), meta, ..Body::default() }
    }

    #[test]
    fn the_legacy_era_adds_nothing() {
        for (members, meta, result) in [
            ("", None, "{}"),
            (r#""a":1"#, None, r#"{"a":1}"#),
            (r#""a":1"#, Some("{\n\"m\":1}"), r#"{"_meta":{ "m":1},"a":1}"#),
            ("", Some("{}"), r#"{"_meta":{}}"#),
        ] {
            let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            assert_eq!(text(Revision::LATEST_LEGACY, body(members, meta), Some("\"s\":0")), expected);
        }
    }

    #[test]
    fn the_modern_era_adds_its_members() {
        for (members, meta, info, result) in [
            ("", None, None, r#"{"resultType":"complete"}"#),
            (r#""a":1"#, None, Some(r#""s":{}"#), r#"{"resultType":"complete","_meta":{"s":{}},"a":1}"#),
            (
                r#""a":1"#,
                Some(r#"{"m":1}"#),
                Some(r#""s":{}"#),
                r#"{"resultType":"complete","_meta":{"s":{},"m":1},"a":1}"#,
            ),
            ("", Some(r#"{ "m":1 }"#), None, r#"{"resultType":"complete","_meta":{"m":1}}"#),
            ("", Some("{}"), Some(r#""s":{}"#), r#"{"resultType":"complete","_meta":{"s":{}}}"#),
        ] {
            let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            assert_eq!(text(Revision::LATEST, body(members, meta), info), expected);
        }
        let hints = text(Revision::LATEST, body("", None).cacheable(), None);
        assert!(hints.contains(r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#), "{hints}");
    }

    #[test]
    fn only_objects_are_results() {
        assert!(Body::encode(&1).is_err() && Body::encode(&[1]).is_err());
        assert_eq!(Body::encode(&serde_json::json!({"a": 1})).unwrap().members, r#""a":1"#);
    }
}
