//! Skills of a server, as a client loads them.

mod loaded;

use std::collections::HashSet;

use mcp_core::{
    Blame, Client, Error, ErrorKind,
    client::CallOptions,
    jsonrpc::Raw,
    types::{PaginatedParams, ResourceBody, ResourceDefinition},
};

pub use self::loaded::LoadedSkill;
use crate::{
    EXTENSION_ID, GetSkill, GetSkillParams, ListSkills, ListSkillsResult, Mismatch, ReadResourceDirectory,
    ReadResourceDirectoryParams, Skill, SkillError,
};

/// The skills of the server that a client is connected to. Cloning is cheap.
///
/// Nothing of a skill is read before it is [loaded](Self::load), and nothing that was read is returned before it was verified.
/// What is left to the host: to ask its user, to bind an approval to [`Skill::fingerprint`], to tell the model where a skill
/// comes from, and to give its content no more trust than any text of that server.
///
/// ```
/// use mcp_skills::SkillsClient;
///
/// # async fn example(client: mcp_core::Client) -> Result<(), mcp_skills::SkillError> {
/// let skills = SkillsClient::of(&client)?;
/// for skill in skills.list().await? {
///     println!("{}: {}", skill.name(), skill.description());
/// }
/// let skill = skills.get("skill://git-workflow/SKILL.md").await?;
/// let loaded = skills.load(skill).await?;
/// println!("{}", loaded.instructions());
/// let policy = loaded.read("references/policy.md").await?;
/// # drop(policy); Ok(()) }
/// ```
///
/// Specification: *Skills extension*.
#[derive(Debug, Clone)]
pub struct SkillsClient {
    client: Client,
}

impl SkillsClient {
    /// The skills of the server that `client` is connected to.
    ///
    /// # Errors
    /// [`SkillError::Call`] with [`ErrorKind::MethodNotFound`] where it does not say that it serves any.
    pub fn of(client: &Client) -> Result<Self, SkillError> {
        client.require_server_extension(EXTENSION_ID)?;
        Ok(Self { client: client.clone() })
    }

    /// Whether the server lists directories.
    ///
    /// Specification: *Skills extension, Capability Negotiation*.
    #[must_use]
    pub fn lists_directories(&self) -> bool {
        let settings = self.client.server_extension(EXTENSION_ID);
        settings.and_then(|settings| settings.member("directoryRead")).is_some_and(|flag| flag.as_str() == "true")
    }

    /// All skills that the server lists, which need not be all that it has. An entry that does not keep the rules is left out,
    /// with a warning in the log.
    ///
    /// # Errors
    /// When the server fails, or its pages do not come to an end: they do at the latest after
    /// [`Limits::max_pages`](mcp_core::Limits) of them, or [`Limits::list_bytes`](mcp_core::Limits). A longer list is read
    /// [page by page](Self::page).
    pub async fn list(&self) -> Result<Vec<Skill>, SkillError> {
        let (mut skills, mut pages) = (Vec::new(), Pages::of(&self.client));
        while let Some(cursor) = pages.next.take() {
            let page = self.listed(cursor).await?;
            pages.turn(&page.skills, page.next_cursor)?;
            skills.extend(page.skills.iter().filter_map(read));
        }
        Ok(skills)
    }

    /// One page of the list: the first, or the one that a cursor names.
    ///
    /// # Errors
    /// When the server fails.
    pub async fn page(&self, cursor: Option<&str>) -> Result<SkillsPage, SkillError> {
        let page = self.listed(cursor.map(str::to_owned)).await?;
        Ok(SkillsPage { skills: page.skills.iter().filter_map(read).collect(), next_cursor: page.next_cursor })
    }

    async fn listed(&self, cursor: Option<String>) -> Result<ListSkillsResult, Error> {
        let mut params = PaginatedParams::default();
        params.cursor = cursor.map(Into::into);
        self.client.request::<ListSkills>(&params).await
    }

    /// One skill, listed or not: what names it is the URI of its `SKILL.md`.
    ///
    /// # Errors
    /// [`SkillError::Call`] with [`ErrorKind::InvalidParams`] where the server does not serve a skill there;
    /// [`SkillError::Invalid`] where its entry does not keep the rules.
    pub async fn get(&self, uri: &str) -> Result<Skill, SkillError> {
        let entry = self.client.request::<GetSkill>(&GetSkillParams::new(uri)).await?.skill;
        let is_it = |skill: &Skill| if skill.uri == uri { Ok(()) } else { Err("it is another one".to_owned()) };
        let skill = checked(&entry).and_then(|skill| is_it(&skill).map(|()| skill));
        skill.map_err(|why| SkillError::Invalid { uri: uri.to_owned(), why })
    }

