//! Programs that lean on packages from PyPI, each set of packages in a virtual environment of its own.
//!
//! The environments lie under cargo's target folder and are installed once.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing, Result};
use crate::{debian, process, workspace};

/// A package and its version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PipPackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl PipPackage {
    fn requirement(&self) -> String {
        format!("{}=={}", self.name, self.version)
    }
}

/// A virtual environment.
pub(crate) struct Python {
    python: PathBuf,
}

impl Python {
    /// Installs the packages, unless they are there. The environment is named after the first.
    pub(crate) fn with(packages: &[PipPackage]) -> Result<Self> {
        Self::having(&packages.iter().map(PipPackage::requirement).collect::<Vec<_>>())
    }

    /// The same with what a file names, one requirement a line.
    pub(crate) fn of(requirements: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(requirements).doing(|| format!("reading {}", requirements.display()))?;
        Self::having(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    fn having(wanted: &[String]) -> Result<Self> {
        let folder = workspace::scratch()?.join("python").join(&wanted[0]);
        let python = folder.join("bin/python");
        if !is_installed(&folder, &python, wanted) {
            install(&folder, &python, wanted)?;
        }
        Ok(Self { python })
    }

    /// A program of `tests/interop`.
    pub(crate) fn program(&self, name: &str) -> Command {
        self.run(&workspace::root().join("tests/interop").join(name))
    }

    /// A program, wherever it lies.
    pub(crate) fn run(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.python);
        // -B: no `__pycache__` beside the program.
        command.arg("-B").arg(script);
        command
    }
}

/// Written when everything is installed: half an environment must not count as one.
const DONE: &str = "installed";

fn is_installed(folder: &Path, python: &Path, wanted: &[String]) -> bool {
    // The interpreter is a link to the machine's, which may be gone.
    python.is_file() && std::fs::read_to_string(folder.join(DONE)).is_ok_and(|done| done == wanted.join("\n"))
}

fn install(folder: &Path, python: &Path, wanted: &[String]) -> Result {
    debian::ensure_python()?;
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    process::run(Command::new(python).args(pip).args(wanted))?;
    std::fs::write(folder.join(DONE), wanted.join("\n")).doing(|| format!("writing to {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_counts_when_it_was_finished_with_these_packages() {
        let folder = std::env::temp_dir().join(format!("xtask-python-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (interpreter, wanted) = (folder.join("python"), ["mcp==2.3.0".to_owned()]);
        std::fs::write(&interpreter, "").unwrap();
        assert!(!is_installed(&folder, &interpreter, &wanted), "nothing says that it was finished");
        std::fs::write(folder.join(DONE), "mcp==2.3.0").unwrap();
        assert!(is_installed(&folder, &interpreter, &wanted));
        assert!(!is_installed(&folder, &interpreter, &["mcp==1.30.0".to_owned()]));
        assert!(!is_installed(&folder, &folder.join("gone"), &wanted));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
