//! Many that listen, and much that changes.

use mcp_core::{Limits, Server, Tool, ToolError, implementation};
use mcp_test::RawClient;
use serde_json::json;

use crate::http::{Post, Served};

async fn nothing() -> Result<(), ToolError> {
    Ok(())
}

fn server() -> Server {
    Server::builder(implementation!()).limits(Limits::default()).tool(Tool::new("one", nothing)).build()
}

async fn listening(server: &Server) -> RawClient {
    let mut client = RawClient::modern(server.clone());
    let meta = super::modern_meta();
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params })).await;
    assert_eq!(client.hear().await["method"], "notifications/subscriptions/acknowledged");
    client
}

/// All end up told, whoever does not read costs nobody anything, and what waits does not grow with what changes.
#[tokio::test(start_paused = true)]
async fn a_thousand_listeners_are_told_of_a_burst_and_memory_stays_flat() {
    let server = server();
    let mut listeners = Vec::new();
    for _ in 0..1000 {
        listeners.push(listening(&server).await);
    }
    let burst = || (0..10_000).for_each(|_| server.tools().replace(Tool::new("one", nothing)).unwrap());
    burst();
    let counted = allocation_counter::measure(burst);
    assert!(counted.bytes_current < 64 * 1024, "{} bytes more wait", counted.bytes_current);
    let (stuck, reading) = listeners.split_at_mut(10);
    for listener in reading.iter_mut() {
        assert_eq!(listener.hear().await["method"], "notifications/tools/list_changed");
        listener.silence().await.unwrap();
    }
    server.tools().remove("one");
    for listener in reading {
        assert_eq!(listener.hear().await["method"], "notifications/tools/list_changed");
    }
    for listener in stuck {
        assert_eq!(listener.hear().await["method"], "notifications/tools/list_changed");
    }
}

/// Over HTTP the stream ends in good order where the server stops listening to itself.
#[tokio::test]
async fn a_stream_over_http_is_acknowledged_told_and_ended_in_good_order() {
    let server = server();
    let served = Served::start(server.clone()).await;
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": super::modern_meta() });
    let listen = json!({ "jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params }).to_string();
    let post = Post::speaking(mcp_core::Revision::LATEST, listen.clone());
    let mut connection = served.connect().await;
    connection.write(&post.bytes(served.address)).await;
    let head = connection.head().await.unwrap();
    assert_eq!((head.status, head.header("Content-Type")), (200, Some("text/event-stream")));
    let mut next = async || {
        let chunk = String::from_utf8(connection.chunk().await?).unwrap();
        let data = chunk.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("{chunk}")).to_owned();
        Some(serde_json::from_str::<serde_json::Value>(&data).unwrap())
    };
    assert_eq!(next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    server.tools().remove("one");
    let told = next().await.unwrap();
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    server.end_subscriptions();
    let end = next().await.unwrap();
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("s"), &json!("complete")));
    assert_eq!(end["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    assert_eq!(next().await, None);
    let json = Post::speaking(mcp_core::Revision::LATEST, listen).header("Accept", "application/json");
    assert_eq!(served.send(json).await.json()["error"]["code"], -32600);
}
