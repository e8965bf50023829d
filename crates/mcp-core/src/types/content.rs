use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_jsonrpc::{ByteString, Raw};
use serde::{Deserialize, Serialize, de::Error as _};

use super::{ResourceContents, ResourceDefinition};
use crate::Revision;

/// One block of a result's content, or of a prompt's message.
///
/// Specification: *Tools, Tool Result*; *Prompts, Content*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// Sound; from 2025-03-26 on.
    Audio(MediaContent),
    /// A resource that can be read; from 2025-06-18 on.
    ResourceLink(ResourceLink),
    /// A resource that is here.
    Resource(EmbeddedResource),
    /// A tool that a model wants called. In sampling alone, from 2025-11-25 on.
    ToolUse(ToolUse),
    /// What came of it. In sampling alone, from 2025-11-25 on.
    ToolResult(ToolOutcome),
    /// Any other block, one that this version does not know among them, as the JSON object it is.
    Other(Raw),
}

/// A block of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints on audience and priority, as they stand on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A picture or a sound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MediaContent {
    /// The bytes in Base64.
    pub data: String,
    /// Their media type.
    pub mime_type: String,
    /// Hints on audience and priority, as they stand on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A resource that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct ResourceLink {
    /// What it is.
    pub resource: ResourceDefinition,
}

/// A resource that is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbeddedResource {
    /// What it holds.
    pub resource: ResourceContents,
    /// Hints on audience and priority, as they stand on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A tool that a model wants called.
///
/// Specification: *Sampling, Sampling with Tools*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// What names this call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments, an object.
    pub input: Raw,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// What came of a tool that a model wanted called.
///
/// Specification: *Sampling, Sampling with Tools*.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutcome {
    /// Which call it is about.
    pub tool_use_id: String,
    /// The result, for a model.
    #[serde(default, deserialize_with = "super::lenient::null_is_default")]
    pub content: Vec<Content>,
    /// The result, for a program.
    #[serde(default)]
    pub structured_content: Option<Raw>,
    /// Whether the tool failed.
    #[serde(default, deserialize_with = "super::lenient::null_is_default")]
    pub is_error: bool,
    /// Metadata.
    #[serde(rename = "_meta", default)]
    pub meta: Option<Raw>,
}

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), annotations: None, meta: None })
    }

    /// A picture of that media type.
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(MediaContent::new(bytes.as_ref(), mime_type.into()))
    }

    /// A sound of that media type. Before 2025-03-26 a text says that there is one.
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(MediaContent::new(bytes.as_ref(), mime_type.into()))
    }

    /// A resource that can be read. Before 2025-06-18 it is a text with its URI.
    pub fn link(resource: impl Into<ResourceDefinition>) -> Self {
        Self::ResourceLink(ResourceLink { resource: resource.into() })
    }

    /// A resource that is here.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource { resource: contents, annotations: None, meta: None })
    }

    /// A tool that a model wants called; `id` names the call, `input` is an object.
    pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: Raw) -> Self {
        Self::ToolUse(ToolUse { id: id.into(), name: name.into(), input, meta: None })
    }

    /// What came of the call of that id.
    pub fn tool_result(id: impl Into<String>, content: impl IntoIterator<Item = Self>) -> Self {
        Self::ToolResult(ToolOutcome {
            tool_use_id: id.into(),
            content: content.into_iter().collect(),
            structured_content: None,
            is_error: false,
            meta: None,
        })
    }

    /// The same block with hints on audience and priority: [`Annotations`](crate::types::Annotations), or an object as it
    /// stands on the wire.
    #[must_use]
    pub fn annotate(mut self, hints: impl Into<Raw>) -> Self {
        let hints = hints.into();
        match &mut self {
            Self::Text(text) => text.annotations = Some(hints),
            Self::Image(media) | Self::Audio(media) => media.annotations = Some(hints),
            Self::ResourceLink(link) => link.resource.annotations = Some(hints),
            Self::Resource(embedded) => embedded.annotations = Some(hints),
            Self::ToolUse(_) | Self::ToolResult(_) | Self::Other(_) => {}
        }
        self
    }

    /// The text, if it is a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            _ => None,
        }
    }

    /// The block's `type`.
    #[must_use]
    pub fn kind(&self) -> ByteString {
        ByteString::from_static(match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::ResourceLink(_) => "resource_link",
            Self::Resource(_) => "resource",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Other(raw) => return kind_of(raw).unwrap_or_default(),
        })
    }

    /// About how many bytes it takes on the wire.
    pub(crate) fn size(&self) -> usize {
        let rest = match self {
            Self::Text(content) => content.text.len() + content.text.len() / 16,
            Self::Image(media) | Self::Audio(media) => media.data.len() + media.mime_type.len(),
            Self::Resource(embedded) => embedded.resource.size(),
            Self::ResourceLink(_) => 256,
            Self::ToolUse(call) => 64 + call.input.as_bytes().len(),
            Self::ToolResult(outcome) => outcome.content.iter().map(Self::size).sum(),
            Self::Other(raw) => raw.as_bytes().len(),
        };
        32 + rest
    }

    /// What stands for it in a revision that has no such block.
    fn fallback(&self, revision: Revision) -> Option<String> {
        match self {
            Self::Audio(media) if revision < Revision::V2025_03_26 => Some(format!("[audio, {}]", media.mime_type)),
            Self::ResourceLink(ResourceLink { resource }) if revision < Revision::V2025_06_18 => {
                Some(format!("{}: {}", resource.name, resource.uri))
            }
            _ => None,
        }
    }
}

