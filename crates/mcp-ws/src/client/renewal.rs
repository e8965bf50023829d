//! How a client comes back to its connection.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll, ready},
};

use mcp_core::{BoxFuture, Error, client::Backoff};

use crate::{
    client::dial::{Dial, Line},
    socket::{Renewal, Renewed, ledger::Hello},
};

/// Dials again until the connection is found, or is known to be gone.
pub(super) struct Return {
    dial: Arc<Dial>,
    backoff: Backoff,
    attempt: Option<BoxFuture<'static, io::Result<Renewed<Line>>>>,
}

impl Return {
    pub(super) fn new(dial: Arc<Dial>, backoff: Backoff) -> Self {
        Self { dial, backoff, attempt: None }
    }
}

impl Renewal<Line> for Return {
    fn lost(&mut self, hello: Hello) {
        self.attempt = Some(Box::pin(find(self.dial.clone(), self.backoff, hello)));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Renewed<Line>>> {
        let Some(attempt) = &mut self.attempt else { return Poll::Pending };
        let found = ready!(attempt.as_mut().poll(cx));
        self.attempt = None;
        Poll::Ready(found)
    }

    /// It was said while the socket came about.
    fn answer(&self, _: Hello) -> Option<Hello> {
        None
    }
}

async fn find(dial: Arc<Dial>, backoff: Backoff, hello: Hello) -> io::Result<Renewed<Line>> {
    let mut failed = None;
    for wait in backoff.waits() {
        tokio::time::sleep(wait).await;
        match dial.dial(&hello).await {
            Ok((link, Some(theirs))) if theirs.token == hello.token => return Ok((link, theirs)),
            Ok((mut link, _)) => {
                tokio::spawn(async move { link.close().await });
                return Err(gone("the server does not have it any more"));
            }
            Err(error) if is_final(&error) => return Err(gone(&error.to_string())),
            Err(error) => failed = Some(error),
        }
    }
    Err(gone(&failed.map_or_else(|| "nobody tried".to_owned(), |error| error.to_string())))
}

/// Whether it makes no sense to ask again, as where the server has refused.
fn is_final(error: &Error) -> bool {
    error.status().is_some_and(|status| (400..500).contains(&status) && !matches!(status, 408 | 425 | 429))
}

fn gone(why: &str) -> io::Error {
    let message = format!("the socket was lost, and the connection could not be resumed: {why}");
    io::Error::new(io::ErrorKind::ConnectionReset, message)
}
