//! What the fuzz targets do that need more than one function of one crate: whole sessions, for either side, over memory
//! and over HTTP without a socket. What they find out about a single function is in that function's crate.
//!
//! Everything is told by the bytes of the input and by tokio's paused time, so that each finding can be run again.

mod choices;
mod client_session;
mod cursors;
mod http_post;
mod ledger;
mod request_state;
mod server;
mod server_session;

pub use client_session::client_session;
pub use cursors::cursors;
pub use http_post::http_post;
pub use request_state::request_state;
pub use server_session::server_session;

/// Runs to its end in paused time, so that what waits for a timer costs nothing.
fn run<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().expect("a runtime").block_on(future)
}

/// Longer than anything takes that has a bound: what has not ended by then never will.
const FOREVER: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// The end of a future that must have one.
async fn ends<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(FOREVER, future).await.unwrap_or_else(|_| panic!("{what} never ends"))
}
