#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod client;
mod digest;
mod error;
mod frontmatter;
mod server;
mod types;
mod uri;

pub use client::{LoadedSkill, SkillsClient};
pub use digest::Digest;
pub use error::{Mismatch, SkillError};
pub use frontmatter::{FRONTMATTER_BYTES, Frontmatter};
pub use server::{DynamicSkill, SkillFiles, Skills, SkillsBuilder};
pub use types::{
    DIRECTORY, GetSkill, GetSkillParams, GetSkillResult, ListSkills, ListSkillsResult, ReadDirectory,
    ReadDirectoryParams, ReadDirectoryResult, SKILL_BYTES, SKILL_FILES, SKILLS, Skill, SkillResource, SkillResources,
};
