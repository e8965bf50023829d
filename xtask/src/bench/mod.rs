//! `cargo xtask bench`: builds our server, its peers and the ceilings in the release profile, and has the program of
//! `bench/` measure them side by side.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::Arguments;
use crate::error::Result;
use crate::{process, workspace};

/// Builds and measures. It fails when a server answers wrongly or not at all, and never because one is slow.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let (server, load) = (build_server()?, build_bench()?);
    // Peers log what they answer unless told otherwise.
    process::run(Command::new(load).env("RUST_LOG", "error").arg("--server").arg(server).args(arguments.words()))
}

fn build_server() -> Result<PathBuf> {
    process::run(process::cargo().args(["build", "--release", "--package", "everything-server"]))?;
    Ok(program(workspace::metadata()?.target_directory, "everything-server"))
}

/// The package lies outside the workspace, so that the peers are fetched and built by this command alone.
fn build_bench() -> Result<PathBuf> {
    let target = workspace::scratch()?.join("bench");
    let mut command = process::cargo();
    command.args(["build", "--release", "--bins", "--manifest-path", "bench/Cargo.toml", "--target-dir"]).arg(&target);
    process::run(&mut command)?;
    Ok(program(target, "bench"))
}

fn program(target: PathBuf, name: &str) -> PathBuf {
    target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}
