//! `modern/` and `legacy/` are siblings that never import each other: the era is decided once, before either.

use crate::tidy::Problem;
use crate::tidy::repository::Repository;
use crate::tidy::source::{code, positions_of_word};

/// Every path from a file of one era's folder into the other's.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    let files = repository.library_sources().filter_map(|(path, text)| Some((path, text, other_era(path)?)));
    files.flat_map(|(path, text, other)| check_file(path, text, other)).collect()
}

/// The era that a file must not know, if it lies in the folder of the other.
fn other_era(path: &str) -> Option<&'static str> {
    let folders = path.rsplit('/').skip(1);
    folders.into_iter().find_map(|folder| match folder {
        "modern" => Some("legacy"),
        "legacy" => Some("modern"),
        _ => None,
    })
}

fn check_file(path: &str, text: &str, other: &str) -> Vec<Problem> {
    let mut in_use = false;
    let mut problems = Vec::new();
    for (number, line) in code(text) {
        in_use |= is_use(line);
        if names_module(line, other, in_use) {
            let message = format!("modern and legacy must not import each other, but this names `{other}`");
            problems.push(Problem::new(path, number, message));
        }
        in_use &= !line.contains(';');
    }
    problems
}

fn is_use(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|c: char| c != 'u').trim_start());
    line.starts_with("use ")
}

/// Whether the line names the module: anywhere in a `use`, else as a step of a path (`other::…`, `super::other`), but
/// not as a function or a field of that name.
fn names_module(line: &str, other: &str, in_use: bool) -> bool {
    positions_of_word(line, other).any(|at| {
        let (before, after) = (&line[..at], &line[at + other.len()..]);
        let starts_path = after.starts_with("::");
        let ends_path = ["super::", "crate::", "self::"].iter().any(|start| before.ends_with(start));
        starts_path || (ends_path && !after.starts_with('(')) || (in_use && !before.contains('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::files;

    fn found(path: &str, text: &str) -> Vec<usize> {
        check(&files(&[(path, text)])).iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn each_way_to_reach_the_other_era_is_found() {
        for line in [
            "use super::legacy;",
            "use crate::server::legacy::Session;",
            "pub(crate) use crate::server::{legacy, reply};",
            "let session = super::legacy::Session::new();",
            "let session = legacy::Session::new();",
        ] {
            assert_eq!(found("crates/mcp-core/src/server/modern/mod.rs", line), [1], "{line}");
        }
    }

    #[test]
    fn a_group_over_several_lines_is_found_on_its_line() {
        let text = "use crate::server::{\n    legacy,\n    reply,\n};\nlet legacy = 1;\n";
        assert_eq!(found("crates/mcp-core/src/server/modern/discover.rs", text), [2]);
    }

    #[test]
    fn legacy_must_not_import_modern_either() {
        assert_eq!(found("crates/mcp-core/src/client/legacy/mod.rs", "use super::super::modern::Discover;"), [1]);
    }

    #[test]
    fn the_word_alone_is_free() {
        let text = "let legacy = Era::legacy();\n// legacy::x\nlegacy.revision();\n";
        assert!(found("crates/mcp-core/src/server/modern/mod.rs", text).is_empty());
    }

    #[test]
    fn a_file_outside_both_folders_may_know_both() {
        let text = "use crate::server::legacy::X;\nmod modern;\n";
        assert!(found("crates/mcp-core/src/server/accept.rs", text).is_empty());
    }
}
