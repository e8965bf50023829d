//! A server that stops without cutting what runs: it takes no further connections, leaves calls some time to finish, and
//! then ends the sessions, with all that is left of them.
//!
//! Run it with `cargo run -p mcp-suite --example stop`, and press Enter to stop it.

use std::{io, time::Duration};

use mcp_suite::{
    Server, Tool, ToolError,
    http::{
        Routes, Sessions,
        axum::{self, serve::ListenerExt as _},
    },
    implementation,
};
use tokio::{io::AsyncReadExt as _, net::TcpListener, select, sync::oneshot, time::sleep};

/// How long connections have to end, once nothing goes on in them any more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves until `stop` is ready, and then for `grace` at most what has begun by then.
pub(crate) async fn serve_until(
    routes: Routes,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
    grace: Duration,
) -> io::Result<()> {
    let sessions = routes.sessions().cloned();
    let (stopping, stopped) = oneshot::channel::<()>();
    let listener = listener.tap_io(|connection| {
        // Without it, small events wait for acknowledgements that the peer delays.
        let _ = connection.set_nodelay(true);
    });
    let serving = axum::serve(listener, routes.into_router()).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let cutting = async {
        stop.await;
        drop(stopping);
        sleep(grace).await;
        end(sessions).await;
        sleep(LAST_WORDS).await;
    };
    select! {
        outcome = serving => outcome,
        () = cutting => Ok(()),
    }
}

async fn end(sessions: Option<Sessions>) {
    let Some(sessions) = sessions else { return };
    for id in sessions.ids() {
        sessions.end(id).await;
    }
}

async fn nap() -> Result<&'static str, ToolError> {
    sleep(Duration::from_secs(5)).await;
    Ok("slept well")
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let server = Server::builder(implementation!()).tool(Tool::new("nap", nap)).build();
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let enter = async {
        // At the end of the input it stops too.
        let _ = tokio::io::stdin().read_u8().await;
    };
    serve_until(Routes::new(server), listener, enter, Duration::from_secs(10)).await
}
