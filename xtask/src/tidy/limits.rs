//! Each bound of `Limits` says its default in its documentation, and some test sets it.

use crate::tidy::Problem;
use crate::tidy::repository::Repository;
use crate::tidy::source::is_test_file;

const HOME: &str = "crates/mcp-core/src/limits.rs";

/// Bounds that nobody can read of, or that no test has met at its edge.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    let text = repository.files.get(HOME).map_or("", String::as_str);
    let tests: Vec<&str> = repository.files.iter().filter(|(path, _)| is_test(path)).map(|(_, text)| &**text).collect();
    let mut problems = Vec::new();
    for Bound { line, name, doc } in bounds(text) {
        if !doc.contains("Default") {
            problems.push(Problem::new(HOME, line, format!("`{name}` does not say its default")));
        }
        // As a setter in Rust, or as the setting of a case.
        let (set, setting) = (format!(".{name}("), format!("{name}="));
        if !tests.iter().any(|test| test.contains(&set) || test.contains(&setting)) {
            problems.push(Problem::new(HOME, line, format!("no test sets `{name}`")));
        }
    }
    problems
}

struct Bound<'a> {
    line: usize,
    name: &'a str,
    doc: String,
}

/// The fields of the struct, each with what is documented above it.
fn bounds(text: &str) -> Vec<Bound<'_>> {
    let fields = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("pub struct Limits"));
    let (mut bounds, mut doc) = (Vec::new(), String::new());
    for (index, line) in fields.skip(1).take_while(|(_, line)| !line.starts_with('}')) {
        match line.trim().strip_prefix("pub ").and_then(|field| field.split_once(':')) {
            Some((name, _)) => bounds.push(Bound { line: index + 1, name, doc: std::mem::take(&mut doc) }),
            None => doc += line,
        }
    }
    bounds
}

/// Tests between crates, and those beside the code.
fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || is_test_file(path) || path.contains("/tests/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::files;

    #[test]
    fn a_bound_without_a_default_or_a_test_is_told() {
        let home = "pub struct Limits {\n    /// How many. Default 3.\n    pub many: usize,\n    /// How long.\n    pub long: usize,\n}\n";
        let found = |tests: &str| {
            let repository = files(&[(HOME, home), ("tests/suite/a.rs", tests)]);
            check(&repository).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let no_default = format!("{HOME}:5: `long` does not say its default");
        for tests in ["limits.many(1).long(2)", "long=2 many=1"] {
            assert_eq!(found(tests), [&*no_default]);
        }
        assert_eq!(found("limits.long(2)"), [format!("{HOME}:3: no test sets `many`"), no_default]);
    }
}
