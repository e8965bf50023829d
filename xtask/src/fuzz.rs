//! `cargo xtask fuzz`: runs each target of `fuzz/` for a while with cargo-fuzz, and tells how often it ran.
//!
//! It starts from the seeds in `fuzz/corpus` and from what earlier runs learned, which is kept under cargo's target
//! folder, and knows the words in `fuzz/dict`. What long runs come to is added up in `fuzz/record.txt`, after each target, so
//! that a run that is broken off has not run in vain.

mod record;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::arguments::Arguments;
use crate::error::{Doing, Error, Result};
use crate::table::Table;
use crate::{nightly, process, workspace};
pub(crate) use record::{Record, Run};

/// How long a target runs in CI, by default, and where the record is about.
const SMOKE: u32 = 5;
const USUAL: u32 = 60;
const LONG: u32 = 1200;

/// How long each target runs.
pub(crate) fn seconds(arguments: &Arguments) -> Result<u32> {
    match (arguments.has("--smoke"), arguments.has("--long")) {
        (true, true) => Err(Error::new("--smoke and --long exclude each other")),
        (true, false) => Ok(SMOKE),
        (false, true) => Ok(LONG),
        (false, false) => Ok(USUAL),
    }
}

/// What came of one target.
struct Outcome {
    run: Run,
    result: Result,
}

/// Runs as CI does; false where there is no nightly toolchain, and none to be had.
pub(crate) fn smoke() -> Result<bool> {
    if !nightly::ensure(&[]) {
        println!("there is no nightly toolchain, which cargo-fuzz needs");
        return Ok(false);
    }
    run(SMOKE, None).map(|()| true)
}

/// Runs every target, or that one, also after one has failed, and prints the executions.
pub(crate) fn run(seconds: u32, only: Option<&str>) -> Result {
    let targets: Vec<String> = targets()?.into_iter().filter(|target| only.is_none_or(|only| only == target)).collect();
    if targets.is_empty() {
        return Err(Error::new("fuzz/Cargo.toml declares no such target"));
    }
    ensure_tools()?;
    let mut table = Table::new(&["target", "executions", "edges", ""]);
    let (mut failed, mut record) = (Vec::new(), Record::read()?);
    for target in targets {
        let Outcome { run, result } = fuzz(&target, seconds)?;
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        table.row([target.clone(), run.executions.to_string(), run.edges.to_string(), word.to_owned()]);
        record.add(&target, &run);
        if seconds == LONG {
            record.write()?;
        }
        failed.extend(result.is_err().then_some(target));
    }
    table.print();
    if failed.is_empty() { Ok(()) } else { Err(Error::new(format!("fuzz: {} failed", failed.join(", ")))) }
}

/// The binaries that `fuzz/Cargo.toml` declares.
fn targets() -> Result<Vec<String>> {
    let packages = workspace::metadata_of(&workspace::root().join("fuzz/Cargo.toml"))?.packages;
    let targets = packages.into_iter().flat_map(|package| package.targets);
    Ok(targets.filter(|target| target.kind.iter().any(|kind| kind == "bin")).map(|target| target.name).collect())
}

fn ensure_tools() -> Result {
    if !nightly::ensure(&[]) {
        return Err(Error::new("cargo-fuzz needs the nightly toolchain: rustup toolchain install nightly"));
    }
    if process::on_path("cargo-fuzz") {
        return Ok(());
    }
    process::run(process::cargo().args(["install", "--locked", "cargo-fuzz"]))
}

fn fuzz(target: &str, seconds: u32) -> Result<Outcome> {
    let scratch = workspace::scratch()?.join("fuzz");
    let learned = scratch.join("corpus").join(target);
    std::fs::create_dir_all(&learned).doing(|| format!("creating {}", learned.display()))?;
    let seeds = workspace::root().join("fuzz/corpus").join(target);
    let mut command = nightly::cargo();
    command.args(["fuzz", "run", "--target-dir"]).arg(scratch.join("target")).arg(target).arg(learned).arg(seeds);
    command.args(["--", &format!("-max_total_time={seconds}"), "-print_final_stats=1", "-timeout=20"]);
    if seconds == LONG {
        // Left to itself, it takes hours until it tries inputs that are longer than the seeds.
        command.args(["-len_control=0", &format!("-max_len={}", longest(target))]);
    }
    if let Some(dictionary) = dictionary(target) {
        let path = workspace::root().join("fuzz/dict").join(dictionary);
        command.arg(format!("-dict={}", path.display()));
    }
    watch(&mut command)
}

