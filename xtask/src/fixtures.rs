//! The example programs under `tests/`, built, and the server started on a port of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use crate::error::{Doing, Error, Result};
use crate::{process, workspace};

/// How long the server may take from its start to its `listening on` line.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The built example programs.
pub(crate) struct Fixtures {
    pub(crate) server: PathBuf,
    pub(crate) client: PathBuf,
}

impl Fixtures {
    /// Builds both programs in the dev profile.
    pub(crate) fn build() -> Result<Self> {
        process::run(process::cargo().args([
            "build",
            "--quiet",
            "-p",
            "everything-server",
            "-p",
            "everything-client",
        ]))?;
        let folder = workspace::metadata()?.target_directory.join("debug");
        let program = |name: &str| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        Ok(Self { server: program("everything-server"), client: program("everything-client") })
    }

    /// Starts `everything-server http` on a free loopback port and waits until it serves.
    pub(crate) fn serve(&self, flags: &[&str]) -> Result<Serving> {
        self.listen("http", flags)
    }

    /// The same over another wire that listens.
    pub(crate) fn listen(&self, wire: &str, flags: &[&str]) -> Result<Serving> {
        let mut command = Command::new(&self.server);
        Serving::start(command.args([wire, "--listen", "127.0.0.1:0"]).args(flags), listening)
    }
}

/// A running server, ended when dropped.
pub(crate) struct Serving {
    child: Child,
    /// The endpoint that the server named, `http://127.0.0.1:PORT/mcp`.
    pub(crate) url: String,
}

impl Serving {
    /// Starts the server and waits until `ready` finds its endpoint in a line of its stderr.
    pub(crate) fn start(command: &mut Command, ready: fn(&str) -> Option<String>) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().doing(|| format!("starting `{}`", process::shown(command)))?;
        let address = watch(child.stderr.take(), ready);
        // The guard exists from here on, so that a server that never gets ready is ended too.
        let mut serving = Serving { child, url: String::new() };
        serving.url = address.recv_timeout(START_LIMIT).map_err(|_| {
            Error::new(format!("`{}` ended or stayed silent instead of naming its endpoint", process::shown(command)))
        })?;
        Ok(serving)
    }
}

/// The URL of a `listening on URL` line.
pub(crate) fn listening(line: &str) -> Option<String> {
    Some(line.strip_prefix("listening on ")?.trim().to_owned())
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Both fail only when the server has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes the server's stderr on, line by line, and sends the endpoint that it names.
fn watch(stderr: Option<ChildStderr>, ready: fn(&str) -> Option<String>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(stderr) = stderr {
        thread::spawn(move || pass_on(BufReader::new(stderr), ready, &sender));
    }
    receiver
}

fn pass_on(lines: impl BufRead, ready: fn(&str) -> Option<String>, sender: &Sender<String>) {
    for line in lines.lines().map_while(std::io::Result::ok) {
        match ready(&line) {
            // Nobody waits any longer once the server is ready or given up.
            Some(url) => drop(sender.send(url)),
            None => eprintln!("server: {line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_taken_from_the_ready_line_whatever_comes_before_it() {
        let (sender, receiver) = mpsc::channel();
        pass_on("starting\nlistening on http://127.0.0.1:4711/mcp\n".as_bytes(), listening, &sender);
        assert_eq!(receiver.try_recv().unwrap(), "http://127.0.0.1:4711/mcp");
    }
}
