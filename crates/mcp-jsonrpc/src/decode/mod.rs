//! Server path 2 of 11: one shallow scan turns a frame into an envelope over the same bytes. Before: `crates/mcp-http/src/server/post.rs` | `crates/mcp-core/src/server/connection.rs`. After: `crates/mcp-core/src/server/accept.rs`.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::IgnoredAny;

use crate::{
    ErrorObject, Inbound, Malformed, MalformedKind, Members, Message, Notification, Raw, Request, RequestId, Response,
    code,
    raw::share,
    scan::{NotJson, Scanner},
};

/// Bounds on what is decoded. The size of a whole frame is the framing's to bound.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DecodeLimits {
    /// How deep arrays and objects may nest, the message itself counted. Default 128.
    pub depth: usize,
    /// The longest id, in bytes of JSON text. Default 256.
    pub id: usize,
    /// The most items in a batch. Default 64.
    pub batch: usize,
}

impl Default for DecodeLimits {
    fn default() -> Self {
        Self { depth: 128, id: 256, batch: 64 }
    }
}

/// Reads the envelope of the message, or of the messages, in one frame.
///
/// What is returned shares the memory of `frame`, or is a copy where it is a small part of a large one. Parameters and results are neither decoded nor altered. Member names
/// are compared exactly; a second `id`, `method`, … in one message is refused, since two readers could each
/// believe another one. A leading byte order mark is skipped.
#[must_use]
pub fn decode(frame: Bytes, limits: &DecodeLimits) -> Inbound {
    let Ok(text) = ByteString::try_from(frame) else {
        return Inbound::Malformed(not_json("it is not UTF-8"));
    };
    let json = text.strip_prefix('\u{feff}').unwrap_or(&text).trim_matches([' ', '\t', '\n', '\r']);
    let single = Decoder { text: &text, limits };
    match json.as_bytes().first() {
        Some(b'{') => match single.message(json) {
            Ok(message) => Inbound::One(message),
            Err(malformed) => Inbound::Malformed(malformed),
        },
        Some(b'[') => single.batch(json).map_or_else(Inbound::Malformed, Inbound::Batch),
        _ => Inbound::Malformed(no_object(json)),
    }
}

struct Decoder<'a> {
    text: &'a ByteString,
    limits: &'a DecodeLimits,
}

impl<'a> Decoder<'a> {
    fn batch(&self, json: &'a str) -> Result<Vec<Result<Message, Malformed>>, Malformed> {
        let (items, count) = self.items(json).map_err(|NotJson| no_object(json))?;
        match count {
            0 => Err(invalid(None, "an empty batch")),
            count if count > self.limits.batch => {
                Err(invalid(None, format!("a batch of more than {} messages", self.limits.batch)))
            }
            _ => Ok(items.into_iter().map(|item| self.item(item)).collect()),
        }
    }

    /// As many as may be, and how many there are.
    fn items(&self, json: &'a str) -> Result<(Vec<&'a str>, usize), NotJson> {
        let mut scanner = Scanner::new(json);
        let (mut items, mut count) = (Vec::new(), 0);
        let mut more = scanner.take(b'[') && !scanner.take(b']');
        while more {
            let item = scanner.value()?;
            count += 1;
            if count <= self.limits.batch {
                items.push(item);
            }
            more = scanner.take(b',');
            if !more && !scanner.take(b']') {
                return Err(NotJson);
            }
        }
        scanner.end().map(|()| (items, count))
    }

    fn item(&self, json: &'a str) -> Result<Message, Malformed> {
        if json.starts_with('{') { self.message(json) } else { Err(no_object(json)) }
    }

    fn message(&self, json: &'a str) -> Result<Message, Malformed> {
        let envelope = Members::scan(json, &member::NAMES).map_err(not_json)?;
        // The scan does not recurse, so the id can be told even of what nests too deep.
        if envelope.levels() > self.limits.depth {
            let (id, depth) = (self.id(&envelope).ok().flatten(), self.limits.depth);
            return Err(with_kind(&envelope, invalid(id, format!("nested deeper than {depth} levels"))));
        }
        self.classify(&envelope).map_err(|malformed| with_kind(&envelope, malformed))
    }

    fn classify(&self, envelope: &Envelope<'a>) -> Result<Message, Malformed> {
        if let Some(member) = envelope.duplicate() {
            let id = if member == member::ID { None } else { self.id(envelope).ok().flatten() };
            return Err(invalid(id, format!("more than one member `{}`", member::NAMES[member])));
        }
        let id = self.id(envelope)?;
        if envelope.get(member::JSONRPC) != Some(r#""2.0""#) {
            return Err(invalid(id, "the member `jsonrpc` must be \"2.0\""));
        }
        // Some peers write the one that it is not as null.
        let error = envelope.get_some(member::ERROR);
        let result = envelope.get(member::RESULT).filter(|result| error.is_none() || *result != "null");
        match (envelope.get(member::METHOD), result, error) {
            (Some(method), None, None) => self.call(id, method, envelope.get(member::PARAMS)),
            (None, Some(result), None) if id.is_some() => {
                Ok(Message::Response(Response { id, outcome: Ok(self.raw(result)) }))
            }
            (None, None, Some(error)) => {
                Ok(Message::Response(Response { id, outcome: Err(ErrorObject::lenient(self.raw(error))) }))
            }
            (None, Some(_), None) => Err(invalid(None, "a result without an id")),
            (None, None, None) => Err(invalid(id, "neither `method` nor `result` nor `error`")),
            _ => Err(invalid(id, "more than one of `method`, `result` and `error`")),
        }
    }

