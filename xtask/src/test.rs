//! `cargo xtask test`: everything that a change must pass, cheapest first. It stops at the first failure.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::workspace::Package;
use crate::{autobahn, budget, conformance, debian, fuzz, interop, loom, miri, process, soak, tidy, workspace};

struct Step {
    name: &'static str,
    run: fn(skip_npm: bool) -> Result<Done>,
}

/// Whether a step did its work.
enum Done {
    Yes,
    LeftOut(&'static str),
}

const STEPS: &[Step] = &[
    Step { name: "format", run: |_| cargo(&["fmt", "--all", "--check"]) },
    Step { name: "tidy", run: |_| tidy::run().map(|()| Done::Yes) },
    Step {
        name: "clippy",
        run: |_| cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]),
    },
    Step { name: "each library crate alone", run: |_| crates_alone() },
    Step { name: "tests", run: |_| tests() },
    Step { name: "a short soak", run: |_| soak() },
    Step { name: "documentation", run: |_| documentation() },
    Step { name: "instructions and allocations", run: |_| budget() },
    Step { name: "loom", run: |_| loom::run().map(|()| Done::Yes) },
    Step { name: "Miri", run: |_| without(miri::run()?, "no nightly toolchain with Miri") },
    Step { name: "fuzz targets", run: |_| without(fuzz::smoke()?, "no nightly toolchain") },
    Step { name: "conformance suite", run: conformance },
    Step { name: "WebSocket frames", run: |_| without(autobahn::run()?, "no Python 2.7") },
    Step { name: "foreign peers", run: |skip_npm| interop::run(skip_npm, None).map(|()| Done::Yes) },
];

/// Runs the steps in order.
pub(crate) fn run(skip_npm: bool) -> Result {
    let count = STEPS.len();
    for (index, step) in STEPS.iter().enumerate() {
        let number = index + 1;
        println!("\n=== {number}/{count} {} ===", step.name);
        let started = Instant::now();
        let done = (step.run)(skip_npm).map_err(|error| {
            let code = error.code();
            Error::new(format!("step {number} of {count}, {}, failed: {error}", step.name)).exiting_with(code)
        })?;
        match done {
            Done::Yes => println!("=== {} ok ({:.0} s) ===", step.name, started.elapsed().as_secs_f64()),
            Done::LeftOut(why) => println!("=== {} left out ({why}) ===", step.name),
        }
    }
    println!("\nall steps passed{}", if skip_npm { ", but what needs npm was left out" } else { "" });
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<Done> {
    process::run(process::cargo().args(arguments)).map(|()| Done::Yes)
}

fn documentation() -> Result<Done> {
    println!("with RUSTDOCFLAGS=\"-D warnings\":");
    process::run(process::cargo().env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps"]))?;
    Ok(Done::Yes)
}

fn conformance(skip_npm: bool) -> Result<Done> {
    if skip_npm {
        return Ok(Done::LeftOut("--skip-npm"));
    }
    conformance::run().map(|()| Done::Yes)
}

/// What runs only where the machine has what it takes.
fn without(ran: bool, what: &'static str) -> Result<Done> {
    Ok(if ran { Done::Yes } else { Done::LeftOut(what) })
}

fn tests() -> Result<Done> {
    // It runs the commands of docs/http.md.
    debian::ensure("curl")?;
    cargo(&["test", "--workspace", "--all-features"])
}

/// Linux alone tells what a process takes.
fn soak() -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::LeftOut("no Linux"));
    }
    soak::smoke().map(|()| Done::Yes)
}

/// Callgrind counts on Linux, and so does CI.
fn budget() -> Result<Done> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::LeftOut("no Linux"));
    }
    budget::run(None, false).map(|()| Done::Yes)
}

/// Features only add, and no crate leans on what another crate turns on: each builds bare and with each single feature.
fn crates_alone() -> Result<Done> {
    for package in workspace::metadata()?.packages.iter().filter(|package| package.is_library()) {
        for check in alone(package) {
            process::run(process::cargo().args(check))?;
        }
    }
    Ok(Done::Yes)
}

/// The `cargo clippy` calls for one crate.
fn alone(package: &Package) -> Vec<Vec<String>> {
    let bare = ["clippy", "--quiet", "-p", &package.name, "--no-default-features"].map(str::to_owned).to_vec();
    let features = package.features.keys().filter(|feature| *feature != "default");
    let single = features.map(|feature| {
        let with = ["--features".to_owned(), feature.clone()];
        bare.iter().cloned().chain(with).collect()
    });
    // Warnings count: code that only another feature uses is dead in this one.
    let denying = |call: Vec<String>| call.into_iter().chain(["--", "-D", "warnings"].map(str::to_owned)).collect();
    std::iter::once(bare.clone()).chain(single).map(denying).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_checked_bare_and_once_a_feature_but_not_with_its_defaults() {
        let features = ["client", "default", "server"].map(|feature| (feature.to_owned(), Vec::new()));
        let package = Package { name: "mcp-http".to_owned(), features: features.into(), ..Package::default() };
        let calls: Vec<String> = alone(&package).iter().map(|words| words.join(" ")).collect();
        assert_eq!(
            calls,
            [
                "clippy --quiet -p mcp-http --no-default-features -- -D warnings",
                "clippy --quiet -p mcp-http --no-default-features --features client -- -D warnings",
                "clippy --quiet -p mcp-http --no-default-features --features server -- -D warnings",
            ]
        );
    }
}
