//! Skills that lie in a directory, which nothing is read from outside of.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, FileType},
};
use mcp_core::{Blame, Error, ErrorKind};

use super::{
    catalogue::{Bytes, Gathered},
    invalid,
};
use crate::{Frontmatter, SKILL_BYTES, uri::SKILL_MD};

/// How deep directories are looked into.
const DEPTH: usize = 32;

/// A directory that was opened.
pub(super) struct Directory(Dir);

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let opened = Dir::open_ambient_dir(path, ambient_authority());
        opened.map(Self).map_err(|error| {
            let message = format!("the directory of skills `{}` cannot be opened", path.display());
            Error::caused(ErrorKind::InvalidParams, message, error).blaming(Blame::Caller)
        })
    }

    /// The bytes of a file, and one more than `at_most` if there are so many.
    pub(super) fn read(&self, path: &Path, at_most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.open(path)?.take(at_most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Adds all skills in a directory.
pub(super) fn gather(directory: &Arc<Directory>, gathered: &mut Gathered) -> Result<(), Error> {
    let path = own_name(directory)?.unwrap_or_default();
    let mut walk = Walk { directory, gathered };
    walk.enter(&PathBuf::new(), &path, !path.is_empty())
}

/// What the one skill is called that a directory is itself.
fn own_name(directory: &Directory) -> Result<Option<String>, Error> {
    let bytes = match directory.read(Path::new(SKILL_MD), SKILL_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(invalid(SKILL_MD, error)),
    };
    let text = String::from_utf8(bytes).map_err(|_| invalid(SKILL_MD, "it is no UTF-8 text"))?;
    let frontmatter = Frontmatter::parse(&text).and_then(|read| read.check().map(|()| read));
    frontmatter.map(|frontmatter| Some(frontmatter.name().to_owned())).map_err(|why| invalid(SKILL_MD, why))
}

struct Walk<'a> {
    directory: &'a Arc<Directory>,
    gathered: &'a mut Gathered,
}

impl Walk<'_> {
    /// Looks through a directory: `place` is where it lies, `path` what it is called in URIs.
    fn enter(&mut self, place: &Path, path: &str, is_skill: bool) -> Result<(), Error> {
        if place.components().count() > DEPTH {
            return Err(invalid(path, format!("directories are more than {DEPTH} deep")));
        }
        let entries = self.entries(place).map_err(|error| invalid(path, error))?;
        let is_skill = is_skill || entries.iter().any(|(name, _)| name == SKILL_MD);
        if is_skill && entries.is_empty() {
            self.gathered.empty(path);
        }
        for (name, kind) in entries {
            let (place, path) = (place.join(&name), if path.is_empty() { name } else { format!("{path}/{name}") });
            if kind.is_dir() {
                self.enter(&place, &path, is_skill)?;
            } else if is_skill {
                self.take(place, path)?;
            }
        }
        Ok(())
    }

    /// What is in a directory, and not hidden.
    fn entries(&self, place: &Path) -> io::Result<Vec<(String, FileType)>> {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        let mut entries = Vec::new();
        for entry in self.directory.0.read_dir(place)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|_| io::Error::other("a name in it is no UTF-8"))?;
            if !name.starts_with('.') {
                entries.push((name, entry.file_type()?));
            }
        }
        Ok(entries)
    }

    /// Adds a file, or what a link leads to; that fails where it is outside.
    fn take(&mut self, place: PathBuf, path: String) -> Result<(), Error> {
        let metadata = self.directory.0.metadata(&place).map_err(|error| invalid(&path, error))?;
        if !metadata.is_file() {
            return Err(invalid(&path, "it is neither a file nor a directory, nor a link to a file"));
        }
        let bytes = self.directory.read(&place, SKILL_BYTES).map_err(|error| invalid(&path, error))?;
        if bytes.len() as u64 > SKILL_BYTES {
            return Err(invalid(&path, format!("it has more than {SKILL_BYTES} bytes")));
        }
        self.gathered.file(path, &bytes, Bytes::Directory(self.directory.clone(), place))
    }
}
