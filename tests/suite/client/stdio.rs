//! A server as a child process, and lines of bytes as such.
//!
//! Specification: *stdio*.

use std::{
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use mcp_suite::{
    Blame, Client, ErrorKind, Limits, MemoryWire,
    client::{CallOptions, Connector, Duplex, IntoTransport, OneWire},
    implementation,
    jsonrpc::Raw,
    stdio::{Child, Lines},
};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf},
    time::timeout,
};

use super::*;
use crate::peer::{
    memory::raw,
    process::{answer, say, shell},
};

const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
const DONE: &str = r#"{"content":[{"type":"text","text":"b"}]}"#;

/// The line of a script that answers the probe as a modern server.
fn probed() -> String {
    answer(0, DISCOVERED)
}

async fn started(child: Child) -> Client {
    soon(Client::connect(child)).await.unwrap()
}

async fn called(client: &Client) -> String {
    soon(client.call::<String>("a", ())).await.unwrap()
}

/// A child that tells what it hears of stderr.
fn heard(child: Child) -> (Child, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let ear = lines.clone();
    (child.on_stderr(move |line| ear.lock().unwrap().push(line.to_owned())), lines)
}

/// Waits until something is so.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let wait = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(8), wait).await.is_ok(), "waited in vain until {what}");
}

/// Whether there is a process of that id, one that ended and was not waited for among them.
fn exists(pid: &str) -> bool {
    // A zombie is gone, only nobody has noticed.
    let script = format!("kill -0 {pid} 2>/dev/null && ! grep -qs '^State:.*Z' /proc/{pid}/status");
    Command::new("sh").arg("-c").arg(script).status().unwrap().success()
}

/// The line of a script that answers a call with its own process's id.
fn tells_its_id(id: u64) -> String {
    let result = r#"{"content":[{"type":"text","text":"pid %s"}]}"#;
    format!("read -r line; printf '{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\\n' $$\n")
}

async fn pid(client: &Client) -> String {
    called(client).await.strip_prefix("pid ").unwrap().to_owned()
}

#[tokio::test]
async fn c030_what_is_no_message_is_passed_over() {
    let noise = [
        say("starting up..."),
        say("ports: 1,2,3"),
        say("[info] ok"),
        say("{not JSON}"),
        say("42"),
        say("\"text\""),
        say("null"),
        say("{}"),
        say(""),
        say("   "),
        say("\u{1b}[32mready\u{1b}[0m \u{2713}"),
        "printf '\\377\\376 no text\\n'\n".into(),
        "head -c 100000 /dev/zero | tr '\\0' x; echo\n".into(),
    ]
    .concat();
    let script =
        [&noise, &noise, &probed(), &noise, &answer(1, DONE), &noise, &answer(2, DONE), "cat >/dev/null"].concat();
    let client = started(shell(&script)).await;
    assert_eq!(client.revision().era(), Era::Modern);
    assert_eq!(called(&client).await, "b");
    assert_eq!(called(&client).await, "b");
}

/// A server that frames its messages as the language server protocol does: what is no line is passed over, and whoever
/// looks is told why.
#[tokio::test]
async fn c040_headers_are_passed_over_and_named() {
    let headers = say("Content-Length: 40\r") + &say("\r");
    let script = [&headers, &probed(), &headers, &answer(1, DONE), "cat >/dev/null"].concat();
    let told = Arc::<Mutex<Vec<String>>>::default();
    let client = Client::builder(implementation!()).observer(Told(told.clone())).connect(shell(&script));
    let client = soon(client).await.unwrap();
    assert_eq!(called(&client).await, "b");
    let told = told.lock().unwrap();
    assert!(told.iter().any(|error| error.contains("language server protocol")), "{told:?}");
}

struct Told(Arc<Mutex<Vec<String>>>);

impl mcp_suite::observer::Observer for Told {
    fn transport_error(&self, _: &mcp_suite::observer::ConnectionEvent, error: &Error) {
        self.0.lock().unwrap().push(error.to_string());
    }
}

