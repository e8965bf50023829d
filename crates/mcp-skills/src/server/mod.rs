//! Skills that a server serves.

mod catalogue;
#[cfg(feature = "directory")]
mod directory;
mod dynamic;
mod files;
mod methods;

#[cfg(feature = "directory")]
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use mcp_core::{
    Blame, Context, Error, ErrorKind, Fault, Resource, ResourceTemplate, Server, ServerBuilder, ToolError,
    jsonrpc::Raw,
    server::ServerExtension,
    types::{CacheHint, ResourceContents},
    uri_template::Variables,
};
use tokio::task::spawn_blocking;

use self::catalogue::{Bytes, Catalogue, Gathered, Held};
pub use self::{dynamic::DynamicSkill, files::SkillFiles};
use crate::{
    Frontmatter, SKILLS,
    types::{GetSkill, ListSkills, ReadDirectory},
    uri::path_of,
};

/// The skills of a server. It is added to one with [`ServerBuilder::with`]; cloning is cheap, and a clone can be kept to
/// [refresh](Self::refresh) what is served.
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
    /// Held while what is served is looked up anew.
    refreshing: Mutex<()>,
}

enum Source {
    Files(SkillFiles),
    Dynamic(String, Frontmatter, Arc<dyn DynamicSkill>),
    #[cfg(feature = "directory")]
    Directory(Arc<directory::Directory>),
}

/// [`Skills`] in the making.
#[must_use = "a builder does nothing until it is built"]
#[derive(Default)]
pub struct SkillsBuilder {
    sources: Vec<Result<Source, Error>>,
    cache: CacheHint,
}

impl SkillsBuilder {
    /// Adds a skill whose files are in memory, as those that [`include_str!`] compiles in.
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
    /// that begin with a dot are no part of a skill. Nothing outside of the directory is read: a link that leads out of it
    /// is an error, and so is one to a directory. Files stay where they are, and are read when a client asks for them; what
    /// has changed since is noticed then.
    #[cfg(feature = "directory")]
    pub fn directory(mut self, path: impl AsRef<Path>) -> Self {
        let opened = directory::Directory::open(path.as_ref());
        self.sources.push(opened.map(|directory| Source::Directory(Arc::new(directory))));
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
    /// [`SKILL_FILES`](crate::SKILL_FILES) files or [`SKILL_BYTES`](crate::SKILL_BYTES), or cannot be read, and
    /// [`ErrorKind::DuplicateRegistration`] when two files have one URI.
    pub fn build(self) -> Result<Skills, Error> {
        let sources = self.sources.into_iter().collect::<Result<Vec<_>, _>>()?;
        let catalogue = ArcSwap::from_pointee(gather(&sources)?);
        Ok(Skills(Arc::new(Shared { sources, cache: self.cache, catalogue, refreshing: Mutex::default() })))
    }
}

fn gather(sources: &[Source]) -> Result<Catalogue, Error> {
    let mut gathered = Gathered::default();
    for source in sources {
        match source {
            Source::Files(files) => files.gather(&mut gathered)?,
            Source::Dynamic(under, frontmatter, skill) => {
                gathered.dynamic(under, frontmatter.clone(), skill.clone())?;
            }
            #[cfg(feature = "directory")]
            Source::Directory(directory) => directory::gather(directory, &mut gathered)?,
        }
    }
    gathered.into_catalogue()
}

impl Skills {
    /// Skills to be named.
    pub fn builder() -> SkillsBuilder {
        SkillsBuilder::default()
    }

    /// What is served now: the entries, by URI.
    #[must_use]
    pub fn entries(&self) -> Vec<crate::Skill> {
        self.0.catalogue.load().skills.values().map(|known| known.entry.clone()).collect()
    }

    /// Looks the directories through again, and serves what is there now; whoever listens to the server's resources is told
    /// what has changed. It blocks as long as that takes.
    ///
    /// # Errors
    /// As [`SkillsBuilder::build`]; then all stays as it was.
    pub fn refresh(&self, server: &Server) -> Result<(), Error> {
        let _alone = self.0.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        self.refreshed(server)
    }

