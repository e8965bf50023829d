//! A child process, watched by a task of its own: how it ends, and how it is made to.

use std::{io, process::ExitStatus, time::Duration};

use tokio::{
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    sync::{OwnedMutexGuard, mpsc, watch},
    time::{sleep, timeout},
};

/// How long the child may take to end by itself once its stdin is closed.
const UNTIL_TERM: Duration = Duration::from_secs(2);
/// How long it may take once it was told to.
const UNTIL_KILL: Duration = Duration::from_secs(3);
/// How often is looked whether what it has started is gone; nothing tells.
const LOOK: Duration = Duration::from_millis(50);

/// A process that was started, and its streams.
pub(super) struct Started {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

#[cfg(not(windows))]
type Child = tokio::process::Child;

/// It and all that it starts are one job, which ends as one, and with this process.
#[cfg(windows)]
type Child = Box<dyn process_wrap::tokio::ChildWrapper>;

impl Started {
    #[cfg(not(windows))]
    pub(super) fn new(mut command: Command) -> io::Result<Self> {
        // What it starts itself belongs to it, and ends with it.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Self::with(child, streams)
    }

    #[cfg(windows)]
    pub(super) fn new(command: Command) -> io::Result<Self> {
        use process_wrap::tokio::{CommandWrap, JobObject, KillOnDrop};

        let mut child = CommandWrap::from(command).wrap(KillOnDrop).wrap(JobObject).spawn()?;
        let streams = (child.stdin().take(), child.stdout().take(), child.stderr().take());
        Self::with(child, streams)
    }

    fn with(child: Child, streams: (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>)) -> io::Result<Self> {
        match streams {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self { child, stdin, stdout, stderr }),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    pub(super) fn watch(
        self,
        life: watch::Sender<Life>,
        place: OwnedMutexGuard<()>,
    ) -> (Process, ChildStdin, ChildStdout, ChildStderr) {
        (Process::watch(self.child, life, place), self.stdin, self.stdout, self.stderr)
    }
}

/// What is known of the processes of a [`Child`](super::Child).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Life {
    /// How many were started so far.
    number: u64,
    /// Whether a client speaks with the last of them.
    pub(super) is_agreed: bool,
    /// How the last of them ended, once it did.
    pub(super) exit: Option<ExitStatus>,
}

/// When and how the process ends.
#[derive(Debug, Clone)]
pub(super) struct Exit(watch::Receiver<Option<ExitStatus>>);

impl Exit {
    /// Waits for its end. `None` if how it ended cannot be told.
    pub(super) async fn status(mut self) -> Option<ExitStatus> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|status| *status)
    }
}

/// A handle on the process. Dropping it kills what is left of the process.
#[derive(Debug)]
pub(super) struct Process {
    exit: Exit,
    /// Tells the task that watches to kill.
    kill: mpsc::Sender<()>,
    group: Group,
    /// The next one is started once this is let go.
    _place: OwnedMutexGuard<()>,
}

impl Process {
    fn watch(mut child: Child, life: watch::Sender<Life>, place: OwnedMutexGuard<()>) -> Self {
        let group = Group::of(&child);
        let (exited, exit) = watch::channel(None);
        let (kill, mut killed) = mpsc::channel(1);
        let number = life.borrow().number + 1;
        life.send_replace(Life { number, is_agreed: false, exit: None });
        tokio::spawn(async move {
            let status = loop {
                tokio::select! {
                    status = child.wait() => break status,
                    Some(()) = killed.recv() => if let Err(error) = child.start_kill() {
                        tracing::debug!(%error, "a child could not be killed");
                    },
                }
            };
            if let Ok(status) = status {
                exited.send_replace(Some(status));
                // Another one may have been started since, and then this is not its end.
                life.send_if_modified(|life| {
                    let is_this = life.number == number;
                    if is_this {
                        life.exit = Some(status);
                    }
                    is_this
                });
            }
        });
        Self { exit: Exit(exit), kill, group, _place: place }
    }

    pub(super) fn exit(&self) -> Exit {
        self.exit.clone()
    }

    /// Its stdin is closed. Waits; then tells it to end, and waits; then kills it. All that it has started goes with it.
    pub(super) async fn end(&self) {
        if timeout(UNTIL_TERM, self.exit().status()).await.is_err() || self.group.is_there() {
            self.group.terminate();
            if timeout(UNTIL_KILL, self.gone()).await.is_err() {
                self.kill();
                // What even this does not end waits for a device, and nobody waits for it.
                let _ = timeout(UNTIL_KILL, self.exit().status()).await;
            }
        }
    }

    /// Waits until neither it nor anything that it has started is there.
    async fn gone(&self) {
        self.exit().status().await;
        while self.group.is_there() {
            sleep(LOOK).await;
        }
    }

    fn kill(&self) {
        self.group.kill();
        // Where there are no groups, this is all.
        let _ = self.kill.try_send(());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.0.borrow().is_none() || self.group.is_there() {
            self.kill();
        }
    }
}

/// The processes that a child has started, and the child.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw))
    }

    fn is_there(self) -> bool {
        self.0.is_some_and(|leader| {
            rustix::process::test_kill_process_group(leader).is_ok() && !is_dead(leader.as_raw_nonzero().get())
        })
    }

    fn terminate(self) {
        self.signal(rustix::process::Signal::TERM);
    }

    fn kill(self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(self, signal: rustix::process::Signal) {
        if let Some(leader) = self.0 {
            // It may have ended just now, which is what was wanted.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

/// Whether all of a group have ended and only wait for a parent to notice. In many containers the first process, which is
/// whose they are then, never does.
#[cfg(target_os = "linux")]
fn is_dead(group: i32) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let stats = processes.flatten().filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let mut alive = stats.filter_map(|stat| {
        // The name, in parentheses, may hold anything; behind it come the state, the parent and the group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, _, of) = (fields.next()?, fields.next()?, fields.next()?);
        Some(!matches!(state, "Z" | "X") && of.parse() == Ok(group))
    });
    !alive.any(|is_alive| is_alive)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_dead(_: i32) -> bool {
    false
}

/// There are no groups and no such signal; killing the child, on Windows with its job, comes next.
#[cfg(not(unix))]
#[derive(Debug, Clone, Copy)]
struct Group;

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self
    }

    fn is_there(self) -> bool {
        false
    }

    fn terminate(self) {}

    fn kill(self) {}
}
