//! What clients say by subprotocols: tokens, revisions.

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
};
use http::StatusCode;
use mcp_core::{Client, Context, ErrorKind, Principal, Revision, Tool, ToolError, implementation};
use mcp_ws::{BearerSubprotocol, Ws, request_parts};

use super::{
    client::{modern, peer, switch},
    *,
};
use crate::server::{call, text};

/// Lets in whoever has the token, wherever it was said.
async fn check(mut request: Request, next: Next) -> Response {
    let bearer = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    if bearer != Some("Bearer SECRET") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    request.extensions_mut().insert(Principal::new("alice"));
    next.run(request).await
}

async fn who(context: Context) -> Result<String, ToolError> {
    let who = context.principal().map(Principal::id).unwrap_or_default().to_owned();
    Ok(format!("{who} {:?}", request_parts(&context).map(|parts| &parts.headers)))
}

async fn guarded() -> Served {
    let server = Server::builder(implementation!()).tool(Tool::new("who", who)).build();
    let router = Router::new().layer(WsLayer::new(server)).layer(from_fn(check)).layer(BearerSubprotocol::new());
    Served::router(router).await
}

/// Neither the answer to the upgrade nor a handler that prints its headers has the token.
#[tokio::test]
async fn c108_a_token_in_a_subprotocol_counts_as_one_in_a_header() {
    let served = guarded().await;
    let protocol = "Sec-WebSocket-Protocol";
    let (head, mut peer) = served.upgrade("/mcp", &[(protocol, "mcp, mcp.auth.SECRET")]).await;
    assert!(head[0].contains("101"), "{head:?}");
    assert_eq!(header(&head, "sec-websocket-protocol"), Some("mcp"));
    assert!(!head.concat().contains("SECRET"), "{head:?}");
    peer.say(call(1, "who", serde_json::json!({}))).await;
    let answer = peer.hear().await;
    assert!(text(&answer).starts_with("alice "), "{answer}");
    assert!(!text(&answer).contains("SECRET"), "{answer}");

    for offered in ["mcp", "mcp, mcp.auth.WRONG"] {
        let (head, _peer) = served.upgrade("/mcp", &[(protocol, offered)]).await;
        assert!(head[0].contains("401"), "{offered}: {head:?}");
    }
    let (head, _peer) = served.upgrade("/mcp", &[("Authorization", "Bearer SECRET")]).await;
    assert!(head[0].contains("101"), "{head:?}");
    for twice in ["mcp.auth.SECRET, mcp.auth.SECRET", "mcp.auth."] {
        let why = served.refused(&[(protocol, twice)], "400").await;
        assert!(!why.contains("SECRET"), "{why}");
    }
}

#[tokio::test]
async fn c108_a_client_sends_its_token_by_subprotocol_where_it_is_told_to() {
    let served = guarded().await;
    let client = soon("connecting", Client::connect(Ws::new(served.url()).subprotocol_auth("SECRET"))).await.unwrap();
    assert!(client.call::<String>("who", ()).await.unwrap().starts_with("alice "));
    let error = soon("connecting", Client::connect(Ws::new(served.url()).subprotocol_auth("WRONG"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(!format!("{error:?}").contains("WRONG"), "{error:?}");
}

/// A server that tells the token back, or picks nothing, is not spoken to.
#[tokio::test]
async fn c107_c108_a_server_that_echoes_the_token_is_an_error_that_does_not_show_it() {
    for picks in ["Sec-WebSocket-Protocol: mcp.auth.SECRET\r\n", "", "Sec-WebSocket-Protocol: mcp.auth.OTHER\r\n"] {
        let url = peer(move |mut peer| async move {
            switch(&mut peer, picks).await;
            peer.fill().await;
        })
        .await;
        let error = soon("connecting", Client::connect(Ws::new(url).subprotocol_auth("SECRET"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProtocolInvalid, "{error:?}");
        assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    }
}

/// A server that knows nothing of it gets the usual offer behind.
#[tokio::test]
async fn c107_a_peer_that_cannot_resume_is_offered_the_usual_and_is_unaffected() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Some(told)));
    let url = peer(move |mut peer| {
        let told = told.clone();
        async move {
            let head = String::from_utf8_lossy(&peer.peek().await).into_owned();
            told.lock().unwrap().take().unwrap().send(head).unwrap();
            modern(&mut peer).await;
            while peer.next().await.is_some() {}
        }
    })
    .await;
    let ws = Ws::new(url).resume(mcp_core::client::Backoff::new());
    let client = soon("connecting", Client::connect(ws)).await.unwrap();
    assert!(heard.await.unwrap().to_ascii_lowercase().contains("sec-websocket-protocol: mcp.resume, mcp\r\n"));
    assert_eq!(client.revision(), Revision::LATEST);
}

#[tokio::test]
async fn a_revision_that_the_server_does_not_accept_is_refused_before_the_upgrade() {
    let narrow = || Server::builder(implementation!()).revisions([Revision::LATEST]).build();
    let served = Served::with(WsLayer::new(narrow()).version_subprotocols(true)).await;
    let protocol = "Sec-WebSocket-Protocol";
    for offered in ["mcp, mcp.version.2025-11-25", "mcp.version.1999-01-01"] {
        let why = served.refused(&[(protocol, offered)], "400").await;
        assert!(why.contains(Revision::LATEST.as_str()) && !why.contains("1999"), "{why}");
    }
    let latest = format!("mcp.version.{}", Revision::LATEST);
    for (offered, picked) in [(format!("mcp, {latest}"), "mcp"), (latest.clone(), &*latest)] {
        let (head, _peer) = served.upgrade("/mcp", &[(protocol, &offered)]).await;
        assert_eq!(header(&head, "sec-websocket-protocol"), Some(picked), "{head:?}");
    }
    // Unless it is asked for, it means nothing.
    let served = Served::with(WsLayer::new(narrow())).await;
    let (head, _peer) = served.upgrade("/mcp", &[(protocol, "mcp, mcp.version.1999-01-01")]).await;
    assert_eq!(header(&head, "sec-websocket-protocol"), Some("mcp"), "{head:?}");
}
