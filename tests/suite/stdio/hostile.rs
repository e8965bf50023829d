//! Children that behave badly, each met by a client in a process of its own, whose memory is told: nothing hangs, nothing is
//! left behind, and the error says what it was.

use std::{
    fs,
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use mcp_core::{Client, Error, ErrorKind, client::CallOptions};
use mcp_stdio::Child;
use serde_json::json;

use crate::{
    peer::process::{answer, shell},
    process::{PATIENCE, Running},
};

const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
const DONE: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

/// The longest line that was heard.
static HEARD: AtomicUsize = AtomicUsize::new(0);

/// In the environment of a child and of all that it starts.
const MARK: &str = "MCP_HOSTILE_CHILD";
/// Which of the cases a process of this test is to meet.
const CASE: &str = "MCP_HOSTILE_CASE";
/// The most memory that a client may ever have had, in KiB. Its program alone has some 30 MiB.
const MOST: u64 = 64 << 10;

const CASES: [&str; 8] = [
    "forks",
    "floods stderr, which is kept",
    "floods stderr, which is heard",
    "floods stderr, which is passed on",
    "prints noise",
    "never reads",
    "exits at once",
    "hangs at exit",
];

/// So many MiB of lines of 32,000 bytes.
fn much(mebibytes: u32) -> String {
    format!("yes \"$(head -c 32000 /dev/zero | tr '\\0' x)\" | head -c {}; echo", u64::from(mebibytes) << 20)
}

fn script(case: &str) -> String {
    let (probed, answered) = (answer(0, DISCOVERED), answer(1, DONE));
    match case {
        "forks" => {
            let fork = "(trap '' TERM; sleep 3600) > /dev/null 2>&1 & (sleep 3600 & sleep 3600) &";
            format!("{}\n{probed}{answered}exec sleep 3600", [fork; 10].concat())
        }
        "prints noise" => format!("{}\n{probed}{}\n{answered}cat > /dev/null", much(32), much(32)),
        "never reads" => format!("{probed}exec sleep 3600"),
        "exits at once" => "echo cannot start >&2; exit 3".into(),
        "hangs at exit" => format!("trap '' TERM INT HUP\n{probed}{answered}while :; do sleep 0.05; done"),
        // A GiB of stderr: while the probe waits, and while a call does.
        _ => format!("{{ {}; }} >&2\n{probed}{{ {}; }} >&2\n{answered}cat > /dev/null", much(512), much(512)),
    }
}

fn child(case: &str) -> Child {
    let child = shell(&script(case)).env(MARK, std::process::id().to_string());
    match case {
        "floods stderr, which is heard" => child.on_stderr(|line| {
            HEARD.fetch_max(line.len(), Ordering::SeqCst);
        }),
        "floods stderr, which is passed on" => child,
        _ => child.keep_stderr(64 << 10),
    }
}

/// Connects, calls, and disconnects.
async fn meet(case: &str) -> Result<String, Error> {
    let client = Client::builder(mcp_core::implementation!());
    let limits = mcp_core::Limits::default().probe_timeout(PATIENCE).request_timeout(PATIENCE);
    let client = client.limits(limits).connect(child(case)).await?;
    // More than a pipe holds, for those that read nothing.
    let (arguments, patience) = match case {
        "never reads" => (json!({ "long": "x".repeat(1 << 20) }), Duration::from_millis(500)),
        _ => (json!({}), PATIENCE),
    };
    let said = client.call_with("a", arguments, CallOptions::new().timeout(patience)).await;
    client.disconnect().await;
    said
}

fn check(case: &str, said: Result<String, Error>) {
    match (case, said) {
        ("never reads", Err(error)) => assert_eq!(error.kind(), ErrorKind::Timeout, "{error}"),
        ("exits at once", Err(error)) => {
            let told = error.to_string();
            assert!(told.contains("exit status: 3") && told.contains("cannot start"), "{told}");
        }
        (_, said) => {
            assert_eq!(said.unwrap(), "done");
            let heard = if case.ends_with("heard") { 32_000 } else { 0 };
            assert_eq!(HEARD.load(Ordering::SeqCst), heard);
        }
    }
}

/// Processes that have the mark of this one's children, be it as a grandchild.
fn left() -> Vec<String> {
    let mark = format!("{MARK}={}", std::process::id());
    let marked = |process: &fs::DirEntry| {
        fs::read(process.path().join("environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(marked);
    processes.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
#[ignore = "it is a process of the test below, and fails by itself"]
fn a_client_meets_a_hostile_child() {
    let case = std::env::var(CASE).expect("which case it is");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let start = Instant::now();
    check(&case, runtime.block_on(meet(&case)));
    let took = start.elapsed();
    // What was killed may take a moment to be gone.
    let patience = Instant::now();
    while !left().is_empty() {
        assert!(patience.elapsed() < PATIENCE, "{case}: {:?} are left", left());
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("{case}: {took:.1?}, {peak} KiB at most");
    assert!(peak < MOST, "{case}: {peak} KiB");
}

#[test]
fn c035_c044_hostile_children_are_survived() {
    for case in CASES {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["stdio::hostile::a_client_meets_a_hostile_child", "--exact", "--ignored", "--nocapture"]);
        command.env(CASE, case).stdin(Stdio::null()).stdout(Stdio::piped());
        // A pipe that nobody reads, for what is passed on.
        let (unread, stderr) = std::io::pipe().unwrap();
        let (ok, stdout, _) = Running::start(command.stderr(stderr)).end();
        assert!(ok, "{case}: {stdout}");
        let told = stdout.lines().find(|line| line.contains("KiB at most")).unwrap();
        println!("{told}");
        drop(unread);
    }
}
