//! Programs of `tests/interop/rust`, a workspace of its own on other people's crates.
//!
//! What is built lies under cargo's target folder, beside what npm and pip bring.

use std::path::PathBuf;
use std::process::Command;

use crate::error::Result;
use crate::{process, workspace};

/// The built programs.
pub(crate) struct Rust {
    folder: PathBuf,
}

impl Rust {
    /// Builds them, with the versions that their own lock file has.
    pub(crate) fn build() -> Result<Self> {
        let target = workspace::scratch()?.join("rust");
        let mut command = process::cargo();
        command.args([
            "build",
            "--quiet",
            "--locked",
            "--manifest-path",
            "tests/interop/rust/Cargo.toml",
            "--target-dir",
        ]);
        process::run(command.arg(&target))?;
        Ok(Self { folder: target.join("debug") })
    }

    /// The program of a package, told which side it is.
    pub(crate) fn program(&self, package: &str, side: &str) -> Command {
        let mut command = Command::new(self.folder.join(format!("{package}{}", std::env::consts::EXE_SUFFIX)));
        command.arg(side);
        command
    }
}
