use std::{
    ffi::{OsStr, OsString},
    fmt, io,
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use mcp_core::{
    BoxFuture, Error, ErrorKind, FrameSink, Limits, Wire,
    client::{Connector, Duplex, IntoTransport},
};
use mcp_jsonrpc::{Frame, LineDecoder};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::{LineSink, LineSource, Lines};

/// A server to be started as a child process, and spoken to over its stdin and stdout.
///
/// It inherits the environment and stderr unless told otherwise. When the client disconnects or is dropped, its stdin
/// is closed; after 2 s it gets SIGTERM, and 3 s later SIGKILL.
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
}

/// What hears a line.
type OnLine = Arc<dyn Fn(&str) + Send + Sync>;

/// How long the child may take to end by itself once its stdin is closed.
const UNTIL_TERM: Duration = Duration::from_secs(2);
/// How long it may take once it was told to.
const UNTIL_KILL: Duration = Duration::from_secs(3);
/// The longest line of stderr that is handed on; of a longer one, nothing is.
const STDERR_LINE: usize = 64 << 10;

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

    /// Hands each line of its stderr to `hear`, instead of letting it go where this process's own goes.
    ///
    /// Invalid UTF-8 is replaced. `hear` runs in the task that drains stderr and must not block.
    pub fn on_stderr(mut self, hear: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(hear));
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if self.env_clear {
            command.env_clear();
        }
        if let Some(directory) = &self.current_dir {
            command.current_dir(directory);
        }
        let stderr = if self.on_stderr.is_some() { Stdio::piped() } else { Stdio::inherit() };
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            // For a runtime that ends before the child was waited for.
            .kill_on_drop(true);
        command
    }

    fn spawn(&self) -> io::Result<ChildWire> {
        let mut process = self.command().spawn()?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        if let (Some(stderr), Some(hear)) = (process.stderr.take(), self.on_stderr.clone()) {
            tokio::spawn(drain(stderr, hear));
        }
        Ok(ChildWire { lines: Lines::new(stdout, stdin, self.max_line), process })
    }
}

/// Reads stderr to its end, whatever is in it, so that the child never waits for a reader.
async fn drain(mut stderr: impl AsyncRead + Unpin, hear: OnLine) {
    let mut lines = LineDecoder::new(STDERR_LINE);
    let tell = |frame| {
        if let Frame::Line(line) = frame {
            hear(&String::from_utf8_lossy(&line));
        }
    };
    loop {
        lines.buffer().reserve(4 << 10);
        match stderr.read_buf(lines.buffer()).await {
            Ok(0) | Err(_) => break,
            Ok(_) => std::iter::from_fn(|| lines.next_frame()).for_each(tell),
        }
    }
    lines.finish().into_iter().for_each(tell);
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

/// The streams of a child process.
#[derive(Debug)]
pub struct ChildWire {
    lines: Lines<ChildStdout, ChildStdin>,
    process: tokio::process::Child,
}

impl Wire for ChildWire {
    const KIND: &'static str = "stdio";
    type Source = LineSource<ChildStdout>;
    type Sink = ChildSink;

    fn split(self) -> (Self::Source, Self::Sink) {
        let (source, lines) = self.lines.split();
        (source, ChildSink { lines: Some(lines), process: self.process })
    }
}

/// A child's stdin, and the child.
#[derive(Debug)]
pub struct ChildSink {
    /// None once stdin is closed.
    lines: Option<LineSink<ChildStdin>>,
    process: tokio::process::Child,
}

impl FrameSink for ChildSink {
    async fn send(&mut self, frames: &mut Vec<Bytes>) -> io::Result<()> {
        self.lines.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.send(frames).await
    }

    /// Closes stdin and waits; then asks the child to end, and waits; then ends it.
    async fn close(&mut self) -> io::Result<()> {
        self.lines = None;
        if let Ok(ended) = timeout(UNTIL_TERM, self.process.wait()).await {
            return ended.map(drop);
        }
        terminate(&self.process);
        if let Ok(ended) = timeout(UNTIL_KILL, self.process.wait()).await {
            return ended.map(drop);
        }
        self.process.kill().await
    }
}

#[cfg(unix)]
fn terminate(process: &tokio::process::Child) {
    let pid = process.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended just now, which is what was wanted.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// There is no such signal; killing comes next.
#[cfg(not(unix))]
fn terminate(_: &tokio::process::Child) {}
