//! A registry that changes while it is read.

use mcp_core::{Revision, Server, Tool, ToolError, implementation};
use serde_json::Value;
use tokio::task::JoinSet;

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

async fn names(server: &Server) -> Vec<String> {
    let answer = server.handle(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(name).collect()
}

/// A reader sees the list as it was at one moment: what was added together is there together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lists_are_whole_while_tools_come_and_go() {
    let server = Server::builder(implementation!()).tool(Tool::new("stays", nothing)).build();
    let mut tasks = JoinSet::new();
    for writer in 0..3 {
        let server = server.clone();
        tasks.spawn(async move {
            for round in 0..60 {
                let pair = [format!("{writer} {round} a"), format!("{writer} {round} b")];
                server.tools().add(pair.clone().map(|name| Tool::new(name, nothing))).unwrap();
                if round % 2 == 0 {
                    assert!(pair.iter().all(|name| server.tools().remove(name)));
                }
                tokio::task::yield_now().await;
            }
        });
    }
    for _ in 0..3 {
        let server = server.clone();
        tasks.spawn(async move {
            for _ in 0..60 {
                let names = names(&server).await;
                assert_eq!(names[0], "stays");
                let sole = |name: &&String| {
                    name.strip_suffix(" b")
                        .is_some_and(|pair| !names.contains(&format!("{pair} a")) && !pair.is_empty())
                };
                // Removing goes one by one, `a` first; of those that stay, both are there.
                let odd =
                    |name: &str| name.split(' ').nth(1).is_some_and(|round| round.parse::<u32>().unwrap() % 2 == 1);
                assert_eq!(names.iter().filter(sole).find(|name| odd(name)), None);
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert_eq!(names(&server).await.len(), 1 + 3 * 30 * 2);
}

/// Of many that add one name, one wins, and the others are told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_name_is_taken_once() {
    let server = Server::builder(implementation!()).build();
    for round in 0..20 {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let (server, name) = (server.clone(), format!("tool {round}"));
            tasks.spawn(async move { server.tools().add(Tool::new(name, nothing)).is_ok() });
        }
        let won = tasks.join_all().await.into_iter().filter(|won| *won).count();
        assert_eq!(won, 1, "in round {round}");
    }
    assert_eq!(server.tools().len(), 20);
}

/// A tool that is removed while it runs is answered: only new calls miss it.
#[tokio::test(start_paused = true)]
async fn a_call_outlives_its_tools_place_in_the_list() {
    let slow = || async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok::<_, ToolError>("done")
    };
    let server = Server::builder(implementation!()).tool(Tool::new("slow", slow)).build();
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#;
    let call = tokio::spawn({
        let server = server.clone();
        async move { server.handle(message).await }
    });
    tokio::task::yield_now().await;
    assert!(server.tools().remove("slow"));
    let answer = call.await.unwrap().unwrap();
    assert!(String::from_utf8(answer.to_vec()).unwrap().contains("done"));
}

/// A client that was told of tools before the last one went must be told that there are none, and not that there is no
/// such method.
#[tokio::test(start_paused = true)]
async fn the_last_tool_may_go_and_the_list_is_empty() {
    let server = Server::builder(implementation!()).tool(Tool::new("only", nothing)).build();
    let mut peer = crate::duplex::Peer::memory(server.clone());
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#;
    peer.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#)).await;
    assert!(peer.hear().await["result"]["capabilities"]["tools"].is_object());
    assert!(server.tools().remove("only"));
    peer.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let answer = peer.hear().await;
    assert_eq!(answer["result"]["tools"], serde_json::json!([]), "{answer}");
}

/// Without a connection a request is served as the newest revision that has a handshake.
#[tokio::test]
async fn what_comes_by_itself_is_served_as_the_newest_legacy_revision() {
    let server = crate::fixture::odd(mcp_core::Limits::default(), &[]);
    let whoami = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}"#;
    let answer = String::from_utf8(server.handle(whoami).await.unwrap().to_vec()).unwrap();
    assert!(answer.contains("nobody in 2025-11-25"), "{answer}");
    let request =
        mcp_jsonrpc::Request::new("x".into(), "tools/call", mcp_jsonrpc::Raw::parse(r#"{"name":"whoami"}"#).ok());
    let response = server.dispatch(request).await;
    assert!(response.outcome.unwrap().as_str().contains(Revision::LATEST_LEGACY.as_str()));
    assert!(server.handle(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.is_none());
    let batch = server.handle(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#).await.unwrap();
    assert!(String::from_utf8(batch.to_vec()).unwrap().contains("-32600"));
    assert!(server.handle(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await.is_none());
}

/// Before the modern era a schema of output is an object's, and what is promised must be kept. No Rust name is told.
#[tokio::test]
async fn c151_no_schema_is_promised_where_nothing_structured_is_sent() {
    let server = crate::fixture::odd(mcp_core::Limits::default(), &[]);
    for revision in Revision::ALL {
        let mut peer = crate::duplex::Peer::memory(server.clone());
        let meta = if *revision == Revision::LATEST { super::modern_meta() } else { serde_json::json!({}) };
        if *revision != Revision::LATEST {
            let client = serde_json::json!({ "name": "test", "version": "1" });
            let params =
                serde_json::json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client });
            let hello = serde_json::json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
            peer.say(&hello.to_string()).await;
            peer.hear().await;
        }
        let list =
            serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        peer.say(&list.to_string()).await;
        let answer = peer.hear().await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let schemas: Vec<&Value> = tools.iter().filter_map(|tool| tool.get("outputSchema")).collect();
        assert_eq!(schemas.iter().any(|schema| schema["type"] == "array"), *revision == Revision::LATEST);
        assert!(schemas.iter().all(|schema| schema.get("title").is_none()), "{schemas:?}");
    }
}
