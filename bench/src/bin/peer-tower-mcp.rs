//! `peer-tower-mcp stdio` | `http` | `ws`: tower-mcp's server on its wires.

use bench::peer_tower_mcp::router;
use tower_mcp::{BoxError, HttpTransport, StdioTransport, WebSocketTransport, transport::http::SubscriptionLimits};

/// More sessions and listeners than any row has.
const MANY: usize = 20_000;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let router = router(bench::tools(&words)?);
    match words.first().map(String::as_str) {
        Some("stdio") => StdioTransport::new(router).run().await?,
        Some("http") => {
            let limits = SubscriptionLimits::default().max_active(MANY);
            let transport = HttpTransport::new(router).max_sessions(MANY).subscription_limits(limits);
            axum::serve(bench::listen("http").await?, transport.into_router_at("/mcp")).await?;
        }
        Some("ws") => {
            let transport = WebSocketTransport::new(router);
            axum::serve(bench::listen("ws").await?, transport.into_router_at("/mcp")).await?;
        }
        _ => return Err("usage: peer-tower-mcp stdio | http | ws [--tools N]".into()),
    }
    Ok(())
}
