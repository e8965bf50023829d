//! Skills that lie in a directory, which nothing is read from outside of.

use std::{
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use cap_std::{
    ambient_authority,
    fs::{Dir, FileType},
};
use mcp_core::{Blame, Error, ErrorKind};

use super::{catalogue::Gathered, invalid};
use crate::{Frontmatter, MAX_BYTES, MAX_RESOURCES, uri::SKILL_MD};

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

    /// Adds all skills in it.
    pub(super) fn gather(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let own = self.own_name()?;
        let mut walk = Walk { dir: &self.0, gathered, files: 0, bytes: 0, skills: 0 };
        walk.enter(&PathBuf::new(), own.as_deref().unwrap_or_default(), own.is_some())?;
        if walk.skills == 0 {
            tracing::warn!("a directory of skills has none");
        }
        Ok(())
    }

    /// What the one skill is called that it is itself.
    fn own_name(&self) -> Result<Option<String>, Error> {
        let bytes = match read(&self.0, Path::new(SKILL_MD)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(invalid(SKILL_MD, error)),
        };
        let text = String::from_utf8(bytes).map_err(|_| invalid(SKILL_MD, "it is no UTF-8 text"))?;
        let frontmatter = Frontmatter::parse(&text).and_then(|read| read.check().map(|()| read));
        frontmatter.map(|frontmatter| Some(frontmatter.name().to_owned())).map_err(|why| invalid(SKILL_MD, why))
    }
}

/// The bytes of a file, or of what a link leads to; that fails where it is outside, or left out.
fn read(dir: &Dir, place: &Path) -> io::Result<Vec<u8>> {
    let metadata = dir.metadata(place)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is neither a file nor a directory, nor a link to a file"));
    }
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    if dir.canonicalize(place)?.components().any(is_hidden) {
        return Err(io::Error::other("it is a link to what is left out"));
    }
    let mut bytes = Vec::new();
    dir.open(place)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

struct Walk<'a> {
    dir: &'a Dir,
    gathered: &'a mut Gathered,
    /// Of the skill that is looked through, with those that are nested in it.
    files: usize,
    bytes: u64,
    skills: usize,
}

impl Walk<'_> {
    /// Looks through a directory: `place` is where it lies, `path` what it is called in URIs.
    fn enter(&mut self, place: &Path, path: &str, is_skill: bool) -> Result<(), Error> {
        if place.components().count() > DEPTH {
            return Err(invalid(path, format!("directories are more than {DEPTH} deep")));
        }
        let entries = self.entries(place).map_err(|error| invalid(path, error))?;
        let has_skill_md = entries.iter().any(|(name, _)| name == SKILL_MD);
        if let Some((name, _)) =
            entries.iter().find(|(name, _)| name != SKILL_MD && name.eq_ignore_ascii_case(SKILL_MD))
        {
            return Err(invalid(&format!("{path}/{name}"), "it must be named `SKILL.md`"));
        }
        self.skills += usize::from(has_skill_md);
        if has_skill_md && !is_skill {
            (self.files, self.bytes) = (0, 0);
        }
        let is_skill = is_skill || has_skill_md;
        if is_skill && entries.is_empty() {
            self.gathered.empty(path);
        }
        for (name, kind) in entries {
            let (place, path) = (place.join(&name), if path.is_empty() { name } else { format!("{path}/{name}") });
            if kind.is_dir() {
                self.enter(&place, &path, is_skill)?;
            } else if is_skill {
                self.take(&place, path)?;
            } else if kind.is_symlink() && self.dir.metadata(&place).is_ok_and(|there| there.is_dir()) {
                return Err(invalid(&path, "a link to a directory is not followed"));
            }
        }
        Ok(())
    }

    /// What is in a directory, and not left out.
    fn entries(&self, place: &Path) -> io::Result<Vec<(String, FileType)>> {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        let mut entries = Vec::new();
        for entry in self.dir.read_dir(place)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let name = entry.file_name().into_string().map_err(|_| io::Error::other("a name in it is no UTF-8"))?;
            entries.push((name, entry.file_type()?));
        }
        Ok(entries)
    }

    fn take(&mut self, place: &Path, path: String) -> Result<(), Error> {
        let bytes = read(self.dir, place).map_err(|error| invalid(&path, error))?;
        self.files += 1;
        self.bytes += bytes.len() as u64;
        // Before all the rest is read, too.
        if self.files > MAX_RESOURCES || self.bytes > MAX_BYTES {
            let why = format!("with it, the skill has more than {MAX_RESOURCES} files or {MAX_BYTES} bytes");
            return Err(invalid(&path, why));
        }
        self.gathered.file(path, bytes.into())
    }
}
