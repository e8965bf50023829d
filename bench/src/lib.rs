//! What the programs of the benchmark share: the contestants. The load and the table are in the program `bench`.

pub mod ceiling;
pub mod peer_rmcp;
pub mod peer_tower_mcp;

use tokio::net::TcpListener;

/// Listens on a free loopback port and says where, as `everything-server` does: in the first line of stderr.
///
/// # Errors
/// When there is no such port.
pub async fn listen(scheme: &str) -> std::io::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on {scheme}://{}/mcp", listener.local_addr()?);
    Ok(listener)
}
