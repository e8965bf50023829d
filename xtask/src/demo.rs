//! `cargo xtask demo`: builds the example server and client, and lets the client show both.

use std::process::Command;

use crate::error::Result;
use crate::fixtures::Fixtures;
use crate::process;

/// Runs `everything-client demo`; its exit code becomes this command's.
pub(crate) fn run() -> Result {
    let fixtures = Fixtures::build()?;
    process::run(Command::new(&fixtures.client).arg("demo").arg("--server-bin").arg(&fixtures.server))
}
