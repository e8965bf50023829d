//! A server that has one of everything: what the tests, the conformance suite and the demo drive.

mod asking;
mod conformance;
mod gauge;
mod interop;
mod jobs;
mod noisy;
mod skills;
mod tools;

pub use asking::asking_server;
use mcp_suite::{Limits, Server, ServerBuilder, implementation};
pub use noisy::serve_noisy;

/// The server. Each call makes a new one, with counters of its own.
#[must_use]
pub fn server() -> Server {
    server_with(Limits::default())
}

/// The server with other bounds.
#[must_use]
pub fn server_with(limits: Limits) -> Server {
    builder(limits).build()
}

/// The server in the making, to which more can be added.
pub fn builder(limits: Limits) -> ServerBuilder {
    let mut builder = Server::builder(implementation!())
        .instructions("A server that has one of everything. Call `add` to see whether it is alive.")
        .limits(limits)
        .logging(true);
    for tool in tools::all() {
        builder = builder.tool(tool);
    }
    let builder = interop::tools().into_iter().fold(conformance::add_to(builder), ServerBuilder::tool);
    skills::add_to(jobs::add_to(builder))
}

/// The examples of the repository's front page compile too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod front_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/asking.md")]
mod asking_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/tasks.md")]
mod tasks_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/extensions.md")]
mod extensions_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/skills.md")]
mod skills_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/http.md")]
mod http_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/auth.md")]
mod auth_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/websocket.md")]
mod websocket_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/stdio.md")]
mod stdio_page {}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
mod client_page {}
