//! Which crate may depend on which: the arrows of `docs/architecture.md`, one row a crate.
//!
//! Packages outside `crates/` are free: they are ends, nothing depends on them. A dev-dependency of a crate counts like
//! any other, since it is published with the crate; what needs two transports at once is tested in `tests/suite`.

use crate::tidy::Problem;
use crate::tidy::repository::Repository;
use crate::workspace::{Dependency, Package};

const PROTOCOL: &[&str] = &["mcp-core", "mcp-jsonrpc"];

/// Each crate with the siblings that it may declare.
const ALLOWED: &[(&str, &[&[&str]])] = &[
    ("mcp-jsonrpc", &[]),
    ("mcp-derive", &[]),
    ("mcp-core", &[&["mcp-jsonrpc", "mcp-derive"]]),
    ("mcp-http", &[PROTOCOL]),
    ("mcp-ws", &[PROTOCOL]),
    ("mcp-stdio", &[PROTOCOL]),
    ("mcp-auth", &[&["mcp-core"]]),
    ("mcp-session-redis", &[&["mcp-core"]]),
    ("mcp-grammar", &[&["mcp-core"]]),
    ("mcp-behavior", &[&["mcp-core", "mcp-grammar"]]),
    ("mcp-skills", &[&["mcp-core"]]),
    ("mcp-llm", &[&["mcp-core"]]),
    ("mcp-telemetry", &[&["mcp-core"]]),
    ("mcp-test", &[&["mcp-core", "mcp-http"]]),
    ("mcp-cli", &[&["mcp-core", "mcp-suite"], ADD_ONS]),
    ("mcp-suite", &[PROTOCOL, TRANSPORTS, ADD_ONS]),
];

const TRANSPORTS: &[&str] = &["mcp-http", "mcp-ws", "mcp-stdio"];

const ADD_ONS: &[&str] = &[
    "mcp-auth",
    "mcp-session-redis",
    "mcp-grammar",
    "mcp-behavior",
    "mcp-skills",
    "mcp-llm",
    "mcp-telemetry",
    "mcp-test",
];

/// Every arrow between siblings that no row allows.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    repository.libraries().flat_map(|package| check_package(repository, package)).collect()
}

fn check_package(repository: &Repository, package: &Package) -> Vec<Problem> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
        let message = format!("{} has no row in xtask/src/tidy/arrows.rs", package.name);
        return vec![Problem::new(&package.manifest, 1, message)];
    };
    let siblings = package.dependencies.iter().filter(|dependency| is_sibling(dependency));
    let forbidden = siblings.filter(|sibling| !allowed.iter().any(|names| names.contains(&sibling.name.as_str())));
    forbidden.map(|sibling| problem(repository, package, sibling)).collect()
}

fn is_sibling(dependency: &Dependency) -> bool {
    ALLOWED.iter().any(|(name, _)| *name == dependency.name)
}

fn problem(repository: &Repository, package: &Package, sibling: &Dependency) -> Problem {
    let line = repository.line_of(&package.manifest, |line| declares(line, &sibling.name));
    let message = format!("{} must not depend on {} (see docs/architecture.md)", package.name, sibling.name);
    Problem::new(&package.manifest, line, message)
}

/// Whether a manifest's line declares the dependency `name`, in whichever of TOML's ways.
pub(crate) fn declares(line: &str, name: &str) -> bool {
    let key = line.trim().strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    let table = line.trim().ends_with(&format!("dependencies.{name}]"));
    let renamed = line.contains(&format!("package = \"{name}\""));
    key || table || renamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::{dependency, dev_dependency, package};

    #[test]
    fn one_transport_must_not_know_another() {
        let repository = package("crates", "mcp-ws", &[dependency("mcp-core", &[]), dependency("mcp-http", &[])]);
        let lines: Vec<String> = check(&repository).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            ["crates/mcp-ws/Cargo.toml:3: mcp-ws must not depend on mcp-http (see docs/architecture.md)"]
        );
    }

    #[test]
    fn an_arrow_up_is_found_in_dev_dependencies_too() {
        assert_eq!(check(&package("crates", "mcp-core", &[dev_dependency("mcp-test")])).len(), 1);
    }

    #[test]
    fn the_named_exceptions_are_allowed() {
        for (from, to) in [("mcp-behavior", "mcp-grammar"), ("mcp-test", "mcp-http"), ("mcp-cli", "mcp-suite")] {
            assert_eq!(check(&package("crates", from, &[dependency(to, &[])])), [], "{from} -> {to}");
        }
    }

    #[test]
    fn fixtures_may_depend_on_anything() {
        assert_eq!(check(&package("tests", "suite", &[dependency("mcp-http", &[]), dependency("mcp-ws", &[])])), []);
    }

    #[test]
    fn a_crate_without_a_row_is_a_problem() {
        assert!(check(&package("crates", "mcp-new", &[]))[0].to_string().contains("no row"));
    }

    #[test]
    fn a_declaration_is_found_however_it_is_written() {
        for line in
            ["a.workspace = true", "a = \"1\"", "[target.'cfg(unix)'.dependencies.a]", "b = { package = \"a\" }"]
        {
            assert!(declares(line, "a"), "{line}");
        }
        assert!(!declares("ab = \"1\"", "a"));
    }
}
