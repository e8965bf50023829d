use std::{
    future::Future,
    io,
    pin::Pin,
    task::{self, Poll, ready},
    time::Duration,
};

use mcp_core::{
    Error, ErrorKind, Server,
    server::{Peer, serve_until as serve_wire},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    task::JoinError,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Lines,
    signals::Signals,
    streams::{self, Found, Input, Output},
};

/// Serves the process's stdin and stdout until stdin ends, or the process is told to: [`Stdio`] with its defaults.
///
/// # Errors
/// When a stream fails, as when whoever reads stdout is gone, and when the streams are being served already.
pub async fn serve(server: Server) -> Result<(), Error> {
    Stdio::new().serve(server).await
}

/// A server on the process's own stdin and stdout.
///
/// Pipes and sockets are read and written without threads, files and terminals in threads that nothing waits for. However
/// serving ends, the streams are as they were found, but for what was read ahead, and that off Unix such a thread reads once
/// more.
///
/// Tasks that still run then have failed ([`Server::end_tasks`]).
///
/// ```no_run
/// # async fn example(server: mcp_core::Server) -> Result<(), mcp_core::Error> {
/// // The application has its own way to end.
/// mcp_stdio::Stdio::new().signals(false).serve_until(server, async { /* … */ }).await
/// # }
/// ```
///
/// Specification: *stdio*.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is served until `serve` is awaited"]
pub struct Stdio {
    guard: bool,
    signals: bool,
}

/// How long what was cut off may take to let go of the streams.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Stdio {
    /// Guarded, and heeding signals.
    pub const fn new() -> Self {
        Self { guard: true, signals: true }
    }

    /// Whether the streams are kept from everything else in the process while it serves. Default: yes, on Unix; elsewhere
    /// it has no effect.
    ///
    /// Then the descriptor 1 is stderr, so that what is printed, by whatever library or child process, shows up there and
    /// is not taken for a message; and the descriptor 0 is empty, so that no child process reads what is meant for the
    /// server. Both are put back at the end.
    pub const fn guard(mut self, guard: bool) -> Self {
        self.guard = guard;
        self
    }

    /// Whether SIGTERM and Ctrl-C end serving in good order, as [`serve_until`](Self::serve_until) does. Default: yes. A
    /// second signal ends it at once, and so does the first one behind the end of stdin: a client that sends it has waited
    /// already.
    ///
    /// Once a process heeds them, they do not end it by themselves, even when serving is over. One whose runtime waits for a
    /// handler that blocks a thread is then ended by SIGKILL alone, or by what the application does itself about signals.
    pub const fn signals(mut self, signals: bool) -> Self {
        self.signals = signals;
        self
    }

    /// Serves until stdin ends, or a signal comes. Calls that run then may finish within
    /// [`Limits::shutdown_grace`](mcp_core::Limits).
    ///
    /// # Errors
    /// When a stream fails, and when the streams are being served already.
    pub async fn serve(self, server: Server) -> Result<(), Error> {
        self.serve_until(server, std::future::pending()).await
    }

    /// The same, and until `signal`: then nothing more is read, what runs may finish within
    /// [`Limits::shutdown_grace`](mcp_core::Limits), and its answers are written.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    pub async fn serve_until(
        self,
        server: Server,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let (input, output, found) = streams::take(self.guard).map_err(failed)?;
        let signals = self.signals.then(Signals::hear).transpose().map_err(failed)?;
        let ended = CancellationToken::new();
        let input = Ending { input, ended: ended.clone() };
        let told = CancellationToken::new();
        let told_to = told.clone().cancelled_owned();
        let ending = async move {
            tokio::select! {
                () = signal => {}
                () = told_to => {}
            }
        };
        // Where this is awaited, as in `main`, may be another thread than the one that waits for input; in a task of the
        // runtime, no message is handed from one to the other.
        let serving = serve_streams(server.clone(), input, output, found, ending);
        let serving = AbortOnDropHandle::new(tokio::spawn(serving));
        let served = match signals {
            Some(signals) => until_signalled(serving, signals, told, ended).await,
            None => outcome(serving.await),
        };
        server.end_tasks().await;
        served
    }
}

impl Default for Stdio {
    fn default() -> Self {
        Self::new()
    }
}

/// What was found is put back behind the last use of the streams, whether this returns, panics or is dropped.
async fn serve_streams(
    server: Server,
    input: Ending<Input>,
    output: Output,
    found: Found,
    ending: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let _found = found;
    serve_lines_until(server, input, output, ending).await
}

async fn until_signalled(
    mut serving: AbortOnDropHandle<Result<(), Error>>,
    mut signals: Signals,
    told: CancellationToken,
    ended: CancellationToken,
) -> Result<(), Error> {
    tokio::select! {
        served = &mut serving => return outcome(served),
        () = signals.next() => told.cancel(),
    }
    // A client that has closed stdin, and waited, is about to kill.
    if !ended.is_cancelled() {
        tokio::select! {
            served = &mut serving => return outcome(served),
            () = signals.next() => {}
        }
    }
    tracing::debug!("a signal cut off what still ran");
    serving.abort();
    // The streams are put back by then, unless a handler blocks the thread.
    let _ = timeout(LAST_WORDS, serving).await;
    Ok(())
}

/// An input that tells when it has ended.
struct Ending<R> {
    input: R,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for Ending<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let filled = into.filled().len();
        let read = ready!(Pin::new(&mut self.input).poll_read(cx, into));
        if read.is_err() || into.filled().len() == filled {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}

fn outcome(served: Result<Result<(), Error>, JoinError>) -> Result<(), Error> {
    served.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        // The runtime is being shut down.
        Err(_) => Ok(()),
    })
}

fn failed(error: io::Error) -> Error {
    Error::caused(ErrorKind::TransportError, "the process's streams cannot be served", error)
}

/// Serves any byte stream in lines, to its end: a Unix socket, a TCP connection, two halves of anything.
///
/// # Errors
/// When the stream fails.
pub async fn serve_lines<R, W>(server: Server, reader: R, writer: W) -> Result<(), Error>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    serve_lines_until(server, reader, writer, std::future::pending()).await
}

/// The same until `signal`: then nothing more is read, what runs may finish within
/// [`Limits::shutdown_grace`](mcp_core::Limits), and its answers are written.
///
/// # Errors
/// When the stream fails.
pub async fn serve_lines_until<R, W>(
    server: Server,
    reader: R,
    writer: W,
    signal: impl Future<Output = ()> + Send,
) -> Result<(), Error>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let max = server.limits().message_bytes;
    serve_wire(server, Lines::new(reader, writer, max), Peer::new(), None, signal).await
}
