//! `skill://` URIs, and paths within a skill.
//!
//! Specification: *Skills extension, Resource Mapping; Relative References*.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The file that makes a directory a skill.
pub(crate) const SKILL_MD: &str = "SKILL.md";

const SCHEME: &str = "skill://";

/// What does not stand in a segment as it is (RFC 3986, `pchar`).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The URI of a path of ours.
pub(crate) fn uri_of(path: &str) -> String {
    format!("{SCHEME}{}", encoded(path))
}

/// The URI of a file within the skill whose root that is.
pub(crate) fn uri_of_file(root: &str, path: &str) -> String {
    format!("{root}/{}", encoded(path))
}

fn encoded(path: &str) -> String {
    let segments: Vec<_> = path.split('/').map(|part| utf8_percent_encode(part, RESERVED).to_string()).collect();
    segments.join("/")
}

/// The path of ours that a URI names.
pub(crate) fn path_of(uri: &str) -> Option<Cow<'_, str>> {
    decoded(uri.strip_prefix(SCHEME)?)
}

/// Where a skill's files are: the URI of its `SKILL.md` without that. A URI of another shape, or one that walks upwards, is
/// no skill's.
pub(crate) fn root_of(skill_md_uri: &str) -> Option<&str> {
    let root = skill_md_uri.strip_suffix(SKILL_MD)?.strip_suffix('/')?;
    let (scheme, path) = root.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_plain = !path.contains(|char: char| char.is_whitespace() || char.is_control() || "?#".contains(char));
    (is_scheme && is_plain && is_path(&decoded(path)?)).then_some(root)
}

/// The path of a file within the skill whose root that is, however its URI is written.
pub(crate) fn within(root: &str, uri: &str) -> Option<String> {
    let (root, uri) = (decoded(root)?, decoded(uri)?);
    let path = uri.strip_prefix(&*root)?.strip_prefix('/')?;
    is_path(path).then(|| path.to_owned())
}

fn decoded(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// The name that a skill has by the place where it is.
pub(crate) fn name_of(root: &str) -> &str {
    root.rsplit(['/', ':']).next().unwrap_or_default()
}

/// Whether that is a path below something, and nothing else.
pub(crate) fn is_path(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']))
}

/// What a reference within a skill means, as a path below the skill's root; the root itself is the empty path.
pub(crate) fn resolve(reference: &str) -> Option<String> {
    let reference = decoded(reference.split('#').next()?)?;
    if reference.starts_with('/') {
        return None;
    }
    let mut path = Vec::new();
    for part in reference.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(path.pop()?),
            part => path.push(part),
        }
    }
    let path = path.join("/");
    (path.is_empty() || is_path(&path)).then_some(path)
}

/// Whether a skill may have that name.
///
/// Specification: *Agent Skills, `name` field*.
pub(crate) fn is_skill_name(name: &str) -> bool {
    let is_good =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    name.len() <= 64 && name.split('-').all(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris_and_back() {
        for (path, uri) in [
            ("git-workflow/SKILL.md", "skill://git-workflow/SKILL.md"),
            ("a/b c/ü?#%.md", "skill://a/b%20c/%C3%BC%3F%23%25.md"),
            ("a/c++/(x)@2,3;=:!$&'*~.md", "skill://a/c++/(x)@2,3;=:!$&'*~.md"),
        ] {
            assert_eq!(uri_of(path), uri);
            assert_eq!(path_of(uri).unwrap(), path);
        }
        assert_eq!(path_of("file://a"), None);
        assert_eq!(path_of("skill://%FF"), None);
    }

    #[test]
    fn a_files_place_within_a_skill() {
        let root = root_of("skill://acme/refunds/SKILL.md").unwrap();
        assert_eq!((root, name_of(root)), ("skill://acme/refunds", "refunds"));
        for inside in ["skill://acme/refunds/a%20b.md", "skill://acme/%72efunds/a%20b%2Emd"] {
            assert_eq!(within(root, inside).as_deref(), Some("a b.md"), "{inside}");
        }
        for outside in [
            "skill://acme/refunds",
            "skill://acme/refunds2/a",
            "skill://acme/refunds/../x",
            "skill://acme/refunds/%2e%2e/x",
            "skill://acme/refunds//x",
        ] {
            assert_eq!(within(root, outside), None, "{outside}");
        }
        for none in [
            "skill://acme/refunds/README.md",
            "/SKILL.md",
            "b/SKILL.md",
            ":b/SKILL.md",
            "7://b/SKILL.md",
            "skill://../b/SKILL.md",
            "skill://x/../b/SKILL.md",
            "skill://%2e%2e/b/SKILL.md",
            "skill://x y/b/SKILL.md",
            "skill://x#/b/SKILL.md",
            "skill://x?/b/SKILL.md",
            "skill:///SKILL.md",
        ] {
            assert_eq!(root_of(none), None, "{none}");
        }
        assert_eq!(root_of("github://o/r/skills/x/SKILL.md"), Some("github://o/r/skills/x"));
    }

    #[test]
    fn references_stay_within_the_skill() {
        for (reference, path) in [
            ("references/FORMS.md", "references/FORMS.md"),
            ("./a/../b%20c.md#part", "b c.md"),
            ("a//b/", "a/b"),
            ("", ""),
            (".", ""),
        ] {
            assert_eq!(resolve(reference).as_deref(), Some(path), "{reference}");
        }
        for out in ["../a", "a/../../b", "/etc/passwd", "%2e%2e/a", "a\\..\\b", "..%2fa", "%2fetc"] {
            assert_eq!(resolve(out), None, "{out}");
        }
    }

    #[test]
    fn names_keep_the_rules() {
        let longest = "a".repeat(64);
        for good in ["a", "pdf-processing", "7", &longest] {
            assert!(is_skill_name(good), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "ä", "a b", &too_long] {
            assert!(!is_skill_name(bad), "{bad}");
        }
    }
}
