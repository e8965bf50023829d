//! `cargo xtask soak`: a server under mixed work and faults for a long time, watched from outside. The program of
//! `tests/soak` does it all; here it is built and told where to write.

mod record;

use std::path::Path;
use std::process::Command;

pub(crate) use self::record::record;
use crate::arguments::Arguments;
use crate::error::{Doing, Result};
use crate::{process, workspace};

/// Where a long run is written down.
const RECORD: &str = "tests/soak/record.txt";

/// How long it lasts, in minutes.
pub(crate) fn minutes(arguments: &Arguments) -> Result<f64> {
    let minutes = arguments.value("--minutes").map_or(Ok(30.0), str::parse);
    minutes.doing(|| "reading what stands after --minutes".to_owned())
}

/// Runs it in the release profile. It fails where anything was lost, wrong or left behind.
pub(crate) fn run(minutes: f64) -> Result {
    process::run(process::cargo().args(["build", "--quiet", "--release", "-p", "soak"]))?;
    let program = format!("release/soak{}", std::env::consts::EXE_SUFFIX);
    let program = workspace::metadata()?.target_directory.join(program);
    let (root, out) = (workspace::root(), workspace::scratch()?.join("soak"));
    process::run(&mut command(&program, minutes, &out, &root))
}

fn command(program: &Path, minutes: f64, out: &Path, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["run", "--seconds", &(minutes * 60.0).to_string(), "--out"]).arg(out);
    command.arg("--write").arg(root.join("docs")).arg("--record").arg(root.join(RECORD));
    command
}

/// A short run on what the tests were built of.
pub(crate) fn smoke() -> Result {
    let test = ["test", "--workspace", "--all-features", "--test", "smoke", "--", "--ignored", "--nocapture"];
    process::run(process::cargo().args(test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_are_seconds_to_the_program() {
        let words = ["--minutes", "0.5"].map(str::to_owned);
        let minutes = minutes(&Arguments::read("soak", &["--minutes N"], &words).unwrap()).unwrap();
        let shown = process::shown(&command("soak".as_ref(), minutes, "out".as_ref(), "root".as_ref()));
        assert_eq!(shown, "soak run --seconds 30 --out out --write root/docs --record root/tests/soak/record.txt");
    }
}
