use std::borrow::Cow;

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use super::lenient;

/// A picture of a tool, prompt, resource, client or server. From 2025-11-25 on.
///
/// ```
/// use mcp_core::types::{Icon, IconTheme};
///
/// let icon = Icon::new("https://example.com/dark.svg").mime_type("image/svg+xml").size("any").theme(IconTheme::Dark);
/// ```
///
/// Specification: *schema, `Icon`*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// Where it is: an `https` URL, or a `data` URI.
    pub src: Cow<'static, str>,
    /// Its media type, if the one that it comes with is missing or too vague.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Cow<'static, str>>,
    /// The sizes that it is good for, as `48x48`, or `any`. None stands for any.
    #[serde(default, deserialize_with = "lenient::items_or_none", skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Cow<'static, str>>,
    /// Which background it is for.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// Which background a picture is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IconTheme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

impl Icon {
    /// The picture at that URL or `data` URI.
    pub fn new(src: impl Into<Cow<'static, str>>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None }
    }

    /// Sets its media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<Cow<'static, str>>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size that it is good for.
    #[must_use]
    pub fn size(mut self, size: impl Into<Cow<'static, str>>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Says which background it is for.
    #[must_use]
    pub fn theme(mut self, theme: IconTheme) -> Self {
        self.theme = Some(theme);
        self
    }

    /// The array that stands on the wire.
    pub(crate) fn all(icons: impl IntoIterator<Item = Self>) -> Option<Raw> {
        Raw::encode(&icons.into_iter().collect::<Vec<_>>()).ok()
    }
}
