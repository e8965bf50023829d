//! Programs that a step needs, installed from Debian's packages where this is Debian and we are root.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::process;

/// The Debian packages that bring a command.
const PACKAGES: &[(&str, &[&str])] =
    &[("curl", &["curl"]), ("npm", &["nodejs", "npm"]), ("valgrind", &["valgrind"]), ("wrk", &["wrk"])];

/// Makes sure that `command` is on the PATH, or says plainly that it is missing.
pub(crate) fn ensure(command: &str) -> Result {
    if process::on_path(command) {
        return Ok(());
    }
    let packages = PACKAGES.iter().find(|(name, _)| *name == command).map(|(_, packages)| *packages);
    match packages {
        Some(packages) if can_install() => install(packages),
        _ => Err(Error::new(format!("`{command}` is needed and not on the PATH; install it and try again"))),
    }
}

/// Makes sure that `python3` is there and makes virtual environments; Debian has these in a package of their own.
pub(crate) fn ensure_python() -> Result {
    if makes_environments() {
        return Ok(());
    }
    if can_install() {
        install(&["python3", "python3-venv"])?;
    }
    if makes_environments() {
        return Ok(());
    }
    Err(Error::new("`python3`, 3.10 or later, with `venv` and `ensurepip` is needed; install it and try again"))
}

fn makes_environments() -> bool {
    const CHECK: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    let output = Command::new("python3").args(["-c", CHECK]).output();
    output.is_ok_and(|output| output.status.success())
}

fn install(packages: &[&str]) -> Result {
    update_once()?;
    process::run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages))
}

/// `apt-get update`, once in a run: package lists from yesterday name files that are gone.
fn update_once() -> Result {
    static UPDATED: OnceLock<()> = OnceLock::new();
    if UPDATED.get().is_none() {
        process::run(apt_get().arg("update"))?;
        UPDATED.get_or_init(|| ());
    }
    Ok(())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
    command
}

fn can_install() -> bool {
    Path::new("/usr/bin/apt-get").exists() && is_root()
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_no_package_brings_is_named_in_the_error() {
        let message = ensure("no-such-command-anywhere").unwrap_err().to_string();
        assert!(message.starts_with("`no-such-command-anywhere` is needed"), "{message}");
    }
}
