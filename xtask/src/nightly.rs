//! The nightly toolchain, for what the stable one has not: the fuzzer and Miri.

use std::process::Command;

use crate::error::Result;
use crate::{process, workspace};

/// `cargo +nightly`: rustup's own `cargo`, since the one that runs us is bound to our toolchain.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").current_dir(workspace::root());
    command
}

/// Whether it is there with these components; what is missing is installed where rustup can.
pub(crate) fn ensure(components: &[&str]) -> bool {
    if !succeeds(cargo().arg("--version"))
        && install(&["toolchain", "install", "nightly", "--profile", "minimal"]).is_err()
    {
        return false;
    }
    let add = ["component", "add", "--toolchain", "nightly"];
    components.is_empty() || install(&[&add, components].concat()).is_ok()
}

fn install(arguments: &[&str]) -> Result {
    process::run(Command::new("rustup").args(arguments))
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
