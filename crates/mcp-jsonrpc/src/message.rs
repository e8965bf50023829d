use bytes::Bytes;
use bytestring::ByteString;

use crate::{ErrorObject, Raw, RequestId, encode};

/// What one frame turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inbound {
    /// One message.
    One(Message),
    /// An array of at least one and at most [`DecodeLimits::batch`](crate::DecodeLimits) items, in order.
    Batch(Vec<Result<Message, Malformed>>),
    /// No message at all.
    Malformed(Malformed),
}

/// Why a frame, or an item of a batch, is no message: the answer that it deserves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The id, where one could be read all the same.
    pub id: Option<RequestId>,
    /// What it seems to be.
    pub kind: MalformedKind,
    /// `-32700` where the bytes are not JSON or too many to be read, `-32600` for everything else.
    pub error: ErrorObject,
}

/// What a message that could not be read seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedKind {
    /// It has a `method`: it asks for something.
    Call,
    /// It has a `result` or an `error`, and no `method`: it answers something.
    Answer,
    /// Neither can be told.
    Unknown,
}

/// A JSON-RPC message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message {
    /// A method call that is to be answered.
    Request(Request),
    /// A method call without an id, which is never answered.
    Notification(Notification),
    /// The answer to a request.
    Response(Response),
}

/// A method call that is to be answered exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// What the answer will name.
    pub id: RequestId,
    /// The method.
    pub method: ByteString,
    /// The parameters; `null` counts as none. Whether they are an object is for the method to judge.
    pub params: Option<Raw>,
}

/// A method call that nobody answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// The method.
    pub method: ByteString,
    /// The parameters; `null` counts as none.
    pub params: Option<Raw>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response {
    /// The request that is answered; `None` only for an error about a request whose id could not be read.
    pub id: Option<RequestId>,
    /// The result or the error.
    pub outcome: Result<Raw, ErrorObject>,
}

impl Message {
    /// The request, if it is one.
    #[must_use]
    pub fn as_request(&self) -> Option<&Request> {
        match self {
            Self::Request(request) => Some(request),
            _ => None,
        }
    }

    /// The notification, if it is one.
    #[must_use]
    pub fn as_notification(&self) -> Option<&Notification> {
        match self {
            Self::Notification(notification) => Some(notification),
            _ => None,
        }
    }

    /// The response, if it is one.
    #[must_use]
    pub fn as_response(&self) -> Option<&Response> {
        match self {
            Self::Response(response) => Some(response),
            _ => None,
        }
    }

    /// How many bytes of JSON text the message holds on to, its envelope not counted.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Request(request) => request.size(),
            Self::Notification(notification) => notification.size(),
            Self::Response(Response { outcome: Ok(result), .. }) => size(Some(result)),
            Self::Response(Response { outcome: Err(error), .. }) => size(error.data.as_ref()),
        }
    }

    /// The message as JSON text on one line.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Request(Request { id, method, params }) => encode::request(id, method, params.as_ref()),
            Self::Notification(Notification { method, params }) => encode::notification(method, params.as_ref()),
            Self::Response(Response { id: Some(id), outcome: Ok(result) }) => encode::result(id, result.as_bytes()),
            Self::Response(Response { id: None, outcome: Ok(_) }) => {
                encode::error(None, &ErrorObject::new(crate::code::INTERNAL_ERROR, "a result without an id"))
            }
            Self::Response(Response { id, outcome: Err(error) }) => encode::error(id.as_ref(), error),
        }
    }
}

fn size(raw: Option<&Raw>) -> usize {
    raw.map_or(0, |raw| raw.as_bytes().len())
}

impl Malformed {
    /// A message that could not be read, and the answer that it deserves.
    #[must_use]
    pub fn new(id: Option<RequestId>, error: ErrorObject) -> Self {
        Self { id, kind: MalformedKind::Unknown, error }
    }
}

impl Request {
    /// A request.
    #[must_use]
    pub fn new(id: RequestId, method: impl Into<ByteString>, params: Option<Raw>) -> Self {
        Self { id, method: method.into(), params }
    }

    /// How many bytes of JSON text it holds on to, its envelope not counted.
    #[must_use]
    pub fn size(&self) -> usize {
        size(self.params.as_ref())
    }
}

impl Notification {
    /// A notification.
    #[must_use]
    pub fn new(method: impl Into<ByteString>, params: Option<Raw>) -> Self {
        Self { method: method.into(), params }
    }

    /// How many bytes of JSON text it holds on to, its envelope not counted.
    #[must_use]
    pub fn size(&self) -> usize {
        size(self.params.as_ref())
    }
}

impl Response {
    /// The answer to the request `id`.
    #[must_use]
    pub fn new(id: RequestId, outcome: Result<Raw, ErrorObject>) -> Self {
        Self { id: Some(id), outcome }
    }
}
