//! WebSockets that come about, with peers that say back what they were told.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use futures_util::{SinkExt as _, StreamExt as _};
use mcp_core::{Revision, client::Backoff};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use super::{BOTH, builder, echo::lines, over_ws, secret, use_it};

/// A reason for a close frame, which may be that long.
fn reason(line: &str) -> CloseFrame {
    const LONGEST: usize = 123;
    CloseFrame { code: CloseCode::Policy, reason: line[..line.len().min(LONGEST)].to_owned().into() }
}

/// A socket whose upgrade picked that subprotocol, and what was told with the upgrade.
async fn accepted(stream: TcpStream, subprotocol: &str) -> (WebSocketStream<TcpStream>, Vec<String>) {
    let mut told = Vec::new();
    let upgrade = |request: &Request, mut response: Response| {
        told = lines(request.uri(), request.headers());
        response.headers_mut().insert("sec-websocket-protocol", subprotocol.parse().unwrap());
        Ok(response)
    };
    let socket = accept_hdr_async(stream, upgrade).await.unwrap();
    (socket, told)
}

/// A server that does the same with each connection.
async fn serve<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream, usize) -> F + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let round = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, round.fetch_add(1, SeqCst)));
        }
    });
    url
}

/// Sends back a line as whatever a message can have in it, and closes with it.
async fn repeat(stream: TcpStream, round: usize) {
    let (mut socket, told) = accepted(stream, "mcp").await;
    let line = &told[round % told.len()];
    let _ = socket.next().await;
    for text in [
        json!({ "jsonrpc": "2.0", "id": line, "result": {} }).to_string(),
        json!({ "jsonrpc": "2.0", "method": line }).to_string(),
        json!({ "jsonrpc": "2.0", "id": 7, "method": line }).to_string(),
        line.clone(),
    ] {
        let _ = socket.send(Message::text(text)).await;
    }
    let _ = socket.close(Some(reason(line))).await;
}

/// Lets the client resume, loses the first socket, and closes the second with the token that it was for.
async fn lose(stream: TcpStream, round: usize) {
    let (mut socket, _) = accepted(stream, "mcp.resume").await;
    let Some(Ok(Message::Text(hello))) = socket.next().await else { return };
    if round == 0 {
        let hello = json!({ "resume": { "token": secret("resume"), "received": 0, "messages": 8, "bytes": 65536 } });
        socket.send(Message::text(hello.to_string())).await.unwrap();
        return;
    }
    let hello: Value = serde_json::from_str(&hello).unwrap();
    assert_eq!(hello["resume"]["token"], secret("resume"));
    let _ = socket.close(Some(reason(hello["resume"]["token"].as_str().unwrap()))).await;
}

/// Picks the token for a subprotocol.
async fn pick(stream: TcpStream, _: usize) {
    drop(accepted(stream, &format!("mcp.auth.{}", secret("subprotocol"))).await);
}

/// As many scenarios as it has gone through.
pub(super) async fn sockets() -> usize {
    const ROUNDS: usize = 8;
    let url = serve(repeat).await;
    for round in 0..ROUNDS {
        use_it(builder(BOTH[round % 2]), over_ws(&url).subprotocol_auth(secret("subprotocol"))).await;
    }
    let url = serve(pick).await;
    use_it(builder(Revision::LATEST), over_ws(&url).subprotocol_auth(secret("subprotocol"))).await;
    let url = serve(lose).await;
    use_it(builder(Revision::LATEST), over_ws(&url).resume(Backoff::new().tries(2))).await;
    ROUNDS + 2
}
