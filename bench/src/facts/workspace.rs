//! The programs as packages of one workspace, which cargo looks into.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use crate::{facts::programs::Program, system::children_cpu_time};

/// Cargo's own release profile, but for the symbols: most of a binary, and no part of the program.
const ROOT: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"programs/*\"]\n\n[profile.release]\nstrip = true\n";

/// The versions that the benchmark itself is built with.
const LOCK: &str = include_str!("../../Cargo.lock");

/// A folder that is gone when this is dropped.
pub(super) struct Workspace(PathBuf);

impl Workspace {
    pub(super) fn write(programs: &[Program]) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("bench-facts-{}", std::process::id()));
        let workspace = Self(folder);
        workspace.fill(programs).with_context(|| format!("writing to {}", workspace.0.display()))?;
        Ok(workspace)
    }

    fn fill(&self, programs: &[Program]) -> Result<()> {
        fs::create_dir_all(&self.0)?;
        fs::write(self.0.join("Cargo.toml"), ROOT)?;
        fs::write(self.0.join("Cargo.lock"), LOCK)?;
        for program in programs {
            let folder = self.0.join("programs").join(program.package());
            fs::create_dir_all(folder.join("src"))?;
            fs::write(folder.join("Cargo.toml"), program.manifest(&crates()))?;
            fs::write(folder.join("src/main.rs"), program.source())?;
        }
        Ok(())
    }

    /// How many crates the program is built from, itself left out, as
    /// `cargo tree -e normal --prefix none --no-dedupe | sort -u` lists them.
    pub(super) fn crates(&self, program: &Program) -> Result<usize> {
        let mut tree = self.cargo("tree", program);
        let output = tree.args(["-e", "normal", "--prefix", "none", "--no-dedupe"]).output()?;
        ensure!(output.status.success(), "`cargo tree` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(count(&String::from_utf8_lossy(&output.stdout), &program.package()))
    }

    /// The size of its binary, in bytes.
    pub(super) fn binary(&self, program: &Program) -> Result<u64> {
        let target = self.0.join("target");
        self.download(program)?;
        self.build(program, &target)?;
        let name = format!("{}{}", program.package(), std::env::consts::EXE_SUFFIX);
        Ok(fs::metadata(target.join("release").join(name))?.len())
    }

    /// How long a build takes, in seconds; and where the system tells, how long cores were busy with it.
    pub(super) fn cold_build(&self, program: &Program) -> Result<Vec<(f64, &'static str)>> {
        self.download(program)?;
        let (start, used) = (Instant::now(), children_cpu_time());
        let target = self.0.join("cold");
        self.build(program, &target)?;
        let mut figures = vec![(start.elapsed().as_secs_f64(), "s")];
        if let (Some(before), Some(after)) = (used, children_cpu_time()) {
            figures.push(((after - before).as_secs_f64(), "CPU s"));
        }
        fs::remove_dir_all(target)?;
        Ok(figures)
    }

    /// Cargo cannot tell what is in a tree before it has all sources.
    fn download(&self, program: &Program) -> Result<()> {
        self.crates(program).map(drop)
    }

    fn build(&self, program: &Program, target: &Path) -> Result<()> {
        let mut build = self.cargo("build", program);
        let output = build.args(["--release", "--offline", "--quiet", "--target-dir"]).arg(target).output()?;
        ensure!(output.status.success(), "`cargo build` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// Cargo, which is told nothing by the environment that would make one build unlike another's.
    fn cargo(&self, command: &str, program: &Program) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args([command, "--package", &program.package()]).current_dir(&self.0).stdin(Stdio::null());
        // A cache of compiled crates.
        cargo.env_remove("RUSTC_WRAPPER").env_remove("CARGO_TARGET_DIR");
        cargo
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // What stays is in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The folder of our crates.
fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")
}

/// The different lines of a tree, but for the program's own.
fn count(tree: &str, program: &str) -> usize {
    let lines: BTreeSet<&str> = tree.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.into_iter().filter(|line| line.split(' ').next() != Some(program)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::programs::PROGRAMS;

    #[test]
    fn a_crate_counts_once_in_each_version_and_the_program_does_not() {
        let tree = "ours-http v0.0.0 (/tmp/x)\nsyn v2.0.1\nserde v1.0.0\nsyn v3.0.0\nserde v1.0.0\n";
        assert_eq!(count(tree, "ours-http"), 3);
    }

    #[test]
    fn what_was_written_is_gone_afterwards() {
        let workspace = Workspace::write(&PROGRAMS[..1]).unwrap();
        let folder = workspace.0.clone();
        assert!(folder.join("programs/server-ours/src/main.rs").is_file());
        drop(workspace);
        assert!(!folder.exists());
    }
}
