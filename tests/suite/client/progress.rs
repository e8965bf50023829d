//! Progress: who hears it, in what order, and what it does for a call's time.
//!
//! Specification: *Progress*; *Cancellation, Timeouts*.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_suite::{Client, ErrorKind, Limits, client::CallOptions, http::Http, implementation, types::Progress};
use serde_json::json;
use tokio::time::Instant;

use super::{load::Census, *};
use crate::peer::{
    http::{self, Answer, HttpPeer},
    memory::{expect_as, flood, raw, serve, wait},
};

const SECOND: Duration = Duration::from_secs(1);
const HALF: Duration = Duration::from_millis(500);

fn progress(token: Value, step: f64) -> Step {
    send(json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": step } }))
}

/// Options that keep what was heard.
fn listening() -> (CallOptions, Arc<Mutex<Vec<Progress>>>) {
    let heard = Arc::<Mutex<Vec<Progress>>>::default();
    let ear = heard.clone();
    (CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress)), heard)
}

/// A call that takes `steps` half seconds and tells of each.
fn slow(steps: u32) -> Script {
    let mut script = vec![expect(json!({ "method": "tools/call" }))];
    for step in 1..=steps {
        script.extend([wait(HALF), progress(json!("$id"), step.into())]);
    }
    script.push(send(json!({ "id": "$id", "result": text("b") })));
    script
}

#[tokio::test(start_paused = true)]
async fn c137_but_not_for_ever() {
    for era in ERAS {
        let (client, peer) = connected(era, slow(6)).await;
        let start = Instant::now();
        let options = CallOptions::new().timeout(SECOND).at_most(2 * SECOND);
        let error = client.call_with::<String>("a", (), options).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed().as_millis()), (ErrorKind::Timeout, 2000));
        cancelled(&peer).await;
    }
    // The same by the limits, which hold for every call.
    let limits = Limits::default().request_timeout(SECOND).request_timeout_max(2 * SECOND);
    let peer = ScriptedPeer::new(modern().into_iter().chain(slow(6)));
    let client = Client::builder(implementation!()).limits(limits).connect(peer).await.unwrap();
    let start = Instant::now();
    assert_eq!(client.call::<String>("a", ()).await.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_millis(), 2000);
}

/// Waits until the client cancelled something.
async fn cancelled(peer: &ScriptedPeer) {
    while !peer.methods().contains(&"notifications/cancelled".into()) {
        tokio::time::sleep(HALF).await;
    }
}

