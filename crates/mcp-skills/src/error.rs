use thiserror::Error;

/// Why a skill cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SkillError {
    /// A request about it failed.
    #[error(transparent)]
    Call(#[from] mcp_core::Error),
    /// Its entry does not keep the extension's rules.
    #[error("the entry of the skill `{uri}` is no good: {why}")]
    Invalid {
        /// The skill.
        uri: String,
        /// In words.
        why: String,
    },
    /// It is more than hosts have to take.
    #[error("the skill `{uri}` is too large: {why}")]
    TooLarge {
        /// The skill, or the file that was too much.
        uri: String,
        /// In words.
        why: String,
    },
    /// What was read is not what the entry says, and was thrown away.
    #[error("`{uri}` is not what the skill's entry says: its {what}")]
    Mismatch {
        /// The file.
        uri: String,
        /// What of it.
        what: Mismatch,
    },
    /// It is no file of the skill, as its entry has them.
    #[error("`{uri}` is no file of the skill")]
    Unlisted {
        /// What was asked for.
        uri: String,
    },
}

/// What of a file is not as the entry says.
///
/// Specification: *Skills extension, Integrity and Verification*.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Its number of bytes.
    #[error("size differs")]
    Size,
    /// What they hash to.
    #[error("digest differs")]
    Digest,
    /// A field of its frontmatter.
    #[error("frontmatter differs in `{0}`")]
    Frontmatter(String),
    /// It is not there, or not what can be compared; in words.
    #[error("content is no good: {0}")]
    Content(String),
}
