//! Server path 9 of 11: the exit seam, where the id and the era's members are put around a result. Before: `crates/mcp-core/src/server/tool.rs`. After: `crates/mcp-jsonrpc/src/encode.rs`.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use mcp_jsonrpc::{ByteString, ErrorObject, Malformed, MalformedKind, Raw, RequestId, encode};
use serde::Serialize;

use crate::{Era, Fault, Revision, head::meta_key, observer::Outcome, shown::Size, types::CacheHint};

/// The one answer to a request: a result, or why there is none. `Debug` says how long a result is, and which code an error has.
#[derive(Clone)]
pub struct Reply {
    id: Option<RequestId>,
    revision: Revision,
    outcome: Result<Body, Fault>,
}

/// A result's members, before the era's own are added.
#[derive(Clone, Default)]
pub(crate) struct Body {
    /// The members as JSON text, without the braces and without `_meta`.
    pub(crate) members: BytesMut,
    /// What is listed, which stands behind the members.
    pub(crate) listed: Option<Box<Listing>>,
    /// What the result itself puts into `_meta`, an object.
    pub(crate) meta: Option<Raw>,
    /// The cache hint, where the modern era wants one.
    pub(crate) cache: Option<CacheHint>,
    /// What a client of the modern era is told that it is.
    pub(crate) kind: ResultKind,
    /// Whether it says that a tool failed.
    pub(crate) is_failure: bool,
}

/// What kind of result it is.
///
/// Specification: *Overview, ResultType; Tasks extension, Polymorphic Results*.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ResultKind {
    #[default]
    Complete,
    InputRequired,
    Task,
}

impl ResultKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Task => "task",
        }
    }
}

/// A result's member that is an array of what is rendered already: it is copied once, into the answer.
#[derive(Clone)]
pub(crate) struct Listing {
    pub(crate) member: &'static str,
    pub(crate) entries: Entries,
}

/// What is in it.
#[derive(Clone)]
pub(crate) enum Entries {
    /// The same for all who ask, with its commas.
    Whole(Bytes),
    Each {
        entries: Vec<Arc<dyn Rendered>>,
        revision: Revision,
    },
}

/// Something that is rendered once for each revision.
pub(crate) trait Rendered: Send + Sync {
    /// Its JSON text as `revision` has it.
    fn rendered(&self, revision: Revision) -> &Raw;
}

impl Listing {
    fn size(&self) -> usize {
        let entries = match &self.entries {
            Entries::Whole(text) => text.len(),
            Entries::Each { entries, revision } => size(entries, *revision),
        };
        8 + self.member.len() + entries
    }

    fn write(&self, out: &mut BytesMut) {
        out.put_u8(b'"');
        out.put_slice(self.member.as_bytes());
        out.put_slice(br#"":["#);
        match &self.entries {
            Entries::Whole(text) => out.put_slice(text),
            Entries::Each { entries, revision } => write(out, entries, *revision),
        }
        out.put_u8(b']');
    }
}

/// How long the entries get with their commas.
pub(crate) fn size<R: Rendered + ?Sized>(entries: &[Arc<R>], revision: Revision) -> usize {
    entries.iter().map(|entry| entry.rendered(revision).as_bytes().len() + 1).sum()
}

/// Writes the entries with their commas.
pub(crate) fn write<R: Rendered + ?Sized>(out: &mut BytesMut, entries: &[Arc<R>], revision: Revision) {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.put_u8(b',');
        }
        out.put_slice(entry.rendered(revision).as_bytes());
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outcome = self.outcome.as_ref().map_err(|fault| fault.to_error(self.revision).code);
        f.debug_struct("Reply").field("id", &self.id).field("outcome", &outcome).finish_non_exhaustive()
    }
}

/// What a call came to is for its caller.
impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("members", &Size(&self.members)).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Listing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listing").field("member", &self.member).finish_non_exhaustive()
    }
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

    pub(crate) fn cached(mut self, hint: CacheHint) -> Self {
        self.cache = Some(hint);
        self
    }

    fn has_members(&self) -> bool {
        !self.members.is_empty() || self.listed.is_some()
    }

    fn write_members(&self, out: &mut BytesMut) {
        out.put_slice(&self.members);
        if let Some(listed) = &self.listed {
            separate(out, !self.members.is_empty());
            listed.write(out);
        }
    }
}

