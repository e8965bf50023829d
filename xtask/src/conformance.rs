//! `cargo xtask conformance`: the official MCP conformance suite, against the example server and client.
//!
//! `ROWS` is everything that runs. A check that cannot pass yet stands beside its scenario with the reason; the command
//! fails on any other failure, and also when such a check passes, so that the table stays true.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::{Doing, Error, Result};
use crate::fixtures::{Fixtures, Serving};
use crate::node::{Node, NpmPackage};
use crate::process::Said;
use crate::table::Table;
use crate::verdict::{Allowed, Check, Verdict};
use crate::{process, verdict, workspace};

const SUITE: NpmPackage = NpmPackage { name: "@modelcontextprotocol/conformance", version: "0.2.0-alpha.12" };

/// The suite ends a scenario after 30 s; this is for a suite that hangs itself.
const SCENARIO_LIMIT: Duration = Duration::from_secs(120);

/// Who is under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

/// One scenario under one revision.
#[derive(Debug, Clone, Copy)]
struct Row {
    role: Role,
    revision: &'static str,
    scenario: &'static str,
    allowed: &'static [Allowed],
    /// It is of an extension, which no revision has.
    is_extension: bool,
}

const fn server(revision: &'static str, scenario: &'static str) -> Row {
    Row { role: Role::Server, revision, scenario, allowed: &[], is_extension: false }
}

const fn client(revision: &'static str, scenario: &'static str) -> Row {
    Row { role: Role::Client, revision, scenario, allowed: &[], is_extension: false }
}

const fn extension(row: Row) -> Row {
    Row { is_extension: true, ..row }
}

