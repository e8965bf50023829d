//! The everything-server as a process.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The program, built once from what the tests are built from.
pub(crate) fn everything_server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(build)
}

fn build() -> PathBuf {
    // target/PROFILE/deps/suite-HASH
    let test = std::env::current_exe().expect("a test knows its program");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    let (target, profile) = (folder.parent().expect("the target folder"), folder.file_name().expect("the profile"));
    // Asked at run time: clones that share a target folder must not build each other.
    let told = |name: &str, built_in: &str| std::env::var(name).unwrap_or_else(|_| built_in.to_owned());
    let mut cargo = Command::new(told("CARGO", env!("CARGO")));
    // Named together with the suite, so that both are built with the same features of the same crates, once.
    cargo.args(["build", "--quiet", "-p", "everything-server", "-p", "suite", "--bins"]);
    cargo.current_dir(told("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))).arg("--target-dir").arg(target);
    cargo.arg("--profile").arg(if profile == "debug" { "dev".as_ref() } else { profile });
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "everything-server could not be built");
    folder.join(format!("everything-server{}", std::env::consts::EXE_SUFFIX))
}
