//! The first words on a socket that can be resumed.

use std::{sync::Arc, time::Duration};

use mcp_core::Limits;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    server::parked::Parked,
    socket::{
        Link, Resume, Socket, Verdict,
        ledger::{Hello, MOST, Window},
    },
};

/// How long a client may take to say which connection its socket is for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes there may be around what it says: heads of frames, and a few pings before.
const AROUND: usize = 1 << 10;

/// The socket again, for a new connection, and what its client can keep; `None` where it has gone to a connection that was
/// there already, or to nobody.
pub(super) async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    mut link: Link<S>,
    parked: &Parked<S>,
    owner: Option<[u8; 32]>,
    stop: &CancellationToken,
) -> Option<(Link<S>, Window)> {
    let hearing = timeout(PATIENCE, link.first_text(MOST + AROUND));
    let Some(heard) = stop.run_until_cancelled(hearing).await else {
        refuse(link, Verdict::STOPPING).await;
        return None;
    };
    let Some(hello) = heard.ok().and_then(Result::ok).and_then(|text| Hello::parse(&text).ok()) else {
        tracing::debug!("a client that can resume did not say what");
        refuse(link, Verdict::NO_HELLO).await;
        return None;
    };
    hello.token.iter().for_each(|token| link.add_secret(token));
    let window = hello.window;
    parked.hand_over(link, hello, owner).map(|link| (link, window))
}

/// A new connection on the socket.
pub(super) async fn begin<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    mut link: Link<S>,
    parked: &Arc<Parked<S>>,
    owner: Option<[u8; 32]>,
    theirs: Window,
    limits: &Limits,
) -> Option<Socket<S>> {
    let begun = parked.begin(owner).map(|(token, place)| {
        let resume = Resume::new(Window::of(limits), theirs, token, limits.message_bytes, Box::new(place));
        (resume.hello(), resume)
    });
    match begun {
        Ok((hello, resume)) => {
            hello.token.iter().for_each(|token| link.add_secret(token));
            link.put(hello.to_text()).is_ok().then(|| Socket::new(link, Some(resume)))
        }
        Err(error) => {
            tracing::warn!(%error, "there are no random numbers for a token");
            refuse(link, Verdict::OUR_FAULT).await;
            None
        }
    }
}

/// Closes a socket on which there is no connection.
pub(super) async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut link: Link<S>, why: Verdict) {
    link.because(why);
    let _ = link.close().await;
}
