//! `peer-turbomcp http` | `stdio` | `version`: a server on turbomcp, written as its documentation shows it.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use turbomcp::{
    http::{HttpConfig, router},
    prelude::*,
};

#[derive(Clone)]
struct Adder;

#[server(name = "peer", version = "1")]
impl Adder {
    /// Add two integers
    #[tool(description = "Add two integers")]
    async fn add(&self, a: i64, b: i64) -> String {
        (a + b).to_string()
    }

    /// Say it again
    #[tool(description = "Say it again")]
    async fn echo(&self, text: String) -> String {
        text
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("http") => http().await,
        Some("stdio") => Ok(Adder.run_stdio().await?),
        Some("version") => version(include_str!("../Cargo.lock")),
        _ => anyhow::bail!("usage: peer-turbomcp http | stdio | version"),
    }
}

/// What its own `run_http` does, on a port that is free.
async fn http() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let service = Adder.into_server().build();
    let config = HttpConfig::new().with_session_terminator(Arc::new(service.session_terminator()));
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let app = router(service, config).into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, app).await?)
}

fn version(lock: &str) -> Result<()> {
    let (_, package) =
        lock.split_once("name = \"turbomcp\"\nversion = \"").context("turbomcp is not in the lock file")?;
    println!("turbomcp {}", package.split('"').next().unwrap_or_default());
    Ok(())
}
