use std::collections::HashSet;

use mcp_core::{
    Era,
    jsonrpc::Raw,
    method::Method,
    types::{CacheHint, CacheScope, PaginatedParams},
};
use serde::{Deserialize, Serialize, de::Error as _};

use crate::{
    Digest, Frontmatter,
    uri::{name_of, root_of, within},
};

/// The extension that skills are.
///
/// Specification: *Skills extension, Extension Identifier*.
pub const EXTENSION_ID: &str = "io.modelcontextprotocol/skills";

/// How many files every host takes of one skill.
///
/// Specification: *Skills extension, Limits*.
pub const MAX_RESOURCES: usize = 512;

/// How many bytes every host takes of one skill, in all of its files.
///
/// Specification: *Skills extension, Limits*.
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// What a server says of a skill: all that a host needs to show it, to have it approved, and to verify what it reads.
///
/// Specification: *Skills extension, Skill Entries*.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Skill {
    /// The URI of its `SKILL.md`, which names it among all skills of its server.
    pub uri: String,
    /// What its `SKILL.md` says of it.
    pub frontmatter: Frontmatter,
    /// Its files.
    pub resources: SkillResources,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The files of a skill: a list on the wire, or the word `dynamic`.
///
/// Specification: *Skills extension, Resources*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SkillResources {
    /// All of them, `SKILL.md` among them.
    Listed(Vec<SkillResource>),
    /// They are made when they are read, and nothing can be said of them before.
    Dynamic,
}

/// A file of a skill.
///
/// Specification: *Skills extension, Skill Entries*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkillResource {
    /// What it is read by.
    pub uri: String,
    /// What its bytes hash to.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: u64,
}

impl Skill {
    /// What is to be said of a skill. [`check`](Self::check) tells whether it may.
    pub fn new(uri: impl Into<String>, frontmatter: Frontmatter, resources: SkillResources) -> Self {
        Self { uri: uri.into(), frontmatter, resources, meta: None }
    }

    /// Its name, which is a label: two skills may have the same.
    #[must_use]
    pub fn name(&self) -> &str {
        self.frontmatter.name()
    }

    /// What it is for, and when to use it.
    #[must_use]
    pub fn description(&self) -> &str {
        self.frontmatter.description()
    }

    /// The URI of its directory.
    #[must_use]
    pub fn root(&self) -> &str {
        root_of(&self.uri).unwrap_or_default()
    }

    /// Its files; none is known of a dynamic one.
    #[must_use]
    pub fn files(&self) -> &[SkillResource] {
        match &self.resources {
            SkillResources::Listed(files) => files,
            SkillResources::Dynamic => &[],
        }
    }

    /// What an approval by the user has to be bound to: a digest of all URIs and digests of its files, whatever their order.
    /// A skill that has another one is to be approved anew. A dynamic skill has none: an approval of it covers nothing that
    /// lasts.
    ///
    /// Specification: *Skills extension, Security Considerations* (content-bound approval).
    #[must_use]
    pub fn fingerprint(&self) -> Option<Digest> {
        let SkillResources::Listed(files) = &self.resources else { return None };
        let mut lines: Vec<_> = files.iter().map(|file| (&file.uri, file.digest)).collect();
        lines.sort_unstable();
        let text = serde_json::to_vec(&(&self.uri, lines)).unwrap_or_default();
        Some(Digest::of(&text))
    }

    /// Whether it keeps the extension's rules; they do not bound its [size](Self::check_size).
    ///
    /// # Errors
    /// In words, what of it does not.
    pub fn check(&self) -> Result<(), String> {
        let root = root_of(&self.uri).ok_or("its URI does not end in `/SKILL.md`")?;
        self.frontmatter.check()?;
        if name_of(root) != self.name() {
            return Err(format!("its directory is not named `{}`, as its frontmatter is", self.name()));
        }
        let SkillResources::Listed(files) = &self.resources else { return Ok(()) };
        let mut seen = HashSet::with_capacity(files.len());
        for file in files {
            let path = within(root, &file.uri).ok_or("one of its files lies outside of its directory")?;
            if !seen.insert(path) {
                return Err("one of its files is listed twice".into());
            }
        }
        let has_itself = files.iter().any(|file| file.uri == self.uri);
        if has_itself { Ok(()) } else { Err("its `SKILL.md` is not among its files".into()) }
    }

