//! A client and a server on rmcp.

mod client;
mod server;

use calls::Role;

// One thread: the library handles each notification in a task of its own, and on several they overtake one another.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match Role::of_arguments()? {
        Role::Server { wire } => server::serve(&wire).await,
        Role::Client { era, calls, wire, target } => client::visit(&era, &calls, &wire, &target).await,
    }
}
