//! Nothing but messages reaches the protocol's stream, whoever prints.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::{
    process::{Running, lines, serving},
    server::{call, ping, text},
};

/// Handlers and the processes that they start print whatever they like; it is seen on stderr and harms nobody.
#[test]
fn c030_what_is_printed_goes_to_stderr() {
    let asked = format!("{}\n{}\n{}\n", ping(1), call(2, "print", json!({})), ping(3));
    let mut process = Running::start(&mut serving(&["noisy", "returned"]));
    process.stdin().write_all(asked.as_bytes()).unwrap();
    let (ok, stdout, stderr) = process.end();
    assert!(ok, "{stderr}");
    let messages = stdout.strip_suffix("afterwards\n").expect("stdout is put back at the end");
    let mut ids: Vec<u64> = lines(messages).iter().map(|message| message["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    for printed in ["a handler prints\n", "a child prints\n", "and does not end its line"] {
        assert!(stderr.contains(printed), "{printed} is not in {stderr}");
    }
}

/// A process that a handler starts inherits stdin, and would take the next requests.
#[test]
fn c030_a_process_that_is_started_reads_nothing_of_the_protocol() {
    let mut process = Running::start(&mut serving(&["noisy", "returned"]));
    let (mut stdin, mut stdout) = (process.stdin(), BufReader::new(process.0.stdout.take().unwrap()));
    for (id, request) in [call(1, "steal", json!({})), ping(2)].into_iter().enumerate() {
        stdin.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id + 1);
        if id == 0 {
            assert_eq!(text(&answer), "read <>");
        }
    }
    drop(stdin);
    assert!(process.end().0);
}

/// Whoever wants the streams for itself has them.
#[test]
fn c030_without_the_guard_what_is_printed_is_in_between() {
    let mut process = Running::start(&mut serving(&["noisy", "unguarded"]));
    process.stdin().write_all(format!("{}\n", call(1, "print", json!({}))).as_bytes()).unwrap();
    let (ok, stdout, stderr) = process.end();
    assert!(ok, "{stderr}");
    assert!(stdout.starts_with("a handler prints\na child prints\n"), "{stdout}");
}

/// Two cannot share the streams: messages would go to whoever reads first.
#[test]
fn streams_are_served_once_at_a_time() {
    let mut process = Running::start(&mut serving(&["noisy", "twice"]));
    let (mut stdin, mut stderr) = (process.stdin(), BufReader::new(process.0.stderr.take().unwrap()));
    let mut refused = String::new();
    stderr.read_line(&mut refused).unwrap();
    assert!(refused.contains("cannot be served"), "{refused}");
    stdin.write_all(format!("{}\n", ping(1)).as_bytes()).unwrap();
    drop(stdin);
    let (ok, stdout, _) = process.end();
    assert!(ok && stdout.contains(r#""id":1"#), "{stdout}");
}
