//! The everything-server and the everything-client as processes.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::io::AsyncBufReadExt as _;

/// The server, built once from what the tests are built from.
pub(crate) fn everything_server() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("everything-server"))
}

/// The client, built once in the same way.
pub(crate) fn everything_client() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build("everything-client"))
}

fn build(program: &str) -> PathBuf {
    // target/PROFILE/deps/suite-HASH
    let test = std::env::current_exe().expect("a test knows its program");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    let (target, profile) = (folder.parent().expect("the target folder"), folder.file_name().expect("the profile"));
    // Asked at run time: clones that share a target folder must not build each other.
    let told = |name: &str, built_in: &str| std::env::var(name).unwrap_or_else(|_| built_in.to_owned());
    let mut cargo = Command::new(told("CARGO", env!("CARGO")));
    // Named together with the suite, so that both are built with the same features of the same crates, once.
    cargo.args(["build", "--quiet", "-p", program, "-p", "suite", "--bins"]);
    cargo.current_dir(told("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))).arg("--target-dir").arg(target);
    cargo.arg("--profile").arg(if profile == "debug" { "dev".as_ref() } else { profile });
    let status = cargo.status().expect("cargo starts");
    assert!(status.success(), "{program} could not be built");
    folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX))
}

/// How long anything may take before it is said to hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The program, serving on pipes.
pub(crate) fn stdio() -> Command {
    serving(&["stdio"])
}

/// The program with these arguments, its streams being pipes.
pub(crate) fn serving(args: &[&str]) -> Command {
    let mut command = Command::new(everything_server());
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The program, serving HTTP and WebSocket at `address` until it is dropped, and the URL that it says it listens at.
pub(crate) async fn listening(address: &str) -> (tokio::process::Child, String) {
    let mut command = tokio::process::Command::new(everything_server());
    command.args(["http", "--listen", address]).stderr(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let stderr = tokio::io::BufReader::new(process.stderr.take().unwrap());
    let said = stderr.lines().next_line().await.unwrap().unwrap();
    let url = said.strip_prefix("listening on ").unwrap_or_else(|| panic!("{said}")).to_owned();
    (process, url)
}

/// A process that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.0.stdin.take().unwrap()
    }

    /// Waits for its end; what it wrote must be little enough for the pipes to hold.
    pub(crate) fn end(mut self) -> (bool, String, String) {
        let start = Instant::now();
        let status = loop {
            match self.0.try_wait().unwrap() {
                Some(status) => break status,
                None if start.elapsed() > PATIENCE => panic!("the process does not end"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let mut read = [String::new(), String::new()];
        if let Some(mut stdout) = self.0.stdout.take() {
            stdout.read_to_string(&mut read[0]).unwrap();
        }
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut read[1]).unwrap();
        }
        let [stdout, stderr] = read;
        (status.success(), stdout, stderr)
    }

    /// Processor time so far, in hundredths of a second.
    #[cfg(target_os = "linux")]
    pub(crate) fn ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        // Behind the name, which may have blanks in it: utime and stime are the fields 14 and 15.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// The most memory that it ever had, in KiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn most_memory(&self) -> u64 {
        self.status("VmHWM:")
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn status(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

/// Messages, one a line.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}
