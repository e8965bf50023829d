//! URI templates ([RFC 6570](https://www.rfc-editor.org/rfc/rfc6570)), as resource templates have them: read one, fill
//! it in, and above all match a URI against it.
//!
//! ```
//! use mcp_core::uri_template::UriTemplate;
//!
//! let template = UriTemplate::parse("note://{folder}/{+path}{?revision}")?;
//! let found = template.matches("note://caf%C3%A9/a/b.md?revision=7").expect("it fits");
//! assert_eq!(found.get("folder"), Some("café"));
//! assert_eq!(found.get("path"), Some("a/b.md"));
//! assert_eq!(found.get("revision"), Some("7"));
//! assert_eq!(template.expand(|name| found.get(name)), "note://caf%C3%A9/a/b.md?revision=7");
//! # Ok::<(), mcp_core::uri_template::UriTemplateError>(())
//! ```
//!
//! # What is read
//!
//! Levels 1 to 3 of the RFC: `{x}`, `{+x}`, `{#x}`, `{.x}`, `{/x}`, `{;x}`, `{?x}`, `{&x}`, each with one variable or
//! several. Not the modifiers of level 4, since a value here is one text: `{x:3}` shows only the beginning of a value,
//! and `{x*}` is a list.
//!
//! # What matches
//!
//! The RFC defines how a template is filled in, not how it is matched; these are the rules of this module.
//!
//! - **Literals** are compared byte by byte. A character that a URI cannot hold, as `ï` or a space, matches itself and
//!   its percent-encoding.
//! - **Values** are decoded exactly once: `%2e%2e` gives `..`, `%252e` gives `%2e`, `+` stays `+`. A `%` without two hex
//!   digits, or bytes that are not UTF-8, match nothing.
//! - **`{x}`, `{.x}`, `{/x}` and `{;x}`** end at `/`, `?` and `#`. An encoded slash does not end them: after decoding, a
//!   value can hold `/` and be `..`. Whoever makes a path of it takes [`Variables::path`].
//! - **`{+x}`** takes slashes too. It takes `?` and `#` only where no `?` or `#` comes later in the template.
//! - **`{?x}` and `{&x}`** end at `&` and `#`. Their parameters, and those of `{;x}`, are found in any order; one that
//!   the template does not name, or that comes twice, matches nothing. After a literal `?`, `{x}` ends at `&` as well.
//! - **`{#x}`** takes everything.
//! - **Several variables in one expression** are told apart by its separator, which no value then holds unencoded:
//!   `{x,y}` by `,` and `{.x,y}` by `.`. Missing ones are the last ones.
//! - **An expression right after another** likewise ends what is before it: in `{name}{.extension}` the name has no dot.
//!   Two that nothing can tell apart, as `{a}{b}`, are refused.
//! - **A variable can be missing** wherever its expression has an operator other than `+`. A plain `{x}` or `{+x}` has
//!   one character or more.
//! - **Where several readings remain**, earlier variables are as long as they can be: `{a}-{b}` reads `x-y-z` as `x-y`
//!   and `z`.
//!
//! The work is bounded by the length of the URI times that of the template, whatever they hold.

mod error;
mod expand;
mod matcher;
mod parse;
mod part;
mod path;
mod program;
mod specificity;
mod stops;
#[cfg(test)]
mod tests;
mod variables;

use std::{fmt, str::FromStr, sync::Arc};

pub use error::UriTemplateError;
pub use path::{PathRefused, safe_join};
pub use specificity::Specificity;
pub use variables::Variables;

/// For the fuzzer: a template, a line end, and a URI. Nothing panics, and what fits can be filled in again, where escaping
/// it does not make it too long.
#[cfg(any(fuzzing, test))]
pub fn fuzz(data: &[u8]) {
    let Some((template, uri)) = std::str::from_utf8(data).ok().and_then(|text| text.split_once('\n')) else { return };
    let Ok(template) = UriTemplate::parse(template) else { return };
    if let Some(found) = template.matches(uri) {
        let filled_in = template.expand(|name| found.get(name));
        let is_too_long = filled_in.len() > UriTemplate::LONGEST_URI;
        assert!(is_too_long || template.matches(&filled_in).is_some(), "{template:?} made {filled_in:?} of {uri:?}");
    }
}

use part::Part;
use program::Program;

/// A URI template, ready to be filled in and to be matched.
///
/// Two are equal when their text is. Cloning one is cheap.
#[derive(Clone)]
pub struct UriTemplate(Arc<Inner>);

struct Inner {
    source: String,
    parts: Vec<Part>,
    names: Vec<Arc<str>>,
    program: Program,
}

