//! `cargo xtask autobahn`: Autobahn's fuzzing client against a server that is our `Socket` and nothing else.
//!
//! The client is a program of Python 2.7, which most machines do not have any more; where there is none, nothing is run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::error::{Doing, Error, Result};
use crate::{process, workspace};

const CLIENT: &str = "autobahntestsuite==25.10.1";

/// Binary messages, which this wire refuses, and compression, which nobody offers.
const EXCLUDED: [&str; 7] = ["1.2.*", "9.2.*", "9.4.*", "9.6.*", "9.8.*", "12.*", "13.*"];

/// Starts the client with its packages, which lie in a folder of their own.
const START: &str = "import site, sys; site.addsitedir(sys.argv.pop(1)); \
                     from autobahntestsuite.wstest import run; run()";

/// How long all cases may take; they take 15 s.
const PATIENCE: Duration = Duration::from_secs(170);

/// Runs all cases; false where there is no Python 2.7. It fails where a case does.
pub(crate) fn run() -> Result<bool> {
    let Some(python) = python() else {
        println!("there is no Python 2.7, which Autobahn's fuzzing client needs");
        return Ok(false);
    };
    let folder = workspace::scratch()?.join("autobahn");
    let packages = packages(&python, &folder)?;
    let server = Echo::start()?;
    let specification = folder.join("cases.json");
    let report = folder.join("report");
    let servers = json!([{ "agent": "ours", "url": format!("ws://{}", server.address), "options": { "version": 18 } }]);
    let cases = json!({
        "outdir": report, "servers": servers, "cases": ["*"], "exclude-cases": EXCLUDED, "exclude-agent-cases": {},
    });
    std::fs::write(&specification, cases.to_string()).doing(|| format!("writing {}", specification.display()))?;
    let mut client = Command::new(python);
    client.args(["-c", START]).arg(packages).args(["-m", "fuzzingclient", "-s"]).arg(&specification);
    client.current_dir(&folder);
    let said = process::listen(&mut client, PATIENCE)?;
    process::expect_success(&client, said.status)?;
    judge(&report.join("index.json")).map(|()| true)
}

fn python() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let pyenv = std::env::home_dir().unwrap_or_default().join(".pyenv/versions/2.7.18/bin");
    let candidates = std::env::split_paths(&path).chain([pyenv]).map(|folder| folder.join("python2.7"));
    // A shim may stand there that leads to nothing.
    candidates.filter(|python| python.is_file()).find(|python| {
        let version = process::listen(Command::new(python).arg("--version"), Duration::from_secs(10));
        version.is_ok_and(|said| said.status.success())
    })
}

/// The client's packages, installed once.
fn packages(python: &Path, folder: &Path) -> Result<PathBuf> {
    let (packages, done) = (folder.join("packages"), folder.join("installed"));
    if std::fs::read_to_string(&done).is_ok_and(|done| done == CLIENT) {
        return Ok(packages);
    }
    std::fs::create_dir_all(folder).doing(|| format!("making {}", folder.display()))?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]).arg(&packages).arg(CLIENT);
    process::run(&mut pip)?;
    std::fs::write(&done, CLIENT).doing(|| format!("writing {}", done.display()))?;
    Ok(packages)
}

/// The server, until it is dropped.
struct Echo {
    child: Child,
    address: String,
}

impl Echo {
    fn start() -> Result<Self> {
        process::run(process::cargo().args(["build", "--quiet", "--package", "mcp-ws", "--example", "echo"]))?;
        let program = workspace::metadata()?.target_directory.join("debug/examples/echo");
        let child = Command::new(program).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.doing(|| "starting the server".to_owned())?;
        let mut address = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut address).doing(|| "reading the server's address".to_owned())?;
        }
        Ok(Self { child, address: address.trim().to_owned() })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It may have ended by itself, which the cases have shown.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, Deserialize)]
struct Case {
    behavior: String,
    #[serde(rename = "behaviorClose")]
    close: String,
}

fn judge(index: &Path) -> Result {
    let index = std::fs::read(index).doing(|| format!("reading {}", index.display()))?;
    let agents: BTreeMap<String, BTreeMap<String, Case>> =
        serde_json::from_slice(&index).doing(|| "reading the report".to_owned())?;
    let cases: Vec<_> = agents.values().flatten().collect();
    let mut counts = BTreeMap::<&str, u32>::new();
    for (name, case) in &cases {
        *counts.entry(&case.behavior).or_default() += 1;
        if case.behavior != "OK" {
            println!("{name:>8} {}", case.behavior);
        }
    }
    println!("{} cases: {counts:?}", cases.len());
    let failed: Vec<&str> = cases.iter().filter(|(_, case)| !passes(case)).map(|(name, _)| name.as_str()).collect();
    match failed.as_slice() {
        [] if cases.len() > 200 => Ok(()),
        [] => Err(Error::new("hardly any case was run")),
        failed => Err(Error::new(format!("cases failed: {}", failed.join(", ")))),
    }
}

fn passes(case: &Case) -> bool {
    [&case.behavior, &case.close]
        .iter()
        .all(|verdict| matches!(verdict.as_str(), "OK" | "NON-STRICT" | "INFORMATIONAL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_passes_by_what_was_said_and_by_how_it_was_closed() {
        let case = |behavior: &str, close: &str| Case { behavior: behavior.to_owned(), close: close.to_owned() };
        assert!(passes(&case("OK", "OK")) && passes(&case("NON-STRICT", "INFORMATIONAL")));
        for failed in [case("FAILED", "OK"), case("OK", "FAILED"), case("OK", "UNCLEAN"), case("", "")] {
            assert!(!passes(&failed), "{failed:?}");
        }
    }
}
