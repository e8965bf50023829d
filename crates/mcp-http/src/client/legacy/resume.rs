//! A call whose stream lost its connection goes on over another one.

use std::sync::Arc;

use mcp_core::{Blame, Error, ErrorKind};

use super::{
    Session,
    cursor::{Cursor, random},
    stream::{Opened, open},
};
use crate::{
    client::{
        events::{Ended, Events},
        sse::Event,
        target::Target,
    },
    defaults::MAX_RETRY,
};

/// How the stream of one call is gone back to.
///
/// Specification: *2025-11-25, Transports, Resumability and Redelivery*.
pub(in crate::client) struct Resume {
    target: Arc<Target>,
    /// As it was when the call was made: its events are of that session and of no later one.
    session: Session,
    cursor: Cursor,
}

/// How often a stream is gone back to that brings nothing new. How long that takes is bounded by the call's own time.
pub(super) const ATTEMPTS: u32 = 5;

impl Resume {
    pub(in crate::client) fn new(target: &Arc<Target>, session: Session) -> Self {
        Self { target: Arc::clone(target), session, cursor: Cursor::default() }
    }

    /// Takes note of an event of the stream.
    pub(in crate::client) fn heard(&mut self, event: &Event) {
        self.cursor.heard(event);
    }

    /// Whether there is a place to go back to.
    pub(in crate::client) fn is_possible(&self) -> bool {
        self.cursor.last().is_some()
    }

    /// Goes back to the stream, whose last connection ended like that.
    ///
    /// # Errors
    /// When it was gone back to often enough in vain, or the server will not have it.
    pub(in crate::client) async fn reconnect(&mut self, before: &Events, ended: Ended) -> Result<Events, Error> {
        self.cursor.ended(before.decoder.retry());
        let mut cause = match ended {
            Ended::InOrder => None,
            Ended::Cut(error) | Ended::Unreadable(error) => Some(error),
        };
        let mut at_least = None;
        while self.cursor.barren() < ATTEMPTS {
            let wait = self.cursor.wait(random()).max(at_least.unwrap_or_default()).min(MAX_RETRY);
            tokio::time::sleep(wait).await;
            match open(&self.target, &self.session, self.cursor.last()).await {
                Opened::Stream(events) => return Ok(*events),
                Opened::Refused(error) => return Err(unknown_fate(error)),
                Opened::Failed(error, wait) => (cause, at_least) = (Some(error), wait),
            }
        }
        let message =
            format!("the stream ended before the response, and {ATTEMPTS} attempts to resume it brought nothing");
        Err(match cause {
            Some(cause) => Error::caused(ErrorKind::TransportClosed, message, cause),
            None => Error::new(ErrorKind::TransportClosed, message),
        })
    }
}

/// The call was received, and may have been done: that its session is gone since must not look like a call that never
/// began, which would be made again.
fn unknown_fate(error: Error) -> Error {
    let Some(status) = error.status().filter(|_| error.kind() == ErrorKind::NotInitialized) else { return error };
    let message = "the session was lost while the call was under way; whether it was done is not known";
    Error::caused(ErrorKind::TransportClosed, message, error).blaming(Blame::Peer).with_status(status)
}
