//! What only the legacy era has: sessions, streams that are resumed, a stream for what belongs to no call, and the
//! transport of 2024-11-05.

mod cursor;
#[cfg(any(fuzzing, test))]
mod fuzz;
mod listen;
mod old_sse;
mod past;
mod resume;
mod stream;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use mcp_core::{Blame, Error, ErrorKind, Revision};
use reqwest::{Response, StatusCode};
use tokio::{runtime::Handle, task::JoinHandle, time::timeout};

#[cfg(fuzzing)]
pub(crate) use self::fuzz::fuzz;
pub(super) use self::{
    listen::{Listening, Opening, listen},
    old_sse::{OldAnswers, OldSse, may_be_old},
    past::Past,
    resume::Resume,
};
use super::target::{Target, drain};
use crate::headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID};

/// What the server knows a client by, and what is spoken.
#[derive(Clone, Default)]
pub(super) struct Session {
    /// What the server called the session; none where it has none.
    id: Option<HeaderValue>,
    pub(super) revision: Option<Revision>,
}

impl Session {
    /// The session that a handshake began.
    pub(super) fn begun(response: &Response) -> Self {
        let mut id = response.headers().get(MCP_SESSION_ID).cloned();
        if let Some(id) = &mut id {
            id.set_sensitive(true);
        }
        Self { id, revision: None }
    }

    /// The header that names it.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        self.id.clone().map(|id| (MCP_SESSION_ID, id))
    }

    /// The headers of a request that has no body.
    fn headers(&self) -> HeaderMap {
        let revision = self.revision.map(|revision| HeaderValue::from_static(revision.as_str()));
        self.header().into_iter().chain(revision.map(|revision| (MCP_PROTOCOL_VERSION, revision))).collect()
    }

    /// Whether that answer to a request that named the session says that there is none of that name.
    ///
    /// Specification: *2025-11-25, Transports, Session Management*.
    pub(super) fn is_lost(&self, response: &Response) -> bool {
        self.id.is_some() && response.status() == StatusCode::NOT_FOUND
    }

    /// Tells the server that the session is over, in a task of its own, so that whoever waits for it may leave. A server that
    /// is gone, or keeps sessions to itself, needs no telling.
    pub(super) fn end(self, target: &Arc<Target>) -> Option<JoinHandle<()>> {
        self.id.as_ref()?;
        let (runtime, target) = (Handle::try_current().ok()?, Arc::clone(target));
        Some(runtime.spawn(async move {
            if let Ok(Ok(answer)) = timeout(FAREWELL, target.send(Method::DELETE, self.headers())).await {
                drain(answer.response);
            }
        }))
    }
}

/// How long the end of a session may take.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);

/// The session that a request named is over.
pub(super) fn lost(response: Response) -> Error {
    let status = response.status().as_u16();
    drain(response);
    Error::new(
        ErrorKind::NotInitialized,
        format!("the server answered {status}: it does not know the session any more"),
    )
    .blaming(Blame::Peer)
    .with_status(status)
}
