//! `everything-server stdio` | `everything-server http --listen ADDR [--stateless]`.

use std::{error::Error, process::ExitCode};

use mcp_suite::{http::Routes, stdio};
use tokio::net::TcpListener;

const USAGE: &str = "usage: everything-server stdio | everything-server http --listen ADDR [--stateless]";

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
        ["http", "--listen", address] | ["http", "--listen", address, "--stateless"] => http(address).await,
        _ => Err(USAGE.into()),
    }
}

async fn http(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(Routes::new(everything_server::server()).serve(listener).await?)
}
