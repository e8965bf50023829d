//! What the stores of several processes have in common: files by which these take turns, and threads for what waits.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use fs4::fs_std::FileExt as _;
use mcp_core::{BoxFuture, Error};
use serde::de::DeserializeOwned;

use super::StoreLock;
use crate::client::error::AuthError;

/// How long to wait before a lock is asked for again.
const PACE: Duration = Duration::from_millis(50);

/// A file that one holds at a time, be it in this process or another.
#[derive(Debug, Clone)]
pub(super) struct LockFile(PathBuf);

impl LockFile {
    /// The one of that name beside `path`.
    pub(super) fn beside(path: &Path, suffix: &str) -> Self {
        Self(beside(path, suffix))
    }

    /// Holds it for a moment, and waits with the thread.
    pub(super) fn wait(&self) -> io::Result<File> {
        let file = self.open()?;
        file.lock_exclusive()?;
        Ok(file)
    }

    /// Holds it for as long as a login takes. It is asked for again and again: a thread that waits for a login elsewhere would
    /// keep this process from ending.
    pub(super) async fn hold(self) -> Result<StoreLock, Error> {
        loop {
            let this = self.clone();
            let file = blocking(move || {
                let file = this.open()?;
                Ok(file.try_lock_exclusive()?.then_some(file))
            });
            match file.await? {
                Some(file) => return Ok(Box::new(file) as StoreLock),
                None => tokio::time::sleep(PACE).await,
            }
        }
    }

    fn open(&self) -> io::Result<File> {
        owners(OpenOptions::new().write(true).create(true).truncate(false)).open(&self.0)
    }
}

/// `path` with that at its end.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// What was kept. What is wrong with it is not told, as that would hold some of it.
pub(super) fn kept<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    serde_json::from_slice(text).map_err(|_| io::Error::other("what is kept there is none of ours"))
}

/// What is made is its owner's alone.
pub(super) fn owners(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Work that waits for files, on a thread for that.
pub(super) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(async {
        let done = tokio::task::spawn_blocking(work).await;
        let done = done.map_err(|error| AuthError::Store(error.to_string()))?;
        Ok(done.map_err(|error| AuthError::Store(error.to_string()))?)
    })
}
