//! `cargo xtask fuzz`: runs each target of `fuzz/` for a while with cargo-fuzz, and tells how often it ran.
//!
//! What a run learns is kept under cargo's target folder, and the next run starts from it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::arguments::Arguments;
use crate::error::{Doing, Error, Result};
use crate::table::Table;
use crate::{process, workspace};

/// How long each target runs.
pub(crate) fn seconds(arguments: &Arguments) -> Result<u32> {
    match (arguments.has("--smoke"), arguments.has("--long")) {
        (true, true) => Err(Error::new("--smoke and --long exclude each other")),
        (true, false) => Ok(20),
        (false, true) => Ok(600),
        (false, false) => Ok(60),
    }
}

/// What came of one target.
struct Outcome {
    executions: Option<u64>,
    result: Result,
}

/// Runs every target, also after one has failed, and prints the executions.
pub(crate) fn run(seconds: u32) -> Result {
    let targets = targets()?;
    ensure_tools()?;
    let mut table = Table::new(&["target", "executions", ""]);
    let mut failed = Vec::new();
    for target in targets {
        let outcome = fuzz(&target, seconds)?;
        let executions = outcome.executions.map_or("unknown".to_owned(), |count| count.to_string());
        let word = if outcome.result.is_ok() { "ok" } else { "FAILED" };
        table.row([target.clone(), executions, word.to_owned()]);
        failed.extend(outcome.result.is_err().then_some(target));
    }
    table.print();
    if failed.is_empty() { Ok(()) } else { Err(Error::new(format!("fuzz: {} failed", failed.join(", ")))) }
}

/// The binaries that `fuzz/Cargo.toml` declares.
fn targets() -> Result<Vec<String>> {
    let manifest = workspace::root().join("fuzz/Cargo.toml");
    if !manifest.exists() {
        return Err(Error::new("fuzz/Cargo.toml does not exist, so there is no target to run"));
    }
    let packages = workspace::metadata_of(&manifest)?.packages;
    let targets = packages.into_iter().flat_map(|package| package.targets);
    let names: Vec<String> =
        targets.filter(|target| target.kind.iter().any(|kind| kind == "bin")).map(|target| target.name).collect();
    if names.is_empty() { Err(Error::new("fuzz/Cargo.toml declares no target")) } else { Ok(names) }
}

fn ensure_tools() -> Result {
    if !nightly().arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err(Error::new("cargo-fuzz needs the nightly toolchain: rustup toolchain install nightly"));
    }
    if process::on_path("cargo-fuzz") {
        return Ok(());
    }
    process::run(process::cargo().args(["install", "--locked", "cargo-fuzz"]))
}

/// `cargo +nightly`: rustup's own `cargo`, since the one that runs us is bound to our toolchain.
fn nightly() -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").current_dir(workspace::root());
    command
}

fn fuzz(target: &str, seconds: u32) -> Result<Outcome> {
    let scratch = workspace::scratch()?.join("fuzz");
    let learned = scratch.join("corpus").join(target);
    std::fs::create_dir_all(&learned).doing(|| format!("creating {}", learned.display()))?;
    let mut command = nightly();
    command.args(["fuzz", "run", "--target-dir"]).arg(scratch.join("target")).arg(target).arg(learned);
    command.args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1"]);
    watch(&mut command)
}

/// Runs the command, shows its stderr as it comes and takes the count of executions from it.
fn watch(command: &mut Command) -> Result<Outcome> {
    eprintln!("$ {}", process::shown(command));
    let mut child = command.stderr(Stdio::piped()).spawn().doing(|| "starting cargo-fuzz".to_owned())?;
    let mut executions = None;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
            eprintln!("{line}");
            executions = executions_in(&line).or(executions);
        }
    }
    let status = child.wait().doing(|| "waiting for cargo-fuzz".to_owned())?;
    Ok(Outcome { executions, result: process::expect_success(command, status) })
}

fn executions_in(line: &str) -> Option<u64> {
    line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flags: &[&str]) -> Result<u32> {
        let flags: Vec<String> = flags.iter().map(ToString::to_string).collect();
        seconds(&Arguments::read("fuzz", &["--smoke", "--long"], &flags)?)
    }

    #[test]
    fn the_flags_choose_the_time() {
        assert_eq!(chosen(&["--smoke"]).unwrap(), 20);
        assert_eq!(chosen(&["--long"]).unwrap(), 600);
        assert_eq!(chosen(&[]).unwrap(), 60);
        assert!(chosen(&["--smoke", "--long"]).is_err());
    }

    #[test]
    fn executions_are_read_from_the_final_statistics() {
        assert_eq!(executions_in("stat::number_of_executed_units: 1234"), Some(1234));
        assert_eq!(executions_in("stat::average_exec_per_sec:     12"), None);
    }
}
