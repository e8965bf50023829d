//! What is served: files by their paths, and the skills that they make.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use mcp_core::{
    Blame, Context, Error, ErrorKind, Exchange, ToolError,
    jsonrpc::Raw,
    types::{ResourceContents, ResourceDefinition},
};

use super::{dynamic::DynamicSkill, files::root, invalid, sees};
use crate::{
    DIRECTORY_MIME_TYPE, Frontmatter, Skill, SkillResource, SkillResources,
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
    pub(super) bytes: Arc<[u8]>,
    /// Of a `SKILL.md`.
    frontmatter: Option<Frontmatter>,
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
    /// Adds a file.
    pub(super) fn file(&mut self, path: String, bytes: Arc<[u8]>) -> Result<(), Error> {
        if !is_path(&path) {
            return Err(invalid(&path, "that is no path below a skill's directory"));
        }
        let frontmatter = (name(&path) == SKILL_MD).then(|| {
            let text = std::str::from_utf8(&bytes).map_err(|_| "it is no UTF-8 text".to_owned());
            text.and_then(Frontmatter::parse).map_err(|why| invalid(&path, why))
        });
        let (resource, mime_type) = (SkillResource::new(uri_of(&path), &bytes), mime_type(&path, Some(&bytes)));
        let held = Held { resource, mime_type, bytes, frontmatter: frontmatter.transpose()? };
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
        frontmatter: &Frontmatter,
        skill: &Arc<dyn DynamicSkill>,
    ) -> Result<(), Error> {
        let root = root(under, frontmatter)?;
        // What a text cannot hold, hosts could not verify.
        if Frontmatter::parse(&frontmatter.before("")).as_ref() != Ok(frontmatter) {
            return Err(invalid(&root, "its frontmatter cannot be written as YAML"));
        }
        self.dynamic.push((root, frontmatter.clone(), skill.clone()));
        Ok(())
    }

    /// The skills that the files make.
    pub(super) fn into_catalogue(self) -> Result<Catalogue, Error> {
        let Self { mut catalogue, dynamic } = self;
        let mut skills = BTreeMap::new();
        for (path, file) in &catalogue.files {
            if catalogue.below(path).next().is_some() {
                return Err(invalid(path, "it cannot be a file and a directory"));
            }
            let Some(frontmatter) = &file.frontmatter else { continue };
            let root = path.strip_suffix(SKILL_MD).unwrap_or_default().trim_end_matches('/');
            let files = catalogue.below(root).map(|(_, file)| file.resource.clone()).collect();
            let entry = Skill::new(&file.resource.uri, frontmatter.clone(), SkillResources::Listed(files));
            skills.insert(file.resource.uri.clone(), known(entry, None)?);
        }
        catalogue.skills = skills;
        for (root, frontmatter, skill) in dynamic {
            let skill_md = format!("{root}/{SKILL_MD}");
            let listed = catalogue.around(&root).any(|(around, _)| around.dynamic.is_none());
            if listed || catalogue.below(&root).next().is_some() {
                return Err(invalid(
                    &skill_md,
                    "a skill that is made when it is read cannot share files with another one",
                ));
            }
            let entry = Skill::new(uri_of(&skill_md), frontmatter, SkillResources::Dynamic);
            if catalogue.skills.insert(entry.uri.clone(), known(entry, Some(skill))?).is_some() {
                return Err(twice(&skill_md));
            }
        }
        Ok(catalogue)
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
    pub(super) fn shows(&self, exchange: &Exchange, path: &str) -> bool {
        self.around(path).any(|(skill, _)| sees(exchange, &skill.entry))
    }

    /// Reads a file of a dynamic skill.
    pub(super) async fn read_dynamic(&self, context: Context, path: &str) -> Result<ResourceContents, ToolError> {
        let mut around = self.around(path);
        let found = around.find_map(|(skill, within)| Some((skill.dynamic.as_ref()?, &skill.entry, within)));
        let (dynamic, entry, within) = found.ok_or_else(ToolError::not_found)?;
        if within == SKILL_MD {
            let body = dynamic.instructions(context).await?;
            return Ok(super::contents(entry.frontmatter.before(&body).into_bytes(), "text/markdown"));
        }
        if !is_path(within) {
            return Err(ToolError::not_found());
        }
        let bytes = dynamic.read(context, within).await?;
        let mime_type = mime_type(path, Some(&bytes));
        Ok(super::contents(bytes, &mime_type))
    }

    /// What is directly in a directory, by name; nothing where it is none that whoever asks sees.
    pub(super) async fn children(
        &self,
        context: &Context,
        directory: &str,
    ) -> Result<Option<BTreeMap<String, ResourceDefinition>>, ToolError> {
        let mut children = Children { directory, found: BTreeMap::new(), is_there: false };
        let exchange = context.exchange();
        for (path, file) in self.below(directory) {
            if children.is_new(path) && self.shows(exchange, path) {
                children.add(path, || file.definition());
            }
        }
        for path in self.empty.iter().filter(|path| self.shows(exchange, path)) {
            children.add(path, || ResourceDefinition::new("", ""));
        }
        for (root, entry, dynamic) in self.dynamic().filter(|(_, entry, _)| sees(exchange, entry)) {
            children.add(&format!("{root}/{SKILL_MD}"), || skill_md(entry));
            if directory == root || directory.starts_with(&format!("{root}/")) {
                for path in dynamic.files(context.clone()).await?.iter().filter(|path| is_path(path)) {
                    let path = format!("{root}/{path}");
                    children.add(&path, || made(&path));
                }
            }
        }
        Ok(children.is_there.then_some(children.found))
    }

    fn dynamic(&self) -> impl Iterator<Item = (String, &Skill, &Arc<dyn DynamicSkill>)> {
        self.skills.values().filter_map(|skill| {
            let root = path_of(skill.entry.root())?.into_owned();
            Some((root, &skill.entry, skill.dynamic.as_ref()?))
        })
    }
}

/// The direct children of a directory.
struct Children<'a> {
    directory: &'a str,
    found: BTreeMap<String, ResourceDefinition>,
    is_there: bool,
}

