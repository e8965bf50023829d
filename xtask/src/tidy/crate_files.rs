//! Every crate under `crates/` has a README, the license texts, a changelog with an open section, and the workspace's
//! lints.

use crate::tidy::Problem;
use crate::tidy::repository::Repository;
use crate::workspace::Package;

/// Every crate that lacks one of them.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    repository.libraries().flat_map(|package| check_package(repository, package)).collect()
}

fn check_package(repository: &Repository, package: &Package) -> Vec<Problem> {
    let folder = package.manifest.trim_end_matches("/Cargo.toml");
    let (readme, changelog) = (format!("{folder}/README.md"), format!("{folder}/CHANGELOG.md"));
    let text = |path: &str| repository.files.get(path).map(String::as_str);

    let mut problems = Vec::new();
    if text(&readme).is_none_or(|readme| readme.trim().is_empty()) {
        problems.push(Problem::new(&readme, 1, "every crate has a README"));
    }
    for license in ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| format!("{folder}/{name}")) {
        if text(&license).is_none() {
            problems.push(Problem::new(&license, 1, "every crate is published with its license texts"));
        }
    }
    match text(&changelog) {
        None => problems.push(Problem::new(&changelog, 1, "every crate has a changelog")),
        Some(text) if !text.lines().any(|line| line.trim_end() == "## Unreleased") => {
            problems.push(Problem::new(&changelog, 1, "a changelog has an `## Unreleased` section"));
        }
        Some(_) => {}
    }
    if !text(&package.manifest).is_some_and(inherits_lints) {
        problems.push(Problem::new(&package.manifest, 1, "every crate has `[lints] workspace = true`"));
    }
    problems
}

fn inherits_lints(manifest: &str) -> bool {
    let mut in_lints = false;
    manifest.lines().map(str::trim).any(|line| {
        if line.starts_with('[') {
            in_lints = line == "[lints]";
        }
        in_lints && line == "workspace = true"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::package;

    const MANIFEST: &str = "[package]\nname = \"mcp-core\"\n\n[lints]\nworkspace = true\n";
    const CHANGELOG: &str = "# Changelog\n\n## Unreleased\n\n- First version.\n";

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let mut repository = package("crates", "mcp-core", &[]);
        let licenses = [("LICENSE-MIT", ""), ("LICENSE-APACHE", "")];
        repository.files = files
            .iter()
            .chain(&licenses)
            .map(|(name, text)| (format!("crates/mcp-core/{name}"), text.to_string()))
            .collect();
        check(&repository).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_with_all_of_them_is_fine() {
        assert_eq!(problems(&[("Cargo.toml", MANIFEST), ("README.md", "# x"), ("CHANGELOG.md", CHANGELOG)]).len(), 0);
    }

    #[test]
    fn each_missing_file_is_named() {
        let expected = [
            "crates/mcp-core/README.md:1: every crate has a README",
            "crates/mcp-core/CHANGELOG.md:1: every crate has a changelog",
        ];
        assert_eq!(problems(&[("Cargo.toml", MANIFEST)]), expected);
    }

    #[test]
    fn a_missing_license_is_named() {
        let mut repository = package("crates", "mcp-core", &[]);
        repository.files = [("crates/mcp-core/LICENSE-MIT".to_owned(), String::new())].into();
        let found: Vec<_> = check(&repository).iter().map(ToString::to_string).collect();
        let missing = "crates/mcp-core/LICENSE-APACHE:1: every crate is published with its license texts";
        assert!(found.iter().any(|problem| problem == missing), "{found:?}");
        assert!(!found.iter().any(|problem| problem.contains("LICENSE-MIT")), "{found:?}");
    }

    #[test]
    fn a_changelog_without_an_open_section_is_found() {
        let released = "# Changelog\n\n## 0.1.0\n";
        let found = problems(&[("Cargo.toml", MANIFEST), ("README.md", "# x"), ("CHANGELOG.md", released)]);
        assert_eq!(found, ["crates/mcp-core/CHANGELOG.md:1: a changelog has an `## Unreleased` section"]);
    }

    #[test]
    fn lints_of_its_own_or_another_table_are_not_the_workspaces() {
        assert!(!inherits_lints("[lints]\nrust.unsafe_code = \"allow\"\n"));
        assert!(!inherits_lints("[lints]\n[dependencies.x]\nworkspace = true\n"));
    }
}
