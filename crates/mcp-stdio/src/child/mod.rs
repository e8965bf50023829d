mod process;
#[cfg(any(windows, test))]
mod resolve;
mod stderr;
mod wire;

use std::{
    ffi::{OsStr, OsString},
    fmt, io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use mcp_core::{
    BoxFuture, Error, ErrorKind, Limits, Secrets,
    client::{Backoff, Connector, Duplex, IntoTransport},
};
use process::{Life, Started};
use stderr::LastWords;
pub use stderr::StderrTail;
use tokio::{
    process::Command,
    sync::{Mutex, OwnedMutexGuard, watch},
};
pub use wire::{ChildSink, ChildSource, ChildWire};

use crate::Lines;

/// A server to be started as a child process, and spoken to over its stdin and stdout.
///
/// It inherits the environment unless told otherwise, and what it writes to stderr appears on this process's own. When
/// the client disconnects or is dropped, its stdin is closed; after 2 s it gets SIGTERM, and 3 s later SIGKILL. On Unix it
/// has a process group of its own, and the signals go to all of that, so that a wrapper such as `npx` or `sh -c` leaves
/// nothing behind but what has left the group. On Windows it has a job, which ends as a whole, and with this process; there
/// is no SIGTERM. When this process is killed on Unix, its stdin ends, and that is all. An error of a connection that it has
/// ended tells its exit status and the last lines of its stderr.
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_core::Error> {
/// use mcp_stdio::Child;
///
/// let server = Child::new("my-server").arg("--stdio").env("LOG", "warn").on_stderr(|line| eprintln!("server: {line}"));
/// let client = mcp_core::Client::connect(server).await?;
/// # client.disconnect().await; Ok(()) }
/// ```
///
/// Specification: *stdio, Shutdown*.
#[derive(Clone)]
#[must_use = "a child is started by connecting to it"]
pub struct Child {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    env_clear: bool,
    current_dir: Option<PathBuf>,
    on_stderr: Option<OnLine>,
    tail: StderrTail,
    restart: Option<Backoff>,
    max_line: usize,
    life: watch::Sender<Life>,
    /// Whoever holds it is the one process that runs.
    place: Arc<Mutex<()>>,
}

/// What hears a line.
type OnLine = Arc<dyn Fn(&str) + Send + Sync>;

impl Child {
    /// A program: a path, or a name that is looked up in `PATH`; on Windows with the extensions of `PATHEXT`, so that `npx`
    /// is `npx.cmd`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            env_clear: false,
            current_dir: None,
            on_stderr: None,
            tail: StderrTail::default(),
            restart: None,
            max_line: Limits::default().message_bytes,
            life: watch::Sender::new(Life::default()),
            place: Arc::default(),
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable of its environment. Where its name tells that it opens something, as `API_KEY` does, the error that tells
    /// the child's last words does not repeat it.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Lets it inherit nothing of the environment.
    pub fn env_clear(mut self) -> Self {
        self.env_clear = true;
        self
    }

    /// Sets its working directory.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.current_dir = Some(directory.into());
        self
    }

    /// Hands each line of its stderr to `hear`, instead of writing it to this process's own.
    ///
    /// Invalid UTF-8 is replaced. `hear` runs in the task that drains stderr and must not block.
    pub fn on_stderr(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(hear));
        self
    }

    /// Keeps the last lines of its stderr, about `bytes` bytes of them, for [`stderr_tail`](Self::stderr_tail), instead of
    /// writing them to this process's own.
    ///
    /// The newest line is kept however long it is, up to 64 KiB; of a longer one nothing is.
    pub fn keep_stderr(self, bytes: usize) -> Self {
        self.tail.keep(bytes);
        self
    }

    /// The last lines of its stderr, now and later, where [`keep_stderr`](Self::keep_stderr) keeps them; else none.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), mcp_core::Error> {
    /// let server = mcp_stdio::Child::new("my-server").keep_stderr(16 << 10);
    /// let tail = server.stderr_tail();
    /// let client = mcp_core::Client::connect(server).await?;
    /// println!("it has said {:?}", tail.lines());
    /// # client.disconnect().await; Ok(()) }
    /// ```
    #[must_use]
    pub fn stderr_tail(&self) -> StderrTail {
        self.tail.clone()
    }

    /// Starts it again when it has ended, or closed its stdout, while a client spoke with it: after the waits of `backoff`,
    /// and as often as that says. Default: no. A server that ended by itself with status 0 is started again too; one whose
    /// client has disconnected is not.
    ///
    /// ```
    /// use mcp_core::client::Backoff;
    ///
    /// let server = mcp_stdio::Child::new("my-server").restart(Backoff::new().tries(3));
    /// ```
    pub fn restart(mut self, backoff: Backoff) -> Self {
        self.restart = Some(backoff);
        self
    }

    /// The exit status of the server that a client has connected to, once it has ended; that of one which dies of the question
    /// for its era, and is started again, is none. Where no client could connect, it is that of the last process, if any.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), mcp_core::Error> {
    /// let server = mcp_stdio::Child::new("my-server");
    /// let exited = server.exited();
    /// let client = mcp_core::Client::connect(server).await?;
    /// client.disconnect().await;
    /// println!("it ended with {:?}", exited.await);
    /// # Ok(()) }
    /// ```
    pub fn exited(&self) -> impl Future<Output = Option<ExitStatus>> + Send + 'static + use<> {
        let mut life = self.life.subscribe();
        async move {
            // It fails where nobody is left who could start another process, or watches one.
            let _ = life.wait_for(|life| life.is_agreed && life.exit.is_some()).await;
            let last = *life.borrow();
            last.exit
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.resolved());
        if self.env_clear {
            command.env_clear();
        }
        if let Some(directory) = &self.current_dir {
            command.current_dir(directory);
        }
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // For a runtime that ends before the child was waited for.
            .kill_on_drop(true);
        command
    }

    #[cfg(not(windows))]
    fn resolved(&self) -> &OsStr {
        &self.program
    }

    #[cfg(windows)]
    fn resolved(&self) -> OsString {
        let path = self.env.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
        resolve::resolve(which::sys::RealSys, &self.program, path.map(|(_, path)| path.as_os_str()))
    }

    /// What it is given by a variable whose name tells that it opens something, and may repeat when it fails. It writes a
    /// line at a time.
    fn secrets(&self) -> Secrets {
        const OPENS: [&str; 6] = ["AUTH", "CRED", "KEY", "PASS", "SECRET", "TOKEN"];
        let mut secrets = Secrets::default();
        for (name, value) in &self.env {
            let name = name.to_string_lossy().to_ascii_uppercase();
            if OPENS.iter().any(|word| name.contains(word)) {
                value.to_string_lossy().lines().for_each(|line| secrets.add(line));
            }
        }
        secrets
    }

    fn spawn(&self, place: OwnedMutexGuard<()>) -> io::Result<ChildWire> {
        let started = Started::new(self.command())?;
        let (process, stdin, stdout, stderr) = started.watch(self.life.clone(), place);
        let last_words = LastWords::listen(stderr, self.on_stderr.clone(), self.tail.clone(), self.secrets());
        Ok(ChildWire { lines: Lines::new(stdout, stdin, self.max_line), process, last_words })
    }
}

impl Connector for Child {
    type Wire = ChildWire;

    /// Starts it, once the one before it is gone: both may want the same lock, or the same port.
    fn connect(&self) -> BoxFuture<'_, Result<ChildWire, Error>> {
        Box::pin(async {
            let place = self.place.clone().lock_owned().await;
            self.spawn(place).map_err(|error| {
                let program = self.program.to_string_lossy();
                Error::caused(ErrorKind::TransportError, format!("`{program}` could not be started"), error)
            })
        })
    }

    fn agreed(&self) {
        self.life.send_modify(|life| life.is_agreed = true);
    }

    fn recovery(&self) -> Option<Backoff> {
        self.restart
    }
}

impl IntoTransport for Child {
    type Transport = Duplex<Self>;

    fn into_transport(mut self, limits: &Limits) -> Result<Self::Transport, Error> {
        self.max_line = limits.message_bytes;
        // That of a clone is another server.
        self.place = Arc::default();
        Ok(Duplex::new(self, limits))
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may hold secrets.
        f.debug_struct("Child").field("program", &self.program).finish_non_exhaustive()
    }
}