impl Children<'_> {
    /// What of a path lies below the directory; nothing where that is another one.
    fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(self.directory)?.strip_prefix('/')
    }

    /// Whether a path says anything that is not known yet.
    fn is_new(&self, path: &str) -> bool {
        self.below(path).and_then(|below| below.split('/').next()).is_some_and(|name| !self.found.contains_key(name))
    }

    /// Adds a file, or the directory on the way to it. A path that ends with a slash is an empty directory's.
    fn add(&mut self, path: &str, file: impl FnOnce() -> ResourceDefinition) {
        let Some(below) = self.below(path) else { return };
        self.is_there = true;
        match below.split_once('/') {
            Some((name, _)) => {
                self.found.entry(name.to_owned()).or_insert_with(|| subdirectory(self.directory, name));
            }
            None if below.is_empty() => {}
            None => {
                self.found.insert(below.to_owned(), file());
            }
        }
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

/// The `SKILL.md` of a skill that is made when it is read.
fn skill_md(entry: &Skill) -> ResourceDefinition {
    let mut definition = ResourceDefinition::new(&entry.uri, entry.name());
    definition.description = Some(entry.description().to_owned());
    definition.mime_type = Some("text/markdown".to_owned());
    definition
}

/// A file that is made when it is read, of which no more is known than its place.
fn made(path: &str) -> ResourceDefinition {
    let mut definition = ResourceDefinition::new(uri_of(path), name(path));
    definition.mime_type = Some(mime_type(path, None));
    definition
}

fn subdirectory(directory: &str, name: &str) -> ResourceDefinition {
    let mut definition = ResourceDefinition::new(uri_of(&format!("{directory}/{name}")), name);
    definition.mime_type = Some(DIRECTORY_MIME_TYPE.to_owned());
    definition
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The media type that a file's name tells. What is text is not taken for a film that happens to have that ending, nor what
/// is most often a program.
fn mime_type(path: &str, bytes: Option<&[u8]>) -> String {
    let is_text = bytes.map(|bytes| std::str::from_utf8(bytes).is_ok());
    let is_picture = |guess: &str| {
        let kind = guess.split('/').next().unwrap_or_default();
        ["audio", "image", "video", "font"].contains(&kind) && guess != "image/svg+xml"
    };
    let is_program = [".ts", ".mts", ".cts"].iter().any(|ending| path.ends_with(ending));
    let guess = mime_guess::from_path(path).first_raw().filter(|guess| match is_text {
        Some(is_text) => !(is_text && is_picture(guess)),
        None => !(is_program && is_picture(guess)),
    });
    let is_text = is_text.unwrap_or(is_program);
    guess.unwrap_or(if is_text { "text/plain" } else { "application/octet-stream" }).to_owned()
}
