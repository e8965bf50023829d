//! `peer-rmcp stdio` | `stdio-pipes` | `http-json` | `http-default`: rmcp's server on its wires.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use bench::peer_rmcp::{Adder, server};
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
    let words: Vec<String> = std::env::args().skip(1).collect();
    let server = server(bench::tools(&words)?);
    match words.first().map(String::as_str) {
        Some("stdio") => drop(server.serve(io::stdio()).await?.waiting().await?),
        Some("stdio-pipes") => drop(server.serve(io::stdio_pipes()).await?.waiting().await?),
        Some("http-json") => http(server, json()).await?,
        Some("http-default") => http(server, StreamableHttpServerConfig::default()).await?,
        _ => anyhow::bail!("usage: peer-rmcp stdio | stdio-pipes | http-json | http-default [--tools N]"),
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

async fn http(server: Adder, config: StreamableHttpServerConfig) -> Result<()> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let listener = bench::listen("http").await?;
    Ok(axum::serve(listener, Router::new().nest_service("/mcp", service)).await?)
}
