//! Requests that are given up before their answer.

use std::sync::Arc;

use mcp_core::{Era, client::Outgoing};
use tokio::time::timeout;

use super::Endpoint;

/// In the legacy era a closed stream cancels nothing, so that the server has to be told.
///
/// Specification: *2025-11-25, Cancellation*.
pub(super) struct CancelOnDrop(Option<(Arc<Endpoint>, Outgoing)>);

impl CancelOnDrop {
    pub(super) fn new(endpoint: &Arc<Endpoint>, out: &Outgoing) -> Self {
        let needed = out.revision.is_some_and(|revision| revision.era() == Era::Legacy);
        Self(out.to_cancel().filter(|_| needed).map(|cancel| (endpoint.clone(), cancel)))
    }

    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some((endpoint, cancel)), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        runtime.spawn(async move {
            // A server that does not even take this is told no more, and holds nothing here.
            tokio::select! {
                sent = timeout(endpoint.target.limits.request_timeout, endpoint.tell(&cancel)) => {
                    if !matches!(sent, Ok(Ok(()))) {
                        tracing::debug!("a cancellation could not be sent");
                    }
                }
                () = endpoint.closed.cancelled() => {}
            }
        });
    }
}