/// The same for a legacy server, whose handshake has more to lose.
#[tokio::test]
async fn c030_what_is_no_message_is_passed_over_in_a_handshake() {
    let refusal = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#;
    let hands = initialized("2025-11-25").to_string();
    let noise = say("listening") + &say("Error: none");
    let script = [
        &noise,
        "read -r line\n",
        &say(refusal),
        &noise,
        &answer(1, &hands),
        &noise,
        "read -r line\n",
        &noise,
        &answer(2, DONE),
    ];
    let client = started(shell(&script.map(ToString::to_string).concat())).await;
    assert_eq!(client.revision().era(), Era::Legacy);
    assert_eq!(called(&client).await, "b");
}

/// Lines of Windows, a byte order mark, blank lines, and a last line that nothing ends.
#[tokio::test]
async fn c030_odd_lines_are_lines() {
    let script = format!(
        "printf '\\357\\273\\277'\n{}printf '\\n\\r\\n  \\n'\nread -r line; printf '%s\\r\\n' '{}'\nread -r line; printf '%s' '{}'\n",
        probed(),
        format_args!(r#"{{"jsonrpc":"2.0","id":1,"result":{DONE}}}"#),
        format_args!(r#" {{"jsonrpc":"2.0","id":2,"result":{DONE}}} "#),
    );
    let client = started(shell(&script)).await;
    assert_eq!(called(&client).await, "b");
    assert_eq!(called(&client).await, "b");
}

#[tokio::test]
async fn c032_long_lines_are_delivered_whole() {
    let instructions = "i".repeat(131_072);
    let hands = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {}, "instructions": "LONG" });
    let (head, tail) = hands.to_string().split_once("LONG").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let long = |bytes: usize, filler: &str| format!("head -c {bytes} /dev/zero | tr '\\0' {filler}\n");
    let script = [
        format!("read -r line; printf '%s' '{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{head}'\n"),
        long(131_072, "i"),
        say(&format!("{tail}}}")),
        "read -r line; printf '%s' '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"'\n".into(),
        long(4 << 20, "x"),
        say("\"}]}}"),
        "cat >/dev/null".into(),
    ]
    .concat();
    let client = Client::builder(implementation!()).limits(Limits::default().message_bytes(5 << 20));
    let client = soon(client.connect(shell(&script))).await.unwrap();
    assert_eq!(client.instructions(), Some(instructions.as_str()));
    assert_eq!(called(&client).await.len(), 4 << 20);
    // Without being told anything, a client reads several megabytes.
    let near = (4 << 20) - 1000;
    let script = probed()
        + "read -r line; printf '%s' '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"'\n"
        + &long(near, "x")
        + &say("\"}]}}");
    assert_eq!(called(&started(shell(&script)).await).await.len(), near);
}

/// A large request goes out whole too, to a server that takes its time to read.
#[tokio::test]
async fn c032_a_long_request_goes_out_whole() {
    let measure = "read -r line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"n %s\"}]}}\\n' ${#line}\n";
    // A shell reads a byte at a time.
    let client = started(shell(&format!("{}{measure}", probed()))).await;
    let long = "x".repeat(300_000);
    let told: String = soon(client.call("a", json!({ "long": long }))).await.unwrap();
    let length: usize = told.strip_prefix("n ").unwrap().parse().unwrap();
    assert!(length > long.len(), "{length}");
}

#[tokio::test]
async fn c035_a_child_that_writes_much_to_stderr_does_not_block() {
    let flood = [
        "head -c 70000 /dev/zero | tr '\\0' . >&2\n",
        "i=0; while [ $i -lt 300 ]; do printf '%0200d\\r' $i >&2; i=$((i+1)); done\n",
        "head -c 70000 /dev/zero | tr '\\0' '\\n' >&2\n",
        "head -c 70000 /dev/zero | tr '\\0' '\\377' >&2\n",
        "printf '\\nlast words\\n' >&2\n",
    ]
    .concat();
    let script =
        [&flood, &probed(), &flood, &answer(1, DONE), &flood, &answer(2, DONE)].map(ToString::to_string).concat();
    let (child, lines) = heard(shell(&script));
    let client = started(child).await;
    assert_eq!(called(&client).await, "b");
    assert_eq!(called(&client).await, "b");
    until("stderr was read to its end", || {
        lines.lock().unwrap().iter().filter(|line| *line == "last words").count() == 3
    })
    .await;
    let lines = lines.lock().unwrap();
    assert!(lines.iter().all(|line| line.len() < 256 << 10), "no line is kept that has no end");
}

