//! How a server stops: no further connection is taken, streams for what belongs to no request, or is listened
//! to, end, and what still runs is given a while. Then it is cut off, and soon after connections fail.

use std::{future::Future, time::Duration};

use mcp_core::Server;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::server::Sessions;

/// How long answers that were cut off may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What fires as a server stops, one after the other.
pub(super) struct Ends {
    /// It is to stop.
    pub(super) signalled: CancellationToken,
    /// What still runs has had its time.
    pub(super) cut: CancellationToken,
    /// So have answers that nobody reads, and requests that never came whole.
    pub(super) severed: CancellationToken,
}

/// Serves until the signal and a while longer: `serving` ends by itself once nothing runs any more.
pub(super) async fn until<E>(
    serving: impl Future<Output = Result<(), E>>,
    ends: Ends,
    server: &Server,
    sessions: Option<Sessions>,
) -> Result<(), E> {
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => return served,
        () = ends.signalled.cancelled() => {}
    }
    server.end_subscriptions();
    if let Some(sessions) = &sessions {
        sessions.hang_up();
    }
    if let Ok(served) = timeout(server.limits().shutdown_grace, &mut serving).await {
        return served;
    }
    tracing::debug!("requests outlived the server's grace and were cut off");
    ends.cut.cancel();
    if let Some(sessions) = sessions {
        sessions.close_all();
    }
    if let Ok(served) = timeout(LAST_WORDS, &mut serving).await {
        return served;
    }
    ends.severed.cancel();
    // Only what blocks its thread is left now, and may be for ever.
    timeout(LAST_WORDS, serving).await.unwrap_or(Ok(()))
}