    /// Whether every host takes that much.
    ///
    /// # Errors
    /// In words, what is more than [`MAX_RESOURCES`] or [`MAX_BYTES`].
    ///
    /// Specification: *Skills extension, Limits*.
    pub fn check_size(&self) -> Result<(), String> {
        let files = self.files();
        let bytes = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.size));
        if files.len() > MAX_RESOURCES {
            return Err(format!("it has {} files; hosts take {MAX_RESOURCES}", files.len()));
        }
        if bytes > MAX_BYTES {
            return Err(format!("it has {bytes} bytes; hosts take {MAX_BYTES}"));
        }
        Ok(())
    }
}

impl SkillResource {
    /// A file of those bytes.
    pub fn new(uri: impl Into<String>, bytes: &[u8]) -> Self {
        Self { uri: uri.into(), digest: Digest::of(bytes), size: bytes.len() as u64 }
    }
}

impl Serialize for SkillResources {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Listed(files) => files.serialize(serializer),
            Self::Dynamic => serializer.serialize_str("dynamic"),
        }
    }
}

impl<'de> Deserialize<'de> for SkillResources {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        if raw.to_string_value().is_ok_and(|word| word == "dynamic") {
            return Ok(Self::Dynamic);
        }
        raw.decode().map(Self::Listed).map_err(D::Error::custom)
    }
}

/// Lists the skills of a server.
///
/// Specification: *Skills extension, Listing Skills*.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ListSkills;

/// Gets what a server says of one skill.
///
/// Specification: *Skills extension, Getting a Skill*.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GetSkill;

/// Lists what is in a directory.
///
/// Specification: *Skills extension, Reading Directories*.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ReadResourceDirectory;

/// The extension is written for the modern era; what it needs is there in the other one too.
const ERAS: &[Era] = &[Era::Legacy, Era::Modern];

impl Method for ListSkills {
    const NAME: &'static str = "skills/list";
    const ERAS: &'static [Era] = ERAS;
    type Params = PaginatedParams;
    type Result = ListSkillsResult;
}

impl Method for GetSkill {
    const NAME: &'static str = "skills/get";
    const ERAS: &'static [Era] = ERAS;
    type Params = GetSkillParams;
    type Result = GetSkillResult;
}

impl Method for ReadResourceDirectory {
    const NAME: &'static str = "resources/directory/read";
    const ERAS: &'static [Era] = ERAS;
    type Params = ReadResourceDirectoryParams;
    type Result = ReadResourceDirectoryResult;
}

/// A page of a server's skills.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListSkillsResult {
    /// The entries, each a [`Skill`] if it keeps the rules.
    pub skills: Vec<Raw>,
    /// What the next page is asked for with, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// For how many milliseconds it is fresh, as servers of the modern era say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Whom it may be shown to, as they say too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

/// Which skill is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GetSkillParams {
    /// The URI of its `SKILL.md`.
    pub uri: String,
}

/// One skill.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetSkillResult {
    /// The entry, a [`Skill`] if it keeps the rules.
    pub skill: Raw,
    /// For how many milliseconds it is fresh, as servers of the modern era say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Whom it may be shown to, as they say too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

/// Which directory is asked for, and from where on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceDirectoryParams {
    /// The directory's URI, without a slash at its end.
    pub uri: String,
    /// Where the page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A page of a directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceDirectoryResult {
    /// What is in it, each a [`ResourceDefinition`](mcp_core::types::ResourceDefinition): files, and directories of the media type [`DIRECTORY_MIME_TYPE`].
    pub resources: Vec<Raw>,
    /// What the next page is asked for with, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl ListSkillsResult {
    /// A page, and where the next one begins.
    #[must_use]
    pub fn new(skills: Vec<Raw>, next_cursor: Option<String>) -> Self {
        Self { skills, next_cursor, ttl_ms: None, cache_scope: None }
    }

    /// The same with the hint that the modern era wants.
    #[must_use]
    pub fn cached(mut self, hint: CacheHint) -> Self {
        (self.ttl_ms, self.cache_scope) = (Some(hint.ttl_ms()), Some(hint.scope));
        self
    }
}

impl GetSkillParams {
    /// The skill of that URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

impl GetSkillResult {
    /// That skill.
    #[must_use]
    pub fn new(skill: Raw) -> Self {
        Self { skill, ttl_ms: None, cache_scope: None }
    }

    /// The same with the hint that the modern era wants.
    #[must_use]
    pub fn cached(mut self, hint: CacheHint) -> Self {
        (self.ttl_ms, self.cache_scope) = (Some(hint.ttl_ms()), Some(hint.scope));
        self
    }
}

impl ReadResourceDirectoryParams {
    /// The directory of that URI, from its beginning.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), cursor: None }
    }
}

