//! What comes with a call, and no model sees: the context, the server's state, who asks, the state of a method.

use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use mcp_suite::{
    Context, Principal, ToolError,
    prelude::tool,
    server::{Peer, serve_peer},
};
use mcp_test::RawClient;
use serde_json::json;

use super::*;

struct Greeting(&'static str);

#[tool]
async fn known(
    context: &Context,
    greeting: &Greeting,
    who: Option<&Principal>,
    owned: Option<Principal>,
    number: &u8,
) -> Result<String, ToolError> {
    assert_eq!(who, owned.as_ref());
    Ok(format!("{} {} {} {number}", context.revision(), greeting.0, who.map_or("nobody", Principal::id)))
}

#[tool]
async fn whoever(who: Principal, same: &Principal, context: Context) -> Result<String, ToolError> {
    assert_eq!(context.principal(), Some(same));
    Ok(who.id().to_owned())
}

async fn as_principal(who: Option<&str>, tool: &str) -> String {
    let server = builder().tool(known_tool()).tool(whoever_tool()).state(Greeting("Hi")).state(7_u8).build();
    let (here, there) = mcp_core::memory();
    let peer = Peer::new().principal(who.map(Principal::new));
    let mut client = RawClient::over(here, serve_peer(server, there, peer));
    client.open(Revision::LATEST).await.unwrap();
    client.call(tool, json!({})).await["result"]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn context_state_and_principal_come_by_their_types() {
    assert_eq!(schema(&known_tool()), json!({ "type": "object" }));
    let revision = Revision::LATEST;
    assert_eq!(as_principal(Some("ada"), "known").await, format!("{revision} Hi ada 7"));
    assert_eq!(as_principal(None, "known").await, format!("{revision} Hi nobody 7"));
    assert_eq!(as_principal(Some("ada"), "whoever").await, "ada");
    assert!(as_principal(None, "whoever").await.contains("who asks"));
}

#[tokio::test]
async fn a_state_that_the_server_lacks_fails_the_call() {
    let failed = said(builder().tool(known_tool()).build(), "known", json!({})).await;
    assert!(failed.contains("not set up"), "{failed}");
}

/// A state whose type has a parameter.
struct Counter<T> {
    count: AtomicU32,
    unit: T,
}

impl<T: Display + Send + Sync + 'static> Counter<T> {
    /// Counts
    #[tool(name = "count")]
    async fn add(&self, by: u32) -> Result<String, ToolError> {
        Ok(format!("{} {}", self.count.fetch_add(by, Ordering::Relaxed) + by, self.unit))
    }

    #[tool]
    async fn owned(self: Arc<Self>, context: Context) -> Result<String, ToolError> {
        Ok(format!("{} {}", context.revision(), self.unit))
    }

    #[tool]
    async fn shared(self: &Arc<Self>) -> Result<u32, ToolError> {
        Ok(self.count.load(Ordering::Relaxed))
    }

    #[tool(blocking)]
    fn block(&self, by: u32) -> Result<u32, ToolError> {
        Ok(self.count.load(Ordering::Relaxed) + by)
    }
}

#[tokio::test]
async fn methods_share_their_state() {
    let counter = Arc::new(Counter { count: AtomicU32::new(1), unit: "apples" });
    let server = builder().tool(counter.add_tool()).tool(counter.owned_tool());
    let server = server.tool(counter.shared_tool()).tool(counter.block_tool()).build();
    assert_eq!(said(server.clone(), "count", json!({ "by": 2 })).await, "3 apples");
    assert_eq!(said(server.clone(), "count", json!({ "by": 2 })).await, "5 apples");
    assert_eq!(said(server.clone(), "owned", json!({})).await, format!("{} apples", Revision::LATEST));
    assert_eq!(said(server.clone(), "shared", json!({})).await, "5");
    assert_eq!(said(server, "block", json!({ "by": 2 })).await, "7");
    assert_eq!(counter.add(1).await.unwrap(), "6 apples");
}
