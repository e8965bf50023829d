//! What is served: files by their paths, and the skills that they make.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use mcp_core::{
    Blame, Context, Error, ErrorKind, ToolError,
    jsonrpc::Raw,
    types::{ResourceContents, ResourceDefinition},
};

use super::{dynamic::DynamicSkill, files::root, invalid};
use crate::{
    DIRECTORY, Digest, Frontmatter, Skill, SkillResource, SkillResources,
    uri::{SKILL_MD, is_path, path_of, uri_of},
};

/// All that is served at one time.
#[derive(Default)]
pub(super) struct Catalogue {
    /// By the paths that their URIs have.
    pub(super) files: BTreeMap<String, Held>,
    /// Directories with nothing in them, each with a slash at its end.
    empty: BTreeSet<String>,
    /// By the URIs of their `SKILL.md`.
    pub(super) skills: BTreeMap<String, Known>,
}

/// A file.
pub(super) struct Held {
    pub(super) resource: SkillResource,
    pub(super) mime_type: String,
    pub(super) bytes: Bytes,
    /// Of a `SKILL.md`.
    frontmatter: Option<Frontmatter>,
}

/// Where a file's bytes are.
pub(super) enum Bytes {
    Memory(Arc<[u8]>),
    #[cfg(feature = "directory")]
    Directory(Arc<super::directory::Directory>, std::path::PathBuf),
}

/// A skill.
pub(super) struct Known {
    pub(super) entry: Skill,
    /// The entry as JSON.
    pub(super) rendered: Raw,
    pub(super) dynamic: Option<Arc<dyn DynamicSkill>>,
}

/// A catalogue in the making.
#[derive(Default)]
pub(super) struct Gathered {
    catalogue: Catalogue,
    dynamic: Vec<(String, Frontmatter, Arc<dyn DynamicSkill>)>,
}

impl Gathered {
    /// Adds a file of those bytes.
    pub(super) fn file(&mut self, path: String, bytes: &[u8], kept: Bytes) -> Result<(), Error> {
        if !is_path(&path) {
            return Err(invalid(&path, "that is no path below a skill's directory"));
        }
        let is_skill_md = path.rsplit('/').next() == Some(SKILL_MD);
        let text = is_skill_md.then(|| std::str::from_utf8(bytes).map_err(|_| invalid(&path, "it is no UTF-8 text")));
        let frontmatter = text.transpose()?.map(|text| Frontmatter::parse(text).map_err(|why| invalid(&path, why)));
        let resource = SkillResource { uri: uri_of(&path), digest: Digest::of(bytes), size: bytes.len() as u64 };
        let held =
            Held { resource, mime_type: mime_type(&path, bytes), bytes: kept, frontmatter: frontmatter.transpose()? };
        match self.catalogue.files.insert(path.clone(), held) {
            None => Ok(()),
            Some(_) => Err(twice(&path)),
        }
    }

    /// Adds a directory that is empty.
    #[cfg(feature = "directory")]
    pub(super) fn empty(&mut self, path: &str) {
        self.catalogue.empty.insert(format!("{path}/"));
    }

    /// Adds a skill that is made when it is read.
    pub(super) fn dynamic(
        &mut self,
        under: &str,
        frontmatter: Frontmatter,
        skill: Arc<dyn DynamicSkill>,
    ) -> Result<(), Error> {
        let root = root(under, &frontmatter)?;
        self.dynamic.push((root, frontmatter, skill));
        Ok(())
    }

    /// The skills that the files make.
    pub(super) fn into_catalogue(mut self) -> Result<Catalogue, Error> {
        let mut skills = BTreeMap::new();
        for (path, file) in &self.catalogue.files {
            let Some(frontmatter) = &file.frontmatter else { continue };
            let root = path.strip_suffix(SKILL_MD).unwrap_or_default().trim_end_matches('/');
            let files = self.catalogue.below(root).map(|(_, file)| file.resource.clone()).collect();
            let listed = SkillResources::Listed(files);
            let known = known(Skill::new(uri_of(path), frontmatter.clone(), listed), None)?;
            skills.insert(known.entry.uri.clone(), known);
        }
        for (root, frontmatter, skill) in self.dynamic {
            if self.catalogue.below(&root).next().is_some() {
                return Err(twice(&root));
            }
            let uri = uri_of(&format!("{root}/{SKILL_MD}"));
            let known = known(Skill::new(uri.clone(), frontmatter, SkillResources::Dynamic), Some(skill))?;
            if skills.insert(uri, known).is_some() {
                return Err(twice(&root));
            }
        }
        self.catalogue.skills = skills;
        Ok(self.catalogue)
    }
}

fn known(entry: Skill, dynamic: Option<Arc<dyn DynamicSkill>>) -> Result<Known, Error> {
    entry.check().and_then(|()| entry.check_size()).map_err(|why| invalid(&entry.uri, why))?;
    let rendered = Raw::encode(&entry).map_err(|error| invalid(&entry.uri, error))?;
    Ok(Known { entry, rendered, dynamic })
}

fn twice(path: &str) -> Error {
    let message = format!("the skill file `{path}` is there already");
    Error::new(ErrorKind::DuplicateRegistration, message).blaming(Blame::Caller)
}

