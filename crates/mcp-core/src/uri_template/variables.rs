use std::{
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use crate::ToolError;

use super::path::{PathRefused, safe_join};

/// What [`UriTemplate::matches`](super::UriTemplate::matches) found: names and decoded values, in the order of the
/// template. Variables that are missing in the URI are missing here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(Vec<(Arc<str>, String)>);

impl Variables {
    pub(super) fn new(found: Vec<(Arc<str>, String)>) -> Self {
        Self(found)
    }

    /// The value of that name. It is the peer's text: it can be empty, and hold `/`, `..` or NUL.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The value of that name, read from its text.
    ///
    /// # Errors
    /// [`ToolError::not_found`] where it is missing or cannot be read: nothing stands behind such a URI.
    pub fn parse<T: FromStr>(&self, name: &str) -> Result<T, ToolError> {
        self.parse_optional(name)?.ok_or_else(ToolError::not_found)
    }

    /// The same of one that a URI may lack.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), where it is there.
    pub fn parse_optional<T: FromStr>(&self, name: &str) -> Result<Option<T>, ToolError> {
        self.get(name).map(str::parse).transpose().map_err(|_| ToolError::not_found())
    }

    /// Names and values, in the order of the template.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The value of that name as a path inside `base`, by [`safe_join`].
    ///
    /// ```
    /// # use mcp_core::uri_template::{PathRefused, UriTemplate};
    /// # use std::path::Path;
    /// let template = UriTemplate::parse("file:///{+path}").expect("a template");
    /// let base = Path::new("notes");
    /// let found = template.matches("file:///a/b.md").expect("it fits");
    /// assert_eq!(found.path("path", base), Ok(base.join("a").join("b.md")));
    /// let found = template.matches("file:///a/%2e%2e/%2e%2e/keys").expect("it fits");
    /// assert_eq!(found.path("path", base), Err(PathRefused::Dots));
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no such variable, or when its value is refused.
    pub fn path(&self, name: &str, base: &Path) -> Result<PathBuf, PathRefused> {
        safe_join(base, self.get(name).ok_or(PathRefused::Missing)?)
    }
}
