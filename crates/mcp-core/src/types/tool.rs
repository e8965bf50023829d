use mcp_jsonrpc::{ByteString, Raw};
use serde::{Deserialize, Serialize};

use super::{Content, lenient};

/// What a server tells of a tool.
///
/// Specification: *Tools, Data Types*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name that calls it.
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Pictures, as the specification's `Icon` objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
    /// The JSON Schema of its arguments, kept as given.
    pub input_schema: Raw,
    /// The JSON Schema of its structured result, kept as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Raw>,
    /// Hints on its behaviour; not to be trusted unless the server is.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Hints on what a tool does.
///
/// Specification: *schema, `ToolAnnotations`*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The name for people, before tools had a title.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice does no more than calling it once.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches a world outside the server.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A setter by value for each hint.
macro_rules! hints {
    ($($hint:ident = $field:ident;)*) => {
        impl ToolAnnotations {
            /// Names it for people, in revisions before tools had a title.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.title = Some(title.into());
                self
            }

            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $hint(mut self, $hint: bool) -> Self {
                    self.$field = Some($hint);
                    self
                }
            )*
        }
    };
}

hints! {
    read_only = read_only_hint;
    destructive = destructive_hint;
    idempotent = idempotent_hint;
    open_world = open_world_hint;
}

/// The parameters of a list method.
///
/// Specification: *Pagination*.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaginatedParams {
    /// Where to go on, as the last page said; not to be interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<ByteString>,
}

/// The result of `tools/list`, as a client reads it: each tool still as its own JSON, so that one odd tool costs only
/// itself.
///
/// Specification: *Tools, Listing Tools*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The tools of this page.
    pub tools: Vec<Raw>,
    /// Where the next page begins, if there is one. The empty string is a cursor like any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ByteString>,
}

/// The parameters of `tools/call`.
///
/// Specification: *Tools, Calling Tools*.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallToolParams {
    /// The tool's name.
    pub name: String,
    /// Its arguments, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Raw>,
}

/// The result of `tools/call`.
///
/// It reads from the wire; writing it is the server's, since the revision decides what may be in it.
///
/// Specification: *Tools, Tool Result*.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// What the tool says, for a model or a person.
    #[serde(default, deserialize_with = "super::lenient::null_is_default")]
    pub content: Vec<Content>,
    /// What the tool says, for a program.
    #[serde(default)]
    pub structured_content: Option<Raw>,
    /// Whether the tool failed; `content` then says why.
    #[serde(default, deserialize_with = "super::lenient::null_is_default")]
    pub is_error: bool,
    /// Metadata.
    #[serde(rename = "_meta", default)]
    pub meta: Option<Raw>,
}

impl CallToolResult {
    /// A result with one block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A failure that the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The same result with one block more.
    #[must_use]
    pub fn with(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// The same result with structured content.
    #[must_use]
    pub fn structured(mut self, value: Raw) -> Self {
        self.structured_content = Some(value);
        self
    }

    /// All blocks of text, one after another.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }
}

/// Several blocks are collected into a result.
impl FromIterator<Content> for CallToolResult {
    fn from_iter<I: IntoIterator<Item = Content>>(blocks: I) -> Self {
        Self { content: blocks.into_iter().collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CallToolResult {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn members_may_be_missing_or_null() {
        assert_eq!(read(r#"{"structuredContent":{"t":21}}"#).structured_content.unwrap().as_str(), r#"{"t":21}"#);
        assert_eq!(read(r#"{"content":[]}"#), CallToolResult::default());
        assert_eq!(
            read(r#"{"content":null,"isError":null,"structuredContent":null,"_meta":null}"#),
            CallToolResult::default()
        );
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text =
            r#"{"id":9007199254740993,"big":18446744073709551615,"huge":123456789012345678901234567890,"d":0.1}"#;
        let result = read(&format!(r#"{{"structuredContent":{text},"content":[]}}"#));
        assert_eq!(result.structured_content.unwrap().as_str(), text);
    }
}