impl UriTemplate {
    /// The longest template that is read, in bytes.
    pub const LONGEST: usize = 1024;
    /// The most variables that a template has.
    pub const MOST_VARIABLES: usize = 32;
    /// The longest URI that is matched, in bytes; a longer one matches nothing.
    pub const LONGEST_URI: usize = 8192;

    /// Reads a template.
    ///
    /// # Errors
    ///
    /// When the template is malformed, has a modifier of level 4, names a variable twice, passes a bound, or could not
    /// be matched since nothing tells one variable from the next. The error says where.
    pub fn parse(source: &str) -> Result<Self, UriTemplateError> {
        let (parts, names) = parse::parse(source)?;
        let program = Program::of(&parts);
        Ok(Self(Arc::new(Inner { source: source.to_owned(), parts, names, program })))
    }

    /// The template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    /// The names of its variables, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.names.iter().map(|name| &**name)
    }

    /// Fills the template in: `value` has the value of a name, or `None` where there is none.
    ///
    /// As the RFC has it, `{+x}` and `{#x}` leave reserved characters and whole escapes (`%2F`) of a value as they are;
    /// everywhere else, whatever is not a letter, a digit or one of `-._~` is percent-encoded.
    ///
    /// ```
    /// # use mcp_core::uri_template::UriTemplate;
    /// let template = UriTemplate::parse("search://{topic}{?from,to}")?;
    /// let uri = template.expand(|name| match name {
    ///     "topic" => Some("R&D"),
    ///     "to" => Some("2030"),
    ///     _ => None,
    /// });
    /// assert_eq!(uri, "search://R%26D?to=2030");
    /// # Ok::<(), mcp_core::uri_template::UriTemplateError>(())
    /// ```
    #[must_use]
    pub fn expand<'v>(&self, value: impl FnMut(&str) -> Option<&'v str>) -> String {
        expand::expand(&self.0.parts, value)
    }

    /// The values that make this template the URI, decoded; `None` when it does not fit. The rules are those of the
    /// [module](self).
    ///
    /// ```
    /// # use mcp_core::uri_template::UriTemplate;
    /// let template = UriTemplate::parse("file://docs/{name}")?;
    /// assert_eq!(template.matches("file://docs/a%20b").expect("one segment").get("name"), Some("a b"));
    /// assert!(template.matches("file://docs/a/b").is_none());
    /// // Decoded, a value is the peer's text and nothing safer:
    /// assert_eq!(template.matches("file://docs/..%2Fkeys").expect("one segment").get("name"), Some("../keys"));
    /// # Ok::<(), mcp_core::uri_template::UriTemplateError>(())
    /// ```
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Variables> {
        if uri.len() > Self::LONGEST_URI || !uri.starts_with(self.prefix()) {
            return None;
        }
        let values = matcher::matches(&self.0.program, self.0.names.len(), uri.as_bytes())?;
        let found = self.0.names.iter().cloned().zip(values);
        Some(Variables::new(found.filter_map(|(name, value)| Some((name, value?))).collect()))
    }

    /// What every URI that fits begins with, byte for byte.
    fn prefix(&self) -> &str {
        let Some(Part::Literal(literal)) = self.0.parts.first() else { return "" };
        // Whatever has, or is, an escape may stand there in another form.
        let plain = literal.find(|char: char| {
            !char.is_ascii_graphic() || matches!(char, '%' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
        });
        &literal[..plain.unwrap_or(literal.len())]
    }

    /// How narrow the template is. The most specific is the smallest, so that of equals the first one stays first:
    ///
    /// ```
    /// # use mcp_core::uri_template::UriTemplate;
    /// let mut templates = ["file:///{+path}", "file:///{name}", "file:///notes/{name}"].map(UriTemplate::parse);
    /// templates.sort_by_key(|template| template.as_ref().map(UriTemplate::specificity).ok());
    /// let sorted: Vec<_> = templates.iter().flatten().map(UriTemplate::as_str).collect();
    /// assert_eq!(sorted, ["file:///notes/{name}", "file:///{name}", "file:///{+path}"]);
    /// ```
    #[must_use]
    pub fn specificity(&self) -> Specificity {
        Specificity::of(&self.0.parts)
    }
}

impl PartialEq for UriTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.0.source == other.0.source
    }
}

impl Eq for UriTemplate {}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UriTemplate").field(&self.0.source).finish()
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.source)
    }
}

impl FromStr for UriTemplate {
    type Err = UriTemplateError;

    fn from_str(source: &str) -> Result<Self, Self::Err> {
        Self::parse(source)
    }
}
