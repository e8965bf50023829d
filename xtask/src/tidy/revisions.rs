//! Revision dates stand in one file, so that a new revision is one change and nobody compares strings elsewhere.

use crate::tidy::Problem;
use crate::tidy::repository::Repository;
use crate::tidy::source::{is_test_file, release_code};

const HOME: &str = "crates/mcp-core/src/revision.rs";

const DATES: &[&str] = &["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Every revision date in a string literal outside of its file.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    let files = repository.library_sources().filter(|(path, _)| *path != HOME && !is_test_file(path));
    files.flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Problem> {
    let dates = |line: &str| DATES.iter().copied().find(|date| line.contains(&format!("\"{date}\"")));
    let lines = release_code(text).filter_map(|(number, line)| Some((number, dates(line)?)));
    lines.map(|(number, date)| Problem::new(path, number, format!("\"{date}\" belongs in {HOME}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::files;

    const LITERAL: &str = "//! As of \"2025-11-25\".\nfn f() {\n    is(\"2025-11-25\");\n}\n";

    #[test]
    fn a_date_in_code_is_found_with_its_line() {
        let found = check(&files(&[("crates/mcp-http/src/server/post.rs", LITERAL)]));
        let expected =
            "crates/mcp-http/src/server/post.rs:3: \"2025-11-25\" belongs in crates/mcp-core/src/revision.rs";
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn a_date_inside_json_text_is_found() {
        let text = "const X: &str = r#\"{\"protocolVersion\":\"2026-07-28\"}\"#;\n";
        assert_eq!(check(&files(&[("crates/mcp-core/src/x.rs", text)])).len(), 1);
    }

    #[test]
    fn its_own_file_tests_and_other_folders_may_name_dates() {
        let unit_test = format!("#[cfg(test)]\nmod tests {{\n{LITERAL}}}\n");
        let repository = files(&[
            (HOME, LITERAL),
            ("crates/mcp-core/src/server/tests.rs", LITERAL),
            ("crates/mcp-core/src/tests/eras.rs", LITERAL),
            ("crates/mcp-core/src/x.rs", &unit_test),
            ("crates/mcp-core/benches/x.rs", LITERAL),
            ("tests/suite/main.rs", LITERAL),
        ]);
        assert_eq!(check(&repository), []);
    }
}
