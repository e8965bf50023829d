//! `cargo xtask miri`: what is pure of that which reads what comes from outside, under Miri.

use crate::error::Result;
use crate::{nightly, process, workspace};

/// The tests of each crate that are worth their time: Miri is some hundred times as slow.
const TESTS: &[(&str, &[&str])] = &[
    ("mcp-jsonrpc", &[]),
    ("mcp-core", &["head::", "hub::", "inflight::", "mailbox::model", "pending::", "store::ids::"]),
];

/// Runs them; false where there is no nightly toolchain with Miri, and none to be had.
pub(crate) fn run() -> Result<bool> {
    if !nightly::ensure(&["miri", "rust-src"]) {
        println!("there is no nightly toolchain with Miri");
        return Ok(false);
    }
    for (name, tests) in TESTS {
        let mut command = nightly::cargo();
        command.args(["miri", "test", "-p", name, "--lib", "--target-dir"]);
        // What Miri builds remembers the folder that it was built in, so other clones can't share it.
        command.arg(workspace::root().join("target/miri")).arg("--").args(*tests);
        process::run(&mut command)?;
    }
    Ok(true)
}
