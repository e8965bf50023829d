//! `ours stdio` | `ours http [--tools N]` | `ours ws`: this project's server on its wires.

use anyhow::Result;
use mcp_suite::{http::Routes, ws::WsLayer};

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let server = bench::ours::server(bench::tools(&words)?)?;
    match words.first().map(String::as_str) {
        Some("stdio") => mcp_suite::stdio::serve(server).await?,
        Some("http") => Routes::new(server).serve(bench::listen("http").await?).await?,
        Some("ws") => WsLayer::new(server).serve(bench::listen("ws").await?).await?,
        _ => anyhow::bail!("usage: ours stdio | http | ws [--tools N]"),
    }
    Ok(())
}
