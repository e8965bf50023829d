use base64::{Engine as _, engine::general_purpose::STANDARD};
use mcp_jsonrpc::{ByteString, Raw};
use serde::{Deserialize, Serialize, de::Error as _};

use super::lenient;

/// What a server tells of a resource.
///
/// Specification: *Resources, Data Types*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceDefinition {
    /// What it is read by.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it holds, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Pictures, as the specification's `Icon` objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its length in bytes, before any encoding.
    #[serde(default, deserialize_with = "lenient::whole_or_none", skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Hints on audience, priority and age, as they stand on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

impl ResourceDefinition {
    /// A resource of that URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            icons: None,
            mime_type: None,
            size: None,
            annotations: None,
            meta: None,
        }
    }
}

/// What a server tells of a family of resources.
///
/// Specification: *Resources, Resource Templates*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplateDefinition {
    /// What their URIs look like (RFC 6570).
    pub uri_template: String,
    /// The name.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What they hold, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Pictures, as the specification's `Icon` objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
    /// The media type of all of them, if they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints on audience, priority and age, as they stand on the wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Raw>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// One of the contents that a resource is read as.
///
/// Specification: *Resources, Resource Contents*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceContents {
    /// Whose contents they are. Empty until a server fills it in with what was asked for.
    pub uri: String,
    /// Their media type.
    pub mime_type: Option<String>,
    /// What they are.
    pub body: ResourceBody,
    /// Metadata.
    pub meta: Option<Raw>,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, which the wire has in Base64.
    Blob(Vec<u8>),
}

impl ResourceContents {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ResourceBody::Text(text.into()))
    }

    /// Bytes.
    pub fn blob(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(ResourceBody::Blob(bytes.into()))
    }

    fn new(body: ResourceBody) -> Self {
        Self { uri: String::new(), mime_type: None, body, meta: None }
    }

    /// Names whose contents they are, where that is not what was asked for.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = uri.into();
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// About how many bytes they take on the wire.
    pub(crate) fn size(&self) -> usize {
        let body = match &self.body {
            ResourceBody::Text(text) => text.len() + text.len() / 16,
            ResourceBody::Blob(bytes) => bytes.len().div_ceil(3) * 4,
        };
        64 + self.uri.len() + body
    }

    /// The text, if they are text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            ResourceBody::Text(text) => Some(text),
            ResourceBody::Blob(_) => None,
        }
    }
}

/// How contents stand on the wire.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    uri: std::borrow::Cow<'a, str>,
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    mime_type: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<std::borrow::Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blob: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    meta: Option<Raw>,
}

impl Serialize for ResourceContents {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (text, blob) = match &self.body {
            ResourceBody::Text(text) => (Some(text.as_str().into()), None),
            ResourceBody::Blob(bytes) => (None, Some(STANDARD.encode(bytes).into())),
        };
        let (uri, mime_type) = (self.uri.as_str().into(), self.mime_type.as_deref().map(Into::into));
        Wire { uri, mime_type, text, blob, meta: self.meta.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { uri, mime_type, text, blob, meta } = Wire::deserialize(deserializer)?;
        let body = match (text, blob) {
            (Some(text), _) => ResourceBody::Text(text.into_owned()),
            (None, Some(blob)) => ResourceBody::Blob(lenient::base64(&blob).map_err(D::Error::custom)?),
            (None, None) => return Err(D::Error::custom("contents with neither `text` nor `blob`")),
        };
        Ok(Self { uri: uri.into_owned(), mime_type: mime_type.map(Into::into), body, meta })
    }
}

/// The parameters of `resources/read`, `resources/subscribe` and `resources/unsubscribe`.
///
/// Specification: *Resources, Reading Resources*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceParams {
    /// Which resource.
    pub uri: String,
}

/// The result of `resources/read`.
///
/// Specification: *Resources, Reading Resources*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// What was read; a directory may be several.
    #[serde(default, deserialize_with = "lenient::null_is_default")]
    pub contents: Vec<ResourceContents>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The result of `resources/list`, as a client reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// The resources of this page, each still as its own JSON.
    pub resources: Vec<Raw>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ByteString>,
}

/// The result of `resources/templates/list`, as a client reads it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// The templates of this page, each still as its own JSON.
    pub resource_templates: Vec<Raw>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ByteString>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_text_or_base64() {
        for (contents, json) in [
            (
                ResourceContents::text("a").uri("x:a").mime_type("text/plain"),
                r#"{"uri":"x:a","mimeType":"text/plain","text":"a"}"#,
            ),
            (ResourceContents::blob([0, 255]).uri("x:b"), r#"{"uri":"x:b","blob":"AP8="}"#),
            (ResourceContents::text("").uri("x:c"), r#"{"uri":"x:c","text":""}"#),
        ] {
            assert_eq!(serde_json::to_string(&contents).unwrap(), json);
            assert_eq!(serde_json::from_str::<ResourceContents>(json).unwrap(), contents);
        }
        for bad in [r#"{"uri":"x:a"}"#, r#"{"uri":"x:a","blob":"!"}"#, r#"{"text":"a"}"#] {
            assert!(serde_json::from_str::<ResourceContents>(bad).is_err(), "{bad}");
        }
    }
}
