//! `everything-server stdio` | `everything-server asking`, `everything-server noisy HOW` (over stdio, too) | `everything-server http --listen ADDR [--stateless]` | `everything-server ws --listen ADDR`.

use std::{error::Error, process::ExitCode};

use mcp_suite::{
    http::{self, Routes},
    origin::Hosts,
    stdio,
    ws::WsLayer,
};
use tokio::net::TcpListener;
use tower_layer::Layer;

const USAGE: &str = "usage: everything-server stdio | everything-server asking | everything-server noisy HOW | \
                     everything-server http --listen ADDR [--stateless] | everything-server ws --listen ADDR";

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everything-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Vec<String>) -> Result<(), Box<dyn Error>> {
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stdio"] => Ok(stdio::serve(everything_server::server()).await?),
        ["asking"] => Ok(stdio::serve(everything_server::asking_server()).await?),
        ["noisy", how] => everything_server::serve_noisy(how).await,
        ["http", "--listen", address] => http_and_ws(address, true).await,
        ["http", "--listen", address, "--stateless"] => http_and_ws(address, false).await,
        ["ws", "--listen", address] => ws(address).await,
        _ => Err(USAGE.into()),
    }
}

/// One endpoint, which takes WebSocket upgrades too, and keeps the sessions of legacy clients unless told otherwise.
async fn http_and_ws(address: &str, has_sessions: bool) -> Result<(), Box<dyn Error>> {
    let (server, listener) = (everything_server::server(), TcpListener::bind(address).await?);
    let (bound, limits) = (listener.local_addr()?, server.limits().clone());
    let hosts = Hosts::loopback().bound(bound);
    let routes = Routes::new(server.clone()).hosts(hosts.clone());
    let routes = if has_sessions { routes } else { routes.stateless() }.into_service();
    eprintln!("listening on http://{bound}/mcp");
    Ok(http::serve_service(WsLayer::new(server).hosts(hosts).layer(routes), listener, &limits).await?)
}

async fn ws(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on ws://{}/mcp", listener.local_addr()?);
    Ok(WsLayer::new(everything_server::server()).serve(listener).await?)
}
