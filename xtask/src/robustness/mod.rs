//! `cargo xtask robustness`: runs what stands against faults, peers and load, and writes `docs/robustness.md` of it.

mod page;
mod rows;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::error::{Doing, Error, Result};
use crate::robustness::rows::Rows;
use crate::{corpus, process, workspace};

/// What the tests are told by, and `tests/suite/report.rs` reads.
const ROWS: &str = "MCP_ROBUSTNESS_ROWS";

/// What ran under a number of the corpus.
#[derive(Debug, Default)]
struct Tests {
    /// Functions, and cases with what they were run with.
    checks: usize,
    /// Checks, each on every wire that it can run on.
    runs: usize,
    failed: usize,
    wires: Vec<String>,
}

impl Tests {
    fn count(&mut self, is_check: bool, passed: bool, wire: Option<&String>) {
        self.checks += usize::from(is_check);
        self.runs += 1;
        self.failed += usize::from(!passed);
        if let Some(wire) = wire.filter(|wire| !self.wires.contains(wire)) {
            self.wires.push(wire.clone());
        }
    }
}

/// Runs the tests, writes the page, and fails where one of them did.
pub(crate) fn run() -> Result {
    let faults = corpus::read()?;
    let folder = workspace::scratch()?;
    std::fs::create_dir_all(&folder).doing(|| format!("creating {}", folder.display()))?;
    let path = folder.join("robustness.jsonl");
    if path.exists() {
        std::fs::remove_file(&path).doing(|| format!("removing {}", path.display()))?;
    }
    let mut command = process::cargo();
    command.args([
        "test",
        "-p",
        "suite",
        "-p",
        "mcp-core",
        "-p",
        "mcp-ws",
        "--all-features",
        "--tests",
        "--no-fail-fast",
    ]);
    let (functions, outcome) = functions(command.env(ROWS, &path))?;
    if !path.exists() {
        return outcome.and_then(|()| Err(Error::new("the tests told nothing of themselves")));
    }
    let rows = rows::read(&path)?;
    let tests = by_number(&functions, &rows);
    page::write(&faults, &tests, &rows)?;
    outcome
}

/// A test function by its name without the modules, and whether it passed.
type Function = (String, bool);

/// Runs the tests, shows what they print, and keeps what came of each.
fn functions(command: &mut Command) -> Result<(Vec<Function>, Result)> {
    eprintln!("$ {}", process::shown(command));
    let mut child = command.stdout(Stdio::piped()).spawn().doing(|| "starting cargo".to_owned())?;
    let stdout = child.stdout.take().ok_or_else(|| Error::new("cargo has no stdout"))?;
    let mut functions = Vec::new();
    for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
        println!("{line}");
        functions.extend(function(&line));
    }
    let status = child.wait().doing(|| "waiting for cargo".to_owned())?;
    Ok((functions, process::expect_success(command, status)))
}

/// `test server::cancel::c132_a_call ... ok`
fn function(line: &str) -> Option<Function> {
    let (path, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = path.rsplit("::").next()?;
    ["ok", "FAILED"].contains(&outcome).then(|| (name.to_owned(), outcome == "ok"))
}

fn by_number(functions: &[Function], rows: &Rows) -> BTreeMap<String, Tests> {
    let mut all: BTreeMap<String, Tests> = BTreeMap::new();
    for (name, passed) in functions {
        for number in corpus::numbers_of(name) {
            all.entry(number).or_default().count(true, *passed, None);
        }
    }
    for case in rows.cases() {
        for number in corpus::numbers_of(&case.title) {
            all.entry(number).or_default().count(case.is_first, case.passed, Some(&case.wire));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_test_runner_is_a_function_and_its_outcome() {
        assert_eq!(function("test a::b::c001_x ... ok"), Some(("c001_x".to_owned(), true)));
        assert_eq!(function("test c001_x ... FAILED"), Some(("c001_x".to_owned(), false)));
        assert_eq!(function("test a::c001_x ... ignored, why"), None);
        assert_eq!(function("running 3 tests"), None);
    }

    #[test]
    fn a_case_is_one_check_on_many_wires() {
        let rows = rows::parse(concat!(
            r#"{"table":"cases","cells":[["title","C001 a"],["run",""],["wire","memory"],["result","ok"]]}"#,
            "\n",
            r#"{"table":"cases","cells":[["title","C001 a"],["run",""],["wire","http"],["result","failed"]]}"#,
            "\n",
            r#"{"table":"cases","cells":[["title","no number"],["run",""],["wire","http"],["result","ok"]]}"#,
        ))
        .unwrap();
        let all = by_number(&[("c001_b".to_owned(), true), ("plain".to_owned(), true)], &rows);
        assert_eq!(all.keys().collect::<Vec<_>>(), ["C001"]);
        let tests = &all["C001"];
        assert_eq!((tests.checks, tests.runs, tests.failed), (2, 3, 1));
        assert_eq!(tests.wires, ["memory", "http"]);
    }
}
