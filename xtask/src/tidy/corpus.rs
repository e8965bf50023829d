//! Each fault of `tests/corpus.txt` has a test and three neighbours, and no test has a number that is not there.

use std::collections::BTreeMap;

use crate::corpus;
use crate::tidy::Problem;
use crate::tidy::repository::Repository;

/// The fault itself and three neighbours.
const CHECKS: usize = 4;

/// Faults with too few tests, and tests of no fault.
pub(crate) fn check(repository: &Repository) -> Vec<Problem> {
    let text = repository.files.get(corpus::PATH).map_or("", String::as_str);
    let faults = match corpus::parse(text) {
        Ok(faults) => faults,
        Err((line, why)) => return vec![Problem::new(corpus::PATH, line, why)],
    };
    let tests: Vec<Test> = repository.files.iter().flat_map(|(path, text)| tests_in(path, text)).collect();
    let mut checks: BTreeMap<&str, usize> = BTreeMap::new();
    for test in &tests {
        *checks.entry(&test.number).or_default() += test.checks;
    }
    let thin = faults.iter().filter_map(|fault| {
        let found = checks.get(fault.number.as_str()).copied().unwrap_or_default();
        let message = format!("{} has {found} of {CHECKS} checks", fault.number);
        (found < CHECKS).then(|| Problem::new(corpus::PATH, fault.line, message))
    });
    let is_known = |number: &str| faults.iter().any(|fault| fault.number == number);
    let stray = tests.iter().filter(|test| !is_known(&test.number));
    let stray =
        stray.map(|test| Problem::new(test.path, test.line, format!("{} is no fault of the corpus", test.number)));
    thin.chain(stray).collect()
}

/// What is tested under a number.
struct Test<'a> {
    path: &'a str,
    line: usize,
    number: String,
    /// How often with different input: once, or a case's `with` lines times its revisions.
    checks: usize,
}

fn tests_in<'a>(path: &'a str, text: &'a str) -> Vec<Test<'a>> {
    if path.starts_with("tests/suite/cases/") {
        return cases(path, text);
    }
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    let functions = lines.filter_map(|(index, line)| Some((index + 1, line.trim_start().split_once("fn ")?)));
    let names = functions.filter(|(_, (before, _))| ["", "async "].contains(before));
    names.flat_map(|(line, (_, name))| tests_of(path, line, name, 1)).collect()
}

fn tests_of<'a>(path: &'a str, line: usize, name: &str, checks: usize) -> impl Iterator<Item = Test<'a>> + use<'a> {
    corpus::numbers_of(name).into_iter().map(move |number| Test { path, line, number, checks })
}

fn cases<'a>(path: &'a str, text: &'a str) -> Vec<Test<'a>> {
    let mut tests: Vec<Test> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let begins = (0..lines.len()).filter(|index| lines[*index].starts_with("== "));
    for begin in begins {
        let case = lines[begin + 1..].iter().take_while(|line| !line.starts_with("== "));
        let with = case.clone().filter(|line| line.starts_with("with:")).count().max(1);
        let speaks = case.clone().find_map(|line| line.strip_prefix("speak:")).map_or(1, revisions);
        tests.extend(tests_of(path, begin + 1, &lines[begin][3..], with * speaks));
    }
    tests
}

/// How many revisions a case speaks: `all`, the `legacy` ones, or those that it names.
fn revisions(speaks: &str) -> usize {
    let count = |word: &str| match word {
        "all" => 5,
        "legacy" => 4,
        _ => 1,
    };
    speaks.split_whitespace().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::repository::made_up::files;

    fn found(files_of: &[(&str, &str)]) -> Vec<String> {
        check(&files(files_of)).iter().map(ToString::to_string).collect()
    }

    const LIST: (&str, &str) = (corpus::PATH, "C001 both | it holds\n");

    #[test]
    fn cases_and_functions_count_together() {
        let case = ("tests/suite/cases/a.txt", "== C001 a\nspeak: modern\nwith: 1\nwith: 2\n> 1\n== b\nwith: 3\n> 1\n");
        assert_eq!(found(&[LIST, case]), ["tests/corpus.txt:1: C001 has 2 of 4 checks"]);
        let functions = ("tests/suite/a.rs", "    async fn c001_a() {\nfn c001_b() {\n// fn c001_c()\n");
        assert_eq!(found(&[LIST, case, functions]), Vec::<String>::new());
    }

    #[test]
    fn every_revision_counts() {
        let case = ("tests/suite/cases/client/a.txt", "== C001 a\nspeak: legacy\n> 1\n");
        assert_eq!(found(&[LIST, case]), Vec::<String>::new());
    }

    #[test]
    fn a_number_that_is_not_in_the_list_is_told() {
        let stray = found(&[(corpus::PATH, ""), ("crates/a/src/b.rs", "\nfn c002_x() {")]);
        assert_eq!(stray, ["crates/a/src/b.rs:2: C002 is no fault of the corpus"]);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_told() {
        assert_eq!(found(&[(corpus::PATH, "C001")]).len(), 1);
    }
}
