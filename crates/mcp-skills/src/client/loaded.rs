use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::SkillsClient;
use crate::{
    Digest, Frontmatter, MAX_BYTES, MAX_RESOURCES, Mismatch, Skill, SkillError, SkillResource, SkillResources,
    frontmatter,
    uri::{resolve, uri_of_file, within},
};

/// A skill that a host acts on: the entry that it was loaded by, and the verified `SKILL.md`. All that is read of the skill is
/// verified against that entry, and what is not in it cannot be read.
///
/// Specification: *Skills extension, The Acting Window and the Held Entry*.
#[derive(Debug)]
pub struct LoadedSkill {
    skills: SkillsClient,
    entry: Skill,
    skill_md: String,
    /// What was read, and verified; within the limit of a skill.
    held: Mutex<HashMap<String, Arc<[u8]>>>,
    /// How many bytes the files of a dynamic skill had at most.
    sizes: Mutex<HashMap<String, u64>>,
}

impl LoadedSkill {
    pub(super) async fn load(skills: SkillsClient, entry: Skill) -> Result<Self, SkillError> {
        let uri = entry.uri.clone();
        entry.check().map_err(|why| SkillError::Invalid { uri: uri.clone(), why })?;
        entry.check_size().map_err(|why| SkillError::TooLarge { uri: uri.clone(), why })?;
        let (held, sizes) = Default::default();
        let mut loaded = Self { skills, entry, skill_md: String::new(), held, sizes };
        let bytes = loaded.verified(&uri).await?;
        let mismatch = |what| SkillError::Mismatch { uri: uri.clone(), what };
        let text = std::str::from_utf8(&bytes).map_err(|_| mismatch(Mismatch::Content("it is no text".into())))?;
        let frontmatter = Frontmatter::parse(text).map_err(|why| mismatch(Mismatch::Content(why)))?;
        if let Some(field) = loaded.entry.frontmatter.difference(&frontmatter) {
            return Err(mismatch(Mismatch::Frontmatter(field.to_owned())));
        }
        loaded.skill_md = text.to_owned();
        // Of a dynamic one, too: what comes next time would not have been compared.
        lock(&loaded.held).insert(uri, bytes);
        Ok(loaded)
    }

    /// The entry that it was loaded by.
    #[must_use]
    pub fn entry(&self) -> &Skill {
        &self.entry
    }

    /// The whole `SKILL.md`.
    #[must_use]
    pub fn skill_md(&self) -> &str {
        &self.skill_md
    }

    /// What stands behind its frontmatter.
    #[must_use]
    pub fn instructions(&self) -> &str {
        frontmatter::split(&self.skill_md).map_or("", |(_, body)| body)
    }

    /// The paths of its files, from its directory; those of a dynamic skill are not known.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.entry.files().iter().filter_map(|file| within(self.entry.root(), &file.uri))
    }

    /// Reads a file that the skill refers to, as `references/FORMS.md`: a path from the skill's directory.
    ///
    /// What was verified is not read again; files of a dynamic skill are, but for its `SKILL.md`.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`] where it is no file of the entry, or leads out of the skill; [`SkillError::Mismatch`] where it
    /// is not what the entry says; [`SkillError::Call`] of the kind [`NotFound`](mcp_core::ErrorKind::NotFound) where it is
    /// gone. Each means that the skill has changed, and is to be approved anew. [`SkillError::TooLarge`] where the client's
    /// [`Limits::message_bytes`](mcp_core::Limits) are too few for it.
    pub async fn read(&self, reference: &str) -> Result<Arc<[u8]>, SkillError> {
        let unlisted = || SkillError::Unlisted { uri: reference.to_owned() };
        let uri = match &self.entry.resources {
            SkillResources::Dynamic => {
                let path = resolve(reference).filter(|path| !path.is_empty()).ok_or_else(unlisted)?;
                uri_of_file(self.entry.root(), &path)
            }
            SkillResources::Listed(_) => {
                // A path as it is, before what it may mean as a reference.
                let found = self.file(reference).or_else(|| self.file(&resolve(reference)?));
                found.ok_or_else(unlisted)?.uri.clone()
            }
        };
        self.verified(&uri).await
    }

    fn file(&self, path: &str) -> Option<&SkillResource> {
        self.entry.files().iter().find(|file| within(self.entry.root(), &file.uri).is_some_and(|at| at == path))
    }

    /// What is in a directory of the skill, by name: from the entry, or, where that is dynamic, from the server. The empty
    /// path is the skill's own directory.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`] where it is none; as [`SkillsClient::directory`] for a dynamic skill.
    pub async fn directory(&self, path: &str) -> Result<Vec<String>, SkillError> {
        let unlisted = || SkillError::Unlisted { uri: path.to_owned() };
        if self.entry.resources == SkillResources::Dynamic {
            let path = resolve(path).ok_or_else(unlisted)?;
            let root = self.entry.root();
            let uri = if path.is_empty() { root.to_owned() } else { uri_of_file(root, &path) };
            let children = self.skills.directory(&uri).await?;
            let names = children.iter().filter_map(|child| within(&uri, &child.uri));
            return Ok(names.filter(|name| !name.contains('/')).collect());
        }
        let mut names = self.names(path.trim_end_matches('/'));
        if names.is_empty() {
            names = self.names(&resolve(path).ok_or_else(unlisted)?);
        }
        if names.is_empty() { Err(unlisted()) } else { Ok(names.into_iter().collect()) }
    }

    fn names(&self, directory: &str) -> BTreeSet<String> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        self.paths().filter_map(|path| Some(path.strip_prefix(&prefix)?.split('/').next()?.to_owned())).collect()
    }

    /// A file whose bytes are those of the entry.
    async fn verified(&self, uri: &str) -> Result<Arc<[u8]>, SkillError> {
        if let Some(bytes) = lock(&self.held).get(uri) {
            return Ok(bytes.clone());
        }
        let too_large = |why| SkillError::TooLarge { uri: uri.to_owned(), why };
        let SkillResources::Listed(files) = &self.entry.resources else {
            let bytes: Arc<[u8]> = self.skills.bytes(uri).await?.into();
            self.count(uri, bytes.len()).map_err(too_large)?;
            return Ok(bytes);
        };
        let file = files.iter().find(|file| file.uri == uri);
        let file = file.ok_or_else(|| SkillError::Unlisted { uri: uri.to_owned() })?;
        self.skills.has_room_for(file.size).map_err(too_large)?;
        let bytes: Arc<[u8]> = self.skills.bytes(uri).await?.into();
        let mismatch = |what| SkillError::Mismatch { uri: uri.to_owned(), what };
        if bytes.len() as u64 != file.size {
            return Err(mismatch(Mismatch::Size));
        }
        if Digest::of(&bytes) != file.digest {
            return Err(mismatch(Mismatch::Digest));
        }
        lock(&self.held).insert(uri.to_owned(), bytes.clone());
        Ok(bytes)
    }

    /// The files of a dynamic skill have no more bytes than a skill may have.
    fn count(&self, uri: &str, bytes: usize) -> Result<(), String> {
        let mut sizes = lock(&self.sizes);
        let size = sizes.entry(uri.to_owned()).or_default();
        *size = (*size).max(bytes as u64);
        let is_within = sizes.len() <= MAX_RESOURCES && sizes.values().sum::<u64>() <= MAX_BYTES;
        if is_within {
            Ok(())
        } else {
            Err(format!("more than {MAX_RESOURCES} files or {MAX_BYTES} bytes were read of it"))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
