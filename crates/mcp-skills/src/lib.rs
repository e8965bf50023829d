#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod client;
mod digest;
mod error;
mod frontmatter;
mod server;
mod types;
mod uri;

pub use client::{LoadedSkill, SkillsClient, SkillsPage};
pub use digest::Digest;
pub use error::{Mismatch, SkillError};
pub use frontmatter::{Frontmatter, MAX_FRONTMATTER_BYTES};
pub use server::{DynamicSkill, SkillFiles, Skills, SkillsBuilder};
pub use types::{
    DIRECTORY_MIME_TYPE, EXTENSION_ID, GetSkill, GetSkillParams, GetSkillResult, ListSkills, ListSkillsResult,
    MAX_BYTES, MAX_RESOURCES, ReadResourceDirectory, ReadResourceDirectoryParams, ReadResourceDirectoryResult, Skill,
    SkillResource, SkillResources,
};
