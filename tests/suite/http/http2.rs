//! HTTP/2 without TLS, which proxies may speak from the first byte on.

use std::pin::pin;

use bytes::Bytes;
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_core::Revision;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{Post, Served, raw::soon};
use crate::server::{call, gauge, text, until};

async fn connect(served: &Served) -> SendRequest<Full<Bytes>> {
    let stream = TokioIo::new(TcpStream::connect(served.address).await.unwrap());
    let (sender, connection) = handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// A call as HTTP/2 has it: the host is in the target, and there is no header of that name.
fn post(host: &str, tool: &str, arguments: Value) -> Request<Full<Bytes>> {
    Request::post(format!("http://{host}/mcp"))
        .version(Version::HTTP_2)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json")
        .header("MCP-Protocol-Version", Revision::LATEST.as_str())
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", tool)
        .body(Full::from(call(1, tool, arguments)))
        .unwrap()
}

async fn sent(connection: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> (StatusCode, Value) {
    let response = soon("an answer", connection.send_request(request)).await.unwrap();
    assert_eq!(response.version(), Version::HTTP_2);
    let status = response.status();
    let body = soon("the whole answer", response.into_body().collect()).await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn one_connection_carries_calls_at_once_and_one_that_is_dropped_is_cancelled() {
    let server = everything_server::server();
    let served = Served::start(server.clone()).await;
    let mut connection = connect(&served).await;
    let mut other = connection.clone();
    {
        let mut sleep = pin!(other.send_request(post("localhost", "sleep", json!({ "ms": 600_000 }))));
        until("the first call runs", async || {
            assert!(futures_util::poll!(&mut sleep).is_pending());
            gauge(&server).await.0 == 1
        })
        .await;
        let (status, answer) = sent(&mut connection, post("localhost", "add", json!({ "a": 2, "b": 5 }))).await;
        assert_eq!((status, text(&answer)), (StatusCode::OK, "7"));
    }
    until("the first call is over", async || gauge(&server).await == (0, 1)).await;
}

#[tokio::test]
async fn the_host_in_the_target_is_held_to_the_list_and_http_1_is_still_spoken_on_the_same_port() {
    let served = Served::start(everything_server::server()).await;
    let arguments = json!({ "a": 2, "b": 5 });
    let (status, answer) = sent(&mut connect(&served).await, post("evil.example", "add", arguments.clone())).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(answer["error"]["message"].as_str().unwrap().contains("'evil.example'"), "{answer}");
    let response = served.send(Post::speaking(Revision::LATEST, call(1, "add", arguments))).await;
    assert_eq!((response.head.version.as_str(), text(&response.json())), ("HTTP/1.1", "7"));
}
