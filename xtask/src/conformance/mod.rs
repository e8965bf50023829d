//! `cargo xtask conformance`: the official MCP conformance suite, against the example server and client.
//!
//! `ROWS` is everything that runs. A check that cannot pass yet stands beside its scenario with the reason; the command
//! fails on any other failure, and also when such a check passes, so that the table stays true.

mod rows;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::conformance::rows::{REQUIRED, ROWS, Required, Role, Row};
use crate::error::{Doing, Error, Result};
use crate::fixtures::{Fixtures, Serving};
use crate::node::{Node, NpmPackage};
use crate::process::Said;
use crate::table::Table;
use crate::verdict::{Check, Verdict};
use crate::{process, verdict, workspace};

const SUITE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/conformance", version: "0.2.0-alpha.12" };

/// The suite ends a scenario after 30 s; this is for a suite that hangs itself.
const SCENARIO_LIMIT: Duration = Duration::from_secs(120);

/// Runs every row and prints the summary; an error if any row holds a surprise.
pub(crate) fn run() -> Result {
    let fixtures = Fixtures::build()?;
    let node = Node::with(&[SUITE])?;
    let results = workspace::scratch()?.join("conformance");
    let serving = fixtures.serve(&[])?;

    let mut summary = Table::new(&["role", "scenario", "revision", "passed", "failed", "allowed", ""]);
    let (mut surprises, mut totals) = (Vec::new(), vec![0; REQUIRED.len()]);
    for row in ROWS {
        let verdict = row.run(&node, &fixtures, &serving, &results)?;
        summary.row(row.cells(&verdict));
        let name = format!("{} {}", row.scenario, row.revision);
        surprises.extend(verdict.surprises.iter().map(|surprise| format!("{name}: {surprise}")));
        let counted = totals.iter_mut().zip(REQUIRED).filter(|(_, required)| required.counts(row));
        counted.for_each(|(total, _)| *total += verdict.reports);
    }
    summary.print();
    for (total, Required { revision, checks }) in totals.into_iter().zip(REQUIRED) {
        println!("client {revision}: {total} checks passed, of which {checks} are required");
        if total < *checks {
            surprises.push(format!("client {revision}: {total} checks passed, and {checks} are required"));
        }
    }
    finish(&surprises, &results)
}

impl Required {
    fn counts(&self, row: &Row) -> bool {
        row.role == Role::Client && row.revision == self.revision
    }
}

fn finish(surprises: &[String], results: &Path) -> Result {
    if surprises.is_empty() {
        return Ok(());
    }
    for surprise in surprises {
        println!("  {surprise}");
    }
    let count = surprises.len();
    Err(Error::new(format!("conformance: {count} not as expected; each check's details are in {}", results.display())))
}

impl Row {
    fn cells(&self, verdict: &Verdict) -> [String; 7] {
        let words = [self.role.word(), self.scenario, self.revision].map(str::to_owned);
        let counts = [verdict.passed, verdict.failed, verdict.allowed].map(|count| count.to_string());
        let ([role, scenario, revision], [passed, failed, allowed]) = (words, counts);
        let outcome = if verdict.surprises.is_empty() { "ok" } else { "NOT AS EXPECTED" };
        [role, scenario, revision, passed, failed, allowed, outcome.to_owned()]
    }

    fn run(&self, node: &Node, fixtures: &Fixtures, serving: &Serving, results: &Path) -> Result<Verdict> {
        eprintln!("  {} {} {}", self.role.word(), self.scenario, self.revision);
        let scenario = self.scenario.replace('/', "-");
        let folder = results.join(format!("{}-{scenario}-{}", self.role.word(), self.revision));
        clear(&folder)?;
        let mut command = node.command("conformance");
        match self.role {
            Role::Server => command.args(["server", "--url", &serving.url]),
            Role::Client => command.args(["client", "--command", &quoted(&fixtures.client)]),
        };
        self.finish(&mut command, &folder)
    }

    fn finish(&self, command: &mut Command, folder: &Path) -> Result<Verdict> {
        command.args(["--scenario", self.scenario, "--spec-version", self.revision, "--output-dir"]).arg(folder);
        if self.is_extension {
            command.arg("--force");
        }
        let said = process::listen(command, SCENARIO_LIMIT)?;
        // A scenario's name may have a folder in it.
        let group = Path::new(self.scenario).parent().unwrap_or(Path::new(""));
        let Some(checks) = read_checks(&folder.join(group))? else {
            return Ok(Verdict { failed: 1, surprises: vec![without_checks(&said)], ..Verdict::default() });
        };
        let mut verdict = verdict::judge(&checks, self.allowed);
        // A client that crashes or hangs after its last good message fails no check, only the suite's exit code.
        if !said.status.success() && verdict.failed + verdict.allowed == 0 {
            verdict.failed += 1;
            verdict.surprises.push(format!("every check passed, yet the suite failed: {}", complaint(&said.stderr)));
        }
        Ok(verdict)
    }
}

/// The suite appends the server's URL and hands the line to a shell, so a path with a space needs its quotes.
fn quoted(program: &Path) -> String {
    let program = program.display().to_string();
    if program.contains(char::is_whitespace) { format!("'{program}'") } else { program }
}

fn clear(folder: &Path) -> Result {
    if folder.exists() {
        fs::remove_dir_all(folder).doing(|| format!("clearing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).doing(|| format!("creating {}", folder.display()))
}

/// The suite makes one folder a run, named by the time; `None` if it wrote no `checks.json` there.
fn read_checks(folder: &Path) -> Result<Option<Vec<Check>>> {
    let doing = || format!("reading {}", folder.display());
    if !folder.exists() {
        return Ok(None);
    }
    for entry in fs::read_dir(folder).doing(doing)? {
        let file = entry.doing(doing)?.path().join("checks.json");
        if file.exists() {
            let json = fs::read(&file).doing(|| format!("reading {}", file.display()))?;
            return serde_json::from_slice(&json).map(Some).doing(|| format!("reading {}", file.display()));
        }
    }
    Ok(None)
}

fn without_checks(said: &Said) -> String {
    match said.stdout.lines().find(|line| line.starts_with("SKIPPED")) {
        Some(skipped) => format!("{skipped} Take the row out of the table."),
        None => format!("the suite wrote no checks ({}):\n{}{}", said.status, tail(&said.stdout), tail(&said.stderr)),
    }
}

/// The suite's line about a client that exited badly or never did; the client's own words are in its `stderr.txt`.
fn complaint(stderr: &str) -> String {
    let line = stderr.lines().find_map(|line| line.find("CLIENT ").map(|at| line[at..].to_owned()));
    line.unwrap_or_else(|| format!("\n{}", tail(stderr)))
}

/// The last lines of a long output.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(20);
    lines[from..].iter().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_path_with_a_space_is_quoted_and_a_plain_one_is_not() {
        assert_eq!(quoted(Path::new("/a b/client")), "'/a b/client'");
        assert_eq!(quoted(Path::new("/ab/client")), "/ab/client");
    }

    #[test]
    fn the_suites_complaint_about_a_client_is_one_line() {
        let stderr =
            "Passed: 1/1\n\n⚠️  CLIENT EXITED WITH ERROR (code 101) - Test may be incomplete\n\nOVERALL: FAILED\n";
        assert_eq!(complaint(stderr), "CLIENT EXITED WITH ERROR (code 101) - Test may be incomplete");
    }
}