impl Catalogue {
    /// The files in a directory and below it.
    fn below(&self, directory: &str) -> impl Iterator<Item = (&str, &Held)> {
        let prefix = format!("{directory}/");
        let from = (Bound::Excluded(prefix.clone()), Bound::Unbounded);
        let all = self.files.range::<String, _>(from);
        all.map(|(path, file)| (path.as_str(), file)).take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// The skills that a path is in, and what it is called there: the innermost first.
    fn around<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a Known, &'a str)> {
        let slashes = path.rmatch_indices('/').map(|(at, _)| at);
        slashes.filter_map(move |at| {
            let root = &path[..at];
            Some((self.skills.get(&uri_of(&format!("{root}/{SKILL_MD}")))?, &path[at + 1..]))
        })
    }

    /// Whether whoever asks sees a file: a skill that it belongs to.
    pub(super) fn shows(&self, context: &Context, path: &str) -> bool {
        self.around(path).any(|(skill, _)| context.sees_resource(&skill.entry.uri))
    }

    /// Reads a file of a dynamic skill.
    pub(super) async fn read_dynamic(&self, context: Context, path: &str) -> Result<ResourceContents, ToolError> {
        let mut around = self.around(path);
        let Some((dynamic, entry, within)) =
            around.find_map(|(skill, within)| Some((skill.dynamic.as_ref()?, &skill.entry, within)))
        else {
            return Err(ToolError::not_found());
        };
        if within == SKILL_MD {
            let body = dynamic.instructions(context).await?;
            return Ok(super::contents(entry.frontmatter.before(&body).into_bytes(), "text/markdown"));
        }
        if !is_path(within) {
            return Err(ToolError::not_found());
        }
        let bytes = dynamic.read(context, within).await?;
        let mime_type = mime_type(path, &bytes);
        Ok(super::contents(bytes, &mime_type))
    }

    /// What is directly in a directory, by name; nothing where it is none that whoever asks sees.
    pub(super) async fn children(
        &self,
        context: &Context,
        directory: &str,
    ) -> Result<Option<BTreeMap<String, ResourceDefinition>>, ToolError> {
        let files = self.below(directory).map(|(path, file)| (path.to_owned(), file.definition()));
        let empty = self.empty.iter().map(|path| (path.clone(), ResourceDefinition::new("", "")));
        let mut all: Vec<_> = files.chain(empty).collect();
        for (root, dynamic) in self.dynamic() {
            all.push(made(&root, SKILL_MD));
            if directory == root || directory.starts_with(&format!("{root}/")) {
                let files = dynamic.files(context.clone()).await?;
                all.extend(files.iter().filter(|path| is_path(path)).map(|path| made(&root, path)));
            }
        }
        all.retain(|(path, _)| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')));
        all.retain(|(path, _)| self.shows(context, path));
        let mut children = BTreeMap::new();
        for (path, definition) in &all {
            let below = &path[directory.len() + 1..];
            match below.split_once('/') {
                _ if below.is_empty() => {}
                Some((name, _)) => drop(children.insert(name.to_owned(), subdirectory(directory, name))),
                None => drop(children.insert(below.to_owned(), definition.clone())),
            }
        }
        Ok((!all.is_empty()).then_some(children))
    }

    fn dynamic(&self) -> impl Iterator<Item = (String, &Arc<dyn DynamicSkill>)> {
        self.skills.values().filter_map(|skill| {
            let root = path_of(skill.entry.root())?.into_owned();
            Some((root, skill.dynamic.as_ref()?))
        })
    }
}

impl Held {
    fn definition(&self) -> ResourceDefinition {
        let path = path_of(&self.resource.uri).unwrap_or_default();
        let mut definition = ResourceDefinition::new(&self.resource.uri, name(&path));
        definition.mime_type = Some(self.mime_type.clone());
        definition.size = Some(self.resource.size);
        if let Some(frontmatter) = &self.frontmatter {
            definition.name = frontmatter.name().to_owned();
            definition.description = Some(frontmatter.description().to_owned());
        }
        definition
    }
}

/// A file that is made when it is read, of which no more is known than its place.
fn made(root: &str, path: &str) -> (String, ResourceDefinition) {
    let whole = format!("{root}/{path}");
    let mut definition = ResourceDefinition::new(uri_of(&whole), name(path));
    definition.mime_type = Some(mime_type(path, b""));
    (whole, definition)
}

fn subdirectory(directory: &str, name: &str) -> ResourceDefinition {
    let mut definition = ResourceDefinition::new(uri_of(&format!("{directory}/{name}")), name);
    definition.mime_type = Some(DIRECTORY.to_owned());
    definition
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The media type that a file's name tells; what is text is not taken for a film that happens to have that ending.
fn mime_type(path: &str, bytes: &[u8]) -> String {
    let guessed = mime_guess::from_path(path).first_raw();
    let is_text = std::str::from_utf8(bytes).is_ok();
    let is_picture = |guess: &str| {
        let kind = guess.split('/').next().unwrap_or_default();
        ["audio", "image", "video", "font"].contains(&kind) && guess != "image/svg+xml"
    };
    let otherwise = if is_text { "text/plain" } else { "application/octet-stream" };
    guessed.filter(|guess| !is_text || bytes.is_empty() || !is_picture(guess)).unwrap_or(otherwise).to_owned()
}