impl Reply {
    pub(crate) fn new(id: RequestId, revision: Revision, mut outcome: Result<Body, Fault>) -> Self {
        if let Ok(body) = &mut outcome {
            body.meta = body.meta.take().and_then(own_meta);
        }
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

/// What a handler puts into `_meta`: an object, or nothing. A result that came from another server says which; here it is
/// this server's.
fn own_meta(meta: Raw) -> Option<Raw> {
    if !meta.is_object() {
        tracing::error!("a result's metadata is no object, and was left out");
        return None;
    }
    if meta.member(meta_key::SERVER_INFO).is_none() {
        return Some(meta);
    }
    let mut members = meta.decode::<BTreeMap<String, Raw>>().ok()?;
    members.remove(meta_key::SERVER_INFO);
    Raw::encode(&members).ok()
}

/// How long a result may get: what this file adds fits into the number here.
fn room(body: &Body, server_info: Option<&str>) -> usize {
    let meta = body.meta.as_ref().map_or(0, |meta| meta.as_bytes().len());
    let listed = body.listed.as_ref().map_or(0, |listed| listed.size());
    96 + body.members.len() + listed + meta + server_info.map_or(0, str::len)
}

fn write_result(out: &mut BytesMut, revision: Revision, body: &Body, server_info: Option<&str>) {
    match revision.era() {
        Era::Legacy => write_legacy(out, body),
        Era::Modern => write_modern(out, body, server_info.unwrap_or_default()),
    }
    body.write_members(out);
    out.put_u8(b'}');
}

fn write_legacy(out: &mut BytesMut, body: &Body) {
    out.put_u8(b'{');
    if let Some(meta) = &body.meta {
        out.put_slice(br#""_meta":"#);
        encode::one_line(out, meta.as_bytes());
        separate(out, body.has_members());
    }
}

fn write_modern(out: &mut BytesMut, body: &Body, server_info: &str) {
    let meta = body.meta.as_ref().map_or("", |meta| inner(meta.as_str()));
    out.put_slice(br#"{"resultType":""#);
    out.put_slice(body.kind.as_str().as_bytes());
    out.put_u8(b'"');
    if let Some(hint) = body.cache {
        // Writing into memory cannot fail.
        let _ = write!(out, r#","ttlMs":{},"cacheScope":"{}""#, hint.ttl_ms(), hint.scope.as_str());
    }
    if !(meta.is_empty() && server_info.is_empty()) {
        out.put_slice(br#","_meta":{"#);
        out.put_slice(server_info.as_bytes());
        if !server_info.is_empty() {
            separate(out, !meta.is_empty());
        }
        encode::one_line(out, meta.as_bytes());
        out.put_u8(b'}');
    }
    separate(out, body.has_members());
}

fn separate(out: &mut BytesMut, more_follows: bool) {
    if more_follows {
        out.put_u8(b',');
    }
}

/// An object's members, without its braces.
fn inner(object: &str) -> &str {
    object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let hints = text(Revision::LATEST, body("", None).cached(CacheHint::default()), None);
        assert!(hints.contains(r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#), "{hints}");
        let hint = CacheHint::public(Duration::from_millis(1500));
        let hints = text(Revision::LATEST, body("", None).cached(hint), None);
        assert!(hints.contains(r#","ttlMs":1500,"cacheScope":"public"}"#), "{hints}");
    }

    impl Rendered for Raw {
        fn rendered(&self, _: Revision) -> &Raw {
            self
        }
    }

    #[test]
    fn what_is_listed_stands_behind_the_members_in_an_answer_that_is_allocated_once() {
        let listed = |entries: Vec<Arc<dyn Rendered>>| {
            let entries = Entries::Each { entries, revision: Revision::LATEST };
            Some(Box::new(Listing { member: "tools", entries }))
        };
        let entries = ["{}", "1"].map(|entry| Arc::new(Raw::parse(entry).unwrap()) as Arc<dyn Rendered>);
        let mut listing = body(r#""nextCursor":"2""#, None);
        listing.listed = listed(entries.to_vec());
        assert!(text(Revision::LATEST_LEGACY, listing, None).contains(r#"{"nextCursor":"2","tools":[{},1]}"#));
        let mut listing = body("", None);
        listing.listed = listed(Vec::new());
        let text = text(Revision::LATEST, listing.clone(), Some(r#""s":0"#));
        assert!(text.contains(r#"{"resultType":"complete","_meta":{"s":0},"tools":[]}"#), "{text}");
        assert!(text.len() <= room(&listing, Some(r#""s":0"#)) + 64);
    }

    #[test]
    fn only_objects_are_results() {
        assert!(Body::encode(&1).is_err() && Body::encode(&[1]).is_err());
        assert_eq!(Body::encode(&serde_json::json!({"a": 1})).unwrap().members, r#""a":1"#);
    }
}
