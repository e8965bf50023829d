//! The everything-server as a process: streams of every kind, memory, processor time, and how it ends.

use std::{
    fs,
    io::{Read as _, Seek as _, Write as _},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;

use super::{call, ping};
use crate::process::{Running, everything_server, lines, stdio};

/// Whatever a host connects it to, it reads to the end, answers, and ends well.
#[cfg(unix)]
#[test]
fn c036_every_kind_of_stream_is_served_to_its_end() {
    let asked = format!("{}\n{}\n", ping(1), call(2, "echo", json!({ "text": "x" })));
    let mut file = temporary();
    file.write_all(asked.as_bytes()).unwrap();
    file.rewind().unwrap();
    let (ok, from_file, _) = Running::start(stdio().stdin(file)).end();
    assert!(ok && lines(&from_file).len() == 2, "a file as stdin: {from_file}");

    let out = temporary();
    let mut to_file = Running::start(stdio().stdout(out.try_clone().unwrap()));
    to_file.stdin().write_all(asked.as_bytes()).unwrap();
    assert!(to_file.end().0);
    let (mut out, mut text) = (out, String::new());
    out.rewind().unwrap();
    out.read_to_string(&mut text).unwrap();
    assert_eq!(lines(&text).len(), 2, "a file as stdout");

    let (ok, nothing, stderr) = Running::start(stdio().stdin(Stdio::null())).end();
    assert!(ok && nothing.is_empty(), "nothing as stdin: {stderr}");
    let mut into_nothing = Running::start(stdio().stdout(Stdio::null()));
    into_nothing.stdin().write_all(asked.as_bytes()).unwrap();
    assert!(into_nothing.end().0, "nothing as stdout");
}

/// Some hosts use sockets instead of pipes.
#[cfg(unix)]
#[test]
fn c036_sockets_as_streams_are_served_to_their_end() {
    use std::{net::Shutdown, os::fd::OwnedFd, os::unix::net::UnixStream};

    let (mut here, there) = UnixStream::pair().unwrap();
    let also_there = OwnedFd::from(there.try_clone().unwrap());
    let process = Running::start(stdio().stdin(OwnedFd::from(there)).stdout(also_there));
    here.write_all(format!("{}\n{}\n", ping(1), call(2, "echo", json!({ "text": "x" }))).as_bytes()).unwrap();
    here.shutdown(Shutdown::Write).unwrap();
    assert!(process.end().0);
    let mut text = String::new();
    here.read_to_string(&mut text).unwrap();
    assert_eq!(lines(&text).len(), 2);
}

/// A file of this test's own that is gone with its last handle.
#[cfg(unix)]
fn temporary() -> fs::File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("mcp-suite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    fs::remove_file(path).unwrap();
    file
}

/// Without input there is nothing to do, and without a reader nothing to say: neither may spin.
#[cfg(target_os = "linux")]
#[test]
fn c037_the_end_of_input_costs_no_processor_time() {
    let mut process = Running::start(&mut stdio());
    let mut stdin = process.stdin();
    stdin.write_all(format!("{}\n", call(1, "sleep", json!({ "ms": 1500 }))).as_bytes()).unwrap();
    drop(stdin);
    std::thread::sleep(Duration::from_millis(300));
    let before = process.ticks();
    std::thread::sleep(Duration::from_secs(1));
    let spent = process.ticks() - before;
    assert!(spent < 30, "{spent} hundredths of a second of processor time within one second of waiting");
    let (ok, stdout, stderr) = process.end();
    assert!(ok, "{stderr}");
    assert_eq!(lines(&stdout)[0]["result"]["content"][0]["text"], "slept 1500 ms");
}

/// An idle server with its input open does not spin either.
#[cfg(target_os = "linux")]
#[test]
fn c037_waiting_costs_no_processor_time() {
    let mut process = Running::start(&mut stdio());
    let mut stdin = process.stdin();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let before = process.ticks();
    std::thread::sleep(Duration::from_millis(700));
    let spent = process.ticks() - before;
    assert!(spent < 20, "{spent} hundredths of a second of processor time");
    drop(stdin);
    let (ok, ..) = process.end();
    assert!(ok);
}

/// A host that is gone reads nothing any more: the write fails, the process ends, and nothing panics.
#[test]
fn c037_a_closed_stdout_ends_the_process_without_a_panic() {
    let mut process = Running::start(&mut stdio());
    let mut stdin = process.stdin();
    drop(process.0.stdout.take());
    stdin.write_all(format!("{}\n{}\n", ping(1), call(2, "sleep", json!({ "ms": 60_000 }))).as_bytes()).unwrap();
    // The input stays open: that nobody reads is enough.
    let (_, _, stderr) = process.end();
    assert!(!stderr.contains("panicked"), "{stderr}");
    drop(stdin);
}

/// A line without end may cost time, but not memory.
#[cfg(target_os = "linux")]
#[test]
fn c033_a_line_without_end_does_not_fill_the_memory() {
    let mut process = Running::start(&mut stdio());
    let mut stdin = process.stdin();
    let answers = process.0.stdout.take().unwrap();
    let reading = std::thread::spawn(move || std::io::read_to_string(answers).unwrap());
    stdin.write_all(format!("{}\n{{\"jsonrpc\":\"2.0\",\"id\":2,\"x\":\"", ping(1)).as_bytes()).unwrap();
    let chunk = vec![b'a'; 1 << 20];
    for _ in 0..256 {
        stdin.write_all(&chunk).unwrap();
    }
    let most = process.most_memory();
    assert!(most < 80 << 10, "{most} KiB for a line of 256 MiB, with a bound of 4 MiB");
    stdin.write_all(format!("\"}}\n{}\n", ping(3)).as_bytes()).unwrap();
    drop(stdin);
    assert!(process.end().0);
    let answers = lines(&reading.join().unwrap());
    assert_eq!(answers.len(), 3);
    assert_eq!(
        (&answers[0]["id"], &answers[1]["error"]["code"], &answers[2]["id"]),
        (&json!(1), &json!(-32700), &json!(3))
    );
}

/// Bytes that mean nothing are answered line by line, and the next good line is served.
#[test]
fn c028_a_megabyte_of_noise_is_survived() {
    let mut process = Running::start(&mut stdio());
    let mut stdin = process.stdin();
    let answers = process.0.stdout.take().unwrap();
    let reading = std::thread::spawn(move || std::io::read_to_string(answers).unwrap());
    let mut state = 0x1234_5678_9abc_def1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(1 << 20)
    .collect();
    stdin.write_all(&noise).unwrap();
    stdin.write_all(format!("\n{}\n", ping("alive")).as_bytes()).unwrap();
    drop(stdin);
    assert!(process.end().0);
    let answers = lines(&reading.join().unwrap());
    let (last, others) = answers.split_last().unwrap();
    assert_eq!(last["id"], "alive");
    let lines = noise.split(|byte| *byte == b'\n').count();
    assert!(others.len() <= lines, "{} answers to {lines} lines", others.len());
    assert!(others.iter().all(|answer| answer["id"].is_null()));
}

/// The HTTP form of the program: its memory stays where it was, however many requests come.
#[cfg(target_os = "linux")]
#[test]
fn c050_memory_does_not_grow_with_the_number_of_requests() {
    use std::io::{BufRead as _, BufReader};

    use crate::http::{Connection, Post};

    let mut command = Command::new(everything_server());
    command.args(["http", "--listen", "127.0.0.1:0", "--stateless"]).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut process = Running::start(&mut command);
    let mut line = String::new();
    BufReader::new(process.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("listening on http://").trim_end_matches("/mcp").parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |requests: u32| {
        runtime.block_on(async {
            let mut connection = Connection::open(address).await;
            for id in 0..requests {
                let post = Post::speaking(mcp_core::Revision::LATEST, call(id, "echo", json!({ "text": "x" })));
                connection.write(&post.bytes(address)).await;
                assert_eq!(connection.response().await.unwrap().status(), 200);
            }
        });
    };
    ask(1000);
    let before = process.status("VmRSS:");
    ask(4000);
    let grown = process.status("VmRSS:").saturating_sub(before);
    assert!(grown < 4096, "{grown} KiB more after 4000 requests");
}
