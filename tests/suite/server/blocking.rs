//! Tools that block.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use mcp_core::{Context, Server, Tool, ToolError, implementation};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{call, cancel, ping, text};
use crate::duplex::Peer;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn nothing() -> Result<(), ToolError> {
    Ok(())
}

fn add(Add { a, b }: Add) -> Result<i64, ToolError> {
    Ok(a + b)
}

fn revision(context: Context) -> Result<String, ToolError> {
    Ok(context.revision().to_string())
}

fn both(context: Context, Add { a, b }: Add) -> Result<String, ToolError> {
    Ok(format!("{} in {}", a + b, context.revision()))
}

fn panics() -> Result<(), ToolError> {
    panic!("a secret")
}

fn fails() -> Result<(), ToolError> {
    Err(ToolError::new("no such row"))
}

async fn ask(server: &Server, name: &str, arguments: Value) -> Value {
    serde_json::from_slice(&server.handle(call(1, name, arguments)).await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_function_of_every_shape_can_be_a_tool() {
    let tools = [
        Tool::blocking("nothing", nothing),
        Tool::blocking("add", add),
        Tool::blocking("revision", revision),
        Tool::blocking("both", both),
        Tool::blocking("panics", panics),
        Tool::blocking("fails", fails),
    ];
    let server = tools.into_iter().fold(Server::builder(implementation!()), |builder, tool| builder.tool(tool)).build();
    let sum = || json!({ "a": 2, "b": 5 });
    assert_eq!(ask(&server, "nothing", json!({})).await["result"]["content"], json!([]));
    assert_eq!(text(&ask(&server, "add", sum()).await), "7");
    assert_eq!(text(&ask(&server, "revision", json!({})).await), "2026-07-28");
    assert_eq!(text(&ask(&server, "both", sum()).await), "7 in 2026-07-28");
    let misfit = ask(&server, "add", json!({ "a": "x" })).await;
    assert_eq!(misfit["result"]["isError"], true, "{misfit}");
    let failure = ask(&server, "fails", json!({})).await;
    assert!(failure["result"]["isError"] == true && text(&failure) == "no such row", "{failure}");
    let panic = ask(&server, "panics", json!({})).await;
    assert!(panic["error"]["code"] == -32603 && !panic.to_string().contains("secret"), "{panic}");
    let tool = server.tools().get("both").unwrap();
    assert!(tool.definition().input_schema.as_str().contains("required"));
}

/// A server whose tool says that it runs, and then blocks its thread until the call is cancelled.
fn stubborn() -> (Server, Receiver<&'static str>) {
    let (said, heard): (Sender<&'static str>, _) = channel();
    let stubborn = move |context: Context| {
        said.send("begun")?;
        while !context.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        said.send("cancelled")?;
        Ok(())
    };
    (Server::builder(implementation!()).tool(Tool::blocking("stubborn", stubborn)).build(), heard)
}

/// What is said next, within bounds.
async fn next(heard: Receiver<&'static str>) -> (Receiver<&'static str>, &'static str) {
    let waiting = tokio::task::spawn_blocking(move || {
        let said = heard.recv_timeout(Duration::from_secs(30));
        (heard, said)
    });
    let (heard, said) = waiting.await.unwrap();
    (heard, said.unwrap())
}

/// C130: in a runtime of one thread, too.
#[tokio::test]
async fn a_tool_that_blocks_holds_up_nobody_and_can_see_that_it_is_cancelled() {
    let (server, heard) = stubborn();
    let mut peer = Peer::memory(server);
    peer.say(&call(1, "stubborn", json!({}))).await;
    peer.say(&ping(2)).await;
    assert_eq!(peer.hear().await["id"], 2);
    let (heard, said) = next(heard).await;
    assert_eq!(said, "begun");
    peer.say(&cancel(1)).await;
    assert_eq!(next(heard).await.1, "cancelled");
    peer.say(&ping(3)).await;
    assert_eq!(peer.hear().await["id"], 3);
}

/// Threads cannot be stopped, so what waits for one must be bounded, and must not run once nobody wants it.
#[tokio::test]
async fn a_call_that_is_cancelled_while_it_waits_for_a_thread_never_runs() {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    let runs = Arc::<AtomicUsize>::default();
    let (free, blocked) = channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let slow = {
        let runs = runs.clone();
        move || {
            runs.fetch_add(1, Ordering::SeqCst);
            blocked.lock().unwrap().recv()?;
            Ok(())
        }
    };
    let limits = mcp_core::Limits::default().blocking(1);
    let server = Server::builder(implementation!()).limits(limits).tool(Tool::blocking("slow", slow)).build();
    let mut peer = Peer::memory(server);
    for id in 0..10 {
        peer.say(&call(id, "slow", json!({}))).await;
    }
    super::until("the first one runs", async || runs.load(Ordering::SeqCst) == 1).await;
    for id in 1..9 {
        peer.say(&cancel(id)).await;
    }
    peer.say(&ping(99)).await;
    assert_eq!(peer.hear().await["id"], 99);
    free.send(()).unwrap();
    free.send(()).unwrap();
    let mut answered = [peer.hear().await["id"].as_u64(), peer.hear().await["id"].as_u64()];
    answered.sort_unstable();
    assert_eq!((answered, runs.load(Ordering::SeqCst)), ([Some(0), Some(9)], 2));
}
