//! The server as a process of its own, which is asked how it is.

use std::{net::SocketAddr, path::PathBuf, process::Stdio, time::Duration};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{Result, counters::Status};

/// How long the server may take for a line, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// How glibc's allocator is told to give back what was freed. By itself it learns to keep large blocks, in arenas that fill
/// up by and by, so that memory grows for hours though no more is allocated.
const ALLOCATOR: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// The server; it ends when this is dropped.
pub(crate) struct Watched {
    /// It holds its Unix socket.
    folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) id: u32,
    #[expect(dead_code, reason = "held for as long as the server is to run")]
    process: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watched {
    /// Starts the server and waits until it serves.
    pub(crate) async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut process = Command::new(std::env::current_exe()?)
            .arg("serve")
            .arg(folder.path().join("socket"))
            .envs(ALLOCATOR)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(id), Some(stdin), Some(stdout)) = (process.id(), process.stdin.take(), process.stdout.take()) else {
            return Err("the server has ended".into());
        };
        let mut lines = BufReader::new(stdout).lines();
        let address = line(&mut lines).await?.parse()?;
        Ok(Self { folder, address, id, process, stdin, lines })
    }

    /// Where it takes connections in lines.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// How it is.
    pub(crate) async fn status(&mut self) -> Result<Status> {
        self.stdin.write_all(b"\n").await?;
        Ok(serde_json::from_str(&line(&mut self.lines).await?)?)
    }
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String> {
    let line = timeout(PATIENCE, lines.next_line()).await.map_err(|_| "the server says nothing")??;
    line.ok_or_else(|| "the server has ended".into())
}
