use std::{error::Error as StdError, fmt, time::Duration};

use mcp_jsonrpc::{ErrorObject, code};

use crate::{Fault, mcp_code, shown::shown_within};

/// What went wrong, and whose fault it was.
///
/// One word wide; ask it for its [`kind`](Self::kind) and its [`blame`](Self::blame) instead of matching on messages.
/// `Display` is the message alone; `Debug`, which `main` prints, is the kind, the message and all causes on one line.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    blame: Blame,
    message: String,
    object: Option<ErrorObject>,
    status: Option<u16>,
    challenges: Vec<String>,
    retry_after: Option<Duration>,
    /// Of a request that the peer has not got.
    is_unsent: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A message was not what JSON-RPC or the protocol says it must be.
    ProtocolInvalid,
    /// The peer has no such method.
    MethodNotFound,
    /// The peer, or this side, found that parameters do not fit.
    InvalidParams,
    /// The peer failed.
    InternalError,
    /// The peer wants credentials, or better ones.
    Unauthorized,
    /// The request was cancelled.
    RequestCancelled,
    /// No reply came in time.
    Timeout,
    /// The connection is closed.
    TransportClosed,
    /// The connection failed.
    TransportError,
    /// Something was asked before the connection was made.
    NotInitialized,
    /// A connection is there already.
    AlreadyConnected,
    /// The name is taken.
    DuplicateRegistration,
    /// There is no such thing.
    NotFound,
    /// The two sides have no revision in common.
    ProtocolVersionMismatch,
    /// A handler, or the tool that was called, failed.
    HandlerFailed,
}

/// Whose fault an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Blame {
    /// Whoever called this function.
    Caller,
    /// The other side of the connection.
    Peer,
    /// What lies between the sides.
    Transport,
    /// This side itself.
    Local,
}

impl ErrorKind {
    /// The kind's stable name, for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::ProtocolInvalid => "MCP.PROTOCOL_INVALID",
            Self::MethodNotFound => "MCP.METHOD_NOT_FOUND",
            Self::InvalidParams => "MCP.INVALID_PARAMS",
            Self::InternalError => "MCP.INTERNAL_ERROR",
            Self::Unauthorized => "MCP.UNAUTHORIZED",
            Self::RequestCancelled => "MCP.REQUEST_CANCELLED",
            Self::Timeout => "MCP.TIMEOUT",
            Self::TransportClosed => "MCP.TRANSPORT_CLOSED",
            Self::TransportError => "MCP.TRANSPORT_ERROR",
            Self::NotInitialized => "MCP.NOT_INITIALIZED",
            Self::AlreadyConnected => "MCP.ALREADY_CONNECTED",
            Self::DuplicateRegistration => "MCP.DUPLICATE_REGISTRATION",
            Self::NotFound => "MCP.NOT_FOUND",
            Self::ProtocolVersionMismatch => "MCP.PROTOCOL_VERSION_MISMATCH",
            Self::HandlerFailed => "MCP.HANDLER_FAILED",
        }
    }

    /// Whose fault an error of this kind usually is.
    const fn blame(self) -> Blame {
        match self {
            Self::InvalidParams
            | Self::RequestCancelled
            | Self::NotInitialized
            | Self::AlreadyConnected
            | Self::DuplicateRegistration
            | Self::NotFound => Blame::Caller,
            Self::Timeout | Self::TransportClosed | Self::TransportError => Blame::Transport,
            _ => Blame::Peer,
        }
    }
}

/// How many challenges an error keeps, and of how many bytes at most.
const CHALLENGES: usize = 16;
const CHALLENGE_BYTES: usize = 4096;

