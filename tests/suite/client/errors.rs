//! What went wrong, and whose fault it was: programs decide by it whether to try again, and where to look.

use std::time::Duration;

use mcp_suite::{
    Blame, Client, Error, ErrorKind, Server, Tool, ToolError, client::CallOptions, http::Http, implementation,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer},
    memory::close,
};

/// The error of a call that is answered like this.
async fn answered(error: Value) -> Error {
    let script = [expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "error": error }))];
    let (client, _peer) = connected(Era::Modern, script).await;
    client.call::<()>("a", ()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn an_answered_error_keeps_its_object_and_is_the_peers() {
    for (code, kind) in [
        (-32700, ErrorKind::ProtocolInvalid),
        (-32600, ErrorKind::ProtocolInvalid),
        (-32601, ErrorKind::MethodNotFound),
        (-32602, ErrorKind::InvalidParams),
        (-32603, ErrorKind::InternalError),
        (-32000, ErrorKind::InternalError),
        (-32002, ErrorKind::NotFound),
        (-32020, ErrorKind::ProtocolInvalid),
        (-32021, ErrorKind::InvalidParams),
        (-32022, ErrorKind::ProtocolVersionMismatch),
        (1, ErrorKind::InternalError),
        (i64::MIN, ErrorKind::InternalError),
    ] {
        let error = answered(json!({ "code": code, "message": "größer\n", "data": { "x": [1] } })).await;
        assert_eq!((error.kind(), error.blame()), (kind, Blame::Peer), "{code}");
        let object = error.object().unwrap();
        assert_eq!((object.code, &*object.message), (code, "größer\n"));
        assert_eq!(object.data.as_ref().unwrap().as_str(), r#"{"x":[1]}"#);
        assert!(error.to_string().contains(&code.to_string()) && error.to_string().contains("größer"), "{error}");
    }
}

/// A kind, and how a caller meets it.
#[tokio::test]
async fn each_kind_is_met_as_it_should_be() {
    let mut met: Vec<(ErrorKind, Blame)> = Vec::new();
    let mut meet = |error: Error, kind: ErrorKind, blame: Blame| {
        assert_eq!((error.kind(), error.blame()), (kind, blame), "{error}");
        assert!(error.kind().code().starts_with("MCP."));
        met.push((kind, blame));
    };
    let everything = || connect_in(Era::Modern, everything_server::server());
    let legacy = || connect_in(Era::Legacy, everything_server::server());

    // The caller asked for what cannot be.
    let client = everything().await.unwrap();
    meet(client.call::<()>("add", json!([])).await.unwrap_err(), ErrorKind::InvalidParams, Blame::Caller);
    meet(client.call::<()>("add", "text").await.unwrap_err(), ErrorKind::InvalidParams, Blame::Caller);
    meet(client.call::<()>("add", unwritable()).await.unwrap_err(), ErrorKind::InvalidParams, Blame::Caller);

    // The peer answered with an error, or with a failure, or with nonsense.
    for client in [everything().await.unwrap(), legacy().await.unwrap()] {
        meet(client.call::<()>("no such tool", ()).await.unwrap_err(), ErrorKind::InvalidParams, Blame::Peer);
        let failed = client.call::<()>("fail", json!({ "message": "no luck" })).await.unwrap_err();
        assert_eq!(failed.to_string(), "no luck");
        meet(failed, ErrorKind::HandlerFailed, Blame::Peer);
        let misfit = client.call::<()>("add", json!({ "a": "x", "b": 1 })).await.unwrap_err();
        assert!(misfit.to_string().contains('a'), "{misfit}");
        meet(misfit, ErrorKind::HandlerFailed, Blame::Peer);
        meet(
            client.call::<Vec<u8>>("echo", json!({ "text": "x" })).await.unwrap_err(),
            ErrorKind::ProtocolInvalid,
            Blame::Peer,
        );
        meet(
            client.call::<()>("panic", json!({ "message": "secret" })).await.unwrap_err(),
            ErrorKind::InternalError,
            Blame::Peer,
        );
        let options = CallOptions::new().timeout(Duration::from_millis(50));
        let late = client.call_with::<()>("sleep", json!({ "ms": 60_000 }), options).await.unwrap_err();
        meet(late, ErrorKind::Timeout, Blame::Transport);
        let token = CancellationToken::new();
        token.cancel();
        let options = CallOptions::new().cancel_with(token);
        let given_up = client.call_with::<()>("sleep", json!({ "ms": 60_000 }), options).await.unwrap_err();
        meet(given_up, ErrorKind::RequestCancelled, Blame::Caller);
        meet(client.read_resource("x:none").await.unwrap_err(), ErrorKind::NotFound, Blame::Peer);
        client.disconnect().await;
        meet(client.call::<()>("add", ()).await.unwrap_err(), ErrorKind::TransportClosed, Blame::Caller);
    }
    meet(answered(json!({ "code": -32601, "message": "" })).await, ErrorKind::MethodNotFound, Blame::Peer);
    meet(answered(json!({ "code": -32002, "message": "" })).await, ErrorKind::NotFound, Blame::Peer);

    // The connection is not there, or not for us.
    let (client, _peer) = connected(Era::Modern, [expect(json!({ "method": "tools/call" })), close()]).await;
    meet(client.call::<()>("a", ()).await.unwrap_err(), ErrorKind::TransportClosed, Blame::Transport);
    let server = HttpPeer::start(|_| Answer::hang_up()).await;
    meet(soon(over_http(&server.url())).await.unwrap_err(), ErrorKind::TransportError, Blame::Transport);
    let server = HttpPeer::start(|_| Answer::status(503)).await;
    meet(
        soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap_err(),
        ErrorKind::TransportError,
        Blame::Peer,
    );
    let server = HttpPeer::start(|_| Answer::status(401)).await;
    meet(soon(over_http(&server.url())).await.unwrap_err(), ErrorKind::Unauthorized, Blame::Peer);

    let forgetful = http::with_session(http::legacy("2025-11-25", |_| Answer::status(404)));
    let server = HttpPeer::start(forgetful).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    meet(soon(client.call::<()>("a", ())).await.unwrap_err(), ErrorKind::NotInitialized, Blame::Peer);

    // The two sides have no revision in common.
    let narrow = Server::builder(implementation!()).revisions([mcp_suite::Revision::V2024_11_05]).build();
    let newer = Client::builder(implementation!()).revisions([mcp_suite::Revision::V2026_07_28]);
    meet(newer.connect(narrow.clone()).await.unwrap_err(), ErrorKind::ProtocolVersionMismatch, Blame::Peer);
    let newer = Client::builder(implementation!()).revisions([mcp_suite::Revision::V2025_11_25]);
    meet(newer.connect(narrow).await.unwrap_err(), ErrorKind::ProtocolVersionMismatch, Blame::Peer);

    // Not a client's, but of the same type.
    async fn tool() -> Result<(), ToolError> {
        Ok(())
    }
    let server = Server::builder(implementation!()).tool(Tool::new("a", tool)).build();
    meet(server.tools().add(Tool::new("a", tool)).unwrap_err(), ErrorKind::DuplicateRegistration, Blame::Caller);

    // Nothing raises `AlreadyConnected` yet.
    let kinds: std::collections::HashSet<_> = met.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds.len(), 14);
}

/// A value that JSON cannot have: a map whose keys are lists.
fn unwritable() -> std::collections::BTreeMap<Vec<u8>, u8> {
    std::collections::BTreeMap::from([(vec![1], 1)])
}

/// A refused tool is told by name, and a panic tells nothing of itself.
#[tokio::test(start_paused = true)]
async fn a_panic_in_the_server_is_an_internal_error_without_its_words() {
    for era in ERAS {
        let client = connect_in(era, everything_server::server()).await.unwrap();
        let error = client.call::<()>("panic", json!({ "message": "secret" })).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
        let error = client.call::<()>("no such tool", ()).await.unwrap_err();
        assert!(error.to_string().contains("no such tool"), "{error}");
        assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7);
    }
}

