//! What a caller says with a call, what a client remembers of a server, and what a server says unasked.

use std::sync::{Arc, Mutex};

use mcp_suite::{
    Server, Tool, ToolError,
    client::{CallOptions, Verdict},
    types::{CompleteParams, LogLevel, LogMessage, TraceContext},
};
use mcp_test::script::handshake;

use super::*;

async fn says(context: mcp_suite::Context) -> Result<String, ToolError> {
    context.log(LogLevel::Warning, "", "careful").await;
    let trace = context.trace_context().traceparent;
    Ok(format!("{trace:?}"))
}

fn server() -> Server {
    Server::builder(implementation!()).logging(true).tool(Tool::new("says", says)).build()
}

#[tokio::test]
async fn meta_trace_and_log_level_go_with_a_call_and_logs_come_back() {
    for (era, once) in [(Era::Legacy, None), (Era::Modern, None), (Era::Modern, Some(LogLevel::Warning))] {
        let heard = Arc::<Mutex<Vec<LogMessage>>>::default();
        let hearing = heard.clone();
        let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == era);
        let client = Client::builder(implementation!())
            .on_log(move |message| hearing.lock().unwrap().push(message))
            .revisions(revisions)
            .connect(server())
            .await
            .unwrap();
        let mut options =
            CallOptions::new().trace(&TraceContext::new("given before")).trace(&TraceContext::new("00-1-2-01"));
        match once {
            Some(level) => options = options.log_level(level),
            None => client.set_log_level(LogLevel::Warning).await.unwrap(),
        }
        let options = options.meta("example.com/k", 1).unwrap().meta("example.com/k", json!({ "x": 1 })).unwrap();
        assert_eq!(client.call_with::<String>("says", (), options).await.unwrap(), "Some(\"00-1-2-01\")");
        let told = async {
            while heard.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        soon(told).await;
        let heard = heard.lock().unwrap();
        assert_eq!((heard[0].level, heard[0].data.as_str()), (LogLevel::Warning, "\"careful\""), "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_message_of_no_known_level_is_heard_all_the_same() {
    let heard = Arc::<Mutex<Vec<LogMessage>>>::default();
    let hearing = heard.clone();
    let odd = ["verbose", "null"]
        .map(|level| send(json!({ "method": "notifications/message", "params": { "level": level, "data": "x" } })));
    let peer = ScriptedPeer::legacy([odd.to_vec(), answers("a", "b")].concat());
    let client = Client::builder(implementation!())
        .on_log(move |message| hearing.lock().unwrap().push(message))
        .connect(peer)
        .await
        .unwrap();
    client.call::<String>("a", ()).await.unwrap();
    let levels: Vec<_> = heard.lock().unwrap().iter().map(|message| message.level).collect();
    assert_eq!(levels, [LogLevel::Info, LogLevel::Info]);
}

/// Whoever wants to hear of progress is told, whatever the call.
#[tokio::test(start_paused = true)]
async fn progress_of_any_call_can_be_asked_for() {
    let token = |id: u64| json!({ "progressToken": id, "progress": 1 });
    let script = vec![
        expect(json!({ "method": "resources/read", "params": { "_meta": { "progressToken": 1 } } })),
        send(json!({ "method": "notifications/progress", "params": token(1) })),
        send(json!({ "id": "$id", "result": { "contents": [] } })),
        expect(json!({ "method": "completion/complete", "params": { "_meta": { "progressToken": 2 } } })),
        send(json!({ "method": "notifications/progress", "params": token(2) })),
        send(json!({ "id": "$id", "result": { "completion": { "values": ["x"] } } })),
    ];
    let (client, _peer) = connected(Era::Modern, script).await;
    let heard = Arc::<Mutex<Vec<f64>>>::default();
    let options = || {
        let ear = heard.clone();
        CallOptions::new().on_progress(move |progress| ear.lock().unwrap().push(progress.progress))
    };
    soon(client.read_resource_with("x:a", options())).await.unwrap();
    soon(client.complete_with(CompleteParams::prompt("p", "a", ""), options())).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [1.0, 1.0]);
}

/// A server without `ping` says in its own way that it is alive.
#[tokio::test(start_paused = true)]
async fn either_era_can_be_asked_whether_it_is_alive() {
    let alive = |method: &str, result: Value| {
        vec![expect(json!({ "method": method })), send(json!({ "id": "$id", "result": result }))]
    };
    let (client, _peer) = connected(Era::Legacy, alive("ping", json!({}))).await;
    soon(client.ping()).await.unwrap();
    let (client, _peer) = connected(Era::Modern, alive("server/discover", discovered())).await;
    soon(client.ping()).await.unwrap();
}

/// What one client found out spares the next one the asking.
#[tokio::test(start_paused = true)]
async fn a_verdict_can_be_stored_and_handed_back() {
    for era in ERAS {
        let first = connect_in(
            era,
            ScriptedPeer::new(match era {
                Era::Legacy => handshake(),
                _ => modern(),
            }),
        )
        .await
        .unwrap();
        let stored = serde_json::to_string(first.verdict()).unwrap();
        let verdict: Verdict = serde_json::from_str(&stored).unwrap();
        assert_eq!(&verdict, first.verdict());
        let opening = if era == Era::Legacy { handshake() } else { Script::new() };
        let peer = ScriptedPeer::new([opening, answers("a", "b")].concat());
        let client = Client::builder(implementation!()).verdict(verdict).connect(peer.clone()).await.unwrap();
        assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
        assert_eq!((client.server_info(), client.instructions()), (first.server_info(), first.instructions()));
        assert!(!peer.methods().contains(&"server/discover".to_owned()), "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn completion_says_what_is_known() {
    let script = vec![
        expect(json!({ "method": "completion/complete", "params": {
            "ref": { "type": "ref/resource", "uri": "x:{a}/{b}" }, "argument": { "name": "b", "value": "v" },
            "context": { "arguments": { "a": "1" } },
        } })),
        send(json!({ "id": "$id", "result": { "completion": { "values": ["v1"], "hasMore": null, "total": null } } })),
    ];
    let client = Client::connect(ScriptedPeer::modern(script)).await.unwrap();
    let asked = CompleteParams::template("x:{a}/{b}", "b", "v").given("a", "1");
    assert_eq!(client.complete(asked).await.unwrap().values, ["v1"]);
}