impl Error {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            blame: kind.blame(),
            message: message.into(),
            object: None,
            status: None,
            challenges: Vec::new(),
            retry_after: None,
            is_unsent: false,
            source: None,
        }))
    }

    /// An error of that kind, with its cause.
    pub fn caused(
        kind: ErrorKind,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let mut error = Self::new(kind, message);
        error.0.source = Some(source.into());
        error
    }

    /// Something was asked of a transport that is not connected, or not any more.
    #[must_use]
    pub fn not_connected() -> Self {
        Self::new(ErrorKind::TransportClosed, "there is no connection").blaming(Blame::Caller).unsent()
    }

    /// The error that the peer answered with.
    #[must_use]
    pub fn from_object(object: ErrorObject) -> Self {
        let kind = match object.code {
            code::PARSE_ERROR | code::INVALID_REQUEST | mcp_code::HEADER_MISMATCH => ErrorKind::ProtocolInvalid,
            code::METHOD_NOT_FOUND => ErrorKind::MethodNotFound,
            code::INVALID_PARAMS | mcp_code::MISSING_CLIENT_CAPABILITY => ErrorKind::InvalidParams,
            mcp_code::UNSUPPORTED_PROTOCOL_VERSION => ErrorKind::ProtocolVersionMismatch,
            mcp_code::RESOURCE_NOT_FOUND => ErrorKind::NotFound,
            _ => ErrorKind::InternalError,
        };
        let message = format!("the peer answered with error {}: {}", object.code, shown_within(&object.message, 1000));
        let mut error = Self::new(kind, message);
        error.0.object = Some(object);
        error.0.blame = Blame::Peer;
        error
    }

    /// The same error as one of another kind.
    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The same error in other words.
    pub(crate) fn saying(mut self, message: String) -> Self {
        self.0.message = message;
        self
    }

    /// The same error with the HTTP status that it came with.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// The same error with the challenges that it came with: the values of the header `WWW-Authenticate`, one a line of
    /// it. Kept are the first 16 that have at most 4096 bytes; half a challenge would be none.
    #[must_use]
    pub fn with_challenges(mut self, mut challenges: Vec<String>) -> Self {
        challenges.retain(|challenge| challenge.len() <= CHALLENGE_BYTES);
        challenges.truncate(CHALLENGES);
        self.0.challenges = challenges;
        self
    }

    /// The same error with the time for which the peer wants to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// The same error, of a request that the peer has certainly not got.
    #[must_use]
    pub fn unsent(mut self) -> Self {
        self.0.is_unsent = true;
        self
    }

    /// The same again, for somebody else who waited; only the cause is one's alone.
    pub(crate) fn again(&self) -> Self {
        let Inner { kind, blame, message, object, status, challenges, retry_after, is_unsent, source: _ } = &*self.0;
        Self(Box::new(Inner {
            kind: *kind,
            blame: *blame,
            message: message.clone(),
            object: object.clone(),
            status: *status,
            challenges: challenges.clone(),
            retry_after: *retry_after,
            is_unsent: *is_unsent,
            source: None,
        }))
    }

    /// The error as a log of this project's tells it: without the words that a peer answered with, which are for the
    /// application and may repeat what is nobody else's to read.
    pub(crate) fn to_log(&self) -> String {
        match self.object() {
            Some(object) => format!("{}: the peer answered with error {}", self.kind().code(), object.code),
            None => self.to_string(),
        }
    }

    /// Whether the answer would be the same if it were asked for again, as where a server has refused.
    pub(crate) fn is_final(&self) -> bool {
        let is_refusal = |status: u16| (400..500).contains(&status) && !matches!(status, 408 | 425 | 429);
        let kinds = [ErrorKind::Unauthorized, ErrorKind::ProtocolVersionMismatch, ErrorKind::InvalidParams];
        kinds.contains(&self.kind()) || self.status().is_some_and(is_refusal)
    }

    /// The same error with the blame put elsewhere.
    #[must_use]
    pub fn blaming(mut self, blame: Blame) -> Self {
        self.0.blame = blame;
        self
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whose fault it is.
    #[must_use]
    pub fn blame(&self) -> Blame {
        self.0.blame
    }

    /// The HTTP status, where an HTTP response was the error.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// How to ask for credentials, in the words of an HTTP response that wanted some: the values of its header
    /// `WWW-Authenticate`, unchanged, one a line of it. Empty where there were none. At most 16 of at most 4096 bytes.
    ///
    /// Specification: *Authorization, Protected Resource Metadata Discovery*.
    #[must_use]
    pub fn challenges(&self) -> &[String] {
        &self.0.challenges
    }

    /// How long to wait before asking again, where an HTTP response of status 429 or 503 said it. Nothing is asked again by
    /// itself. It may be any time at all: whoever waits for it should have a limit of their own.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the peer has certainly not got the request, so that making it again does nothing twice. Of a request that was
    /// sent and not answered nobody can tell: that is for the caller to know.
    #[must_use]
    pub fn is_safe_to_retry(&self) -> bool {
        self.0.is_unsent
    }

    /// What the peer answered, where the error is an answer.
    #[must_use]
    pub fn object(&self) -> Option<&ErrorObject> {
        self.0.object.as_ref()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind().code(), self.0.message)?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Why a handler failed, in words for whoever called it. A tool's failure becomes a result with `isError`, never a protocol
/// error; a prompt's or a resource's becomes an error with these words.
///
/// Any error converts into it, so `?` works in handlers; only the error's own message is told, not its causes. For that
/// reason it is no [`std::error::Error`] itself.
#[derive(Clone, PartialEq, Eq)]
pub struct ToolError {
    message: String,
    /// What it is answered with, where that is an error and no result.
    fault: Option<Box<Fault>>,
}

impl ToolError {
    /// A failure with that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), fault: None }
    }

    /// There is no such resource: what a template that fits a URI says of one that nothing stands behind.
    #[must_use]
    pub fn not_found() -> Self {
        Self { fault: Some(Box::new(Fault::ResourceNotFound("".into()))), ..Self::new("there is no such thing") }
    }

    /// What is answered with an error, and no result.
    pub(crate) fn faulty(fault: Fault) -> Self {
        Self { message: fault.to_string(), fault: Some(Box::new(fault)) }
    }

    /// What the model is told.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same, without a copy.
    #[must_use]
    pub fn into_message(self) -> String {
        self.message
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self.fault.as_deref(), Some(Fault::ResourceNotFound(_)))
    }

    /// What it is answered with, where it is more than a failure of the handler.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.as_deref().filter(|fault| !matches!(fault, Fault::ResourceNotFound(_)))
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: StdError> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolError").field(&self.message).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_word_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }

    #[test]
    fn debug_tells_the_causes_too() {
        let inner = Error::caused(ErrorKind::Timeout, "inner", std::io::Error::other("root"));
        let outer = Error::caused(ErrorKind::TransportError, "outer", inner);
        assert_eq!(format!("{outer:?}"), "MCP.TRANSPORT_ERROR: outer: inner: root");
        assert_eq!(outer.to_string(), "outer");
    }

    #[test]
    fn challenges_are_kept_whole_and_bounded() {
        let error = || Error::new(ErrorKind::Unauthorized, "who are you");
        assert!(error().challenges().is_empty());
        let fits = "x".repeat(4096);
        let error = error().with_challenges(vec![format!("{fits}x"), fits.clone(), "Basic".to_owned()]);
        assert_eq!(error.challenges(), [fits.as_str(), "Basic"]);
        assert_eq!(error.with_challenges(vec!["Basic".to_owned(); 17]).challenges().len(), 16);
    }

    #[test]
    fn answers_keep_their_object_and_blame_the_peer() {
        let error = Error::from_object(ErrorObject::new(-32002, "gone"));
        assert_eq!((error.kind(), error.blame()), (ErrorKind::NotFound, Blame::Peer));
        assert_eq!(error.object().unwrap().message, "gone");
    }
}