/// The names are stable: logs and metrics are searched by them.
#[test]
fn the_kinds_have_their_names() {
    for (kind, code) in [
        (ErrorKind::ProtocolInvalid, "MCP.PROTOCOL_INVALID"),
        (ErrorKind::MethodNotFound, "MCP.METHOD_NOT_FOUND"),
        (ErrorKind::InvalidParams, "MCP.INVALID_PARAMS"),
        (ErrorKind::InternalError, "MCP.INTERNAL_ERROR"),
        (ErrorKind::Unauthorized, "MCP.UNAUTHORIZED"),
        (ErrorKind::RequestCancelled, "MCP.REQUEST_CANCELLED"),
        (ErrorKind::Timeout, "MCP.TIMEOUT"),
        (ErrorKind::TransportClosed, "MCP.TRANSPORT_CLOSED"),
        (ErrorKind::TransportError, "MCP.TRANSPORT_ERROR"),
        (ErrorKind::NotInitialized, "MCP.NOT_INITIALIZED"),
        (ErrorKind::AlreadyConnected, "MCP.ALREADY_CONNECTED"),
        (ErrorKind::DuplicateRegistration, "MCP.DUPLICATE_REGISTRATION"),
        (ErrorKind::NotFound, "MCP.NOT_FOUND"),
        (ErrorKind::ProtocolVersionMismatch, "MCP.PROTOCOL_VERSION_MISMATCH"),
        (ErrorKind::HandlerFailed, "MCP.HANDLER_FAILED"),
    ] {
        assert_eq!(kind.code(), code);
    }
}

/// The eras tell by different codes that there is no such resource; what a server adds to them is kept.
#[tokio::test(start_paused = true)]
async fn c167_a_resource_that_is_not_there_is_told_in_either_code() {
    let data = json!({ "uri": "x:none" });
    for era in ERAS {
        for code in [-32002, -32602] {
            for data in [data.clone(), json!({ "uri": "x:other" }), json!(null)] {
                // Parameters may be wrong in other ways, too.
                let is_it = code == -32002 || data["uri"] == "x:none";
                let kind = if is_it { ErrorKind::NotFound } else { ErrorKind::InvalidParams };
                let error = json!({ "code": code, "message": "Resource not found", "data": data });
                let script =
                    [expect(json!({ "method": "resources/read" })), send(json!({ "id": "$id", "error": error }))];
                let (client, _peer) = connected(era, script).await;
                let error = client.read_resource("x:none").await.unwrap_err();
                assert_eq!((error.kind(), error.blame()), (kind, Blame::Peer), "{era:?}");
                let told = error.object().unwrap().data.as_ref().map(|data| data.decode::<Value>().unwrap());
                assert_eq!(told, Some(data).filter(|data| !data.is_null()));
            }
        }
    }
}
