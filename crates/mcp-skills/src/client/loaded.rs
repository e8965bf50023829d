use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mcp_core::types::ResourceDefinition;

use super::SkillsClient;
use crate::{
    Digest, Frontmatter, Mismatch, SKILL_BYTES, Skill, SkillError, SkillResource, SkillResources, frontmatter,
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
    /// How many bytes of a dynamic skill were read.
    bytes: Mutex<u64>,
}

impl LoadedSkill {
    pub(super) async fn load(skills: SkillsClient, entry: Skill) -> Result<Self, SkillError> {
        let uri = entry.uri.clone();
        entry.check().map_err(|why| SkillError::Invalid { uri: uri.clone(), why })?;
        entry.check_size().map_err(|why| SkillError::TooLarge { uri: uri.clone(), why })?;
        let (held, bytes) = Default::default();
        let mut loaded = Self { skills, entry, skill_md: String::new(), held, bytes };
        let bytes = loaded.verified(&uri).await?;
        let mismatch = |what| SkillError::Mismatch { uri: uri.clone(), what };
        let text = std::str::from_utf8(&bytes).map_err(|_| mismatch(Mismatch::Content))?;
        let frontmatter = Frontmatter::parse(text).map_err(|_| mismatch(Mismatch::Content))?;
        if let Some(field) = loaded.entry.frontmatter.difference(&frontmatter) {
            return Err(mismatch(Mismatch::Frontmatter(field.to_owned())));
        }
        loaded.skill_md = text.to_owned();
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

    /// The paths of its files, as instructions refer to them; those of a dynamic skill are not known.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.entry.files().iter().filter_map(|file| Some(within(self.entry.root(), &file.uri)?.into_owned()))
    }

    /// Reads a file that the skill refers to, as `references/FORMS.md`: a path from the skill's directory.
    ///
    /// What was read before is not read again.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`] where it is no file of the entry, or leads out of the skill; [`SkillError::Mismatch`] where it
    /// is not what the entry says. Either means that the skill has changed, and is to be approved anew.
    pub async fn read(&self, reference: &str) -> Result<Arc<[u8]>, SkillError> {
        let unlisted = || SkillError::Unlisted { uri: reference.to_owned() };
        let path = resolve(reference).ok_or_else(unlisted)?;
        let uri = match &self.entry.resources {
            SkillResources::Dynamic => uri_of_file(self.entry.root(), &path),
            SkillResources::Listed(files) => {
                let is_it = |file: &&SkillResource| within(self.entry.root(), &file.uri).is_some_and(|at| at == path);
                files.iter().find(is_it).ok_or_else(unlisted)?.uri.clone()
            }
        };
        self.verified(&uri).await
    }

    /// What is in a directory of the skill: from the entry, or, where that is dynamic, from the server. The empty path is the
    /// skill's own directory.
    ///
    /// # Errors
    /// [`SkillError::Unlisted`] where it is none; as [`SkillsClient::directory`] for a dynamic skill.
    pub async fn directory(&self, path: &str) -> Result<Vec<String>, SkillError> {
        let unlisted = || SkillError::Unlisted { uri: path.to_owned() };
        let path = path.trim_end_matches('/');
        let path = if path.is_empty() { String::new() } else { resolve(path).ok_or_else(unlisted)? };
        let uri = if path.is_empty() { self.entry.root().to_owned() } else { uri_of_file(self.entry.root(), &path) };
        if self.entry.resources == SkillResources::Dynamic {
            let children: Vec<ResourceDefinition> = self.skills.directory(&uri).await?;
            return Ok(children.iter().filter_map(|child| Some(within(&uri, &child.uri)?.into_owned())).collect());
        }
        let prefix = if path.is_empty() { path } else { path + "/" };
        let below = self.paths().filter_map(|file| Some(file.strip_prefix(&prefix)?.split('/').next()?.to_owned()));
        let mut names: Vec<_> = below.collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { Err(unlisted()) } else { Ok(names) }
    }

    /// A file whose bytes are those of the entry.
    async fn verified(&self, uri: &str) -> Result<Arc<[u8]>, SkillError> {
        if let Some(bytes) = self.held().get(uri) {
            return Ok(bytes.clone());
        }
        let bytes: Arc<[u8]> = self.skills.bytes(uri).await?.into();
        match &self.entry.resources {
            SkillResources::Dynamic => self.count(uri, bytes.len())?,
            SkillResources::Listed(files) => {
                let file = files.iter().find(|file| file.uri == uri);
                let file = file.ok_or_else(|| SkillError::Unlisted { uri: uri.to_owned() })?;
                let mismatch = |what| SkillError::Mismatch { uri: uri.to_owned(), what };
                if bytes.len() as u64 != file.size {
                    return Err(mismatch(Mismatch::Size));
                }
                if Digest::of(&bytes) != file.digest {
                    return Err(mismatch(Mismatch::Digest));
                }
                self.held().insert(uri.to_owned(), bytes.clone());
            }
        }
        Ok(bytes)
    }

    /// Of a dynamic skill, as much is read as a skill may have.
    fn count(&self, uri: &str, bytes: usize) -> Result<(), SkillError> {
        let mut read = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *read = read.saturating_add(bytes as u64);
        if *read <= SKILL_BYTES {
            return Ok(());
        }
        let why = format!("more than {SKILL_BYTES} bytes were read of it");
        Err(SkillError::TooLarge { uri: uri.to_owned(), why })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Arc<[u8]>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
