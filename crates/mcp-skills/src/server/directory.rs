//! Skills that lie in a directory, which nothing is read from outside of.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use cap_std::{
    ambient_authority,
    fs::{Dir, DirEntry},
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
    walk.enter(&directory.0, PathBuf::new(), &path, !path.is_empty())
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
    fn enter(&mut self, dir: &Dir, place: PathBuf, path: &str, is_skill: bool) -> Result<(), Error> {
        let cannot = |error: io::Error| invalid(path, error);
        if place.components().count() > DEPTH {
            return Err(invalid(path, format!("directories are more than {DEPTH} deep")));
        }
        let entries = dir.entries().and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(cannot)?;
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            let name = entry.file_name().into_string().map_err(|_| invalid(path, "a name in it is no UTF-8"))?;
            if !name.starts_with('.') {
                named.push((name, entry));
            }
        }
        let is_skill = is_skill || named.iter().any(|(name, _)| name == SKILL_MD);
        if is_skill && named.is_empty() {
            self.gathered.empty(path);
        }
        for (name, entry) in named {
            let (place, path) = (place.join(&name), if path.is_empty() { name } else { format!("{path}/{name}") });
            self.take(dir, &entry, place, path, is_skill)?;
        }
        Ok(())
    }

    fn take(&mut self, dir: &Dir, entry: &DirEntry, place: PathBuf, path: String, is_skill: bool) -> Result<(), Error> {
        let kind = entry.file_type().map_err(|error| invalid(&path, error))?;
        if kind.is_dir() {
            let inner = entry.open_dir().map_err(|error| invalid(&path, error))?;
            return self.enter(&inner, place, &path, is_skill);
        }
        if !is_skill {
            return Ok(());
        }
        // What a link leads to; it fails where that is outside.
        let metadata = dir.metadata(entry.file_name()).map_err(|error| invalid(&path, error))?;
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
