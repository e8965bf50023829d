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

use anyhow::{Context, Result, bail};

use crate::system;

/// How long a server may take to say where it listens.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How many lines it may say before.
const LINES: usize = 20;

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

    /// Starts a server that listens, and says where in one of the first lines of its stderr.
    pub(crate) fn on_sockets(command: &mut Command) -> Result<(Self, SocketAddr)> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let stderr = child.stderr.take();
        let server = Self::new(child);
        let _limit = server.ended_after(START_LIMIT);
        let mut lines = BufReader::new(stderr.context("no stderr")?);
        let address = listening(&mut lines)?;
        // What else it says is a reader's, who may want to know why a round failed.
        thread::spawn(move || std::io::copy(&mut lines, &mut std::io::stderr()));
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
        system::memory(self.id(), "VmHWM:")
    }

    /// The memory that it has, in KiB, where the system tells.
    pub(crate) fn resident(&self) -> Option<u64> {
        system::memory(self.id(), "VmRSS:")
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).id()
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

/// Reads until it says where it listens.
fn listening(lines: &mut impl BufRead) -> Result<SocketAddr> {
    let mut said = String::new();
    for _ in 0..LINES {
        let start = said.len();
        if lines.read_line(&mut said)? == 0 {
            break;
        }
        if let Some(address) = address(&said[start..]) {
            return Ok(address);
        }
    }
    bail!("no `listening on URL`, but `{}`", said.trim())
}

/// The address in `listening on SCHEME://ADDRESS/mcp`.
fn address(line: &str) -> Option<SocketAddr> {
    let (_scheme, rest) = line.trim().strip_prefix("listening on ")?.split_once("://")?;
    rest.strip_suffix("/mcp")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_one_of_the_first_lines() {
        let address = ([127, 0, 0, 1], 4711).into();
        assert_eq!(listening(&mut &b"listening on ws://127.0.0.1:4711/mcp\n"[..]).unwrap(), address);
        assert_eq!(listening(&mut &b"hello\nlistening on http://127.0.0.1:4711/mcp\n"[..]).unwrap(), address);
        assert!(listening(&mut &b"usage: ...\n"[..]).unwrap_err().to_string().contains("usage"));
        assert!(listening(&mut "again\n".repeat(1000).as_bytes()).is_err());
    }
}