/// What is about another call, or none, or is hardly about anything, holds off nothing and is heard by nobody.
#[tokio::test(start_paused = true)]
async fn c137_progress_about_something_else_changes_nothing() {
    for era in ERAS {
        let done = if era == Era::Modern { 1 } else { 2 };
        let mut script = answers("a", "b");
        script.push(expect(json!({ "method": "tools/call", "params": { "name": "slow" } })));
        for step in 1..=10 {
            script.extend([
                wait(HALF),
                progress(json!("unknown"), step.into()),
                // The token of a call that is over.
                progress(json!(done), step.into()),
                progress(json!(null), step.into()),
                progress(json!({ "x": 1 }), step.into()),
                progress(json!(1e300), step.into()),
                raw(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#),
                raw(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[]}"#),
                raw(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#),
            ]);
        }
        let (client, _peer) = connected(era, script).await;
        let (options, first) = listening();
        assert_eq!(client.call_with::<String>("a", (), options).await.unwrap(), "b");
        let (options, second) = listening();
        let start = Instant::now();
        let error = client.call_with::<String>("slow", (), options.timeout(SECOND)).await.unwrap_err();
        assert_eq!((error.kind(), start.elapsed().as_millis()), (ErrorKind::Timeout, 1000));
        tokio::time::sleep(5 * SECOND).await;
        assert!(first.lock().unwrap().is_empty() && second.lock().unwrap().is_empty());
    }
}

/// A stream has progress about its own request; what is about another is none of its business.
#[tokio::test]
async fn c137_over_http_progress_about_something_else_changes_nothing() {
    let pause = Duration::from_millis(100);
    let odd = |token: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":1}}}}\n\n"
        )
    };
    let odd = odd("\"unknown\"") + &odd("0") + &odd("99") + &odd("\"\"") + &odd("null");
    let stream = (0..40).fold(Answer::events(odd.clone()), |stream, _| stream.then(pause, odd.clone()));
    let server = HttpPeer::start(http::modern(move |_| stream.clone().without_end())).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let (options, heard) = listening();
    let start = std::time::Instant::now();
    let error = soon(client.call_with::<()>("a", (), options.timeout(Duration::from_millis(400)))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(start.elapsed() < 2 * SECOND, "{:?}", start.elapsed());
    assert!(heard.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn progress_is_heard_in_order_and_whole() {
    for era in ERAS {
        let mut script = vec![expect(json!({ "method": "tools/call" }))];
        script.extend((1..=100).map(|step| progress(json!("$id"), f64::from(step) / 10.0)));
        script.extend([
            send(json!({ "method": "notifications/progress", "params": {
                "progressToken": "$id", "progress": 11, "total": 12.5, "message": "größer", "later": { "x": 1 },
            } })),
            // Not heard: it has no number. It is still a sign of life.
            send(
                json!({ "method": "notifications/progress", "params": { "progressToken": "$id", "progress": "half" } }),
            ),
            send(json!({ "method": "notifications/progress", "params": { "progressToken": "$id" } })),
            send(json!({ "method": "notifications/progress", "params": {
                "progressToken": "$id", "progress": 12, "total": null, "message": null,
            } })),
            send(json!({ "id": "$id", "result": text("b") })),
            progress(json!("$id"), 13.0),
        ]);
        script.extend(answers("a", "c"));
        let (client, _peer) = connected(era, script).await;
        let (options, heard) = listening();
        assert_eq!(client.call_with::<String>("a", (), options).await.unwrap(), "b");
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "c");
        let heard = heard.lock().unwrap();
        let expected: Vec<_> = (1..=100).map(|step| f64::from(step) / 10.0).chain([11.0, 12.0]).collect();
        assert_eq!(heard.iter().map(|progress| progress.progress).collect::<Vec<_>>(), expected);
        assert_eq!((heard[100].total, heard[100].message.as_deref()), (Some(12.5), Some("größer")));
        assert_eq!((heard[101].total, heard[101].message.as_deref()), (None, None));
    }
}

/// On a stream they come in many events, or many in one piece, while other calls are under way on other threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d07_progress_over_http_is_heard_in_order() {
    const STEPS: usize = 500;
    const CALLS: usize = 8;
    let stream = |request: &http::Request| {
        let token = &request.body["params"]["_meta"]["progressToken"];
        let told = (1..=STEPS).map(|step| {
            let params = json!({ "progressToken": token, "progress": step });
            json!({ "method": "notifications/progress", "params": params })
        });
        Answer::stream(told.chain([json!({ "id": "$id", "result": text("b") })]))
    };
    for era in ERAS {
        for every in [7, 100_000] {
            let rule = move |request: &http::Request| stream(request).cut_every(every);
            let server = match era {
                Era::Modern => HttpPeer::start(http::modern(rule)).await,
                _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
            };
            let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
            in_order(&client, CALLS, STEPS).await;
        }
    }
}

/// Calls at once, each of which hears all steps of its own in order.
async fn in_order(client: &Client, calls: usize, steps: usize) {
    let mut under_way = tokio::task::JoinSet::new();
    for _ in 0..calls {
        let client = client.clone();
        under_way.spawn(async move {
            let (options, heard) = listening();
            client.call_with::<Value>("count", json!({ "n": steps }), options).await.unwrap();
            let heard: Vec<_> = heard.lock().unwrap().iter().map(|progress| progress.progress as usize).collect();
            assert_eq!(heard, (1..=steps).collect::<Vec<_>>());
        });
    }
    tokio::time::timeout(4 * super::SOON, under_way.join_all()).await.unwrap();
}

/// On a shared wire those of many calls come mixed, and where there is no room some are left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d07_progress_on_shared_wires_is_heard_in_order() {
    const STEPS: u32 = 200;
    for era in ERAS {
        let served = crate::ws::Served::start(everything_server::server()).await;
        let over_ws = soon(connect_in(era, mcp_suite::ws::Ws::new(served.url()))).await.unwrap();
        let in_memory = connect_in(era, everything_server::server()).await.unwrap();
        for client in [over_ws, in_memory] {
            let mut under_way = tokio::task::JoinSet::new();
            for _ in 0..8 {
                let client = client.clone();
                under_way.spawn(async move {
                    let (options, heard) = listening();
                    client.call_with::<u32>("count", json!({ "n": STEPS }), options).await.unwrap();
                    let heard: Vec<_> = heard.lock().unwrap().iter().map(|progress| progress.progress).collect();
                    assert!(!heard.is_empty() && heard.windows(2).all(|two| two[0] < two[1]), "{era:?}: {heard:?}");
                });
            }
            tokio::time::timeout(4 * super::SOON, under_way.join_all()).await.unwrap();
        }
    }
}