impl MediaContent {
    fn new(bytes: &[u8], mime_type: String) -> Self {
        Self { data: STANDARD.encode(bytes), mime_type, annotations: None, meta: None }
    }

    /// The bytes.
    ///
    /// # Errors
    /// When they are no Base64.
    pub fn decode(&self) -> Result<Vec<u8>, crate::Error> {
        super::lenient::base64(&self.data).map_err(|error| {
            crate::Error::caused(crate::ErrorKind::ProtocolInvalid, "the block's data are no Base64", error)
        })
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

fn kind_of(raw: &Raw) -> Option<ByteString> {
    raw.member("type")?.to_string_value().ok()
}

/// How a block is written in a revision. `Content` itself does not serialize, so that a handler which returns one gives a
/// block, and not the block's JSON as text.
pub(crate) struct Written<'a>(pub(crate) &'a Content, pub(crate) Revision);

#[derive(Serialize)]
struct Plain<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// A block with what `revision` has of it.
fn told_in(block: &Content, revision: Revision) -> Cow<'_, Content> {
    let before_meta = revision < Revision::V2025_06_18;
    let has_more = match block {
        Content::Text(text) => before_meta && text.meta.is_some(),
        Content::Image(media) | Content::Audio(media) => before_meta && media.meta.is_some(),
        Content::Resource(embedded) => before_meta && (embedded.meta.is_some() || embedded.resource.meta.is_some()),
        Content::ResourceLink(link) => revision < Revision::V2025_11_25 && link.resource.icons.is_some(),
        Content::ToolUse(_) | Content::ToolResult(_) | Content::Other(_) => false,
    };
    if !has_more {
        return Cow::Borrowed(block);
    }
    let mut block = block.clone();
    match &mut block {
        Content::Text(text) if before_meta => text.meta = None,
        Content::Image(media) | Content::Audio(media) if before_meta => media.meta = None,
        Content::Resource(embedded) if before_meta => (embedded.meta, embedded.resource.meta) = (None, None),
        Content::ResourceLink(link) => link.resource.icons = None,
        _ => {}
    }
    Cow::Owned(block)
}

impl Serialize for Written<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fn tagged<S: serde::Serializer>(kind: &'static str, block: &impl Serialize, to: S) -> Result<S::Ok, S::Error> {
            #[derive(Serialize)]
            struct Tagged<'a, T> {
                r#type: &'static str,
                #[serde(flatten)]
                block: &'a T,
            }
            Tagged { r#type: kind, block }.serialize(to)
        }
        if let Some(text) = self.0.fallback(self.1) {
            return Plain { r#type: "text", text: &text }.serialize(serializer);
        }
        let block = told_in(self.0, self.1);
        match &*block {
            // Nearly every block is this one, and `flatten` goes through a map.
            Content::Text(TextContent { text, annotations: None, meta: None }) => {
                Plain { r#type: "text", text }.serialize(serializer)
            }
            Content::Text(text) => tagged("text", text, serializer),
            Content::Image(media) => tagged("image", media, serializer),
            Content::Audio(media) => tagged("audio", media, serializer),
            Content::ResourceLink(link) => tagged("resource_link", link, serializer),
            Content::Resource(embedded) => tagged("resource", embedded, serializer),
            Content::ToolUse(call) => tagged("tool_use", call, serializer),
            Content::ToolResult(outcome) => WrittenOutcome(outcome, self.1).serialize(serializer),
            Content::Other(raw) => raw.serialize(serializer),
        }
    }
}

/// How the outcome of a tool is written in a revision.
struct WrittenOutcome<'a>(&'a ToolOutcome, Revision);

