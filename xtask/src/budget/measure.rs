//! The programs of `tests/budget`, built and run: one counts allocations, Callgrind counts the other's instructions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::budget::Cost;
use crate::error::{Doing, Error, Result};
use crate::{debian, process, workspace};

/// The function that is counted, with all that it calls; its name stands in `tests/budget/src/bin/instructions.rs`.
const COUNTED: &str = "--toggle-collect=*instructions*measured*";

/// Glibc copies and clears much memory with `rep movsb` and `rep stosb`, where the processor is said to be good at it.
/// Callgrind takes each byte of these for an instruction; without them, it counts what moves 32 bytes.
const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-ERMS");

/// How long a function may run, which takes seconds.
const LIMIT: Duration = Duration::from_secs(300);

/// What was built.
pub(super) struct Programs {
    folder: PathBuf,
    /// Where Callgrind leaves what it has counted.
    profiles: PathBuf,
}

/// A function as the program that counts allocations tells of it.
struct Allocated {
    function: String,
    calls: u64,
    allocations: u64,
    bytes: u64,
}

impl Programs {
    pub(super) fn build() -> Result<Self> {
        ensure_valgrind()?;
        process::run(process::cargo().args(["build", "--profile", "budget", "--package", "budget"]))?;
        let metadata = workspace::metadata()?;
        let profiles = metadata.target_directory.join("xtask/budget");
        std::fs::create_dir_all(&profiles).doing(|| format!("creating {}", profiles.display()))?;
        Ok(Self { folder: metadata.target_directory.join("budget"), profiles })
    }

    /// What a call of each function costs whose name contains `only`.
    pub(super) fn measure(&self, only: Option<&str>) -> Result<Vec<Cost>> {
        let asked = |allocated: &Allocated| only.is_none_or(|only| allocated.function.contains(only));
        let costs = self.allocated()?.into_iter().filter(asked).map(|allocated| self.cost(&allocated));
        let costs = costs.collect::<Result<Vec<Cost>>>()?;
        println!("what Callgrind counted is in {}: callgrind_annotate FILE", self.profiles.display());
        if costs.is_empty() { Err(Error::new("no function has such a name")) } else { Ok(costs) }
    }

    fn cost(&self, allocated: &Allocated) -> Result<Cost> {
        let instructions = self.instructions(&allocated.function)?;
        let per_call = |total: u64| (total + allocated.calls / 2) / allocated.calls;
        Ok(Cost {
            function: allocated.function.clone(),
            instructions: per_call(instructions),
            allocations: per_call(allocated.allocations),
            bytes: per_call(allocated.bytes),
        })
    }

    fn allocated(&self) -> Result<Vec<Allocated>> {
        let stdout = run(&mut Command::new(self.folder.join("allocations")))?.stdout;
        stdout.lines().map(allocated).collect()
    }

    /// The instructions of all calls that were measured.
    fn instructions(&self, function: &str) -> Result<u64> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", COUNTED]).arg(out_file(&self.profiles.join(function)));
        // How long the environment is decides how the stack is aligned.
        command.arg(self.folder.join("instructions")).arg(function).env_clear().envs([TUNABLES]);
        match collected(&run(&mut command)?.stderr) {
            Some(count @ 1..) => Ok(count),
            _ => Err(Error::new(format!("Callgrind counted nothing of `{function}`: is `measured` still a function?"))),
        }
    }
}

fn ensure_valgrind() -> Result {
    if !cfg!(target_os = "linux") {
        return Err(Error::new("instructions are counted by Valgrind on Linux, and this is another system"));
    }
    debian::ensure("valgrind")
}

fn out_file(path: &Path) -> String {
    format!("--callgrind-out-file={}", path.display())
}

fn run(command: &mut Command) -> Result<process::Said> {
    let said = process::listen(command, LIMIT)?;
    if !said.status.success() {
        eprint!("{}", said.stderr);
    }
    process::expect_success(command, said.status)?;
    Ok(said)
}

/// A line `FUNCTION CALLS ALLOCATIONS BYTES`.
fn allocated(line: &str) -> Result<Allocated> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse().doing(|| format!("`{word}` in the line `{line}`"));
    match words[..] {
        [function, calls, allocations, bytes] => Ok(Allocated {
            function: function.to_owned(),
            calls: number(calls)?,
            allocations: number(allocations)?,
            bytes: number(bytes)?,
        }),
        _ => Err(Error::new(format!("no function and three numbers: `{line}`"))),
    }
}

/// The count in Callgrind's last words: `==123== Collected : 4567`.
fn collected(stderr: &str) -> Option<u64> {
    let count = stderr.lines().find_map(|line| line.split_once("Collected : "))?.1;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_among_what_callgrind_says() {
        assert_eq!(collected("==7== \n==7== Events    : Ir\n==7== Collected : 4567\n==7==\n"), Some(4567));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }

    #[test]
    fn a_line_about_allocations_has_a_name_and_three_numbers() {
        assert_eq!(allocated("decode 128 256 1024").unwrap().allocations, 256);
        assert!(allocated("decode 128").is_err());
        assert!(allocated("decode 128 256 many").is_err());
    }
}
