//! The layers of the example, on every wire.

#[path = "../../../crates/mcp-suite/examples/layers.rs"]
#[expect(dead_code, reason = "an example has a `main` too")]
mod example;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use example::{Denied, Entry, layered};
use mcp_core::{Server, Tool, ToolError, implementation};
use serde_json::{Value, json};

use super::call;
use crate::duplex::{Peer, Wire};

async fn greet() -> Result<&'static str, ToolError> {
    Ok("Good day")
}

async fn never() -> Result<(), ToolError> {
    std::future::pending().await
}

fn server(denied: Denied) -> (Server, Arc<Mutex<Vec<Entry>>>) {
    let entries = Arc::<Mutex<Vec<Entry>>>::default();
    let tools = [Tool::new("greet", greet), Tool::new("admin.reset", greet), Tool::new("never", never)];
    let builder = tools.into_iter().fold(Server::builder(implementation!()), |builder, tool| builder.tool(tool));
    let record = {
        let entries = entries.clone();
        move |entry| entries.lock().unwrap().push(entry)
    };
    (layered(builder, denied, record), entries)
}

async fn peer(wire: Wire, server: Server) -> Peer {
    match wire {
        Wire::Memory => Peer::memory(server),
        Wire::Lines => Peer::lines(server),
        Wire::Http => Peer::http(server, Some(mcp_core::Revision::LATEST)).await,
        Wire::Ws => Peer::ws(server).await,
        Wire::Stdio => unreachable!("a process has a server of its own"),
    }
}

#[tokio::test]
async fn who_may_not_call_a_tool_is_told_so_or_told_nothing_on_every_wire() {
    for wire in [Wire::Memory, Wire::Lines, Wire::Http, Wire::Ws] {
        for (denied, words) in [(Denied::Hidden, "Unknown tool: admin.reset"), (Denied::Refused, "not for you")] {
            let (server, entries) = server(denied);
            let mut peer = peer(wire, server).await;
            peer.say(&call(1, "greet", json!({}))).await;
            assert_eq!(super::text(&peer.hear().await), "Good day");
            peer.say(&call(2, "admin.reset", json!({}))).await;
            let answer = peer.hear().await;
            assert_eq!(answer["error"]["code"], -32602, "{wire:?}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{wire:?}: {answer}");
            let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": { "_meta": super::modern_meta() } });
            peer.say(&list.to_string()).await;
            let is_listed = peer.hear().await.to_string().contains("admin.reset");
            assert_eq!(is_listed, denied == Denied::Refused, "{wire:?}");
            let entries = entries.lock().unwrap().clone();
            let recorded: Vec<_> = entries.iter().map(|entry| (entry.name.as_deref(), entry.error)).collect();
            assert_eq!(recorded, [(Some("greet"), None), (Some("admin.reset"), Some(-32602)), (None, None)]);
            assert!(entries.is_sorted_by_key(|entry| entry.sequence));
        }
    }
}

#[tokio::test]
async fn who_may_call_a_tool_calls_it() {
    for denied in [Denied::Hidden, Denied::Refused] {
        let (server, entries) = server(denied);
        let (here, there) = mcp_core::memory();
        let ada = mcp_core::server::Peer::new().principal(Some(mcp_core::Principal::new("ada")));
        let mut client = mcp_test::RawClient::over(here, mcp_core::server::serve_peer(server, there, ada));
        client.open(mcp_core::Revision::LATEST).await.unwrap();
        assert_eq!(super::text(&client.call("admin.reset", json!({})).await), "Good day");
        let entries = entries.lock().unwrap();
        let entry = entries.iter().find(|entry| entry.method == "tools/call").unwrap();
        assert_eq!((entry.principal.as_deref(), entry.error), (Some("ada"), None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_answers_and_frees_the_place_of_what_hangs() {
    let (server, entries) = server(Denied::Refused);
    let mut peer = Peer::memory(server);
    for id in 0..6 {
        peer.say(&call(id, "never", json!({}))).await;
    }
    // Four run, two wait for a place; nothing else waits for them.
    peer.say(&super::ping(7)).await;
    assert_eq!(peer.hear().await["id"], 7);
    for _ in 0..6 {
        let answer: Value = peer.hear().await;
        assert!(answer["error"]["message"].as_str().unwrap().contains("timed out"), "{answer}");
    }
    let entries = entries.lock().unwrap().clone();
    let errors: Vec<_> = entries.iter().filter(|entry| entry.method == "tools/call").map(|entry| entry.error).collect();
    assert_eq!(errors, [Some(-32603); 6]);
    peer.say(&call(9, "greet", json!({}))).await;
    let answer = tokio::time::timeout(Duration::from_secs(1), peer.hear()).await.unwrap();
    assert_eq!(super::text(&answer), "Good day");
}
