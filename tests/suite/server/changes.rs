//! Who is told of what changes: with more than one session, and when one of them ends.

use mcp_core::{Context, Limits, Resource, Server, Tool, ToolError, implementation};
use mcp_test::RawClient;
use serde_json::json;

const URI: &str = "x:watched";

/// A tool that leaves its context behind, in a task that outlives its call and its connection.
async fn linger(context: Context) -> Result<(), ToolError> {
    tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(context);
    });
    Ok(())
}

fn server() -> Server {
    Server::builder(implementation!())
        .limits(Limits::default())
        .resource(Resource::fixed(URI, "watched", "text"))
        .tool(Tool::new("linger", linger))
        .build()
}

async fn subscribed(server: &Server) -> RawClient {
    let mut client = RawClient::legacy(server.clone()).await;
    let answer = client.request("resources/subscribe", json!({ "uri": URI })).await;
    assert!(answer["result"].is_object(), "{answer}");
    client
}

#[tokio::test(start_paused = true)]
async fn c170_only_who_has_subscribed_is_told_and_the_end_of_a_connection_forgets_it() {
    let server = server();
    let (mut one, mut other) = (subscribed(&server).await, RawClient::legacy(server.clone()).await);
    assert!(server.resource_updated(URI));
    assert_eq!(one.hear().await["params"]["uri"], URI);
    other.silence().await.unwrap();
    one.end().await.unwrap();
    assert!(!server.resource_updated(URI));
}

#[tokio::test(start_paused = true)]
async fn c170_a_connection_that_is_gone_is_told_nothing_whatever_its_handlers_left_running() {
    let server = server();
    let mut client = subscribed(&server).await;
    client.call("linger", json!({})).await;
    drop(client);
    tokio::task::yield_now().await;
    super::until("the subscription is forgotten", async || !server.resource_updated(URI)).await;
}

/// A client that reads nothing is told once of a thousand changes, and holds up nobody.
#[tokio::test(start_paused = true)]
async fn a_burst_is_one_notification_a_session() {
    let server = server();
    let mut clients = [subscribed(&server).await, subscribed(&server).await];
    for _ in 0..1000 {
        assert!(server.resource_updated(URI));
    }
    for client in &mut clients {
        assert_eq!(client.hear().await["method"], "notifications/resources/updated");
        client.silence().await.unwrap();
    }
}
