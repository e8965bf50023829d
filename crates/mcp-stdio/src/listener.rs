use std::{future::Future, io, time::Duration};

use mcp_core::{
    Server,
    server::{Peer, serve_until},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, tcp},
    task::{JoinError, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::Lines;

/// What connections come from that are served in lines: a TCP or a Unix socket, or what you write.
pub trait Listener: Send {
    /// What a connection is read from.
    type Reader: AsyncRead + Unpin + Send + 'static;
    /// What it is written to.
    type Writer: AsyncWrite + Unpin + Send + 'static;

    /// The next connection, and who is at its other end. Dropping the future loses none.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Reader, Self::Writer, Peer)>> + Send;
}

/// Small answers are written at once. Nobody is known to be at the other end.
impl Listener for TcpListener {
    type Reader = tcp::OwnedReadHalf;
    type Writer = tcp::OwnedWriteHalf;

    async fn accept(&mut self) -> io::Result<(Self::Reader, Self::Writer, Peer)> {
        let (stream, _) = TcpListener::accept(self).await?;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let (reader, writer) = stream.into_split();
        Ok((reader, writer, Peer::new()))
    }
}

/// At the other end is the [principal](mcp_core::Principal) `unix:UID`, of whose user the system says that the process is.
#[cfg(unix)]
impl Listener for tokio::net::UnixListener {
    type Reader = tokio::net::unix::OwnedReadHalf;
    type Writer = tokio::net::unix::OwnedWriteHalf;

    async fn accept(&mut self) -> io::Result<(Self::Reader, Self::Writer, Peer)> {
        let (stream, _) = tokio::net::UnixListener::accept(self).await?;
        let user = mcp_core::Principal::new(format!("unix:{}", stream.peer_cred()?.uid()));
        let (reader, writer) = stream.into_split();
        Ok((reader, writer, Peer::new().principal(Some(user))))
    }
}

/// Serves whoever connects to `listener`, in lines, for ever.
///
/// There are at most [`Limits::sessions`](mcp_core::Limits) connections at once; further ones are closed as they come. So is
/// one whose first line begins with neither `{` nor `[`: a browser that a web page has sent to a loopback port speaks HTTP.
/// One that has sent no whole line, or a part of one, ends when nothing more comes for
/// [`Limits::stall_timeout`](mcp_core::Limits).
///
/// ```no_run
/// # async fn example(server: mcp_core::Server) -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7000").await?;
/// mcp_stdio::serve_listener(server, listener).await;
/// # Ok(()) }
/// ```
pub async fn serve_listener(server: Server, listener: impl Listener) {
    serve_listener_until(server, listener, std::future::pending()).await;
}

/// The same until `signal`: then nobody can connect any more, nothing more is read, what runs may finish within
/// [`Limits::shutdown_grace`](mcp_core::Limits), and answers may take as long again to be written. Tasks that still run then
/// have failed ([`Server::end_tasks`]).
pub async fn serve_listener_until(
    server: Server,
    mut listener: impl Listener,
    signal: impl Future<Output = ()> + Send,
) {
    let (most, grace) = (server.limits().sessions, server.limits().shutdown_grace);
    let (mut connections, ending) = (JoinSet::new(), CancellationToken::new());
    let mut signal = std::pin::pin!(signal);
    loop {
        tokio::select! {
            biased;
            () = &mut signal => break,
            Some(ended) = connections.join_next(), if !connections.is_empty() => over(ended),
            (reader, writer, peer) = accept(&mut listener) => {
                if connections.len() < most {
                    let limits = server.limits();
                    let wire = Lines::new(reader, writer, limits.message_bytes).wary(limits.stall_timeout);
                    let serving = serve_until(server.clone(), wire, peer, None, ending.clone().cancelled_owned());
                    connections.spawn(serving);
                } else {
                    tracing::debug!(most, "a connection too many was closed");
                }
            }
        }
    }
    drop(listener);
    ending.cancel();
    let ended = async {
        while let Some(ended) = connections.join_next().await {
            over(ended);
        }
    };
    // They keep to it themselves, but for one whose handler blocks.
    if timeout(grace.saturating_mul(2).saturating_add(LAST_WORDS), ended).await.is_err() {
        tracing::debug!("connections outlived the server's grace and were cut off");
    }
    connections.shutdown().await;
    server.end_tasks().await;
}

/// How long connections may take to end behind what they were given.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The next connection. One that is gone already is passed over; where the process has too much open, it waits.
async fn accept<L: Listener>(listener: &mut L) -> (L::Reader, L::Writer, Peer) {
    const PAUSE: Duration = Duration::from_secs(1);
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_one(&error) => tracing::debug!(%error, "a connection did not come about"),
            Err(error) => {
                tracing::error!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Whether it says something about one connection, and nothing about the next.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | NotConnected)
}

/// What a connection failed of, its observers know already.
fn over(ended: Result<Result<(), mcp_core::Error>, JoinError>) {
    if let Err(panicked) = ended {
        tracing::error!(error = %panicked, "a connection panicked");
    }
}
