use std::borrow::Cow;

use mcp_jsonrpc::Raw;
use serde::{Deserialize, Serialize};

use super::{Icon, lenient};
use crate::Revision;

/// The name and version of a client or server. Self-reported: for display and logs, never for decisions.
///
/// Specification: *schema, `Implementation`*.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name, for programs.
    pub name: Cow<'static, str>,
    /// The name, for people.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'static, str>>,
    /// The version, in any form.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub version: Cow<'static, str>,
    /// What it is, in a sentence.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'static, str>>,
    /// Where to read more.
    #[serde(default, deserialize_with = "lenient::or_default", skip_serializing_if = "Option::is_none")]
    pub website_url: Option<Cow<'static, str>>,
    /// Pictures, as the specification's `Icon` objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
}

impl Implementation {
    /// A name and a version; [`implementation!`](crate::implementation) takes both from the calling crate.
    pub fn new(name: impl Into<Cow<'static, str>>, version: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name: name.into(),
            title: None,
            version: version.into(),
            description: None,
            website_url: None,
            icons: None,
        }
    }

    /// The same with what `revision` has of it.
    pub(crate) fn told_in(mut self, revision: Revision) -> Self {
        if revision < Revision::V2025_11_25 {
            (self.description, self.website_url, self.icons) = (None, None, None);
        }
        self.title = self.title.filter(|_| revision >= Revision::V2025_06_18);
        self
    }

    /// The file name of the running program, for clients that were not told who they are.
    #[must_use]
    pub fn of_this_program() -> Self {
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(|path| path.file_stem()).map(|name| name.to_string_lossy().into_owned());
        Self::new(name.unwrap_or_else(|| "unnamed".into()), "0")
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<Cow<'static, str>>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets its pictures.
    #[must_use]
    pub fn icons(mut self, icons: impl IntoIterator<Item = Icon>) -> Self {
        self.icons = Icon::all(icons);
        self
    }

    /// Sets where to read more.
    #[must_use]
    pub fn website_url(mut self, url: impl Into<Cow<'static, str>>) -> Self {
        self.website_url = Some(url.into());
        self
    }
}

/// The [`Implementation`] of the calling crate: its name and version from `Cargo.toml`.
///
/// ```
/// let me = mcp_core::implementation!();
/// assert_eq!(me.name, env!("CARGO_PKG_NAME"));
/// ```
#[macro_export]
macro_rules! implementation {
    () => {
        $crate::types::Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    };
}
