//! A client and a server on tower-mcp.

mod client;
mod server;

use calls::Role;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match Role::of_arguments()? {
        Role::Server { wire } => server::serve(&wire).await,
        Role::Client { era, calls, wire, target } => client::visit(&era, &calls, &wire, &target).await,
    }
}
