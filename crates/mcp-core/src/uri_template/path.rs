use std::path::{Path, PathBuf};

/// Why a value is not taken as a path. It does not repeat the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRefused {
    /// There is no such variable.
    #[error("the URI has no such variable")]
    Missing,
    /// It is empty, or has an empty component: `a//b`, `a/`.
    #[error("the path has an empty component")]
    Empty,
    /// It begins with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// A component of nothing but dots and spaces: `.`, `..`, and what Windows reads as these.
    #[error("the path has a component of dots, as '..'")]
    Dots,
    /// It has a backslash, which separates components on Windows.
    #[error("the path has a backslash")]
    Backslash,
    /// It has the character NUL, at which some systems cut a path off.
    #[error("the path has a NUL")]
    Nul,
    /// A component begins with a drive letter, as `C:`. On Windows, any colon.
    #[error("the path has the prefix of a drive")]
    Drive,
}

/// Joins a peer's text to `base` such that the result cannot leave it: components between slashes, each of them a plain
/// name.
///
/// The rules are the same on all systems, with one exception at [`PathRefused::Drive`]. The file system is not asked:
/// where a link leads, and which names are devices on Windows, the caller knows.
///
/// ```
/// # use mcp_core::uri_template::{PathRefused, safe_join};
/// # use std::path::Path;
/// let base = Path::new("notes");
/// assert_eq!(safe_join(base, "a/b.md"), Ok(base.join("a").join("b.md")));
/// assert_eq!(safe_join(base, "../keys"), Err(PathRefused::Dots));
/// assert_eq!(safe_join(base, "/etc/passwd"), Err(PathRefused::Absolute));
/// ```
///
/// # Errors
///
/// When the text is no such path; the error says why.
pub fn safe_join(base: &Path, value: &str) -> Result<PathBuf, PathRefused> {
    if value.starts_with('/') {
        return Err(PathRefused::Absolute);
    }
    let mut path = base.to_path_buf();
    for component in value.split('/') {
        check(component)?;
        path.push(component);
    }
    Ok(path)
}

fn check(component: &str) -> Result<(), PathRefused> {
    if component.is_empty() {
        return Err(PathRefused::Empty);
    }
    if component.contains('\0') {
        return Err(PathRefused::Nul);
    }
    if component.contains('\\') {
        return Err(PathRefused::Backslash);
    }
    if component.trim_matches(['.', ' ']).is_empty() {
        return Err(PathRefused::Dots);
    }
    let drive = matches!(component.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if drive || (cfg!(windows) && component.contains(':')) {
        return Err(PathRefused::Drive);
    }
    Ok(())
}
