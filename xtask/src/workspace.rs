//! Where things are, as `cargo metadata` tells it: the root, the target folder, the packages and what they declare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Doing, Result};
use crate::process;

/// The root of the repository. Cargo names this crate's folder at run time, so that a target folder that several
/// clones share never points into another clone.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let xtask = xtask.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_owned)
}

/// What `cargo metadata --no-deps` says, as far as it is used here.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// A package and what its manifest declares.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the workspace root, with forward slashes: `crates/mcp-core/Cargo.toml`.
    #[serde(rename = "manifest_path")]
    pub(crate) manifest: String,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

impl Package {
    /// Whether this is one of the library crates under `crates/`.
    pub(crate) fn is_library(&self) -> bool {
        self.manifest.starts_with("crates/")
    }
}

/// A declared dependency, whatever the target that it is declared for.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Dependency {
    /// The package's name, even where the manifest renames it.
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    pub(crate) features: Vec<String>,
}

/// A binary, library, test … of a package.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

/// Reads the workspace's metadata.
pub(crate) fn metadata() -> Result<Metadata> {
    metadata_of(&root().join("Cargo.toml"))
}

/// Reads the metadata of the workspace that `manifest` belongs to.
pub(crate) fn metadata_of(manifest: &Path) -> Result<Metadata> {
    let mut command = process::cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"]).arg(manifest);
    let output = command.output().doing(|| "starting `cargo metadata`".to_owned())?;
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    process::expect_success(&command, output.status)?;
    let mut metadata: Metadata =
        serde_json::from_slice(&output.stdout).doing(|| "reading the output of `cargo metadata`".to_owned())?;
    let root = root();
    for package in &mut metadata.packages {
        package.manifest = relative(Path::new(&package.manifest), &root);
    }
    Ok(metadata)
}

/// `path` as the repository speaks of it: from the root, with forward slashes.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The folder under cargo's target folder where the commands here keep what they install and write.
pub(crate) fn scratch() -> Result<PathBuf> {
    Ok(metadata()?.target_directory.join("xtask"))
}