/// Lines of stderr come as they are written, and what ends without a newline comes at the end.
#[tokio::test]
async fn c035_stderr_is_handed_on_in_lines() {
    let script = "printf 'one\\ntwo\\r\\n' >&2; printf 'bad \\377 byte\\n' >&2;".to_owned()
        + &probed()
        + "printf 'no newline' >&2";
    let (child, lines) = heard(shell(&script));
    let _client = started(child).await;
    until("all lines came", || lines.lock().unwrap().len() == 4).await;
    assert_eq!(*lines.lock().unwrap(), ["one", "two", "bad \u{fffd} byte", "no newline"]);
}

#[tokio::test]
async fn c043_the_environment_reaches_the_child_and_its_text_is_utf_8() {
    let tells = |expression: &str| {
        probed()
            + "read -r line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"<%s>\"}]}}\\n' \""
            + expression
            + "\"\n"
    };
    let mark = "\u{2713} caf\u{e9} \u{1f600}";
    let child = shell(&tells("$PYTHONUTF8 $MARK")).env("PYTHONUTF8", "1").env("MARK", mark);
    assert_eq!(called(&started(child).await).await, format!("<1 {mark}>"));
    // What this process has is inherited, and can be overridden.
    let name = ["CARGO_PKG_NAME", "HOME", "USER", "LANG"].into_iter().find(|name| std::env::var_os(name).is_some());
    let name = name.expect("a variable that shells do not set");
    let inherited = std::env::var(name).unwrap();
    assert_eq!(called(&started(shell(&tells(&format!("${name}")))).await).await, format!("<{inherited}>"));
    let child = shell(&tells(&format!("${name}"))).env(name, "other");
    assert_eq!(called(&started(child).await).await, "<other>");
    // Unless nothing is to be inherited.
    let child = Child::new("/bin/sh").arg("-c").arg(tells(&format!("${name} $MARK"))).env_clear().env("MARK", "only");
    assert_eq!(called(&started(child).await).await, "< only>");
    let child = shell(&tells("$(pwd)")).current_dir("/");
    assert_eq!(called(&started(child).await).await, "</>");
}

/// A locale of the child's own changes nothing: what is no UTF-8 is no message, and the next one is.
#[tokio::test]
async fn c043_a_line_in_another_encoding_is_passed_over() {
    let script = probed()
        + "read -r line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"caf\\351\"}]}}\\n'\n"
        + &answer(2, DONE);
    let client = started(shell(&script).env("LC_ALL", "C")).await;
    let options = CallOptions::new().timeout(Duration::from_millis(500));
    let error = soon(client.call_with::<String>("a", (), options)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::ProtocolInvalid), "{error}");
    // The cancellation is a line of its own, which this script takes for the next call's.
    assert_eq!(called(&client).await, "b");
}

#[tokio::test]
async fn c044_a_server_that_ends_with_its_input_gets_no_signal() {
    let script = "trap 'echo signal >&2; exit' TERM INT HUP\n".to_owned()
        + &probed()
        + &tells_its_id(1)
        + "while read -r line; do :; done; echo done >&2";
    for drops in [false, true] {
        let (child, lines) = heard(shell(&script));
        let client = started(child).await;
        let pid = pid(&client).await;
        assert!(exists(&pid));
        let start = Instant::now();
        if drops {
            drop(client);
            assert!(start.elapsed() < Duration::from_millis(500), "dropping must not wait");
        } else {
            client.disconnect().await;
            assert!(!exists(&pid), "disconnected means that it was waited for");
        }
        until("the child is gone and was waited for", || !exists(&pid)).await;
        until("its last words came", || lines.lock().unwrap().len() == 1).await;
        assert_eq!(*lines.lock().unwrap(), ["done"]);
    }
}

