use std::time::Duration;

use axum::{Router, serve::ListenerExt};
use mcp_core::{Error, ErrorKind, Server};
use tokio::{
    net::{TcpListener, ToSocketAddrs},
    time::timeout,
};

use crate::WsLayer;

/// Serves a server over WebSocket alone, at `/mcp` of `address`, for loopback hosts and the bound address.
///
/// # Errors
/// When the address cannot be bound.
pub async fn serve(server: Server, address: impl ToSocketAddrs) -> Result<(), Error> {
    let failed = |error| Error::caused(ErrorKind::TransportError, "the address could not be bound", error);
    WsLayer::new(server).serve(TcpListener::bind(address).await.map_err(failed)?).await
}

impl WsLayer {
    /// Serves upgrades on `listener` for ever, with `TCP_NODELAY`, also for the bound address as host. All else is not
    /// found.
    ///
    /// # Errors
    /// When the listener's address cannot be told.
    pub async fn serve(self, listener: TcpListener) -> Result<(), Error> {
        self.serve_until(listener, std::future::pending()).await
    }

    /// The same until `signal`, as `tokio::signal::ctrl_c()`. Then no connection is taken any more, and those that there are
    /// are closed with 1001, once what runs on them has finished, within
    /// [`Limits::shutdown_grace`](mcp_core::Limits).
    ///
    /// # Errors
    /// When the listener's address cannot be told.
    pub async fn serve_until(
        self,
        listener: TcpListener,
        signal: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        let failed = |error| Error::caused(ErrorKind::TransportError, "the server failed", error);
        let (layer, stop, ended) = self.bound(listener.local_addr().map_err(failed)?).stopping();
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
        });
        let grace = layer.shutdown_grace();
        let serving = axum::serve(listener, Router::new().layer(layer));
        tokio::select! {
            served = serving.into_future() => return served.map_err(failed),
            () = signal => stop.cancel(),
        }
        if timeout(grace + LAST_WORDS, ended).await.is_err() {
            tracing::debug!("connections outlived the server's grace");
        }
        Ok(())
    }
}

/// How long close frames may take, and their answers.
const LAST_WORDS: Duration = Duration::from_secs(2);