    fn refreshed(&self, server: &Server) -> Result<(), Error> {
        let (old, new) = (self.0.catalogue.load_full(), Arc::new(gather(&self.0.sources)?));
        self.0.catalogue.store(new.clone());
        for (uri, known) in &new.skills {
            if old.skills.get(uri).is_none_or(|before| before.entry != known.entry) {
                server.resources().replace(self.skill_md(&known.entry))?;
            }
        }
        for uri in old.skills.keys().filter(|uri| !new.skills.contains_key(*uri)) {
            server.resources().remove(uri);
        }
        for (path, file) in &old.files {
            if new.files.get(path).is_none_or(|now| now.resource.digest != file.resource.digest) {
                server.resource_updated(&file.resource.uri);
            }
        }
        Ok(())
    }

    /// The same where nobody else has done it since `before`.
    fn refresh_since(&self, before: &Arc<Catalogue>, server: &Server) -> Result<(), Error> {
        let _alone = self.0.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(before, &self.0.catalogue.load()) { self.refreshed(server) } else { Ok(()) }
    }

    /// A skill's `SKILL.md` as a resource that is listed.
    fn skill_md(&self, entry: &crate::Skill) -> Resource {
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

    /// Reads a file. One that is not as it was said to be makes all be looked through again, once.
    async fn read(&self, context: Context, path: &str) -> Result<ResourceContents, ToolError> {
        for _ in 0..2 {
            let catalogue = self.0.catalogue.load_full();
            if !catalogue.shows(&context, path) {
                return Err(ToolError::not_found());
            }
            let Some(file) = catalogue.files.get(path) else {
                return catalogue.read_dynamic(context, path).await;
            };
            if let Some(bytes) = held(file).await {
                return Ok(contents(bytes, &file.mime_type));
            }
            let (skills, server) = (self.clone(), context.server().clone());
            let refreshed = spawn_blocking(move || skills.refresh_since(&catalogue, &server)).await;
            if let Err(error) = refreshed.unwrap_or_else(|_| Err(panicked())) {
                tracing::error!(?error, "skills cannot be looked through again");
                return Err(ToolError::new("The skill cannot be read"));
            }
        }
        tracing::error!(path, "a skill's file changes while it is read");
        Err(ToolError::new("The skill cannot be read"))
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::InternalError, "looking skills through panicked").blaming(Blame::Local)
}

/// The bytes of a file, if they are those that were said.
async fn held(file: &Held) -> Option<Vec<u8>> {
    match &file.bytes {
        Bytes::Memory(bytes) => Some(bytes.to_vec()),
        #[cfg(feature = "directory")]
        Bytes::Directory(directory, path) => {
            let (directory, path, resource) = (directory.clone(), path.clone(), file.resource.clone());
            let read = spawn_blocking(move || {
                let bytes = directory.read(&path, resource.size).ok()?;
                (bytes.len() as u64 == resource.size && crate::Digest::of(&bytes) == resource.digest).then_some(bytes)
            });
            read.await.ok().flatten()
        }
    }
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
        let files = {
            let skills = self.clone();
            move |context, variables: Variables| {
                let (skills, path) = (skills.clone(), variables.get("path").unwrap_or_default().to_owned());
                async move {
                    let contents = skills.read(context, &path).await?;
                    Ok::<_, ToolError>(contents)
                }
            }
        };
        let template = ResourceTemplate::new("skill://{+path}", "skill-file", files)
            .describe("A file of a skill")
            .cache(self.0.cache);
        let settings = Raw::assume_valid(r#"{"directoryRead":true}"#.into());
        let listed = self.entries();
        let builder = listed.iter().fold(builder, |builder, entry| builder.resource(self.skill_md(entry)));
        let (list, get, read) = (self.clone(), self.clone(), self);
        builder
            .extension(SKILLS, settings)
            .template(template)
            .method::<ListSkills, _>(move |context, params| {
                let skills = list.clone();
                async move { methods::list(&skills.0, &context, params) }
            })
            .method::<GetSkill, _>(move |context, params| {
                let skills = get.clone();
                async move { methods::get(&skills.0, &context, params) }
            })
            .method::<ReadDirectory, _>(move |context, params| {
                let skills = read.clone();
                async move { methods::read_directory(&skills.0, context, params).await }
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