#[tokio::test]
async fn c044_a_server_that_ignores_everything_is_ended_step_by_step() {
    // It notes the signal and stays.
    let script = "trap 'echo term >&2' TERM\n".to_owned()
        + &probed()
        + &tells_its_id(1)
        + "echo ready >&2; while :; do sleep 0.05; done";
    let stubborn = |drops: bool| {
        let script = script.clone();
        async move {
            let (child, lines) = heard(shell(&script));
            let client = started(child).await;
            let pid = pid(&client).await;
            let start = Instant::now();
            let closing = tokio::spawn(async move {
                if drops {
                    drop(client)
                } else {
                    client.disconnect().await
                }
                start.elapsed()
            });
            until("it is told to end", || lines.lock().unwrap().contains(&"term".to_owned())).await;
            let told = start.elapsed();
            until("it is gone and was waited for", || !exists(&pid)).await;
            let gone = start.elapsed();
            let closed = closing.await.unwrap();
            assert!(told > Duration::from_millis(1500) && told < Duration::from_secs(4), "told after {told:?}");
            assert!(gone > Duration::from_millis(4500) && gone < Duration::from_secs(8), "gone after {gone:?}");
            let expected = if drops { Duration::ZERO } else { gone - Duration::from_secs(1) };
            assert!(closed >= expected, "closed after {closed:?}");
            if drops {
                assert!(closed < Duration::from_millis(500), "dropping must not wait: {closed:?}");
            }
        }
    };
    let obedient = async {
        let script = probed() + &tells_its_id(1) + "exec sleep 60";
        let client = started(shell(&script)).await;
        let pid = pid(&client).await;
        let start = Instant::now();
        client.disconnect().await;
        // It does not read its input, and ends when it is told to.
        assert!(start.elapsed() > Duration::from_millis(1500) && start.elapsed() < Duration::from_secs(4));
        assert!(!exists(&pid));
    };
    tokio::join!(stubborn(false), stubborn(true), obedient);
}