impl ReadResourceDirectoryResult {
    /// A page, and where the next one begins.
    #[must_use]
    pub fn new(resources: Vec<Raw>, next_cursor: Option<String>) -> Self {
        Self { resources, next_cursor }
    }
}

/// The media type of a directory.
///
/// Specification: *Skills extension, Directory Resources*.
pub const DIRECTORY_MIME_TYPE: &str = "inode/directory";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn digest() -> String {
        Digest::of(b"").to_string()
    }

    fn entry() -> Value {
        json!({
            "uri": "skill://acme/refunds/SKILL.md",
            "frontmatter": { "name": "refunds", "description": "Refund" },
            "resources": [
                { "uri": "skill://acme/refunds/SKILL.md", "digest": digest(), "size": 0 },
                { "uri": "skill://acme/refunds/a/b.md", "digest": digest(), "size": 7 },
            ],
        })
    }

    fn read(entry: &Value) -> Result<Skill, String> {
        let skill: Skill = serde_json::from_str(&entry.to_string()).map_err(|error| error.to_string())?;
        skill.check().map(|()| skill)
    }

    #[test]
    fn entries_read_back() {
        let skill = read(&entry()).unwrap();
        assert_eq!((skill.root(), skill.name(), skill.files().len()), ("skill://acme/refunds", "refunds", 2));
        assert_eq!(serde_json::to_value(&skill).unwrap(), entry());
        let mut dynamic = entry();
        dynamic["resources"] = json!("dynamic");
        assert_eq!(read(&dynamic).unwrap().resources, SkillResources::Dynamic);
        assert_eq!(serde_json::to_value(read(&dynamic).unwrap()).unwrap(), dynamic);
        assert_eq!(read(&dynamic).unwrap().fingerprint(), None);
    }

    #[test]
    fn entries_that_break_a_rule_are_refused() {
        let file = |uri: &str| json!({ "uri": uri, "digest": digest(), "size": 0 });
        let (md, inside) = (file("skill://acme/refunds/SKILL.md"), file("skill://acme/refunds/x"));
        let breaks: [(&str, Value); 17] = [
            ("/uri", json!("skill://acme/refunds/README.md")),
            ("/uri", json!("skill://acme/other/SKILL.md")),
            ("/uri", json!(7)),
            ("/frontmatter/name", json!("Refunds")),
            ("/frontmatter/name", Value::Null),
            ("/frontmatter/description", json!("")),
            ("/frontmatter", json!([])),
            ("/resources", json!([])),
            ("/resources", json!([inside])),
            ("/resources", json!([md, inside, inside])),
            ("/resources", json!([md, inside, file("skill://acme/refunds/%78")])),
            ("/resources", json!([md, file("skill://acme/other/x")])),
            ("/resources", json!([md, file("skill://acme/refunds/../x")])),
            ("/resources", json!("static")),
            ("/resources", Value::Null),
            ("/resources/0/digest", json!("sha256:00")),
            ("/resources/0/size", json!(-1)),
        ];
        for (place, value) in breaks {
            let mut entry = entry();
            *entry.pointer_mut(place).unwrap() = value.clone();
            assert!(read(&entry).is_err(), "{place}: {value}");
        }
        let mut without = entry();
        without.as_object_mut().unwrap().remove("resources");
        assert!(read(&without).is_err());
    }

    #[test]
    fn an_approval_ends_with_any_change_of_a_file() {
        let skill = read(&entry()).unwrap();
        let changed = |change: fn(&mut Vec<SkillResource>)| {
            let mut skill = skill.clone();
            if let SkillResources::Listed(files) = &mut skill.resources {
                change(files);
            }
            skill.fingerprint()
        };
        assert_eq!(changed(|files| files.reverse()), skill.fingerprint());
        assert_ne!(changed(|files| files.truncate(1)), skill.fingerprint());
        assert_ne!(changed(|files| files[1].digest = Digest::of(b"x")), skill.fingerprint());
        assert_ne!(changed(|files| files[1].uri.push('x')), skill.fingerprint());
    }

    #[test]
    fn limits_at_their_edges() {
        let with = |count: usize, bytes: u64| {
            let mut skill = read(&entry()).unwrap();
            let file = skill.files()[0].clone();
            let mut files = vec![file; count];
            files[0].size = bytes;
            skill.resources = SkillResources::Listed(files);
            skill.check_size()
        };
        assert_eq!(with(MAX_RESOURCES, MAX_BYTES), Ok(()));
        assert!(with(MAX_RESOURCES + 1, 0).is_err());
        assert!(with(1, MAX_BYTES + 1).is_err());
        assert!(with(1, u64::MAX).is_err());
    }
}
