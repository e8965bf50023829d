//! What is kept of a child's stderr, and whether it is started again.

use std::time::Duration;

use mcp_core::{
    Client, Limits, Revision,
    client::{Backoff, Changed, IntoTransport as _, Transport as _},
    implementation,
    types::NotificationFilter,
};
use mcp_stdio::{Child, StderrTail};
use serde_json::json;

use crate::{
    http::soon,
    peer::process::{answer, shell},
    server::until,
};

const DISCOVERED: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;

async fn kept(tail: &StderrTail, last: &str) -> Vec<String> {
    until("all of stderr was read", async || tail.lines().last().is_some_and(|line| line == last)).await;
    tail.lines()
}

/// The tail is there as soon as the server says something, and stays when it is gone.
#[tokio::test]
async fn the_end_of_stderr_is_kept_where_that_is_wanted() {
    let script = "echo one >&2; printf 'two\\r\\n\\377\\n' >&2; ".to_owned()
        + &answer(0, DISCOVERED)
        + "cat > /dev/null; printf 'no newline' >&2";
    let child = shell(&script).keep_stderr(1 << 10);
    let tail = child.stderr_tail();
    assert!(tail.lines().is_empty());
    let client = soon("a client", Client::connect(child)).await.unwrap();
    assert_eq!(kept(&tail, "\u{fffd}").await, ["one", "two", "\u{fffd}"]);
    client.disconnect().await;
    assert_eq!(kept(&tail, "no newline").await, ["one", "two", "\u{fffd}", "no newline"]);
}

/// It holds so many bytes, and the newest line, whatever comes.
#[tokio::test]
async fn what_is_kept_of_stderr_is_bounded() {
    let long = "x".repeat(100);
    let hundred = "i=0; while [ $i -lt 100 ]; do echo \"line $((100 + i))\" >&2; i=$((i+1)); done";
    for (most, script, last, expected) in [
        // Each of them has 8 bytes.
        (24, hundred.to_owned(), "line 199", vec!["line 197", "line 198", "line 199"]),
        (23, hundred.to_owned(), "line 199", vec!["line 198", "line 199"]),
        (0, hundred.to_owned(), "line 199", vec!["line 199"]),
        (24, format!("echo short >&2; echo {long} >&2"), &*long, vec![&*long]),
    ] {
        let child = shell(&(script + "\n" + &answer(0, DISCOVERED) + "cat > /dev/null")).keep_stderr(most);
        let tail = child.stderr_tail();
        let client = soon("a client", Client::connect(child)).await.unwrap();
        assert_eq!(kept(&tail, last).await, expected, "{most} bytes");
        client.disconnect().await;
    }
}

/// Nobody asked for it, so nothing is kept.
#[tokio::test]
async fn nothing_of_stderr_is_kept_unasked() {
    let child = shell(&("echo one >&2; ".to_owned() + &answer(0, DISCOVERED) + "cat > /dev/null")).on_stderr(|_| {});
    let tail = child.stderr_tail();
    soon("a client", Client::connect(child)).await.unwrap().disconnect().await;
    assert!(tail.lines().is_empty());
}

/// The client asks its transport how to come back; a child that is not to be started again says that it cannot.
#[test]
fn a_child_is_started_again_only_where_that_is_wanted() {
    let recovery = |child: Child| child.into_transport(&Limits::default()).unwrap().recovery();
    assert_eq!(recovery(Child::new("server")), None);
    let backoff = Backoff::new().first(Duration::from_millis(10)).tries(3);
    assert_eq!(recovery(Child::new("server").restart(backoff)), Some(backoff));
}

/// What opens the wire anew starts a process anew, whatever became of the last one, and the tail goes on.
#[tokio::test]
async fn opening_a_child_again_starts_another_process() {
    let child = shell("echo started >&2; exit 0").keep_stderr(1 << 10).restart(Backoff::new());
    let tail = child.stderr_tail();
    let transport = child.into_transport(&Limits::default()).unwrap();
    for times in 1..=3 {
        transport.open(mcp_core::client::Inbox::new(&Limits::default())).await.unwrap();
        until("it has started", async || tail.lines().len() == times).await;
    }
    transport.close().await;
}

/// The process behind a client, from outside: each tells its number when it starts.
async fn started(tail: &StderrTail, times: usize) -> String {
    until("it has started", async || tail.lines().len() == times).await;
    tail.lines().pop().unwrap()
}

/// In either era: calls find the new process, and whoever listens goes on.
#[tokio::test]
async fn a_child_that_is_killed_is_started_again_and_one_that_is_disconnected_is_not() {
    let server = crate::process::everything_server().display();
    let script = format!("echo $$ >&2; exec '{server}' stdio");
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let child = shell(&script).keep_stderr(1 << 10).restart(Backoff::new().first(Duration::from_millis(10)));
        let tail = child.stderr_tail();
        let builder = Client::builder(implementation!()).revisions([revision]);
        let client = soon("a client", builder.connect(child)).await.unwrap();
        let mut changes = client.listen(NotificationFilter::new().tools()).await.unwrap();
        for times in 1..=3 {
            let process = started(&tail, times).await;
            assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
            let killed = std::process::Command::new("kill").args(["-9", &process]).status().unwrap();
            assert!(killed.success());
            // Anything may have changed meanwhile.
            assert_eq!(soon("a change", changes.next()).await, Some(Changed::Tools), "{revision}");
        }
        started(&tail, 4).await;
        assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
        client.disconnect().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(tail.lines().len(), 4, "{revision}");
    }
}

/// A server that has closed its stdout puts away what it has to, and whoever comes next finds its place free.
#[tokio::test]
async fn a_child_is_started_again_once_the_one_before_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("lock").display().to_string();
    let script = format!("mkdir {lock} || {{ echo busy >&2; exit 1; }}\necho started >&2\n{}", answer(0, DISCOVERED))
        + &format!("exec 1>&-; sleep 1.5; rmdir {lock}; echo saved >&2");
    let backoff = Backoff::new().first(Duration::from_millis(10)).most(Duration::from_millis(10)).tries(3);
    let child = shell(&script).keep_stderr(1 << 10).restart(backoff);
    let tail = child.stderr_tail();
    let client = soon("a client", Client::connect(child)).await.unwrap();
    until("it was started again", async || tail.lines().len() >= 3).await;
    assert_eq!(tail.lines()[..3], ["started", "saved", "started"]);
    client.disconnect().await;
}

/// What it has started writes on and on, and is not who was spoken to.
#[tokio::test]
async fn a_child_that_is_gone_is_noticed_though_its_stdout_goes_on() {
    let noise = "(while echo noise; do sleep 0.1; done) & exit 3";
    let client = soon("a client", Client::connect(shell(&(answer(0, DISCOVERED) + noise)))).await.unwrap();
    let called = std::time::Instant::now();
    let error = soon("an end", client.call::<i64>("a", json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    assert!(called.elapsed() < Duration::from_secs(5), "{:?}", called.elapsed());
    client.disconnect().await;
}
