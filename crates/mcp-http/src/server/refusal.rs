//! Why a request is not taken: everything that is refused before there is a reply to give, with its status.

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use mcp_core::{Revision, origin::Refused};
use mcp_jsonrpc::{ErrorObject, RequestId, code, encode};

use crate::{
    headers::{LAST_EVENT_ID, MCP_SESSION_ID},
    server::{accept_header::NotAcceptable, reply},
};

/// Why a request is not taken. The words are the body's, as an error of JSON-RPC.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(transparent)]
    Guard(#[from] Refused),
    #[error("the {0} header stands more than once")]
    Twice(HeaderName),
    #[error("this endpoint takes {0}")]
    Method(&'static str),
    #[error("streams need HTTP/1.1")]
    Version,
    #[error(transparent)]
    NotAcceptable(#[from] NotAcceptable),
    #[error("a GET is answered with `Accept: text/event-stream` alone")]
    NoEventStream,
    #[error("the body must be `Content-Type: application/json`")]
    NotJson,
    #[error("the body must not be compressed")]
    Compressed,
    #[error("the body is longer than {0} bytes")]
    TooLarge(usize),
    #[error("the body could not be read to its end")]
    BrokenOff,
    #[error("the body did not come in time")]
    TooSlow,
    #[error("a response needs a session to belong to")]
    NoSessionForResponse,
    #[error("the Mcp-Session-Id header is missing: send `initialize` first")]
    NoSession,
    /// Unknown, ended, expired, malformed, another's: nobody is told which.
    #[error("there is no such session: send `initialize` again, without a session id")]
    Gone,
    #[error("this session speaks {0}, and the MCP-Protocol-Version header says otherwise")]
    OtherRevision(Revision),
    #[error("this session has {0} open already, as many as it may")]
    TooManyStreams(usize),
    #[error("there is no room for a further session")]
    Full,
    #[error("what is kept of sessions cannot be reached at the moment")]
    Unavailable,
    #[error("there is no such connection: open a new one")]
    NoConnection,
    #[error("the connection takes no message at the moment")]
    Stalled,
    #[error("the server stops")]
    Stopping,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Twice(_)
            | Self::BrokenOff
            | Self::NoSessionForResponse
            | Self::NoSession
            | Self::OtherRevision(_) => StatusCode::BAD_REQUEST,
            Self::Guard(_) => StatusCode::FORBIDDEN,
            Self::Gone | Self::NoConnection => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable(_) | Self::NoEventStream => StatusCode::NOT_ACCEPTABLE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyStreams(_) => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson | Self::Compressed => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Full | Self::Unavailable | Self::Stalled | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
        }
    }

    /// What is answered to a request of that id, or where no id was read.
    pub(super) fn answer(&self, id: Option<&RequestId>) -> Response {
        let error = ErrorObject::new(code::INVALID_REQUEST, self.to_string());
        let mut response = reply::json(self.status(), encode::error(id, &error));
        if let Self::Method(allowed) = self {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}

/// Whoever routes by the first of two headers and whoever checks the second would see different requests.
pub(super) fn check_single(headers: &HeaderMap) -> Result<(), Refusal> {
    // Nearly no request has any header twice, which is told by counting.
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    let once = [header::HOST, header::ORIGIN, header::CONTENT_TYPE, MCP_SESSION_ID, LAST_EVENT_ID];
    let twice = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
    match once.into_iter().find(twice) {
        Some(name) => Err(Refusal::Twice(name)),
        // What mirrors the body is compared with it, and refused in the specification's own words.
        None => Ok(()),
    }
}
