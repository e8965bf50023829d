//! A server that is killed under load, and started again where it was.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use mcp_core::{
    Client, ErrorKind, Limits, Revision,
    client::{Backoff, IntoTransport},
    implementation,
};
use mcp_http::Http;
use mcp_stdio::Child;
use mcp_ws::Ws;
use serde_json::{Value, json};

use crate::{
    process::{everything_server, listening},
    report,
};

const CLIENTS: u64 = 8;
const KILLS: usize = 3;
/// How long it runs each time.
const LIFE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of the calls.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    failed: AtomicU64,
}

/// Calls, each with a sum of its own, until it is told to stop; then once more, which must succeed.
async fn call(client: Client, number: u64, over: &AtomicBool, counts: &Counts) {
    for n in 0.. {
        let outcome = client.call::<u64>("add", json!({ "a": number, "b": n })).await;
        match outcome {
            Ok(sum) => {
                assert_eq!(sum, number + n);
                counts.answered.fetch_add(1, Ordering::Relaxed);
                if over.load(Ordering::Relaxed) {
                    break;
                }
            }
            Err(error) => {
                let (kind, is_late) = (error.kind(), over.load(Ordering::Relaxed));
                let typed = [ErrorKind::TransportError, ErrorKind::TransportClosed, ErrorKind::Timeout];
                assert!(typed.contains(&kind), "{error:?}");
                counts.failed.fetch_add(1, Ordering::Relaxed);
                // While nobody is there, there is nothing to be had by asking faster.
                tokio::time::sleep(Duration::from_millis(if is_late { 50 } else { 5 })).await;
            }
        }
    }
    client.disconnect().await;
}

/// Clients that call all the time, over what `transport` makes of the server's address, while it is killed and comes back.
async fn survive<T: IntoTransport>(wire: &str, revision: Revision, transport: impl Fn(&str) -> T) {
    let (mut process, url) = listening("127.0.0.1:0").await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let (over, counts) = (AtomicBool::new(false), Counts::default());
    let limits = Limits::default().request_timeout(Duration::from_secs(5));
    let connect = |_| {
        Client::builder(implementation!()).revisions([revision]).limits(limits.clone()).connect(transport(&address))
    };
    let clients: Vec<Client> = join_all((0..CLIENTS).map(connect)).await.into_iter().map(Result::unwrap).collect();
    let killing = async {
        for _ in 0..KILLS {
            tokio::time::sleep(LIFE).await;
            process.kill().await.unwrap();
            process = listening(&address).await.0;
        }
        over.store(true, Ordering::Relaxed);
    };
    let calling = join_all((0..).zip(clients).map(|(number, client)| call(client, number, &over, &counts)));
    let both = async { tokio::join!(killing, calling) };
    tokio::time::timeout(PATIENCE, both).await.expect("every client is answered again");
    let [answered, failed] = [&counts.answered, &counts.failed].map(|count| count.load(Ordering::Relaxed));
    assert!(answered >= CLIENTS, "{wire}: only {answered} answers");
    let cells = [
        (
            "fault",
            format!("killed {KILLS} times under load and started again: {answered} calls answered, {failed} failed"),
        ),
        ("wire", format!("{wire}, {revision}")),
        ("tried", CLIENTS.to_string()),
        ("survived", CLIENTS.to_string()),
    ];
    report::row("Faults", cells);
}

const BOTH: [Revision; 2] = [Revision::LATEST, Revision::LATEST_LEGACY];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_over_http_outlive_a_server_that_is_killed() {
    for revision in BOTH {
        survive("HTTP", revision, |address| Http::new(format!("http://{address}/mcp"))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_over_websocket_outlive_a_server_that_is_killed() {
    for revision in BOTH {
        let ws = |address: &str| Ws::new(format!("ws://{address}/mcp")).reconnect(Backoff::default());
        survive("WebSocket", revision, ws).await;
    }
}

/// A child is started again by its client.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_outlives_a_child_that_is_killed() {
    use rustix::process::{Pid, Signal, kill_process};

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("echo $$ > '{}'; exec '{}' stdio", file.display(), everything_server().display());
    let child = Child::new("sh").arg("-c").arg(script).restart(Backoff::default());
    let client = Client::connect(child).await.unwrap();
    for n in 0..KILLS as u64 {
        let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let pending = client.call::<String>("sleep", json!({ "ms": 60_000 }));
        // A call that was not sent yet would wait for the next child, and be answered there.
        let kill = async {
            while client.call::<Value>("inflight", ()).await.unwrap()["running"] != 1 {}
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
        };
        let (pending, ()) = tokio::join!(pending, kill);
        let error = pending.unwrap_err();
        assert!([ErrorKind::TransportError, ErrorKind::TransportClosed].contains(&error.kind()), "{error:?}");
        let answered = async {
            loop {
                match client.call::<u64>("add", json!({ "a": n, "b": 1 })).await {
                    Ok(sum) => break sum,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        assert_eq!(tokio::time::timeout(PATIENCE, answered).await.unwrap(), n + 1);
    }
    let cells = [("fault", "killed and started again".to_owned()), ("wire", "stdio".to_owned())];
    let [fault, wire] = cells;
    report::row("Faults", [fault, wire, ("tried", KILLS.to_string()), ("survived", KILLS.to_string())]);
    client.disconnect().await;
}
