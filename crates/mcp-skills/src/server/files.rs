use std::sync::Arc;

use mcp_core::Error;

use super::{catalogue::Gathered, invalid};
use crate::{
    Frontmatter,
    uri::{SKILL_MD, is_path},
};

/// A skill whose files are in memory.
///
/// ```
/// use mcp_skills::SkillFiles;
///
/// let skill = SkillFiles::new("---\nname: refunds\ndescription: Process refunds\n---\nAs in references/policy.md.")
///     .under("acme/billing") // skill://acme/billing/refunds/SKILL.md
///     .file("references/policy.md", "At most 30 days.");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it is served once it is added"]
pub struct SkillFiles {
    under: String,
    skill_md: String,
    files: Vec<(String, Arc<[u8]>)>,
}

impl SkillFiles {
    /// A skill of that `SKILL.md`, whose frontmatter names it.
    pub fn new(skill_md: impl Into<String>) -> Self {
        Self { under: String::new(), skill_md: skill_md.into(), files: Vec::new() }
    }

    /// Sets the directories that it lies in, as `acme/billing`. Default: none.
    pub fn under(mut self, directories: impl Into<String>) -> Self {
        self.under = directories.into();
        self
    }

    /// Adds a file, at its path below the skill's directory.
    pub fn file(mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), bytes.into().into()));
        self
    }

    pub(super) fn gather(&self, gathered: &mut Gathered) -> Result<(), Error> {
        let frontmatter = Frontmatter::parse(&self.skill_md).map_err(|why| invalid(SKILL_MD, why))?;
        let root = root(&self.under, &frontmatter)?;
        gathered.file(format!("{root}/{SKILL_MD}"), self.skill_md.as_bytes().into())?;
        self.files.iter().try_for_each(|(path, bytes)| gathered.file(format!("{root}/{path}"), bytes.clone()))
    }
}

/// The path of a skill's directory.
pub(super) fn root(under: &str, frontmatter: &Frontmatter) -> Result<String, Error> {
    let root = if under.is_empty() { frontmatter.name().to_owned() } else { format!("{under}/{}", frontmatter.name()) };
    if is_path(&root) { Ok(root) } else { Err(invalid(under, "that is no path of directories")) }
}
