//! The first words on a socket that can be resumed.

use std::{sync::Arc, time::Duration};

use mcp_core::{Limits, server::Peer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};

use crate::{
    server::parked::Parked,
    socket::{
        Link, Resume, Socket, Verdict,
        ledger::{Hello, Window},
    },
};

/// How long a client may take to say which connection its socket is for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A new connection on the socket; `None` where the socket has gone to a connection that was there already, or to nobody.
pub(super) async fn greet<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    mut link: Link<S>,
    parked: &Arc<Parked<S>>,
    peer: &Peer,
    limits: &Limits,
) -> Option<Socket<S>> {
    let heard = timeout(PATIENCE, std::future::poll_fn(|cx| link.poll_text(cx))).await;
    let Some(hello) = heard.ok().and_then(Result::ok).and_then(|text| Hello::parse(&text).ok()) else {
        tracing::debug!("a client that can resume did not say what");
        link.because(Verdict::NO_HELLO);
        let _ = link.close().await;
        return None;
    };
    let owner = peer.who().map(|principal| principal.digest());
    let window = hello.window;
    let link = parked.hand_over(link, hello, owner)?;
    begin(link, parked, owner, window, limits).await
}

async fn begin<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
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
        Ok((hello, resume)) if link.put(hello.to_text()).is_ok() => Some(Socket::new(link, Some(resume))),
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, "there are no random numbers for a token");
            link.because(Verdict::OUR_FAULT);
            let _ = link.close().await;
            None
        }
    }
}