    /// Reads a skill's `SKILL.md`, and verifies it against the entry: its size, its digest, its frontmatter. From here on the
    /// host acts on the skill. Whether it may is for the host to have asked.
    ///
    /// # Errors
    /// [`SkillError::Mismatch`] where it is not what the entry says, as after a change on the server: then a fresh entry, and
    /// a fresh approval, are needed. [`SkillError::TooLarge`] where the skill is more than hosts have to take; nothing of it is
    /// read then.
    pub async fn load(&self, skill: Skill) -> Result<LoadedSkill, SkillError> {
        LoadedSkill::load(self.clone(), skill).await
    }

    /// What is directly in a directory, as it is now on the server. It adds nothing to what may be read of a skill that was
    /// loaded.
    ///
    /// # Errors
    /// [`SkillError::Call`] with [`ErrorKind::MethodNotFound`] where the server does not list directories, and with
    /// [`ErrorKind::InvalidParams`] where that is none.
    pub async fn directory(&self, uri: &str) -> Result<Vec<ResourceDefinition>, SkillError> {
        if !self.lists_directories() {
            let message = "the server does not list directories";
            return Err(Error::new(ErrorKind::MethodNotFound, message).into());
        }
        let (mut children, mut pages) = (Vec::new(), Pages::of(&self.client));
        while let Some(cursor) = pages.next.take() {
            let mut params = ReadResourceDirectoryParams::new(uri);
            params.cursor = cursor;
            let page = self.client.request::<ReadResourceDirectory>(&params).await?;
            pages.turn(&page.resources, page.next_cursor)?;
            let known = page.resources.iter().map(Raw::decode::<ResourceDefinition>);
            children.extend(known.filter_map(|child| {
                child
                    .map_err(|error| tracing::warn!(%error, "what is in a directory cannot be read; it is left out"))
                    .ok()
            }));
        }
        Ok(children)
    }

    /// The bytes of a resource.
    async fn bytes(&self, uri: &str) -> Result<Vec<u8>, SkillError> {
        // An answer that a client has kept may be older than the entry.
        let result = self.client.read_resource_with(uri, CallOptions::new().fresh()).await?;
        let mut own = result.contents.into_iter().filter(|contents| contents.uri == uri);
        match own.next().map(|contents| contents.body) {
            Some(ResourceBody::Text(text)) => Ok(text.into_bytes()),
            Some(ResourceBody::Blob(bytes)) => Ok(bytes),
            _ => {
                let what = Mismatch::Content("the answer is about something else".into());
                Err(SkillError::Mismatch { uri: uri.to_owned(), what })
            }
        }
    }

    /// Whether a message may be as long as a file of that many bytes makes it; it may come in Base64.
    fn has_room_for(&self, bytes: u64) -> Result<(), String> {
        let most = self.client.limits().message_bytes as u64;
        if bytes <= most { Ok(()) } else { Err(format!("it has {bytes} bytes, and `Limits::message_bytes` is {most}")) }
    }
}

/// A part of the list of a server's skills.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SkillsPage {
    /// What is in it. An entry that does not keep the rules is left out, with a warning in the log.
    pub skills: Vec<Skill>,
    /// What the next page is asked for with, if there is one.
    pub next_cursor: Option<String>,
}

/// An entry that keeps the rules, or why it does not.
fn checked(entry: &Raw) -> Result<Skill, String> {
    let skill = entry.decode::<Skill>().map_err(|error| error.to_string())?;
    skill.check().map(|()| skill)
}

fn read(entry: &Raw) -> Option<Skill> {
    checked(entry).map_err(|why| tracing::warn!(%why, "a skill's entry is no good; it is left out")).ok()
}

/// The way through pages, which comes to an end.
struct Pages<'a> {
    client: &'a Client,
    /// What the next one is asked for with.
    next: Option<Option<String>>,
    seen: HashSet<String>,
    bytes: usize,
}

impl<'a> Pages<'a> {
    fn of(client: &'a Client) -> Self {
        Self { client, next: Some(None), seen: HashSet::new(), bytes: 0 }
    }

    /// A page with that in it was read.
    fn turn(&mut self, entries: &[Raw], cursor: Option<String>) -> Result<(), Error> {
        let limits = self.client.limits();
        self.bytes += entries.iter().map(|entry| entry.as_bytes().len()).sum::<usize>();
        self.bytes += cursor.as_ref().map_or(0, String::len);
        let is_new = cursor.as_ref().is_none_or(|cursor| self.seen.insert(cursor.clone()));
        if !is_new || self.seen.len() >= limits.max_pages || self.bytes > limits.list_bytes {
            let message = "the server's pages repeat or do not end";
            return Err(Error::new(ErrorKind::ProtocolInvalid, message).blaming(Blame::Peer));
        }
        self.next = cursor.map(Some);
        Ok(())
    }
}
