//! What spans crates, on every wire: one binary, its modules side by side.
//!
//! Behaviour on the wire is data: `cases/*.txt`, which `messages.rs` and `http/cases.rs` run, and `cases/client/*.txt`, which
//! `client/cases/` runs. What data cannot say (races, memory, processor time) is ordinary tests under `server/` and
//! `client/`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, in its helpers too")]

mod auth;
mod client;
mod derive;
mod duplex;
mod faults;
mod fixture;
mod http;
mod isolation;
mod messages;
mod observer;
mod overload;
mod peer;
mod process;
mod report;
mod server;
mod skills;
mod stdio;
mod transcript;
mod ws;
