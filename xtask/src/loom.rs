//! `cargo xtask loom`: what several threads share, in every order of what they do.

use crate::error::Result;
use crate::{process, workspace};

/// The crates that have such tests, each with the features that those need.
const CRATES: &[(&str, &[&str])] =
    &[("mcp-core", &[]), ("mcp-http", &["--no-default-features", "--features", "server"])];

/// Runs the modules that are named `orders`. All other tests hold what only works within loom's.
pub(crate) fn run() -> Result {
    for (name, features) in CRATES {
        let mut command = process::cargo();
        command.args(["test", "-p", name, "--lib"]).args(*features);
        // The flag changes every crate, so they have a folder of their own.
        command.arg("--target-dir").arg(workspace::root().join("target/loom")).args(["--", "orders::"]);
        command.env("RUSTFLAGS", "--cfg mcp_loom").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        // How often a thread is interrupted where it need not be. Each time more multiplies the orders.
        process::run(command.env("LOOM_MAX_PREEMPTIONS", "3"))?;
    }
    Ok(())
}