    fn call(&self, id: Option<RequestId>, method: &'a str, params: Option<&'a str>) -> Result<Message, Malformed> {
        let Ok(method) = self.raw(method).to_string_value() else {
            return Err(invalid(id, "the member `method` must be a string"));
        };
        let params = params.map(|params| self.raw(params)).filter(|params| !params.is_null());
        Ok(match id {
            Some(id) => Message::Request(Request { id, method, params }),
            None => Message::Notification(Notification { method, params }),
        })
    }

    /// The id: absent, readable, or a reason to refuse the message. An error about an unreadable id says `null`.
    fn id(&self, envelope: &Envelope<'a>) -> Result<Option<RequestId>, Malformed> {
        let is_error = envelope.get_some(member::ERROR).is_some() && envelope.get(member::METHOD).is_none();
        match envelope.get(member::ID) {
            None => Ok(None),
            Some("null") if is_error => Ok(None),
            Some(raw) => RequestId::parse_shared(self.raw(raw), self.limits.id).map(Some).map_err(|_| {
                invalid(
                    None,
                    format!("the member `id` must be a string or an integer of at most {} bytes", self.limits.id),
                )
            }),
        }
    }

    /// A share of the frame; but where the frame is large and this a small part of it, a copy, so that what is kept of a
    /// message for long does not keep the rest of it.
    fn raw(&self, value: &'a str) -> Raw {
        const LARGE: usize = 16 << 10;
        let is_small_part = self.text.len() > LARGE && value.len() < self.text.len() / 4;
        Raw::assume_valid(if is_small_part { value.into() } else { share(self.text, value) })
    }
}

/// The members that an envelope may have, as indexes; all others are ignored.
mod member {
    pub(super) const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
    pub(super) const JSONRPC: usize = 0;
    pub(super) const ID: usize = 1;
    pub(super) const METHOD: usize = 2;
    pub(super) const PARAMS: usize = 3;
    pub(super) const RESULT: usize = 4;
    pub(super) const ERROR: usize = 5;
}

type Envelope<'a> = Members<'a, 6>;

fn no_object(json: &str) -> Malformed {
    if json.get(..15).is_some_and(|start| start.eq_ignore_ascii_case("content-length:")) {
        return not_json("it looks like a header, as of the language server protocol; here a message is one line");
    }
    match serde_json::from_str::<IgnoredAny>(json) {
        Ok(_) => invalid(None, "a message is an object"),
        Err(error) => not_json(error),
    }
}

fn not_json(reason: impl fmt::Display) -> Malformed {
    Malformed {
        id: None,
        kind: MalformedKind::Unknown,
        error: ErrorObject::new(code::PARSE_ERROR, format!("Parse error: {reason}")),
    }
}

fn with_kind(envelope: &Envelope<'_>, malformed: Malformed) -> Malformed {
    Malformed { kind: kind_of(envelope), ..malformed }
}

fn kind_of(envelope: &Envelope<'_>) -> MalformedKind {
    if envelope.has(member::METHOD) {
        MalformedKind::Call
    } else if envelope.has(member::RESULT) || envelope.has(member::ERROR) {
        MalformedKind::Answer
    } else {
        MalformedKind::Unknown
    }
}

impl Malformed {
    /// The answer to a message of more than `most` bytes, of which `start` is the beginning. The id is told where it stands
    /// there, so that whoever waits for an answer gets one.
    #[must_use]
    pub fn too_long(start: &[u8], most: usize, limits: &DecodeLimits) -> Self {
        const START: usize = 1 << 10;
        let start = start.get(..START).unwrap_or(start);
        // The cut may go through a character.
        let text = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let members = Members::scan_start(text, &member::NAMES);
        let id = members.get(member::ID).filter(|_| members.duplicate() != Some(member::ID));
        let id = id.and_then(|id| RequestId::parse(id, limits.id).ok());
        Self { id, kind: kind_of(&members), ..not_json(format_args!("the message is longer than {most} bytes")) }
    }
}

fn invalid(id: Option<RequestId>, reason: impl Into<Cow<'static, str>>) -> Malformed {
    let message = format!("Invalid request: {}", reason.into());
    Malformed { id, kind: MalformedKind::Unknown, error: ErrorObject::new(code::INVALID_REQUEST, message) }
}

/// Any bytes decode to something, and what decodes writes and reads back as itself.
#[cfg(any(fuzzing, test))]
pub fn fuzz(data: &[u8]) {
    let limits = DecodeLimits::default();
    match decode(Bytes::copy_from_slice(data), &limits) {
        Inbound::One(message) => assert_same(message, &limits),
        Inbound::Batch(items) => {
            assert!((1..=limits.batch).contains(&items.len()));
            items.into_iter().flatten().for_each(|message| assert_same(message, &limits));
        }
        Inbound::Malformed(malformed) => {
            assert!(matches!(malformed.error.code, code::PARSE_ERROR | code::INVALID_REQUEST));
        }
    }
}

#[cfg(any(fuzzing, test))]
fn assert_same(message: Message, limits: &DecodeLimits) {
    let frame = message.encode();
    match decode(frame.clone(), limits) {
        Inbound::One(again) => assert_eq!(again.encode(), frame),
        other => panic!("{message:?} came back as {other:?}"),
    }
}

#[cfg(test)]
mod tests;
