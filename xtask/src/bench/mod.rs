//! `cargo xtask bench`: builds our server, its peers and the ceilings in the release profile, and has the program of
//! `bench/` measure them side by side.

mod peers;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Arguments;
use crate::error::Result;
use crate::{process, workspace};

/// Builds and measures. It fails when a server answers wrongly or not at all, and never because one is slow.
pub(crate) fn run(arguments: &Arguments) -> Result {
    let bench = build("bench", "bench")?;
    let mut command = Command::new(bench);
    // Peers log what they answer unless told otherwise.
    command.env("RUST_LOG", "error").args(settings(arguments, &workspace::root().join("docs")));
    for (name, program) in peers::make(arguments.has("--skip-npm")) {
        command.arg("--peer").arg(format!("{name}={program}"));
    }
    process::run(&mut command)
}

/// Builds a package that lies outside the workspace, so that what it depends on is fetched and built by this command
/// alone. Returns one of its programs.
fn build(folder: &str, program: &str) -> Result<PathBuf> {
    let target = workspace::scratch()?.join("bench");
    let mut command = process::cargo();
    command.args(["build", "--release", "--bins", "--manifest-path"]).arg(format!("{folder}/Cargo.toml"));
    process::run(command.arg("--target-dir").arg(&target))?;
    Ok(target.join("release").join(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
}

/// What the program is told of what we were told. A full run writes its report to `docs`.
fn settings(arguments: &Arguments, docs: &Path) -> Vec<OsString> {
    let mut settings = Vec::new();
    for flag in ["--seconds", "--rounds"] {
        if let Some(value) = arguments.value(flag) {
            settings.extend([flag.into(), value.into()]);
        }
    }
    let rows: Vec<&str> = arguments.names().chain(arguments.value("--only")).collect();
    if !rows.is_empty() {
        settings.extend(["--only".into(), rows.join(",").into()]);
    }
    if arguments.has("--smoke") {
        settings.push("--smoke".into());
    } else if rows.is_empty() {
        settings.extend(["--write".into(), docs.into()]);
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings_of(words: &str) -> String {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let known = ["NAME...", "--seconds N", "--rounds N", "--only ROWS", "--smoke", "--skip-npm"];
        let settings = settings(&Arguments::read("bench", &known, &words).unwrap(), Path::new("docs"));
        settings.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn a_full_run_is_written_down_and_part_of_one_is_not() {
        assert_eq!(settings_of(""), "--write docs");
        assert_eq!(settings_of("--rounds 5 --seconds 3 --skip-npm"), "--seconds 3 --rounds 5 --write docs");
        assert_eq!(settings_of("--smoke"), "--smoke");
        assert_eq!(settings_of("http"), "--only http");
    }

    #[test]
    fn rows_are_named_with_and_without_a_flag() {
        assert_eq!(settings_of("http stdio --only ws,pair --smoke"), "--only http,stdio,ws,pair --smoke");
    }
}
