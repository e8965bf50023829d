//! `cargo xtask miri`: the tests of `mcp-jsonrpc`, which reads all that comes from outside, under Miri.

use crate::error::Result;
use crate::{nightly, process, workspace};

/// Runs them; false where there is no nightly toolchain with Miri, and none to be had.
pub(crate) fn run() -> Result<bool> {
    if !nightly::ensure(&["miri", "rust-src"]) {
        println!("there is no nightly toolchain with Miri");
        return Ok(false);
    }
    let mut command = nightly::cargo();
    command.args(["miri", "test", "-p", "mcp-jsonrpc", "--lib", "--target-dir"]);
    // What Miri builds remembers the folder that it was built in, so other clones can't share it.
    process::run(command.arg(workspace::root().join("target/miri")))?;
    Ok(true)
}