/// The longest input, in bytes: what cuts a stream into pieces has buffers that only fill in long ones.
fn longest(target: &str) -> u32 {
    match target {
        "lines" | "events" => 64 << 10,
        _ => 4 << 10,
    }
}

/// The file in `fuzz/dict` with the words that a target's input is made of, where it is text.
fn dictionary(target: &str) -> Option<&'static str> {
    match target {
        "envelope" | "json" | "lines" | "skills" => Some("json.dict"),
        "events" => Some("events.dict"),
        "challenges" => Some("challenges.dict"),
        _ => None,
    }
}

/// Runs the command, shows its stderr as it comes and takes from it what the run came to.
fn watch(command: &mut Command) -> Result<Outcome> {
    eprintln!("$ {}", process::shown(command));
    let mut child = command.stderr(Stdio::piped()).spawn().doing(|| "starting cargo-fuzz".to_owned())?;
    let (mut run, mut fuzzed) = (Run::default(), None);
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
            eprintln!("{line}");
            if begins(&line) {
                fuzzed = Some(Instant::now());
            }
            run.executions = executions_in(&line).unwrap_or(run.executions);
            run.edges = edges_in(&line).unwrap_or(run.edges);
        }
    }
    let status = child.wait().doing(|| "waiting for cargo-fuzz".to_owned())?;
    run.seconds = fuzzed.map_or(0, |fuzzed| fuzzed.elapsed().as_secs());
    Ok(Outcome { run, result: process::expect_success(command, status) })
}

/// The target is built, and runs.
fn begins(line: &str) -> bool {
    line.starts_with("INFO: Seed: ")
}

fn executions_in(line: &str) -> Option<u64> {
    line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok()
}

/// `#2097152 REDUCE cov: 721 ft: 2914 …`
fn edges_in(line: &str) -> Option<u64> {
    let (_, behind) = line.strip_prefix('#')?.split_once(" cov: ")?;
    behind.split_whitespace().next()?.parse().ok()
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
        assert_eq!(chosen(&["--smoke"]).unwrap(), 5);
        assert_eq!(chosen(&["--long"]).unwrap(), 1200);
        assert_eq!(chosen(&[]).unwrap(), 60);
        assert!(chosen(&["--smoke", "--long"]).is_err());
    }

    #[test]
    fn only_the_time_of_the_fuzzer_itself_counts() {
        assert!(begins("INFO: Seed: 1512345678"));
        assert!(!begins("   Compiling fuzz v0.0.0") && !begins("INFO: seed corpus: files: 40"));
    }

    #[test]
    fn every_dictionary_is_there_and_every_word_in_it_is_one() {
        for target in ["envelope", "events", "challenges"] {
            let path = workspace::root().join("fuzz/dict").join(dictionary(target).unwrap());
            let text = std::fs::read_to_string(path).unwrap();
            let words = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            assert!(words.clone().count() > 10);
            assert!(words.clone().all(|word| word.len() > 2 && word.starts_with('"') && word.ends_with('"')), "{text}");
        }
    }

    #[test]
    fn what_a_run_came_to_is_read_from_what_it_says() {
        assert_eq!(executions_in("stat::number_of_executed_units: 1234"), Some(1234));
        assert_eq!(executions_in("stat::average_exec_per_sec:     12"), None);
        assert_eq!(edges_in("#55654633\tREDUCE cov: 721 ft: 2914 corp: 894/82Kb"), Some(721));
        assert_eq!(edges_in("INFO: cov: 3"), None);
    }
}
