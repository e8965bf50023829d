//! What other implementations answer with silence, on every wire: a panic in a tool, and a message over the limit.

use std::time::Duration;

use everything_server::server;
use mcp_core::{Client, Error, ErrorKind, Limits, client::CallOptions};
use mcp_http::Http;
use mcp_stdio::{Child, Lines};
use mcp_ws::Ws;
use serde_json::json;

use crate::{
    duplex::{Peer, Wire},
    http::{Post, Served, soon},
    process::everything_server,
    server::{call, ping},
};

/// A client of the everything-server over that wire, and what has to live for it.
async fn connected(wire: Wire) -> (Client, Box<dyn std::any::Any>) {
    let nothing = Box::new(());
    // It writes and reads whatever it is asked to: the server's bound is looked at, and then the client's.
    match wire {
        Wire::Memory => (Client::connect(server()).await.unwrap(), nothing),
        Wire::Lines => {
            let (here, there) = tokio::io::duplex(64 << 10);
            let (reader, writer) = tokio::io::split(there);
            tokio::spawn(mcp_stdio::serve_lines(server(), reader, writer));
            let (reader, writer) = tokio::io::split(here);
            (Client::connect(Lines::new(reader, writer, Limits::default().message_bytes)).await.unwrap(), nothing)
        }
        Wire::Stdio => (Client::connect(Child::new(everything_server()).arg("stdio")).await.unwrap(), nothing),
        Wire::Http => {
            let served = Served::start(server()).await;
            let url = format!("http://{}/mcp", served.address);
            (Client::connect(Http::new(url)).await.unwrap(), Box::new(served))
        }
        Wire::Ws => {
            let served = crate::ws::Served::start(server()).await;
            (Client::connect(Ws::new(served.url())).await.unwrap(), Box::new(served))
        }
    }
}

/// A call that would rather wait for ever than fail of its own patience.
async fn asked(client: &Client, tool: &str, arguments: serde_json::Value) -> Result<String, Error> {
    let options = CallOptions::new().timeout(Duration::from_secs(3600));
    soon(tool, client.call_with(tool, arguments, options)).await
}

/// Whoever called is told that it went wrong, and not what the panic said; others go on.
#[tokio::test]
async fn d01_a_panic_in_a_tool_is_answered_on_every_wire() {
    for wire in Wire::ALL {
        let (client, _serving) = connected(wire).await;
        let error = asked(&client, "panic", json!({ "message": "secret" })).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InternalError, "{}: {error}", wire.name());
        assert!(!format!("{error} {error:?}").contains("secret"), "{}: {error:?}", wire.name());
        assert_eq!(asked(&client, "add", json!({ "a": 2, "b": 5 })).await.unwrap(), "7", "{}", wire.name());
        client.disconnect().await;
    }
}

/// A request over the limit fails its call at once, and on all wires that are not ended by it the next call is served.
#[tokio::test]
async fn d08_a_request_over_the_limit_is_answered_on_every_wire() {
    for wire in Wire::ALL {
        let (client, _serving) = connected(wire).await;
        let long = json!({ "text": "x".repeat(Limits::default().message_bytes) });
        let error = asked(&client, "echo", long).await.unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Timeout, "{}: {error}", wire.name());
        // RFC 6455 has a close code for it, and no way to go on.
        if wire != Wire::Ws {
            assert_eq!(asked(&client, "add", json!({ "a": 2, "b": 5 })).await.unwrap(), "7", "{}", wire.name());
        }
        client.disconnect().await;
    }
}

/// So does an answer over the client's limit.
#[tokio::test]
async fn d08_an_answer_over_the_limit_fails_its_call_on_every_wire() {
    for wire in Wire::ALL {
        let (client, _serving) = connected(wire).await;
        let error = asked(&client, "big", json!({ "bytes": 5 << 20 })).await.unwrap_err();
        assert_ne!(error.kind(), ErrorKind::Timeout, "{}: {error}", wire.name());
        if wire != Wire::Ws {
            assert_eq!(asked(&client, "add", json!({ "a": 2, "b": 5 })).await.unwrap(), "7", "{}", wire.name());
        }
        client.disconnect().await;
    }
}

/// Who has sent it as raw text gets the id back, where that can be read.
#[tokio::test]
async fn c033_a_message_over_the_limit_is_answered_with_its_id_on_every_shared_wire() {
    let long = call(7, "echo", json!({ "text": "x".repeat(Limits::default().message_bytes) }));
    // Members may come in any order; here the id comes first.
    let long = long.replacen('{', r#"{"id":7,"#, 1).replacen(r#","id":7"#, "", 1);
    for mut peer in [Peer::memory(server()), Peer::lines(server()), Peer::stdio()] {
        soon("writing", peer.say(&long)).await;
        let answer = soon("an answer", peer.hear()).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32700)), "{answer}");
        peer.say(&ping(8)).await;
        assert_eq!(soon("the next answer", peer.hear()).await["id"], 8);
        peer.end().await.unwrap();
    }
    let served = Served::start(server()).await;
    let answer = soon("an answer", served.send(Post::speaking(mcp_core::Revision::LATEST, long))).await;
    assert_eq!(answer.status(), 413);
}
