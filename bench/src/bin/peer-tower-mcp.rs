//! `peer-tower-mcp stdio` | `http` | `ws`: tower-mcp's server on its wires.

use bench::peer_tower_mcp::router;
use tower_mcp::{BoxError, HttpTransport, StdioTransport, WebSocketTransport};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => StdioTransport::new(router()).run().await?,
        Some("http") => {
            let listener = bench::listen("http").await?;
            axum::serve(listener, HttpTransport::new(router()).into_router_at("/mcp")).await?;
        }
        Some("ws") => {
            let listener = bench::listen("ws").await?;
            axum::serve(listener, WebSocketTransport::new(router()).into_router_at("/mcp")).await?;
        }
        _ => return Err("usage: peer-tower-mcp stdio | http | ws".into()),
    }
    Ok(())
}
