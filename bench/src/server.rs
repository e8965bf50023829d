//! A contestant as a process: started, bounded in time, ended when dropped.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

/// How long a server may take to say where it listens.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Server(Arc<Mutex<Child>>);

impl Server {
    /// Starts a server that talks over its stdin and stdout.
    pub(crate) fn on_pipes(command: &mut Command) -> Result<(Self, ChildStdin, ChildStdout)> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting the server")?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let server = Self::new(child);
        Ok((server, input.context("no stdin")?, output.context("no stdout")?))
    }

    /// Starts a server that listens, and says where in the first line of its stderr.
    pub(crate) fn on_sockets(command: &mut Command) -> Result<(Self, SocketAddr)> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let stderr = child.stderr.take();
        let server = Self::new(child);
        let _limit = server.ended_after(START_LIMIT);
        let mut lines = BufReader::new(stderr.context("no stderr")?);
        let mut first = String::new();
        lines.read_line(&mut first)?;
        // What else it says is a reader's, who may want to know why a round failed.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::stderr()));
        let address = address(&first).with_context(|| format!("no `listening on URL`, but `{}`", first.trim()))?;
        Ok((server, address))
    }

    fn new(child: Child) -> Self {
        Self(Arc::new(Mutex::new(child)))
    }

    /// Ends the server after `limit`, unless the guard is dropped before. Whoever reads from it then reads to an end.
    pub(crate) fn ended_after(&self, limit: Duration) -> Limit {
        let (guard, dropped) = mpsc::channel();
        let child = Arc::clone(&self.0);
        thread::spawn(move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                end(&child);
            }
        });
        Limit { _guard: guard }
    }

    /// The most memory that it had, in KiB, where the system tells.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let id = self.0.lock().unwrap_or_else(PoisonError::into_inner).id();
        peak_in(&std::fs::read_to_string(format!("/proc/{id}/status")).ok()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&self.0);
    }
}

/// A bound on the time that something with a server may take.
pub(crate) struct Limit {
    _guard: Sender<()>,
}

fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    // Both fail only when it has ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// The address in `listening on SCHEME://ADDRESS/mcp`.
fn address(line: &str) -> Option<SocketAddr> {
    let (_scheme, rest) = line.trim().strip_prefix("listening on ")?.split_once("://")?;
    rest.strip_suffix("/mcp")?.parse().ok()
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_first_line() {
        assert_eq!(address("listening on ws://127.0.0.1:4711/mcp\n"), Some(([127, 0, 0, 1], 4711).into()));
        assert_eq!(address("usage: …"), None);
    }

    #[test]
    fn the_peak_is_read_from_the_status() {
        assert_eq!(peak_in("VmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nVmRSS: 5 kB\n"), Some(1234));
        assert_eq!(peak_in(""), None);
    }
}
