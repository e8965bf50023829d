//! The whole of it, for a short while.

use std::process::Command;

#[test]
#[ignore = "takes a minute; a step of its own in `cargo xtask test`"]
fn a_short_run_loses_nothing_and_leaves_nothing_behind() {
    let mut soak = Command::new(env!("CARGO_BIN_EXE_soak"));
    soak.args(["run", "--seconds", "15", "--out", env!("CARGO_TARGET_TMPDIR")]);
    assert!(soak.status().expect("the program starts").success());
}
