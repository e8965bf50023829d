//! SIGTERM and Ctrl-C end a server in good order.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::ExitStatusExt as _,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    process::{PATIENCE, Running, serving},
    server::call,
};

fn signal(process: &Running, signal: Signal) {
    let pid = Pid::from_raw(process.0.id().try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A process in which a call runs that takes so long.
fn running(how: &str, ms: u64) -> (Running, std::process::ChildStdin) {
    let mut process = Running::start(&mut serving(&["noisy", how]));
    let mut stdin = process.stdin();
    stdin.write_all(format!("{}\n", call(1, "sleep", json!({ "ms": ms }))).as_bytes()).unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(process.0.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "sleeping\n");
    process.0.stderr = Some(stderr.into_inner());
    (process, stdin)
}

/// The input stays open: the signal is enough. What runs is answered.
#[test]
fn c036_a_signal_ends_a_server_that_has_answered_what_runs() {
    for term in [Signal::TERM, Signal::INT] {
        let (process, _stdin) = running("returned", 1500);
        signal(&process, term);
        let (ok, stdout, stderr) = process.end();
        assert!(ok, "{stderr}");
        assert!(stdout.contains("slept 1500 ms") && stdout.ends_with("afterwards\n"), "{stdout}");
    }
}

/// Whoever presses Ctrl-C again does not want to wait. Here what runs would have an hour.
#[test]
fn c036_a_second_signal_ends_it_at_once() {
    let (mut process, _stdin) = running("returned", 3_600_000);
    let start = Instant::now();
    // Two that come close together may be one.
    while process.0.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE, "it waits for what runs");
        signal(&process, Signal::INT);
        std::thread::sleep(Duration::from_millis(50));
    }
    let (ok, stdout, _) = process.end();
    assert!(ok);
    assert_eq!(stdout, "afterwards\n", "the streams are put back, and the call is not answered");
}

/// The order of the specification: a client closes stdin, waits, and then tells the server to end. It would kill it next.
#[test]
fn a_signal_behind_the_end_of_stdin_ends_it_at_once() {
    let (mut process, stdin) = running("returned", 3_600_000);
    drop(stdin);
    std::thread::sleep(Duration::from_millis(300));
    assert!(process.0.try_wait().unwrap().is_none(), "what runs may finish");
    signal(&process, Signal::TERM);
    let (ok, stdout, _) = process.end();
    assert!(ok);
    assert_eq!(stdout, "afterwards\n", "the streams are put back, and the call is not answered");
}

/// An application that has its own way with signals keeps it.
#[test]
fn signals_are_left_alone_where_that_is_wanted() {
    let (mut process, _stdin) = running("deaf", 3_600_000);
    signal(&process, Signal::TERM);
    assert_eq!(process.0.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
