use axum::{Router, serve::ListenerExt};
use mcp_core::{Error, ErrorKind, Server};
use tokio::net::{TcpListener, ToSocketAddrs};

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
        let failed = |error| Error::caused(ErrorKind::TransportError, "the server failed", error);
        let layer = self.bound(listener.local_addr().map_err(failed)?);
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY could not be set");
            }
        });
        axum::serve(listener, Router::new().layer(layer)).await.map_err(failed)
    }
}
