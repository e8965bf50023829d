//! `cargo xtask tidy`: the repository's own rules as plain code, also run by `cargo test`.
//!
//! Each check is a function from the repository, read once, to the problems that it finds. All problems are printed.

mod arrows;
mod corpus;
mod crate_files;
mod eras;
mod io_crates;
mod limits;
mod path_headers;
mod repository;
mod revisions;
mod source;

use std::fmt;

use crate::error::{Error, Result};
use crate::tidy::repository::Repository;

/// Something that breaks a rule, printed as `path:line: message`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    path: String,
    line: usize,
    message: String,
}

impl Problem {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

type Check = fn(&Repository) -> Vec<Problem>;

const CHECKS: &[(&str, Check)] = &[
    ("dependency arrows", arrows::check),
    ("no I/O below the transports", io_crates::check),
    ("path headers", path_headers::check),
    ("crate files", crate_files::check),
    ("revision dates", revisions::check),
    ("modern and legacy apart", eras::check),
    ("the corpus of faults", corpus::check),
    ("bounds", limits::check),
];

/// Runs every check on this repository.
pub(crate) fn run() -> Result {
    let problems = problems(&Repository::read()?);
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => {
            println!("tidy: {} checks, no problem", CHECKS.len());
            Ok(())
        }
        1 => Err(Error::new("tidy: 1 problem")),
        count => Err(Error::new(format!("tidy: {count} problems"))),
    }
}

fn problems(repository: &Repository) -> Vec<Problem> {
    let mut problems: Vec<Problem> = CHECKS.iter().flat_map(|(_, check)| check(repository)).collect();
    problems.sort();
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let problems = problems(&Repository::read().unwrap());
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(problems.is_empty(), "\n{}", lines.join("\n"));
    }

    #[test]
    fn a_problem_prints_as_editors_expect_it() {
        assert_eq!(Problem::new("crates/a/src/lib.rs", 3, "no").to_string(), "crates/a/src/lib.rs:3: no");
    }
}
