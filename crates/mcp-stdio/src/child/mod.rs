mod process;
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
    BoxFuture, Error, ErrorKind, Limits,
    client::{Connector, Duplex, IntoTransport},
};
use process::{Life, Process};
use stderr::LastWords;
use tokio::{process::Command, sync::watch};
pub use wire::{ChildSink, ChildSource, ChildWire};

use crate::Lines;

/// A server to be started as a child process, and spoken to over its stdin and stdout.
///
/// It inherits the environment unless told otherwise, and what it writes to stderr appears on this process's own. When
/// the client disconnects or is dropped, its stdin is closed; after 2 s it gets SIGTERM, and 3 s later SIGKILL. On Unix it
/// has a process group of its own, and the signals go to all of that, so that a wrapper such as `npx` or `sh -c` leaves
/// nothing behind but what has left the group. An error of a connection that it has ended tells its exit status and the last lines of its stderr.
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
    max_line: usize,
    life: watch::Sender<Life>,
}

/// What hears a line.
type OnLine = Arc<dyn Fn(&str) + Send + Sync>;

impl Child {
    /// A program: a path, or a name that is looked up in `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            env_clear: false,
            current_dir: None,
            on_stderr: None,
            max_line: Limits::default().message_bytes,
            life: watch::Sender::new(Life::default()),
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

    /// Sets a variable of its environment.
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
        let mut command = Command::new(&self.program);
        if self.env_clear {
            command.env_clear();
        }
        if let Some(directory) = &self.current_dir {
            command.current_dir(directory);
        }
        // What it starts itself belongs to it, and ends with it.
        #[cfg(unix)]
        command.process_group(0);
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

    fn spawn(&self) -> io::Result<ChildWire> {
        let mut process = self.command().spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let last_words = LastWords::listen(stderr, self.on_stderr.clone());
        let process = Process::watch(process, self.life.clone());
        Ok(ChildWire { lines: Lines::new(stdout, stdin, self.max_line), process, last_words })
    }
}

impl Connector for Child {
    type Wire = ChildWire;

    fn connect(&self) -> BoxFuture<'_, Result<ChildWire, Error>> {
        let spawned = self.spawn().map_err(|error| {
            let program = self.program.to_string_lossy();
            Error::caused(ErrorKind::TransportError, format!("`{program}` could not be started"), error)
        });
        Box::pin(std::future::ready(spawned))
    }

    fn agreed(&self) {
        self.life.send_modify(|life| life.is_agreed = true);
    }
}

impl IntoTransport for Child {
    type Transport = Duplex<Self>;

    fn into_transport(mut self, limits: &Limits) -> Result<Self::Transport, Error> {
        self.max_line = limits.message_bytes;
        Ok(Duplex::new(self, limits))
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and environment may hold secrets.
        f.debug_struct("Child").field("program", &self.program).finish_non_exhaustive()
    }
}
