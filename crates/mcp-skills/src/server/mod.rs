//! Skills that a server serves.

mod catalogue;
#[cfg(feature = "directory")]
mod directory;
mod dynamic;
mod files;
mod methods;

#[cfg(feature = "directory")]
use std::path::Path;
use std::{collections::BTreeSet, sync::Arc};

use arc_swap::ArcSwap;
use mcp_core::{
    Blame, Context, Error, ErrorKind, Exchange, Fault, Resource, ResourceTemplate, Server, ServerBuilder, ToolError,
    jsonrpc::Raw,
    server::ServerExtension,
    types::{CacheHint, ResourceContents, ResourceDefinition},
    uri_template::Variables,
};
use tokio::{sync::Mutex, task::spawn_blocking};

use self::catalogue::{Catalogue, Gathered};
pub use self::{dynamic::DynamicSkill, files::SkillFiles};
use crate::{
    EXTENSION_ID, Frontmatter, Skill,
    types::{GetSkill, ListSkills, ReadResourceDirectory},
    uri::path_of,
};

/// The skills of a server. It is added to one with [`ServerBuilder::with`]; cloning is cheap, and a clone can be kept to
/// [refresh](Self::refresh) what is served. A server has one at most.
///
/// ```
/// use mcp_core::{Server, implementation};
/// use mcp_skills::{SkillFiles, Skills};
///
/// let skill = "---\nname: git-workflow\ndescription: How this team branches and commits\n---\nBranch from `main`.";
/// let skills = Skills::builder().skill(SkillFiles::new(skill)).build()?;
/// let server = Server::builder(implementation!()).with(skills).build();
/// # Ok::<(), mcp_core::Error>(())
/// ```
///
/// Clients find them with `skills/list` and `skills/get`, read their files as resources (`skill://git-workflow/SKILL.md`),
/// and list their directories. To clients that do not know the extension they are resources like any other. Whoever does
/// not see the resource of a `SKILL.md`, as a [filter](ServerBuilder::resource_filter) says, does not see the skill.
///
/// Specification: *Skills extension*.
#[derive(Clone)]
pub struct Skills(Arc<Shared>);

struct Shared {
    sources: Vec<Source>,
    cache: CacheHint,
    catalogue: ArcSwap<Catalogue>,
    /// The URIs of all `SKILL.md` that were ever served; held while what is served is looked up anew.
    ever: Mutex<BTreeSet<String>>,
}

enum Source {
    Files(SkillFiles),
    Dynamic(String, Frontmatter, Arc<dyn DynamicSkill>),
    #[cfg(feature = "directory")]
    Directory(directory::Directory),
}

/// [`Skills`] in the making.
#[must_use = "a builder does nothing until it is built"]
#[derive(Default)]
pub struct SkillsBuilder {
    sources: Vec<Result<Source, Error>>,
    cache: CacheHint,
}

impl SkillsBuilder {
    /// Adds a skill whose files are given, as those that [`include_str!`] compiles in.
    pub fn skill(mut self, files: SkillFiles) -> Self {
        self.sources.push(Ok(Source::Files(files)));
        self
    }

    /// Adds a skill that is made when it is read. `under` are the directories that it lies in, as `acme/billing`, or empty.
    pub fn dynamic(mut self, under: &str, frontmatter: Frontmatter, skill: impl DynamicSkill) -> Self {
        self.sources.push(Ok(Source::Dynamic(under.to_owned(), frontmatter, Arc::new(skill))));
        self
    }

    /// Adds all skills in a directory and below it, each a directory with a `SKILL.md`; or the one skill that it is itself.
    ///
    /// A skill's place below the directory is its URI: `acme/refunds/SKILL.md` is `skill://acme/refunds/SKILL.md`. Names
    /// that begin with a dot are left out. Nothing outside of the directory is read: a link that leads out of it is an
    /// error, as is one to a directory, or to what is left out. Files are read when this is built and when it is
    /// [refreshed](Skills::refresh), and kept in memory, so that what is served is what was said of it.
    #[cfg(feature = "directory")]
    pub fn directory(mut self, path: impl AsRef<Path>) -> Self {
        self.sources.push(directory::Directory::open(path.as_ref()).map(Source::Directory));
        self
    }

    /// Sets for how long clients of the modern era may keep entries and files. Default: not at all.
    ///
    /// Specification: *Caching*.
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }

    /// The skills. Directories are read here, so this blocks.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidParams`] when a skill does not keep the format's rules, has more than
    /// [`MAX_RESOURCES`](crate::MAX_RESOURCES) files or [`MAX_BYTES`](crate::MAX_BYTES), or cannot be read, and
    /// [`ErrorKind::DuplicateRegistration`] when two files have one URI.
    pub fn build(self) -> Result<Skills, Error> {
        let sources = self.sources.into_iter().collect::<Result<Vec<_>, _>>()?;
        let catalogue = gather(&sources)?;
        let ever = Mutex::new(catalogue.skills.keys().cloned().collect());
        let catalogue = ArcSwap::from_pointee(catalogue);
        Ok(Skills(Arc::new(Shared { sources, cache: self.cache, catalogue, ever })))
    }
}

fn gather(sources: &[Source]) -> Result<Catalogue, Error> {
    let mut gathered = Gathered::default();
    for source in sources {
        match source {
            Source::Files(files) => files.gather(&mut gathered)?,
            Source::Dynamic(under, frontmatter, skill) => gathered.dynamic(under, frontmatter, skill)?,
            #[cfg(feature = "directory")]
            Source::Directory(directory) => directory.gather(&mut gathered)?,
        }
    }
    gathered.into_catalogue()
}