/// What is said on the way is heard in order too, be it about a call or not.
#[tokio::test]
async fn d07_log_messages_are_heard_in_order() {
    const STEPS: usize = 500;
    let said = |step: usize| json!({ "method": "notifications/message", "params": { "level": "info", "data": step } });
    for era in ERAS {
        let heard = Arc::<Mutex<Vec<usize>>>::default();
        let (ear, (told, mut is_told)) = (heard.clone(), tokio::sync::mpsc::unbounded_channel());
        let hearing = move |message: mcp_suite::types::LogMessage| {
            ear.lock().unwrap().push(message.data.decode().unwrap());
            let _ = told.send(());
        };
        let rule = move |_: &http::Request| {
            Answer::stream((0..STEPS).map(said).chain([json!({ "id": "$id", "result": text("b") })])).cut_every(50)
        };
        let server = match era {
            Era::Modern => HttpPeer::start(http::modern(rule)).await,
            _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
        };
        let over_http = Client::builder(implementation!()).on_log(hearing.clone()).connect(Http::new(server.url()));
        let script = [
            vec![expect(json!({ "method": "tools/call" }))],
            (0..STEPS).map(|step| send(said(step))).collect(),
            vec![send(json!({ "id": "$id", "result": text("b") }))],
        ];
        let peer = ScriptedPeer::of(era, script.concat());
        let in_memory = Client::builder(implementation!()).on_log(hearing).connect(peer);
        for client in [soon(over_http).await.unwrap(), soon(in_memory).await.unwrap()] {
            assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
            for _ in 0..STEPS {
                soon(is_told.recv()).await.unwrap();
            }
            assert_eq!(std::mem::take(&mut *heard.lock().unwrap()), (0..STEPS).collect::<Vec<_>>(), "{era:?}");
        }
    }
}

/// Our own server and our own client, on every era: what a handler tells arrives.
#[tokio::test(start_paused = true)]
async fn progress_of_our_own_server_is_heard() {
    for era in ERAS {
        let client = connect_in(era, everything_server::server()).await.unwrap();
        let (options, heard) = listening();
        assert_eq!(client.call_with::<u32>("count", json!({ "n": 50 }), options).await.unwrap(), 50);
        let steps: Vec<_> = heard.lock().unwrap().iter().map(|progress| progress.progress).collect();
        assert_eq!(steps, (1..=50).map(f64::from).collect::<Vec<_>>());
    }
}

/// Who listens is forgotten with the call; nothing is left to be told of the next one.
#[tokio::test(start_paused = true)]
async fn c143_nothing_is_left_of_calls_that_are_over() {
    const CALLS: usize = 10_000;
    let peer = ScriptedPeer::new([serve(|message| {
        let id = &message["id"];
        let token = &message["params"]["_meta"]["progressToken"];
        match message["method"].as_str().unwrap() {
            "server/discover" => vec![json!({ "id": id, "result": discovered() })],
            _ => vec![
                json!({ "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 } }),
                json!({ "id": id, "result": text("b") }),
            ],
        }
    })]);
    let client = Client::builder(implementation!()).connect(peer).await.unwrap();
    let handle = tokio::runtime::Handle::current();
    let tasks = handle.metrics().num_alive_tasks();
    let heard = Arc::new(Mutex::new(0));
    for call in 1..=CALLS {
        let ear = heard.clone();
        let options = CallOptions::new().on_progress(move |_| *ear.lock().unwrap() += 1);
        client.call_with::<String>("a", (), options).await.unwrap();
        assert_eq!(*heard.lock().unwrap(), call, "each hears its own call, and once");
        assert_eq!(Arc::strong_count(&heard), 1, "the listener of a call that is over is gone");
    }
    assert_eq!(handle.metrics().num_alive_tasks(), tasks);
}

/// A caller who does not look delays nobody, and fills no memory.
#[tokio::test(start_paused = true)]
async fn c143_a_caller_who_does_not_look_delays_nobody() {
    for era in ERAS {
        let census = Census::default();
        let (counting, id) = (census.clone(), if era == Era::Modern { 1 } else { 2 });
        let note = move |step: usize| {
            let params = format!(r#"{{"progressToken":{id},"progress":{step}}}"#);
            counting.frame(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
        };
        let mut script = vec![expect_as("$slow", json!({ "id": id, "params": { "name": "slow" } })), flood(5000, note)];
        script.extend(answers("a", "b"));
        script.push(send(json!({ "id": "$slow", "result": text("slow") })));
        let (client, peer) = connected(era, script).await;
        let (options, heard) = listening();
        let mut slow = Box::pin(client.call_with::<String>("slow", (), options));
        // Begun, and not looked at again before the other call is over.
        assert!(tokio::time::timeout(Duration::ZERO, &mut slow).await.is_err());
        peer.heard(opening_length(era) + 1).await;
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        peer.done().await;
        assert_eq!(slow.await.unwrap(), "slow");
        let heard: Vec<_> = heard.lock().unwrap().iter().map(|progress| progress.progress).collect();
        let most = Limits::default().queue_messages + 64 + 8;
        assert!(heard.is_sorted() && !heard.is_empty() && heard.len() <= most, "{}", heard.len());
        assert!(census.most() <= most, "{} were kept", census.most());
    }
}
