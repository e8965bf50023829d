//! A child's stderr: read to its end, whatever is in it, handed on, and its last lines kept.

use std::{
    collections::VecDeque,
    io::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
};

use mcp_core::{Secrets, contained, shown};
use mcp_jsonrpc::{Frame, LineDecoder};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::watch,
};

use super::OnLine;

/// The longest line that is handed on or kept; of a longer one, nothing is.
const LINE: usize = 64 << 10;
/// How many lines are kept.
const KEPT: usize = 10;

/// The last lines of a child's stderr, as far as [`Child::keep_stderr`](super::Child::keep_stderr) keeps them. Clones see the
/// same, and what children say that are started again goes on in it. `Debug` says how many lines there are, and not what is in them.
#[derive(Clone, Default)]
pub struct StderrTail(Arc<Mutex<Tail>>);

#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    /// None where nothing is kept.
    most: Option<usize>,
}

impl std::fmt::Debug for StderrTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StderrTail({} lines)", self.lock().lines.len())
    }
}

impl StderrTail {
    /// The lines so far, the oldest first, without their ends. Invalid UTF-8 is replaced; what could forge a terminal command
    /// is as the server wrote it, see [`mcp_core::shown`].
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lock().lines.iter().cloned().collect()
    }

    pub(super) fn keep(&self, most: usize) {
        self.lock().most = Some(most);
    }

    fn keeps(&self) -> bool {
        self.lock().most.is_some()
    }

    fn add(&self, line: &str) {
        let mut tail = self.lock();
        let Some(most) = tail.most else { return };
        tail.bytes += line.len();
        tail.lines.push_back(line.to_owned());
        while tail.bytes > most && tail.lines.len() > 1 {
            tail.bytes -= tail.lines.pop_front().map_or(0, |line| line.len());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last lines that a child wrote to stderr, for the error that tells of its end.
#[derive(Clone)]
pub(super) struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Becomes true when stderr has ended.
    ended: watch::Receiver<bool>,
}

impl std::fmt::Debug for LastWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LastWords").finish_non_exhaustive()
    }
}

impl LastWords {
    /// Reads `stderr` in a task of its own, so that the child never waits for a reader.
    pub(super) fn listen(
        stderr: impl AsyncRead + Unpin + Send + 'static,
        hear: Option<OnLine>,
        tail: StderrTail,
        secrets: Secrets,
    ) -> Self {
        let (lines, (end, ended)) = (Arc::default(), watch::channel(false));
        let kept = Arc::clone(&lines);
        tokio::spawn(async move {
            drain(stderr, (&kept, &secrets), hear.as_deref(), &tail).await;
            end.send_replace(true);
        });
        Self { lines, ended }
    }

    /// What was said last, once all was read.
    pub(super) async fn all(mut self) -> Vec<String> {
        // That the task is gone is as good.
        let _ = self.ended.wait_for(|ended| *ended).await;
        self.so_far()
    }

    pub(super) fn so_far(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    (kept, secrets): (&Mutex<VecDeque<String>>, &Secrets),
    hear: Option<&(dyn Fn(&str) + Send + Sync)>,
    tail: &StderrTail,
) {
    let mut lines = LineDecoder::new(LINE);
    let ours = (hear.is_none() && !tail.keeps()).then(pass_on);
    let tell = |frame| {
        let Frame::Line(line) = frame else { return };
        let line = String::from_utf8_lossy(&line);
        // What is cut, or escaped, would not be found any more.
        keep(kept, &secrets.mask(&line));
        tail.add(&line);
        if hear.is_some_and(|hear| contained(|| hear(&line)).is_err()) {
            tracing::error!("what hears a child's stderr panicked");
        }
    };
    loop {
        let read_before = lines.buffer().len();
        lines.buffer().reserve(4 << 10);
        match stderr.read_buf(lines.buffer()).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                if let Some(ours) = &ours {
                    // Where our own stderr is blocked, some of it is lost; the child is not to wait for that.
                    let _ = ours.try_send(lines.buffer()[read_before..].to_vec());
                }
                std::iter::from_fn(|| lines.next_frame()).for_each(tell);
            }
        }
    }
    lines.finish().into_iter().for_each(tell);
}

fn keep(kept: &Mutex<VecDeque<String>>, line: &str) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == KEPT {
        kept.pop_front();
    }
    kept.push_back(shown(line));
}

/// What is sent here is written to our own stderr, in a thread that nothing waits for.
fn pass_on() -> mpsc::SyncSender<Vec<u8>> {
    const QUEUE: usize = 64;
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(QUEUE);
    let written = std::thread::Builder::new().name("mcp-stderr".into()).spawn(move || {
        for bytes in receiver {
            if std::io::stderr().write_all(&bytes).is_err() {
                break;
            }
        }
    });
    if let Err(error) = written {
        tracing::warn!(%error, "a child's stderr is not passed on");
    }
    sender
}