impl Skills {
    /// Skills to be named.
    pub fn builder() -> SkillsBuilder {
        SkillsBuilder::default()
    }

    /// What is served now, in the order of their URIs.
    #[must_use]
    pub fn entries(&self) -> Vec<Skill> {
        self.0.catalogue.load().skills.values().map(|known| known.entry.clone()).collect()
    }

    /// Looks the directories through again, and serves what is there now; whoever listens to the server's resources is told
    /// what has changed. Where several servers serve these skills, it is to be called for each of them.
    ///
    /// # Errors
    /// As [`SkillsBuilder::build`]; then all stays as it was.
    pub async fn refresh(&self, server: &Server) -> Result<(), Error> {
        let mut ever = self.0.ever.lock().await;
        let shared = self.0.clone();
        let gathered = spawn_blocking(move || gather(&shared.sources)).await;
        let new = Arc::new(gathered.unwrap_or_else(|_| Err(panicked()))?);
        let old = self.0.catalogue.swap(new.clone());
        ever.extend(new.skills.keys().cloned());
        for (uri, known) in &new.skills {
            let resource = self.skill_md(&known.entry);
            let is_there = server.resources().get(uri).is_some_and(|there| there.definition() == resource.definition());
            if !is_there {
                server.resources().replace(resource)?;
            }
        }
        for uri in ever.iter().filter(|uri| !new.skills.contains_key(*uri)) {
            server.resources().remove(uri);
        }
        for (path, file) in &old.files {
            if new.files.get(path).is_none_or(|now| now.resource.digest != file.resource.digest) {
                server.resource_updated(&file.resource.uri);
            }
        }
        Ok(())
    }

    /// A skill's `SKILL.md` as a resource that is listed.
    fn skill_md(&self, entry: &Skill) -> Resource {
        let (skills, path) = (self.clone(), path_of(&entry.uri).unwrap_or_default().into_owned());
        let size = entry.files().iter().find(|file| file.uri == entry.uri).map(|file| file.size);
        let read = move |context| {
            let (skills, path) = (skills.clone(), path.clone());
            async move { skills.read(context, &path).await }
        };
        let resource = Resource::new(&entry.uri, entry.name(), read)
            .describe(entry.description())
            .mime_type("text/markdown")
            .cache(self.0.cache);
        size.into_iter().fold(resource, Resource::size)
    }

    /// All other files, which are not listed.
    fn files(&self) -> ResourceTemplate {
        let (skills, shown) = (self.clone(), self.clone());
        let path = |variables: &Variables| variables.get("path").unwrap_or_default().to_owned();
        let read = move |context, variables: Variables| {
            let (skills, path) = (skills.clone(), path(&variables));
            async move { skills.read(context, &path).await }
        };
        ResourceTemplate::new("skill://{+path}", "skill-file", read)
            .describe("A file of a skill")
            .cache(self.0.cache)
            .filter(move |exchange, variables| shown.0.catalogue.load().shows(exchange, &path(variables)))
    }

    async fn read(&self, context: Context, path: &str) -> Result<ResourceContents, ToolError> {
        let catalogue = self.0.catalogue.load_full();
        match catalogue.files.get(path) {
            Some(file) => Ok(contents(file.bytes.to_vec(), &file.mime_type)),
            None => catalogue.read_dynamic(context, path).await,
        }
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::InternalError, "looking skills through panicked").blaming(Blame::Local)
}

fn contents(bytes: Vec<u8>, mime_type: &str) -> ResourceContents {
    match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text),
        Err(error) => ResourceContents::blob(error.into_bytes()),
    }
    .mime_type(mime_type)
}

impl ServerExtension for Skills {
    fn extend(self, builder: ServerBuilder) -> ServerBuilder {
        let settings = Raw::assume_valid(r#"{"directoryRead":true}"#.into());
        let builder = self.entries().iter().fold(builder, |builder, entry| builder.resource(self.skill_md(entry)));
        let (list, get, read) = (self.clone(), self.clone(), self.clone());
        builder
            .extension(EXTENSION_ID, settings)
            .template(self.files())
            .method::<ListSkills, _>(move |context, params| methods::list(list.clone(), context, params))
            .method::<GetSkill, _>(move |context, params| methods::get(get.clone(), context, params))
            .method::<ReadResourceDirectory, _>(move |context, params| {
                methods::read_directory(read.clone(), context, params)
            })
    }
}

impl std::fmt::Debug for Skills {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Skills").field("len", &self.0.catalogue.load().skills.len()).finish_non_exhaustive()
    }
}

/// What a builder or a directory is given and cannot be served.
fn invalid(place: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidParams, format!("the skill file `{place}`: {why}")).blaming(Blame::Caller)
}

fn unknown(what: &str) -> Fault {
    Fault::InvalidParams(format!("{what} is not served here").into())
}

/// What a definition is as JSON.
fn encoded(definition: &ResourceDefinition) -> Result<Raw, Fault> {
    Raw::encode(definition).map_err(|_| Fault::Internal)
}

/// Whether whoever asks sees a skill.
fn sees(exchange: &Exchange, skill: &Skill) -> bool {
    exchange.sees_resource(&skill.uri)
}