/// A pipe that is full must not keep a child alive.
#[tokio::test]
async fn c044_a_server_that_reads_nothing_any_more_is_ended_all_the_same() {
    let script = probed() + &tells_its_id(1) + "exec sleep 60";
    for drops in [false, true] {
        let client = started(shell(&script)).await;
        let pid = pid(&client).await;
        let options = CallOptions::new().timeout(Duration::from_millis(200));
        let long = json!({ "long": "x".repeat(1 << 20) });
        let error = soon(client.call_with::<String>("a", long, options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        if drops {
            drop(client);
        } else {
            let closed = timeout(Duration::from_secs(7), client.disconnect()).await;
            assert!(closed.is_ok(), "disconnecting hangs");
        }
        until("the child is gone", || !exists(&pid)).await;
    }
}

#[tokio::test]
async fn c126_a_process_that_dies_of_the_probe_is_started_again() {
    let hands = initialized("2025-11-25").to_string();
    let script = "echo start >&2; read -r line; case $line in *server/discover*) exit 1;; esac\n".to_owned()
        + &say(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{hands}}}"#))
        + "read -r line\n"
        + &answer(2, DONE);
    let (child, lines) = heard(shell(&script));
    let client = started(child).await;
    assert_eq!(client.revision(), Revision::V2025_11_25);
    assert_eq!(called(&client).await, "b");
    assert_eq!(*lines.lock().unwrap(), ["start", "start"]);
}

/// A process that cannot live at all is started twice and no more.
#[tokio::test]
async fn c126_a_process_that_dies_of_anything_is_an_error() {
    for script in ["echo start >&2", "echo start >&2; exit 3", "echo start >&2; echo usage; exit 2"] {
        let (child, lines) = heard(shell(script));
        let error = soon(Client::connect(child)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
        until("it was started", || lines.lock().unwrap().len() == 2).await;
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let error = soon(Client::connect(Child::new("no-such-program-of-mcp"))).await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportError, mcp_suite::Blame::Transport));
    assert!(error.to_string().contains("no-such-program-of-mcp"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

/// Arguments and environment may hold secrets.
#[test]
fn a_child_tells_no_secrets() {
    let child = Child::new("program").arg("--key=secret").env("KEY", "secret");
    assert!(!format!("{child:?}").contains("secret"), "{child:?}");
}

#[tokio::test]
async fn c140_a_killed_child_fails_its_pending_calls_at_once() {
    // It takes the calls and answers none.
    let script = probed() + &tells_its_id(1) + "while read -r line; do :; done";
    let client = started(shell(&script)).await;
    let pid = pid(&client).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let client = client.clone();
        calls.spawn(async move { client.call::<String>("a", ()).await });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let killed = Instant::now();
    Command::new("sh").arg("-c").arg(format!("kill -9 {pid}")).status().unwrap();
    for outcome in soon(calls.join_all()).await {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransportClosed);
        assert!(error.to_string().contains("ended"), "the cause is told: {error}");
    }
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    until("it was waited for", || !exists(&pid)).await;
    assert_eq!(soon(client.call::<String>("a", ())).await.unwrap_err().kind(), ErrorKind::TransportClosed);
    client.disconnect().await;
}

// ---- lines as such, without a process ----

/// A transport over a byte stream in memory.
type Stream = Duplex<OneWire<Lines<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>>>;

/// A client in lines of at most `max` bytes, and the other end of its byte stream, which holds `buffer` bytes.
fn stream(buffer: usize, max: usize) -> (Stream, BufReader<DuplexStream>) {
    let (here, there) = tokio::io::duplex(buffer);
    let limits = Limits::default().message_bytes(max);
    let (reader, writer) = tokio::io::split(here);
    (Lines::new(reader, writer, max).into_transport(&limits).unwrap(), BufReader::new(there))
}

/// A stream that is there already cannot be opened anew for the other era.
#[tokio::test]
async fn a_stream_that_ends_at_the_probe_ends_the_attempt() {
    let (transport, server) = stream(1 << 10, 1 << 20);
    drop(server);
    let error = soon(Client::connect(transport)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransportClosed);
    assert!(error.to_string().contains("cannot be opened anew"), "{error}");

    let (here, there) = mcp_suite::memory();
    tokio::spawn(mcp_suite::server::serve(everything_server::server(), there));
    let client = soon(Client::connect(here)).await.unwrap();
    assert!(!soon(client.tools()).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn c039_a_character_may_come_in_pieces() {
    // Each read gives a single byte, in both directions.
    let (transport, mut server) = stream(1, 1 << 20);
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for result in [DISCOVERED.to_owned(), r#"{"content":[{"type":"text","text":"€😀"}]}"#.to_owned()] {
            let mut line = String::new();
            server.read_line(&mut line).await.unwrap();
            let id = serde_json::from_str::<Value>(&line).unwrap()["id"].clone();
            asked.push(line);
            let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
            for byte in answer.as_bytes() {
                server.write_all(&[*byte]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        asked
    });
    let client = Client::connect(transport).await.unwrap();
    assert_eq!(client.call::<String>("a", json!({ "t": "€😀" })).await.unwrap(), "€😀");
    assert!(serving.await.unwrap()[1].contains("€😀"));
}

#[tokio::test(start_paused = true)]
async fn c042_what_goes_out_is_one_line_whatever_is_in_it() {
    for era in ERAS {
        let (client, peer) = connected(era, [answers("a", "b"), answers("a\nb", "b")].concat()).await;
        // Values bring their own line feeds: between tokens, and in strings.
        let pretty =
            Raw::parse("{\n  \"text\": \"a\\nb\u{2028}\u{2029}\u{85}\",\r\n\t\"list\": [\n1,\n2 ]\n}").unwrap();
        client.call::<String>("a", &pretty).await.unwrap();
        client.call::<String>("a\nb", json!({ "t": "x\ny\r\nz" })).await.unwrap();
        for frame in peer.frames() {
            assert!(!frame.contains(&b'\n') && !frame.contains(&b'\r'), "{frame:?}");
        }
        let calls: Vec<_> = peer.received().into_iter().filter(|m| m["method"] == "tools/call").collect();
        assert_eq!(calls[0]["params"]["arguments"]["text"], "a\nb\u{2028}\u{2029}\u{85}");
        assert_eq!(calls[1]["params"]["arguments"]["t"], "x\ny\r\nz");
        // Separators of Unicode are no line ends, and travel as they are.
        assert!(String::from_utf8(peer.frames()[peer.frames().len() - 2].to_vec()).unwrap().contains('\u{2028}'));
    }
}

/// The memory that this process holds, in bytes, where the system tells.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? << 10)
}

#[tokio::test]
async fn c033_a_line_without_end_fills_no_memory() {
    const ENDLESS: usize = 256 << 20;
    const MAX: usize = 1 << 20;
    let (transport, mut server) = stream(1 << 16, MAX);
    let grown = Arc::new(AtomicUsize::new(0));
    let most = grown.clone();
    let serving = tokio::spawn(async move {
        let mut line = String::new();
        server.read_line(&mut line).await.unwrap();
        server
            .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{DISCOVERED}}}\n").as_bytes())
            .await
            .unwrap();
        server.read_line(&mut line).await.unwrap();
        // The answer is whole, in one chunk with the beginning of what has no end.
        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{DONE}}}\n{}", "a".repeat(1000));
        server.write_all(answer.as_bytes()).await.unwrap();
        server.read_line(&mut line).await.unwrap();
        let (chunk, before) = (vec![b'a'; 64 << 10], resident().unwrap_or(0));
        for _ in 0..ENDLESS / chunk.len() {
            server.write_all(&chunk).await.unwrap();
            most.fetch_max(resident().unwrap_or(0).saturating_sub(before), Ordering::Relaxed);
        }
        server.write_all(format!("\n{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{DONE}}}\n").as_bytes()).await.unwrap();
        server.read_to_end(&mut Vec::new()).await.unwrap();
    });
    let client = soon(Client::connect(transport)).await.unwrap();
    assert_eq!(called(&client).await, "b");
    // Up to the newline it is dropped; what follows is read.
    let after = timeout(Duration::from_secs(20), client.call::<String>("a", ())).await.unwrap();
    assert_eq!(after.unwrap(), "b");
    let grown = grown.load(Ordering::Relaxed);
    // Other tests run in this process too.
    assert!(grown < ENDLESS / 2, "{grown} bytes more for a limit of {MAX}");
    client.disconnect().await;
    serving.await.unwrap();
}

/// What begins as an answer fails its call, which would wait in vain.
#[tokio::test(start_paused = true)]
async fn c033_an_over_long_answer_fails_its_call_at_once() {
    const MAX: usize = 4096;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"x":"{}"}}}}"#, "x".repeat(2 * MAX));
    let limits = Limits::default().message_bytes(MAX);

    // In memory, where a frame is what it is.
    let script = [modern(), vec![expect(json!({ "id": 1 })), raw(long.clone())], answers("a", "b")].concat();
    let client = Client::builder(implementation!()).limits(limits.clone()).connect(ScriptedPeer::new(script));
    over_long(&client.await.unwrap(), MAX).await;

    // In lines, of which only the start is kept.
    let (transport, mut server) = stream(1 << 16, MAX);
    tokio::spawn(async move {
        let mut lines = String::new();
        for answer in [
            format!(r#"{{"jsonrpc":"2.0","id":0,"result":{DISCOVERED}}}"#),
            long,
            format!(r#"{{"jsonrpc":"2.0","id":2,"result":{DONE}}}"#),
        ] {
            server.read_line(&mut lines).await.unwrap();
            server.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
        server.read_to_end(&mut Vec::new()).await.unwrap();
    });
    let client = Client::builder(implementation!()).limits(limits).connect(transport);
    over_long(&client.await.unwrap(), MAX).await;
}

async fn over_long(client: &Client, limit: usize) {
    let start = tokio::time::Instant::now();
    let error = client.call::<String>("a", ()).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::ProtocolInvalid, Duration::ZERO));
    assert!(error.to_string().contains(&limit.to_string()), "the limit is named: {error}");
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
}

