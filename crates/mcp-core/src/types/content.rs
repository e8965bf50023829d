use mcp_jsonrpc::{ByteString, Raw};
use serde::{Deserialize, Serialize, de::Error as _};

/// One block of a result's content.
///
/// Specification: *Tools, Tool Result*.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
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

impl Content {
    /// A block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), annotations: None, meta: None })
    }

    /// The text, if it is a block of text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            Self::Other(_) => None,
        }
    }

    /// The block's `type`.
    #[must_use]
    pub fn kind(&self) -> ByteString {
        match self {
            Self::Text(_) => ByteString::from_static("text"),
            Self::Other(raw) => kind_of(raw).unwrap_or_default(),
        }
    }
}

fn kind_of(raw: &Raw) -> Option<ByteString> {
    raw.member("type")?.to_string_value().ok()
}

/// How a block is written. `Content` itself does not serialize, so that a handler which returns one gives a block, and
/// not the block's JSON as text.
pub(crate) struct Written<'a>(pub(crate) &'a Content);

impl Serialize for Written<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tagged<'a> {
            r#type: &'static str,
            #[serde(flatten)]
            content: &'a TextContent,
        }
        match self.0 {
            // Nearly every block is this one, and `flatten` goes through a map.
            Content::Text(TextContent { text, annotations: None, meta: None }) => {
                #[derive(Serialize)]
                struct Plain<'a> {
                    r#type: &'static str,
                    text: &'a str,
                }
                Plain { r#type: "text", text }.serialize(serializer)
            }
            Content::Text(content) => Tagged { r#type: "text", content }.serialize(serializer),
            Content::Other(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        match kind_of(&raw).as_deref() {
            Some("text") => raw.decode().map(Self::Text).map_err(D::Error::custom),
            Some(_) => Ok(Self::Other(raw)),
            None => Err(D::Error::custom("a content block without a `type`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_block_is_kept_and_one_without_type_is_refused() {
        let blocks: Vec<Content> =
            serde_json::from_str(r#"[{"type":"text","text":"a"},{"type":"hologram","x":1}]"#).unwrap();
        assert_eq!(blocks[0].as_text(), Some("a"));
        assert_eq!(blocks[1].kind(), "hologram");
        assert_eq!(serde_json::to_string(&Written(&blocks[1])).unwrap(), r#"{"type":"hologram","x":1}"#);
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
}
