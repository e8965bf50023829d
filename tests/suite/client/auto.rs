//! One word for every wire.

use mcp_http::Routes;
use mcp_suite::{ErrorKind, connect_auto, connect_auto_with};

use super::*;
use crate::{http::Served, process::everything_server, ws::Served as WsServed};

#[tokio::test]
async fn a_target_names_its_wire() {
    let http = Served::with(Routes::new(everything_server::server()), "127.0.0.1").await;
    let ws = WsServed::start(everything_server::server()).await;
    let program = everything_server();
    for target in [format!("http://{}/mcp", http.address), ws.url(), format!("stdio:'{}' stdio", program.display())] {
        let client = soon(connect_auto(&target)).await.unwrap();
        assert_eq!(client.call::<i64>("add", json!({ "a": 2, "b": 5 })).await.unwrap(), 7, "{target}");
        let legacy = Client::builder(implementation!()).revisions([Revision::LATEST_LEGACY]);
        let client = soon(connect_auto_with(legacy, &target)).await.unwrap();
        assert_eq!(client.revision(), Revision::LATEST_LEGACY);
        client.disconnect().await;
    }
}

#[tokio::test]
async fn a_target_that_names_nothing_is_refused_and_not_shown() {
    for target in ["", "token-s3cret", "ftp://s3cret@x/", "stdio:", "stdio:  ", "stdio:'s3cret", "http//s3cret"] {
        let error = connect_auto(target).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{target}");
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }
}
