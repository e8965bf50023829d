use mcp_core::{Error, Server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use crate::Lines;

/// Serves the process's stdin and stdout until stdin ends.
///
/// Pipes and sockets are read and written without threads. Calls that run when stdin ends may finish within
/// [`Limits::shutdown_grace`](mcp_core::Limits).
///
/// # Errors
/// When a stream fails, as when whoever reads stdout is gone.
pub async fn serve(server: Server) -> Result<(), Error> {
    #[cfg(unix)]
    let (reader, writer) = (crate::pipe::stdin(), crate::pipe::stdout());
    #[cfg(not(unix))]
    let (reader, writer) = (tokio::io::stdin(), tokio::io::stdout());
    // Where this is awaited, as in `main`, may be another thread than the one that waits for input; in a task of the
    // runtime, no message is handed from one to the other.
    let serving = AbortOnDropHandle::new(tokio::spawn(serve_lines(server, reader, writer)));
    match serving.await {
        Ok(served) => served,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
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
    let max = server.limits().message_bytes;
    mcp_core::server::serve(server, Lines::new(reader, writer, max)).await
}
