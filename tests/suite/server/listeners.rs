//! Many that listen, and much that changes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use mcp_core::{
    Era, FrameSink as _, FrameSource, Limits, Principal, Revision, Server, Tool, ToolError, Wire as _, implementation,
    jsonrpc::Frame,
    server::{Peer, serve_peer},
};
use mcp_test::RawClient;
use serde_json::{Value, json};

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

/// All end up told, and what waits does not grow with what changes.
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
    for listener in &mut listeners {
        assert_eq!(listener.hear().await["method"], "notifications/tools/list_changed");
        listener.silence().await.unwrap();
    }
    server.tools().remove("one");
    for listener in &mut listeners {
        assert_eq!(listener.hear().await["method"], "notifications/tools/list_changed");
    }
}

/// The bytes of a message, which tell when nobody keeps them any more.
struct Kept(Vec<u8>, Option<tokio::sync::oneshot::Sender<()>>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.1.take().unwrap().send(());
    }
}

/// A principal may have many streams, each asked for in a message of some megabytes.
#[tokio::test(start_paused = true)]
async fn a_stream_does_not_keep_the_message_that_asked_for_it() {
    let (here, there) = mcp_core::memory();
    tokio::spawn(mcp_core::server::serve(server(), there));
    let (mut source, mut sink) = here.split();
    let mut params = json!({ "notifications": { "toolsListChanged": true }, "_meta": super::modern_meta() });
    params["padding"] = "x".repeat(1 << 20).into();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    let (released, is_released) = tokio::sync::oneshot::channel();
    let frame = Bytes::from_owner(Kept(message.to_string().into(), Some(released)));
    sink.send(&mut [frame].into()).await.unwrap();
    source.next().await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(1), is_released).await.expect("the message is kept").unwrap();
}

/// A client that listens, and reads nothing after the first answer.
async fn stuck(era: Era, server: Server) -> impl FrameSource {
    let listen = json!({ "notifications": { "toolsListChanged": true }, "_meta": super::modern_meta() });
    let client = json!({ "name": "t", "version": "0" });
    let hello =
        json!({ "protocolVersion": Revision::LATEST_LEGACY.as_str(), "capabilities": {}, "clientInfo": client });
    let messages = match era {
        Era::Modern => {
            vec![json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen })]
        }
        _ => vec![
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        ],
    };
    let (here, there) = mcp_core::memory();
    tokio::spawn(mcp_core::server::serve(server, there));
    let (mut source, mut sink) = here.split();
    sink.send(&mut messages.iter().map(|message| Bytes::from(message.to_string())).collect()).await.unwrap();
    source.next().await.unwrap().unwrap();
    // The connection stays open.
    tokio::spawn(async move {
        let _sink = sink;
        std::future::pending::<()>().await;
    });
    source
}

/// Whoever does not read costs nobody anything: the others are told of each change, and for it no more waits than the
/// wire and the queue hold.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_reader_that_is_stuck_is_bounded() {
    const CHANGES: usize = 1000;
    for era in [Era::Modern, Era::Legacy] {
        let limits = Limits::default().queue_messages(4);
        let server = Server::builder(implementation!()).limits(limits).tool(Tool::new("one", nothing)).build();
        let mut stuck = stuck(era, server.clone()).await;
        let mut reading = listening(&server).await;
        for _ in 0..CHANGES {
            server.tools().replace(Tool::new("one", nothing)).unwrap();
            assert_eq!(reading.hear().await["method"], "notifications/tools/list_changed");
        }
        let mut waited = 0;
        while let Ok(Ok(Some(Frame::Line(frame)))) =
            tokio::time::timeout(std::time::Duration::from_secs(1), stuck.next()).await
        {
            let told: Value = serde_json::from_slice(&frame).unwrap();
            assert_eq!(told["method"], "notifications/tools/list_changed");
            waited += 1;
        }
        // The wire in memory holds 64, its writer what it took at once, the queue 4, and a mark is one more.
        assert!((64..80).contains(&waited), "{era:?}: {waited} notifications waited");
    }
}

/// Over HTTP the stream ends in good order where the server stops listening to itself.
#[tokio::test]
async fn c106_a_stream_over_http_is_acknowledged_told_and_ended_in_good_order() {
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

/// The client is told what there was to listen to, and then that there is nothing more.
#[tokio::test(start_paused = true)]
async fn c106_a_server_that_has_ended_its_subscriptions_acknowledges_before_it_ends() {
    let server = server();
    server.end_subscriptions();
    let mut client = listening(&server).await;
    let end = client.hear().await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(1), &json!("complete")));
}

/// What changes while a subscription is being set up is told behind its acknowledgement, on threads of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c106_the_acknowledgement_is_first_whatever_changes_meanwhile() {
    let server = server();
    let over = Arc::new(AtomicBool::new(false));
    let changing = std::thread::spawn({
        let (server, over) = (server.clone(), over.clone());
        move || {
            while !over.load(Ordering::Relaxed) {
                server.tools().replace(Tool::new("one", nothing)).unwrap();
            }
        }
    });
    for _ in 0..200 {
        let mut client = listening(&server).await;
        let told = client.hear().await;
        assert_eq!(told["method"], "notifications/tools/list_changed");
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    }
    over.store(true, Ordering::Relaxed);
    changing.join().unwrap();
}

/// Whether a client of that principal is let listen on a wire of its own.
async fn may_listen(server: &Server, who: Option<&str>) -> Option<RawClient> {
    let (here, there) = mcp_core::memory();
    let peer = Peer::new().principal(who.map(Principal::new));
    let mut client = RawClient::over(here, serve_peer(server.clone(), there, peer));
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": super::modern_meta() });
    client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params })).await;
    let answer = client.hear().await;
    if answer["method"] == "notifications/subscriptions/acknowledged" {
        return Some(client);
    }
    assert!(answer["error"]["code"] == -32603 && answer.to_string().contains("busy"), "{answer}");
    None
}

/// A principal has so many streams on all its wires together, and takes nothing from another one; what ended counts no
/// more.
#[tokio::test(start_paused = true)]
async fn so_many_streams_a_principal_and_so_many_in_all() {
    let limits = Limits::default().subscriptions(2).all_subscriptions(100);
    let server = Server::builder(implementation!()).limits(limits).tool(Tool::new("one", nothing)).build();
    let mut adas = Vec::new();
    for _ in 0..2 {
        adas.push(may_listen(&server, Some("ada")).await.expect("within the limit"));
    }
    assert!(may_listen(&server, Some("ada")).await.is_none());
    let bob = may_listen(&server, Some("bob")).await;
    assert!(bob.is_some() && may_listen(&server, None).await.is_some());
    adas.pop().unwrap().end_input().await.unwrap();
    super::until("her stream has ended", async || may_listen(&server, Some("ada")).await.is_some()).await;

    let limits = Limits::default().all_subscriptions(3);
    let server = Server::builder(implementation!()).limits(limits).tool(Tool::new("one", nothing)).build();
    let mut all = Vec::new();
    for who in [Some("ada"), Some("bob"), None] {
        all.push(may_listen(&server, who).await.expect("within the limit"));
    }
    for who in [Some("ada"), Some("eve"), None] {
        assert!(may_listen(&server, who).await.is_none(), "{who:?}");
    }
    all.pop().unwrap().end_input().await.unwrap();
    super::until("a stream has ended", async || may_listen(&server, Some("eve")).await.is_some()).await;
}