const ROWS: &[Row] = &[
    server("2025-06-18", "server-initialize"),
    server("2025-06-18", "ping"),
    server("2025-11-25", "server-initialize"),
    server("2025-11-25", "ping"),
    server("2025-06-18", "tools-list"),
    server("2025-11-25", "tools-list"),
    server("2026-07-28", "tools-list"),
    server("2025-06-18", "tools-call-simple-text"),
    server("2025-11-25", "tools-call-simple-text"),
    server("2026-07-28", "tools-call-simple-text"),
    server("2025-06-18", "tools-call-image"),
    server("2025-11-25", "tools-call-image"),
    server("2026-07-28", "tools-call-image"),
    server("2025-06-18", "tools-call-audio"),
    server("2025-11-25", "tools-call-audio"),
    server("2026-07-28", "tools-call-audio"),
    server("2025-06-18", "tools-call-embedded-resource"),
    server("2025-11-25", "tools-call-embedded-resource"),
    server("2026-07-28", "tools-call-embedded-resource"),
    server("2025-06-18", "tools-call-mixed-content"),
    server("2025-11-25", "tools-call-mixed-content"),
    server("2026-07-28", "tools-call-mixed-content"),
    server("2025-06-18", "tools-call-error"),
    server("2025-11-25", "tools-call-error"),
    server("2026-07-28", "tools-call-error"),
    server("2025-06-18", "tools-call-with-progress"),
    server("2025-11-25", "tools-call-with-progress"),
    server("2026-07-28", "tools-call-with-progress"),
    server("2025-06-18", "completion-complete"),
    server("2025-11-25", "completion-complete"),
    server("2026-07-28", "completion-complete"),
    server("2025-06-18", "resources-list"),
    server("2025-11-25", "resources-list"),
    server("2026-07-28", "resources-list"),
    server("2025-06-18", "resources-read-text"),
    server("2025-11-25", "resources-read-text"),
    server("2026-07-28", "resources-read-text"),
    server("2025-06-18", "resources-read-binary"),
    server("2025-11-25", "resources-read-binary"),
    server("2026-07-28", "resources-read-binary"),
    server("2025-06-18", "resources-templates-read"),
    server("2025-11-25", "resources-templates-read"),
    server("2026-07-28", "resources-templates-read"),
    server("2025-06-18", "prompts-list"),
    server("2025-11-25", "prompts-list"),
    server("2026-07-28", "prompts-list"),
    server("2025-06-18", "prompts-get-simple"),
    server("2025-11-25", "prompts-get-simple"),
    server("2026-07-28", "prompts-get-simple"),
    server("2025-06-18", "prompts-get-with-args"),
    server("2025-11-25", "prompts-get-with-args"),
    server("2026-07-28", "prompts-get-with-args"),
    server("2025-06-18", "prompts-get-embedded-resource"),
    server("2025-11-25", "prompts-get-embedded-resource"),
    server("2026-07-28", "prompts-get-embedded-resource"),
    server("2025-06-18", "prompts-get-with-image"),
    server("2025-11-25", "prompts-get-with-image"),
    server("2026-07-28", "prompts-get-with-image"),
    server("2025-11-25", "json-schema-2020-12"),
    server("2026-07-28", "json-schema-2020-12"),
    server("2025-11-25", "dns-rebinding-protection"),
    server("2026-07-28", "dns-rebinding-protection"),
    server("2026-07-28", "http-header-validation"),
    server("2026-07-28", "http-custom-header-server-validation"),
    server("2026-07-28", "caching"),
    server("2026-07-28", "sep-2164-resource-not-found"),
    server("2026-07-28", "server-sse-multiple-streams"),
    server("2026-07-28", "input-required-result-unsupported-methods"),
    server("2026-07-28", "server-stateless"),
    server("2025-03-26", "server-session-lifecycle"),
    server("2025-06-18", "server-session-lifecycle"),
    server("2025-11-25", "server-session-lifecycle"),
    server("2025-11-25", "server-sse-polling"),
    server("2025-11-25", "server-sse-multiple-streams"),
    server("2025-06-18", "logging-set-level"),
    server("2025-11-25", "logging-set-level"),
    server("2025-06-18", "tools-call-with-logging"),
    server("2025-11-25", "tools-call-with-logging"),
    server("2025-06-18", "resources-subscribe"),
    server("2025-11-25", "resources-subscribe"),
    server("2025-06-18", "resources-unsubscribe"),
    server("2025-11-25", "resources-unsubscribe"),
    server("2025-06-18", "tools-call-sampling"),
    server("2025-11-25", "tools-call-sampling"),
    server("2025-06-18", "tools-call-elicitation"),
    server("2025-11-25", "tools-call-elicitation"),
    server("2025-11-25", "elicitation-sep1034-defaults"),
    server("2025-11-25", "elicitation-sep1330-enums"),
    server("2026-07-28", "input-required-result-basic-elicitation"),
    server("2026-07-28", "input-required-result-basic-sampling"),
    server("2026-07-28", "input-required-result-basic-list-roots"),
    server("2026-07-28", "input-required-result-request-state"),
    server("2026-07-28", "input-required-result-multiple-input-requests"),
    server("2026-07-28", "input-required-result-multi-round"),
    server("2026-07-28", "input-required-result-missing-input-response"),
    server("2026-07-28", "input-required-result-non-tool-request"),
    server("2026-07-28", "input-required-result-result-type"),
    server("2026-07-28", "input-required-result-tampered-state"),
    server("2026-07-28", "input-required-result-capability-check"),
    server("2026-07-28", "input-required-result-ignore-extra-params"),
    server("2026-07-28", "input-required-result-validate-input"),
    extension(server("2026-07-28", "tasks-lifecycle")),
    extension(server("2026-07-28", "tasks-capability-negotiation")),
    extension(server("2026-07-28", "tasks-dispatch-and-envelope")),
    extension(server("2026-07-28", "tasks-wire-fields")),
    extension(server("2026-07-28", "tasks-request-headers")),
    extension(server("2026-07-28", "tasks-request-state-removal")),
    extension(server("2026-07-28", "tasks-required-task-error")),
    extension(server("2026-07-28", "tasks-mrtr-input")),
    extension(server("2026-07-28", "tasks-mrtr-composition")),
    extension(server("2026-07-28", "tasks-status-notifications")),
    extension(server("2025-11-25", "sep-2640-skills-enumeration")),
    extension(server("2026-07-28", "sep-2640-skills-enumeration")),
    extension(server("2025-11-25", "sep-2640-skills-manifest")),
    extension(server("2026-07-28", "sep-2640-skills-manifest")),
    extension(server("2025-11-25", "sep-2640-skills-directory")),
    extension(server("2026-07-28", "sep-2640-skills-directory")),
    extension(client("2026-07-28", "sep-2640-client-no-prefetch")),
    extension(client("2026-07-28", "sep-2640-client-verify-digest")),
    extension(client("2026-07-28", "sep-2640-client-verify-size")),
    extension(client("2026-07-28", "sep-2640-client-verify-frontmatter")),
    client("2025-11-25", "initialize"),
    client("2025-11-25", "tools_call"),
    client("2026-07-28", "tools_call"),
    client("2026-07-28", "request-metadata"),
    client("2025-11-25", "elicitation-sep1034-client-defaults"),
    client("2025-11-25", "sse-retry"),
    client("2026-07-28", "http-standard-headers"),
    client("2026-07-28", "http-custom-headers"),
    client("2026-07-28", "http-invalid-tool-headers"),
    client("2026-07-28", "sep-2322-client-request-state"),
    client("2025-11-25", "json-schema-2020-12-preservation"),
    client("2026-07-28", "json-schema-2020-12-preservation"),
    client("2026-07-28", "json-schema-ref-no-deref"),
];

/// Runs every row and prints the summary; an error if any row holds a surprise.
pub(crate) fn run() -> Result {
    let fixtures = Fixtures::build()?;
    let node = Node::with(&[SUITE])?;
    let results = workspace::scratch()?.join("conformance");
    let serving = fixtures.serve(&[])?;

    let mut summary = Table::new(&["role", "scenario", "revision", "passed", "failed", "allowed", ""]);
    let mut surprises = Vec::new();
    for row in ROWS {
        let verdict = row.run(&node, &fixtures, &serving, &results)?;
        summary.row(row.cells(&verdict));
        let name = format!("{} {}", row.scenario, row.revision);
        surprises.extend(verdict.surprises.iter().map(|surprise| format!("{name}: {surprise}")));
    }
    summary.print();
    finish(&surprises, &results)
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

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
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
        let folder = results.join(format!("{}-{}-{}", self.role.word(), self.scenario, self.revision));
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
        let Some(checks) = read_checks(folder)? else {
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

    #[test]
    fn every_allowance_has_a_reason() {
        for allowed in ROWS.iter().flat_map(|row| row.allowed) {
            assert!(allowed.reason.split_whitespace().count() > 3, "{} needs a reason", allowed.check);
        }
    }

    #[test]
    fn no_row_stands_twice() {
        let mut rows: Vec<_> = ROWS.iter().map(|row| (row.role.word(), row.revision, row.scenario)).collect();
        rows.sort_unstable();
        let before = rows.len();
        rows.dedup();
        assert_eq!(rows.len(), before);
    }
}
