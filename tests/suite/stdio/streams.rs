//! The streams are left as they were found, and a terminal holds up nobody.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
};

use rustix::{
    fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process},
};
use serde_json::json;

use crate::{
    process::{Running, everything_server, serving, stdio},
    server::{call, ping},
};

fn blocks(fd: impl AsFd) -> bool {
    !fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK)
}

/// What a process is given, and this test has open too, as a shell would.
struct Shared {
    theirs: [OwnedFd; 2],
    into: File,
    from: BufReader<File>,
}

impl Shared {
    fn pipes() -> Self {
        let ((stdin, into), (from, stdout)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        Self {
            theirs: [stdin.into(), stdout.into()],
            into: OwnedFd::from(into).into(),
            from: BufReader::new(OwnedFd::from(from).into()),
        }
    }

    /// One socket for both.
    fn socket() -> Self {
        let (here, there) = UnixStream::pair().unwrap();
        let into = File::from(OwnedFd::from(here));
        let theirs = [OwnedFd::from(there.try_clone().unwrap()), there.into()];
        Self { theirs, from: BufReader::new(into.try_clone().unwrap()), into }
    }

    fn start(&self, command: &mut Command) -> Running {
        let [stdin, stdout] = &self.theirs;
        Running::start(command.stdin(stdin.try_clone().unwrap()).stdout(stdout.try_clone().unwrap()))
    }

    fn answer(&mut self, request: &str) -> String {
        self.into.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        line
    }

    fn block(&self) -> [bool; 2] {
        self.theirs.each_ref().map(blocks)
    }

    /// What is still to be read once nobody can write any more.
    fn rest(self) -> String {
        drop((self.theirs, self.into));
        let (mut from, mut rest) = (self.from, String::new());
        // A socket whose other end is gone with something unread says so behind what was sent.
        let _ = from.read_to_string(&mut rest);
        rest
    }
}

/// A shell, or a sibling, has the same pipe open and does not expect it to be non-blocking.
#[test]
fn c036_streams_block_again_however_serving_ends() {
    for streams in [Shared::pipes, Shared::socket] {
        for how in ["returned", "dropped", "panicked", "unguarded", "signalled", "end of input"] {
            let mut shared = streams();
            let end = matches!(how, "signalled" | "end of input").then_some("returned").unwrap_or(how);
            let process = shared.start(&mut serving(&["noisy", end]));
            assert!(shared.answer(&ping(1)).contains(r#""id":1"#));
            assert_eq!(shared.block(), [false; 2], "{how}: it is served without threads");
            match how {
                "signalled" => {
                    let pid = Pid::from_raw(process.0.id().try_into().unwrap()).unwrap();
                    kill_process(pid, Signal::TERM).unwrap();
                }
                "end of input" => {
                    // Of a socket, the end of one direction; of a pipe, its last writer.
                    if rustix::net::shutdown(&shared.into, rustix::net::Shutdown::Write).is_err() {
                        shared.into = File::open("/dev/null").unwrap();
                    }
                }
                _ => assert!(shared.answer(&call(2, "end", json!({}))).contains(r#""id":2"#)),
            }
            let (ok, _, stderr) = process.end();
            assert!(ok, "{how}: {stderr}");
            assert_eq!(shared.block(), [true; 2], "{how}");
            assert_eq!(shared.rest(), "afterwards\n", "{how}: stdout is what it was");
        }
    }
}

/// What was non-blocking before is so afterwards: somebody else wants it so.
#[test]
fn c036_streams_that_did_not_block_do_not_block_afterwards() {
    let mut shared = Shared::pipes();
    for fd in &shared.theirs {
        fcntl_setfl(fd, fcntl_getfl(fd).unwrap() | OFlags::NONBLOCK).unwrap();
    }
    let process = shared.start(&mut serving(&["noisy", "returned"]));
    shared.answer(&call(1, "end", json!({})));
    assert!(process.end().0);
    assert_eq!(shared.block(), [false; 2]);
    assert_eq!(shared.rest(), "afterwards\n");
}

/// The two ends of a terminal that gives what it takes at once, and repeats nothing.
fn terminal() -> (File, File) {
    use rustix::{
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
        termios::{OptionalActions, tcgetattr, tcsetattr},
    };

    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
    let mut raw = tcgetattr(&terminal).unwrap();
    raw.make_raw();
    tcsetattr(&terminal, OptionalActions::Now, &raw).unwrap();
    (user.into(), terminal.into())
}

/// It ends when it is told to, and not when somebody presses return.
#[test]
fn c036_a_terminal_is_served_and_does_not_hold_up_the_end() {
    let (mut user, terminal) = terminal();
    let mut command = stdio();
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
    let process = Running::start(&mut command);
    user.write_all(format!("{}\n", ping(1)).as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(user.try_clone().unwrap()).read_line(&mut answer).unwrap();
    assert!(answer.contains(r#""id":1"#), "{answer}");
    assert!(blocks(&terminal), "whoever has the terminal open too would trip over it");
    let pid = Pid::from_raw(process.0.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (ok, _, stderr) = process.end();
    assert!(ok, "{stderr}");
    assert!(blocks(&terminal));
}

/// A terminal that some sibling has made non-blocking is read all the same, and left so.
#[test]
fn c036_a_terminal_that_does_not_block_is_served() {
    let (mut user, terminal) = terminal();
    fcntl_setfl(&terminal, fcntl_getfl(&terminal).unwrap() | OFlags::NONBLOCK).unwrap();
    let mut command = stdio();
    let _process = Running::start(command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()));
    let mut answers = BufReader::new(user.try_clone().unwrap());
    for id in 1..=2 {
        user.write_all(format!("{}\n", ping(id)).as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.contains(&format!(r#""id":{id}"#)), "{answer}");
    }
    assert!(!blocks(&terminal));
}

/// Without streams there is nobody to serve, and that is no failure.
#[test]
fn c036_closed_streams_are_served_to_their_end() {
    for closed in ["<&-", "<&- >&-", "<&- >&- 2>&-"] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!(r#"exec "$0" stdio {closed}"#)).arg(everything_server());
        let (ok, stdout, stderr) =
            Running::start(shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped())).end();
        assert!(ok && stdout.is_empty(), "{closed}: {stdout} {stderr}");
    }
    // Where only stdout is closed, what is asked is answered into nothing.
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(r#"exec "$0" stdio >&-"#).arg(everything_server());
    let mut process = Running::start(shell.stdin(Stdio::piped()).stderr(Stdio::piped()));
    process.stdin().write_all(format!("{}\n", ping(1)).as_bytes()).unwrap();
    assert!(process.end().0);
}