/// A connector whose other end is held by somebody who does not read.
struct Deaf(Mutex<Vec<MemoryWire>>);

impl Connector for Deaf {
    type Wire = MemoryWire;

    fn connect(&self) -> BoxFuture<'_, Result<MemoryWire, Error>> {
        let (here, there) = mcp_suite::memory();
        self.0.lock().unwrap().push(there);
        Box::pin(std::future::ready(Ok(here)))
    }
}

/// Neither what is still to be written nor who does not read it may hold up the end.
#[tokio::test(start_paused = true)]
async fn c140_a_server_that_reads_nothing_does_not_hold_up_the_end() {
    let limits = Limits::default();
    let transport = Duplex::new(Deaf(Mutex::default()), &limits);
    let connecting = Client::builder(implementation!()).connect(transport);
    let error = timeout(Duration::from_secs(120), connecting).await.expect("connecting hangs").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);

    use mcp_suite::FrameSource;
    let deaf = Arc::new(Deaf(Mutex::default()));
    struct Shared(Arc<Deaf>);
    impl Connector for Shared {
        type Wire = MemoryWire;
        fn connect(&self) -> BoxFuture<'_, Result<MemoryWire, Error>> {
            self.0.connect()
        }
    }
    let connecting = tokio::spawn(Client::connect(Duplex::new(Shared(deaf.clone()), &limits)));
    until_paused(|| !deaf.0.lock().unwrap().is_empty()).await;
    let wire = deaf.0.lock().unwrap().pop().unwrap();
    let (mut source, mut sink) = mcp_suite::Wire::split(wire);
    source.next().await.unwrap();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{DISCOVERED}}}"#);
    mcp_suite::FrameSink::send(&mut sink, &mut vec![answer.into()]).await.unwrap();
    let client = connecting.await.unwrap().unwrap();
    // From now on nobody reads; the wire holds 64 frames.
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let client = client.clone();
        calls.spawn(async move { client.call::<String>("a", ()).await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let closed = timeout(Duration::from_secs(60), client.disconnect()).await;
    for outcome in calls.join_all().await {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::TransportClosed);
    }
    assert!(closed.is_ok(), "disconnecting hangs");
}

