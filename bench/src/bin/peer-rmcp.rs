//! `peer-rmcp stdio` | `stdio-pipes` | `http-json` | `http-default`: rmcp's server on its wires.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use bench::peer_rmcp::server;
use rmcp::{
    ServiceExt,
    transport::{
        io,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};

#[tokio::main]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => drop(server().serve(io::stdio()).await?.waiting().await?),
        Some("stdio-pipes") => drop(server().serve(io::stdio_pipes()).await?.waiting().await?),
        Some("http-json") => http(json()).await?,
        Some("http-default") => http(StreamableHttpServerConfig::default()).await?,
        _ => anyhow::bail!("usage: peer-rmcp stdio | stdio-pipes | http-json | http-default"),
    }
    Ok(())
}

/// The fastest that its configuration offers.
fn json() -> StreamableHttpServerConfig {
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = false;
    config.json_response = true;
    config
}

async fn http(config: StreamableHttpServerConfig) -> Result<()> {
    let service = StreamableHttpService::new(|| Ok(server()), Arc::new(LocalSessionManager::default()), config);
    let listener = bench::listen("http").await?;
    Ok(axum::serve(listener, Router::new().nest_service("/mcp", service)).await?)
}
