//! The repository as the checks see it: the packages, and the text of every file that a rule speaks about.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::{Doing, Result};
use crate::workspace::{self, Package};

/// The folders that are read, and what is read in them.
const FOLDERS: &[&str] = &["crates", "docs", "tests"];
const EXTENSIONS: &[&str] = &["md", "rs", "toml", "txt"];
const LICENSE: &str = "LICENSE-";

/// Everything is in memory, so that a check can be shown a made-up repository.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    pub(crate) packages: Vec<Package>,
    /// From the path, relative to the root and with forward slashes, to the text.
    pub(crate) files: BTreeMap<String, String>,
}

impl Repository {
    /// Reads the one that this crate is part of.
    pub(crate) fn read() -> Result<Self> {
        let root = workspace::root();
        let mut files = BTreeMap::new();
        for folder in FOLDERS {
            read_folder(&root.join(folder), &root, &mut files)?;
        }
        Ok(Self { packages: workspace::metadata()?.packages, files })
    }

    /// The library crates, those under `crates/`.
    pub(crate) fn libraries(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_library())
    }

    /// The Rust files below `crates/*/src`, which are what users compile.
    pub(crate) fn library_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let sources = self.files.iter().filter(|(path, _)| {
            let parts: Vec<&str> = path.splitn(4, '/').collect();
            path.ends_with(".rs") && matches!(parts[..], ["crates", _, "src", _])
        });
        sources.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The line, from 1, of the first line of a file that `found` accepts; 1 if there is none.
    pub(crate) fn line_of(&self, path: &str, found: impl Fn(&str) -> bool) -> usize {
        let text = self.files.get(path).map_or("", String::as_str);
        text.lines().position(found).map_or(1, |index| index + 1)
    }
}

fn read_folder(folder: &Path, root: &Path, files: &mut BTreeMap<String, String>) -> Result {
    if !folder.exists() {
        return Ok(());
    }
    let doing = || format!("reading {}", folder.display());
    for entry in fs::read_dir(folder).doing(doing)? {
        let path = entry.doing(doing)?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                read_folder(&path, root, files)?;
            }
        } else if is_read(&path) {
            let text = fs::read_to_string(&path).doing(|| format!("reading {}", path.display()))?;
            files.insert(workspace::relative(&path, root), text);
        }
    }
    Ok(())
}

fn is_read(path: &Path) -> bool {
    let is_license = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LICENSE));
    is_license || path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

/// Made-up repositories for the tests of the checks.
#[cfg(test)]
pub(crate) mod made_up {
    use super::*;
    use crate::workspace::Dependency;

    /// A repository of files alone.
    pub(crate) fn files(files: &[(&str, &str)]) -> Repository {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        Repository { packages: Vec::new(), files }
    }

    /// A repository of one package under `crates/` (or at `tests/NAME`) with the manifest that declares `dependencies`.
    pub(crate) fn package(folder: &str, name: &str, dependencies: &[Dependency]) -> Repository {
        let manifest = format!("{folder}/{name}/Cargo.toml");
        let lines: String =
            dependencies.iter().map(|dependency| format!("{}.workspace = true\n", dependency.name)).collect();
        let package = Package {
            name: name.to_owned(),
            manifest: manifest.clone(),
            dependencies: dependencies.to_vec(),
            ..Package::default()
        };
        Repository { packages: vec![package], files: [(manifest, format!("[dependencies]\n{lines}"))].into() }
    }

    /// A normal dependency with features.
    pub(crate) fn dependency(name: &str, features: &[&str]) -> Dependency {
        let features = features.iter().map(ToString::to_string).collect();
        Dependency { name: name.to_owned(), kind: None, features }
    }

    /// A dev-dependency.
    pub(crate) fn dev_dependency(name: &str) -> Dependency {
        Dependency { kind: Some("dev".to_owned()), ..dependency(name, &[]) }
    }
}
