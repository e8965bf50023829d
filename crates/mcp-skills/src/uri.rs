//! `skill://` URIs, and paths within a skill.
//!
//! Specification: *Skills extension, Resource Mapping; Relative References*.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The file that makes a directory a skill.
pub(crate) const SKILL_MD: &str = "SKILL.md";

const SCHEME: &str = "skill://";

/// What does not stand in a segment as it is: all but the characters that nothing reserves.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

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
    percent_decode_str(uri.strip_prefix(SCHEME)?).decode_utf8().ok()
}

/// Where a skill's files are: the URI of its `SKILL.md` without that.
pub(crate) fn root_of(skill_md_uri: &str) -> Option<&str> {
    skill_md_uri.strip_suffix(SKILL_MD)?.strip_suffix('/').filter(|root| !root.is_empty())
}

/// The path of a file within the skill whose root that is.
pub(crate) fn within<'a>(root: &str, uri: &'a str) -> Option<Cow<'a, str>> {
    let path = uri.strip_prefix(root)?.strip_prefix('/')?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    is_path(&path).then_some(path)
}

/// The name that a skill has by the place where it is.
pub(crate) fn name_of(root: &str) -> &str {
    root.rsplit(['/', ':']).next().unwrap_or_default()
}

/// Whether that is a path below something, and nothing else.
pub(crate) fn is_path(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']))
}

/// What a reference within a skill means, as a path below the skill's root.
pub(crate) fn resolve(reference: &str) -> Option<String> {
    let reference = percent_decode_str(reference.split('#').next()?).decode_utf8().ok()?;
    let mut path = Vec::new();
    for part in reference.split('/') {
        match part {
            "." => {}
            ".." => drop(path.pop()?),
            part => path.push(part),
        }
    }
    let path = path.join("/");
    is_path(&path).then_some(path)
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
        assert_eq!(within(root, "skill://acme/refunds/a%20b.md").as_deref(), Some("a b.md"));
        for outside in [
            "skill://acme/refunds",
            "skill://acme/refunds2/a",
            "skill://acme/refunds/../x",
            "skill://acme/refunds/%2e%2e/x",
            "skill://acme/refunds//x",
        ] {
            assert_eq!(within(root, outside), None, "{outside}");
        }
        assert_eq!(root_of("skill://acme/refunds/README.md"), None);
        assert_eq!(root_of("/SKILL.md"), None);
        assert_eq!(name_of("skill://git"), "git");
    }

    #[test]
    fn references_stay_within_the_skill() {
        assert_eq!(resolve("references/FORMS.md").as_deref(), Some("references/FORMS.md"));
        assert_eq!(resolve("./a/../b%20c.md#part").as_deref(), Some("b c.md"));
        for out in ["../a", "a/../../b", "/etc/passwd", "", "a//b", "%2e%2e/a", "a\\..\\b", "..%2fa"] {
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
