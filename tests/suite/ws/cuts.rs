//! A network that cuts connections, again and again: who is answered, and how often things are done.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{StreamExt, stream};
use mcp_core::{Client, ErrorKind, Revision, Tool, ToolError, client::Backoff, implementation};
use mcp_ws::Ws;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;

use super::*;

const CALLS: usize = 1000;
const CUTS: usize = 100;
/// After how many calls that have ended there is a cut. Less than there is room for: one that finds no connection waits for
/// the next.
const EVERY: usize = 9;

/// What stands between client and server, and cuts what passes through it.
struct Network {
    address: SocketAddr,
    /// How often everything was cut.
    cut: watch::Sender<usize>,
    /// How many connections came.
    came: watch::Receiver<usize>,
}

impl Network {
    async fn before(served: &Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, behind) = (listener.local_addr().unwrap(), served.address);
        let (cut, told) = watch::channel(0);
        let (arrived, came) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut told = told.clone();
                told.mark_unchanged();
                arrived.send_modify(|came| *came += 1);
                tokio::spawn(async move {
                    let mut behind = TcpStream::connect(behind).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut stream, &mut behind) => {}
                        // Both ends see a reset, with whatever was on its way lost.
                        _ = told.changed() => {
                            let _ = (stream.set_zero_linger(), behind.set_zero_linger());
                        }
                    }
                });
            }
        });
        Self { address, cut, came }
    }

    /// Cuts what there is, if there is something, as often as is due when so many calls have ended.
    fn cut(&self, ended: usize) {
        let came = *self.came.borrow();
        self.cut.send_if_modified(|cut| {
            let is_due = *cut < CUTS.min(ended / EVERY) && came > *cut;
            *cut += usize::from(is_due);
            is_due
        });
    }
}

#[derive(Deserialize, JsonSchema)]
struct Mark {
    n: usize,
}

/// A server with a tool that counts how often it ran for each number.
fn counting() -> (Server, Arc<Mutex<Vec<usize>>>) {
    let runs = Arc::new(Mutex::new(vec![0; CALLS]));
    let counter = runs.clone();
    let mark = move |Mark { n }: Mark| {
        let runs = counter.clone();
        async move {
            runs.lock().unwrap()[n] += 1;
            // Some are answered at once, some after others.
            if n % 3 > 0 {
                tokio::time::sleep(Duration::from_millis((n % 3) as u64 * 2)).await;
            }
            Ok::<usize, ToolError>(n)
        }
    };
    (Server::builder(implementation!()).tool(Tool::new("mark", mark)).build(), runs)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    answered: usize,
    /// Failed, and certainly not done.
    retriable: usize,
    /// Failed, and nobody knows.
    unknown: usize,
    /// Done, how often altogether.
    runs: usize,
    most_runs: usize,
    cuts: usize,
}

/// A thousand calls, so many at once, and a hundred cuts.
async fn calls(revision: Revision, at_once: usize, ws: impl Fn(String) -> Ws) -> Counts {
    let (server, runs) = counting();
    let served = Served::with(WsLayer::new(server).resume(Duration::from_secs(30))).await;
    let network = Network::before(&served).await;
    let ws = ws(format!("ws://{}/mcp", network.address));
    let client = Client::builder(implementation!()).revisions([revision]).connect(ws).await.unwrap();
    let ended = AtomicUsize::new(0);
    let outcomes: Vec<_> = stream::iter(0..CALLS)
        .map(|n| {
            let (client, network, ended) = (&client, &network, &ended);
            async move {
                let outcome = client.call::<usize>("mark", json!({ "n": n })).await;
                network.cut(ended.fetch_add(1, Ordering::SeqCst));
                (n, outcome)
            }
        })
        .buffer_unordered(at_once)
        .collect()
        .await;
    let mut counts = Counts { cuts: *network.cut.borrow(), ..Counts::default() };
    for (n, outcome) in outcomes {
        match outcome {
            Ok(answer) => {
                assert_eq!(answer, n, "an answer of another call");
                counts.answered += 1;
            }
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::TransportClosed | ErrorKind::TransportError), "{error:?}");
                let ran = runs.lock().unwrap()[n];
                if error.is_safe_to_retry() {
                    assert_eq!(ran, 0, "it may be made again, and was done");
                    counts.retriable += 1;
                } else {
                    counts.unknown += 1;
                }
            }
        }
    }
    {
        let runs = runs.lock().unwrap();
        (counts.runs, counts.most_runs) = (runs.iter().sum(), runs.iter().max().copied().unwrap_or_default());
    }
    soon("disconnecting", client.disconnect()).await;
    counts
}

fn quick() -> Backoff {
    Backoff::new().first(Duration::from_millis(2)).most(Duration::from_millis(100)).tries(1000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_over_a_hundred_cuts_are_all_answered_and_done_once_where_both_sides_resume() {
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let counts = timeout(4 * PATIENCE, calls(revision, 16, |url| Ws::new(url).resume(quick()))).await.unwrap();
        println!("{revision}, resumed: {counts:?}");
        let all = Counts { answered: CALLS, runs: CALLS, most_runs: 1, cuts: CUTS, ..Counts::default() };
        assert_eq!(counts, all);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_over_a_hundred_cuts_are_answered_or_say_whether_to_retry_where_one_reconnects() {
    const AT_ONCE: usize = 4;
    for revision in [Revision::LATEST, Revision::LATEST_LEGACY] {
        let counts =
            timeout(4 * PATIENCE, calls(revision, AT_ONCE, |url| Ws::new(url).reconnect(quick()))).await.unwrap();
        println!("{revision}, connected anew: {counts:?}");
        // One that had not left waits for the next connection, and one that had fails with the cut alone.
        assert_eq!((counts.answered + counts.unknown, counts.retriable, counts.cuts), (CALLS, 0, CUTS));
        assert!((1..=CUTS * AT_ONCE).contains(&counts.unknown), "{counts:?}");
        assert!(counts.most_runs == 1 && counts.runs >= counts.answered, "nothing is sent again: {counts:?}");
    }
}