impl Serialize for WrittenOutcome<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            r#type: &'static str,
            tool_use_id: &'a str,
            content: Vec<Written<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            structured_content: Option<&'a Raw>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            is_error: bool,
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<&'a Raw>,
        }
        let Self(outcome, revision) = self;
        Wire {
            r#type: "tool_result",
            tool_use_id: &outcome.tool_use_id,
            content: outcome.content.iter().map(|block| Written(block, *revision)).collect(),
            structured_content: outcome.structured_content.as_ref(),
            is_error: outcome.is_error,
            meta: outcome.meta.as_ref(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    /// A block that this version knows, but that does not have its shape, is kept as it is; only text has to be text.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let known = match kind_of(&raw).as_deref() {
            Some("text") => return raw.decode().map(Self::Text).map_err(D::Error::custom),
            Some("image") => raw.decode().map(Self::Image),
            Some("audio") => raw.decode().map(Self::Audio),
            Some("resource_link") => raw.decode().map(Self::ResourceLink),
            Some("resource") => raw.decode().map(Self::Resource),
            Some("tool_use") => raw.decode().map(Self::ToolUse),
            Some("tool_result") => raw.decode().map(Self::ToolResult),
            Some(_) => return Ok(Self::Other(raw)),
            None => return Err(D::Error::custom("a content block without a `type`")),
        };
        Ok(known.unwrap_or(Self::Other(raw)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_only_its_own_members() {
        let meta = || Some(Raw::parse(r#"{"k":1}"#).unwrap());
        let text = Content::Text(TextContent { text: "x".into(), annotations: None, meta: meta() });
        let mut resource = ResourceDefinition::new("x:a", "a");
        resource.icons = Some(Raw::parse("[]").unwrap());
        let link = Content::ResourceLink(ResourceLink { resource });
        let has = |block: &Content, revision, member: &str| {
            serde_json::to_string(&Written(block, revision)).unwrap().contains(member)
        };
        assert!(!has(&text, Revision::V2025_03_26, "_meta") && has(&text, Revision::V2025_06_18, "_meta"));
        assert!(!has(&link, Revision::V2025_06_18, "icons") && has(&link, Revision::V2025_11_25, "icons"));
    }

    fn written(content: &Content, revision: Revision) -> String {
        serde_json::to_string(&Written(content, revision)).unwrap()
    }

    #[test]
    fn an_unknown_block_is_kept_and_one_without_type_is_refused() {
        let blocks: Vec<Content> =
            serde_json::from_str(r#"[{"type":"text","text":"a"},{"type":"hologram","x":1},{"type":"image"}]"#).unwrap();
        assert_eq!(blocks[0].as_text(), Some("a"));
        assert_eq!(blocks[1].kind(), "hologram");
        assert_eq!(written(&blocks[1], Revision::LATEST), r#"{"type":"hologram","x":1}"#);
        assert_eq!(written(&blocks[2], Revision::LATEST), r#"{"type":"image"}"#);
        for bad in [r#"{"text":"a"}"#, "1", r#"{"type":"text"}"#] {
            assert!(serde_json::from_str::<Content>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn null_counts_as_absent_and_odd_hints_do_no_harm() {
        let text = r#"{"type":"text","text":"x","_meta":null,"annotations":{"audience":["system"],"priority":9}}"#;
        let content: Content = serde_json::from_str(text).unwrap();
        let Content::Text(text) = content else { panic!() };
        assert!(text.meta.is_none() && text.annotations.is_some());
    }

    #[test]
    fn blocks_read_back_as_they_were_written() {
        let hints = || Raw::parse(r#"{"priority":1}"#).unwrap();
        for block in [
            Content::text("a").annotate(hints()),
            Content::image([1, 2], "image/png"),
            Content::audio([3], "audio/wav").annotate(hints()),
            Content::resource(ResourceContents::text("t").uri("x:t")),
            Content::resource(ResourceContents::blob([0]).uri("x:b")).annotate(hints()),
            Content::link(ResourceDefinition::new("x:l", "l")),
        ] {
            let text = written(&block, Revision::LATEST);
            assert_eq!(serde_json::from_str::<Content>(&text).unwrap(), block, "{text}");
        }
    }

    #[test]
    fn what_a_revision_does_not_have_is_told_in_text() {
        let (audio, link) = (Content::audio([3], "audio/wav"), Content::link(ResourceDefinition::new("x:l", "l")));
        assert_eq!(written(&audio, Revision::V2024_11_05), r#"{"type":"text","text":"[audio, audio/wav]"}"#);
        assert!(written(&audio, Revision::V2025_03_26).contains(r#""type":"audio""#));
        assert_eq!(written(&link, Revision::V2025_03_26), r#"{"type":"text","text":"l: x:l"}"#);
        assert!(written(&link, Revision::V2025_06_18).contains(r#""type":"resource_link""#));
    }
}
