use std::sync::Arc;

use axum::Router;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{schemars, tool, tool_router};
use serde::Deserialize;
use tokio::net::TcpListener;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Clone)]
struct Adder;

#[tool_router(server_handler)]
impl Adder {
    #[tool(description = "Add two integers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Adder), sessions, StreamableHttpServerConfig::default());
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
