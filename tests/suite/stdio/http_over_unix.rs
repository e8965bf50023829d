//! HTTP over a Unix socket, as `curl` sees it.

use std::path::Path;

use mcp_http::Routes;
use serde_json::{Value, json};
use tokio::{net::UnixListener, process::Command, sync::oneshot};

use crate::{http::soon, server::call};

/// What curl prints when it posts a call there.
async fn curl(socket: &Path, host: &str, call: &str) -> Value {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--unix-socket"]).arg(socket);
    command.args(["-H", "Content-Type: application/json", "-H", "MCP-Protocol-Version: 2026-07-28"]);
    command.args(["-H", "Mcp-Method: tools/call", "-H", "Mcp-Name: add", "--data", call]);
    command.arg(format!("http://{host}/mcp")).kill_on_drop(true);
    let output = soon("curl's answer", command.output()).await.expect("curl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `localhost` is who is asked, as nobody else can reach the socket; other names are held to the list as ever.
#[tokio::test]
async fn http_is_served_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mcp.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(Routes::new(everything_server::server()).serve_until(listener, async {
        let _ = stopped.await;
    }));
    let add = call(1, "add", json!({ "a": 2, "b": 5 }));
    assert_eq!(curl(&socket, "localhost", &add).await["result"]["content"][0]["text"], "7");
    let refused = curl(&socket, "example.com", &add).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("example.com"), "{refused}");
    stop.send(()).unwrap();
    soon("the end", serving).await.unwrap().unwrap();
}

/// The same below any router.
#[tokio::test]
async fn a_router_is_served_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mcp.sock");
    let server = everything_server::server();
    let (limits, listener) = (server.limits().clone(), UnixListener::bind(&socket).unwrap());
    let serving = async move { mcp_http::serve_service(mcp_http::routes(server), listener, &limits).await };
    let serving = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(serving));
    let add = call(1, "add", json!({ "a": 2, "b": 5 }));
    assert_eq!(curl(&socket, "localhost", &add).await["result"]["content"][0]["text"], "7");
    assert!(!serving.is_finished());
}
