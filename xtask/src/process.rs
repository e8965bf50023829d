//! Running other programs: shown before they run, bounded in time where nobody watches them.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error, Result};
use crate::workspace;

/// `cargo`, in the workspace root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root());
    command
}

/// The command as one would type it, with the program's folder left out.
pub(crate) fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program(command)).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// The program's name without its folder.
fn program(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// Prints the command, runs it on this terminal, and fails with its exit code if that is not 0.
pub(crate) fn run(command: &mut Command) -> Result {
    eprintln!("$ {}", shown(command));
    let status = command.status().doing(|| format!("starting `{}`", shown(command)))?;
    expect_success(command, status)
}

/// An error with the program's exit code, unless it succeeded.
pub(crate) fn expect_success(command: &Command, status: ExitStatus) -> Result {
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Error::new(format!("`{}` failed ({status})", shown(command))).exiting_with(code))
}

/// Whether `program` is found on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What a program said before it exited.
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command to its end without a terminal; it is killed, and that is an error, when `limit` has passed.
pub(crate) fn listen(command: &mut Command, limit: Duration) -> Result<Said> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().doing(|| format!("starting `{}`", shown(command)))?;
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    let Some(status) = wait(&mut child, limit).doing(|| format!("waiting for `{}`", shown(command)))? else {
        let (seconds, said) = (limit.as_secs(), text(stdout) + &text(stderr));
        let last = said.lines().last().unwrap_or("nothing");
        let program = program(command);
        return Err(Error::new(format!(
            "`{program}` was still running after {seconds} s and was ended; its last words: {last}"
        )));
    };
    Ok(Said { status, stdout: text(stdout), stderr: text(stderr) })
}

/// The exit status, or `None` after killing a child that outlived `limit`.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Reads a pipe on a thread of its own, so that a full pipe never blocks the child.
fn collect(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What came out of a pipe of a program that has ended. A child of that program may hold the pipe open for ever, so
/// what is still to come must come soon.
fn text(chunks: Receiver<Vec<u8>>) -> String {
    let mut bytes = Vec::new();
    while let Ok(chunk) = chunks.recv_timeout(Duration::from_secs(1)) {
        bytes.extend(chunk);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn listen_keeps_both_streams_and_the_status() {
        let said = listen(&mut shell("echo out; echo err >&2; exit 3"), Duration::from_secs(10)).unwrap();
        assert_eq!((said.stdout.as_str(), said.stderr.as_str(), said.status.code()), ("out\n", "err\n", Some(3)));
    }

    #[test]
    fn listen_does_not_wait_for_what_a_program_leaves_behind() {
        let started = Instant::now();
        let said = listen(&mut shell("echo out; sleep 10 &"), Duration::from_secs(9)).unwrap();
        assert_eq!(said.stdout, "out\n");
        assert!(started.elapsed() < Duration::from_secs(8), "it waited for the sleeping grandchild");
    }

    #[test]
    fn listen_ends_a_program_that_hangs() {
        let message = listen(&mut shell("echo word; exec sleep 30"), Duration::from_secs(1)).err().unwrap().to_string();
        assert!(message.contains("still running") && message.ends_with("its last words: word"), "{message}");
    }

    #[test]
    fn a_failing_program_passes_its_exit_code_on() {
        assert_eq!(run(&mut shell("exit 7")).unwrap_err().code(), 7);
    }
}