async fn until_paused(mut so: impl FnMut() -> bool) {
    while !so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A child that still writes when its input ends is read to its end: what it does behind that is done.
#[tokio::test]
async fn c044_a_server_that_says_much_at_the_end_can_say_it() {
    let script = probed() + "cat > /dev/null; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo done >&2";
    let (child, lines) = heard(shell(&script));
    let client = started(child).await;
    let start = Instant::now();
    client.disconnect().await;
    assert!(start.elapsed() < Duration::from_millis(1500), "it took {:?}", start.elapsed());
    until("its last words came", || lines.lock().unwrap().len() == 1).await;
}

/// Why a server is gone is told where it matters: in the error of the call, and of the connection.
#[tokio::test]
async fn c043_the_exit_status_and_the_last_words_are_in_the_error() {
    let dies = "echo first >&2; i=0; while [ $i -lt 20 ]; do echo \"line $i\" >&2; i=$((i+1)); done; exit 3";
    // Before it answers anything, and with a call pending. A call behind that meets a pipe that is closed.
    let error = soon(connect_in(Era::Legacy, shell(dies))).await.unwrap_err();
    for part in ["exit status: 3", "line 10 | line 11", "line 19"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(!error.to_string().contains("line 9 "), "only the last lines: {error}");
    assert_eq!((error.kind(), error.blame()), (ErrorKind::TransportClosed, Blame::Transport));
    let client = started(shell(&(probed() + "read -r line; " + dies))).await;
    let big = json!({ "x": "x".repeat(1 << 20) });
    let (a, b) = soon(async { tokio::join!(client.call::<String>("a", ()), client.call::<String>("b", big)) }).await;
    for error in [a.unwrap_err(), b.unwrap_err()] {
        assert!(error.to_string().contains("exit status: 3") && error.to_string().contains("line 19"), "{error}");
    }
}

/// A signal is told as that, and a server that ends by itself in good order is not called a failure.
#[tokio::test]
async fn other_ends_of_a_child_are_told_as_what_they_are() {
    for (end, told) in [
        ("kill -9 $$", "signal: 9"),
        ("exit 0", "ended (exit status: 0)"),
        ("exec 1>&-; sleep 60", "closed its stdout"),
    ] {
        let client = started(shell(&(probed() + "read -r line; " + end))).await;
        let error = soon(client.call::<String>("a", ())).await.unwrap_err();
        assert!(error.to_string().contains(told), "{end}: {error}");
    }
}

/// What a child says on stderr is bounded in an error, and cannot forge anything in a log.
#[tokio::test]
async fn last_words_are_bounded_and_escaped() {
    let script = "printf '\\033[31mred\\n' >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1";
    let child = shell(script).on_stderr(|_| {});
    let error = soon(connect_in(Era::Legacy, child)).await.unwrap_err().to_string();
    assert!(error.contains("\\u{1b}[31mred") && !error.contains('\u{1b}') && error.len() < 4000, "{error}");
}

/// A wrapper's end is not the server's: all that it has started is ended with it, step by step.
#[cfg(unix)]
#[tokio::test]
async fn c044_what_a_wrapper_has_started_ends_with_it() {
    // The wrapper waits; or it ends at once with its input and leaves the server behind; the server ends when it is told,
    // or ignores that. Each tells the server's id in the answer to the first call.
    let server = |ignores: &str| format!("sh -c '{ignores}while :; do sleep 0.05; done' >/dev/null 2>&1 & pid=$!\n");
    let tells = "read -r line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}\\n' $pid\n";
    let cases = [
        ("", "wait", 1500..4500),
        ("", "cat > /dev/null", 0..1500),
        ("trap \"\" TERM; ", "cat > /dev/null", 2500..7000),
    ];
    for drops in [false, true] {
        let mut ends = tokio::task::JoinSet::new();
        for (ignores, then, within) in cases.clone() {
            let script = server(ignores) + &probed() + tells + then;
            ends.spawn(async move {
                let client = started(shell(&script)).await;
                let pid: u32 = soon(client.call("a", ())).await.unwrap();
                let pid = pid.to_string();
                assert!(exists(&pid));
                let start = Instant::now();
                if drops {
                    drop(client);
                } else {
                    client.disconnect().await;
                    assert!(!exists(&pid), "disconnected means that nothing is left: {then}");
                }
                until("the server is gone", || !exists(&pid)).await;
                let took = start.elapsed().as_millis();
                assert!(within.contains(&took), "{ignores} {then}: gone after {took} ms");
            });
        }
        ends.join_all().await;
    }
}

/// Whoever wants to know how a process ended can wait for it.
#[tokio::test]
async fn an_exit_can_be_waited_for() {
    let child = shell(&(probed() + "cat > /dev/null; exit 7"));
    let exited = child.exited();
    started(child).await.disconnect().await;
    assert_eq!(soon(exited).await.unwrap().code(), Some(7));
    // One that never starts never ends.
    let never = shell("exit").exited();
    assert_eq!(soon(never).await, None);
}

/// Why a server is gone is told to calls that come later too.
#[tokio::test]
async fn c043_the_reason_stays_for_calls_that_come_later() {
    let client = started(shell(&(probed() + "echo out of memory >&2; exit 3")).on_stderr(|_| {})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..2 {
        let error = soon(client.call::<String>("a", ())).await.unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("out of memory"), "{error}");
    }
}

/// What the server has started may hold its stdout open; that the server is gone is seen all the same.
#[tokio::test]
async fn c044_a_server_whose_children_hold_its_stdout_is_seen_to_be_gone() {
    let script = probed() + "read -r line; sleep 60 & echo boom >&2; exit 3";
    let client = started(shell(&script).on_stderr(|_| {})).await;
    let start = Instant::now();
    let error = soon(client.call::<String>("a", ())).await.unwrap_err().to_string();
    assert!(error.contains("exit status: 3") && error.contains("boom"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
}

/// A server that dies of the question for its era is started again: that is not the end that is waited for.
#[tokio::test]
async fn an_exit_is_that_of_the_server_that_is_spoken_to() {
    let script = "read -r line; case \"$line\" in *server/discover*) exit 7;; esac\n".to_owned()
        + &say(
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}"#,
        )
        + "cat > /dev/null; exit 5";
    let child = shell(&script);
    let mut exited = std::pin::pin!(child.exited());
    let client = started(child.clone()).await;
    assert!(timeout(Duration::from_millis(300), &mut exited).await.is_err(), "it runs");
    client.disconnect().await;
    assert_eq!(soon(exited).await.unwrap().code(), Some(5));
}

/// Whatever hears a child's stderr, the child can write.
#[tokio::test]
async fn c035_a_listener_that_panics_does_not_stop_the_child() {
    let script = probed() + "echo one >&2; echo two >&2; head -c 200000 /dev/zero >&2; " + &answer(1, DONE);
    let client = started(shell(&script).on_stderr(|_| panic!("a secret"))).await;
    assert_eq!(called(&client).await, "b");
}
