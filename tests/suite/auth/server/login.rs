//! The client of this family logs in at a server of this family.

use mcp_auth::{Jwt, Network, ResourceMetadata, ResourceServer};
use mcp_core::{Client, Revision, implementation};
use mcp_http::{Http, Routes};
use mcp_test::AuthorizationServer;
use serde_json::json;
use tokio::{net::TcpListener, task::AbortHandle};

use super::server;
use crate::auth::credentials;

/// A server that is where its metadata says.
async fn start(issuer: &AuthorizationServer) -> (String, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let resource = format!("http://{}/mcp", listener.local_addr().unwrap());
    let tokens = Jwt::builder(&resource).issuer(issuer.issuer(), issuer.jwks_url()).network(Network::Loopback);
    let metadata = ResourceMetadata::new(&resource).authorization_server(issuer.issuer());
    let guard = ResourceServer::builder(metadata, tokens.build().unwrap()).scopes(["mcp"]).build().unwrap();
    let app = Routes::new(server()).into_router().layer(guard);
    let serving = tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
    (resource, serving.abort_handle())
}

#[tokio::test]
async fn a_client_logs_in_and_is_stepped_up_in_both_eras() {
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        let issuer = AuthorizationServer::start().await;
        let (url, serving) = start(&issuer).await;
        let http = Http::new(&url).credentials(credentials());
        let client = Client::builder(implementation!()).revisions([revision]).connect(http).await.unwrap();
        let said: String = client.call("whoami", json!({})).await.unwrap();
        assert_eq!(said, format!("{}#ada", issuer.issuer()));
        assert_eq!(issuer.asked("/authorize"), 1);
        assert_eq!(client.call::<String>("write", json!({})).await.unwrap(), "written");
        assert_eq!(issuer.asked("/authorize"), 2);
        client.disconnect().await;
        serving.abort();
    }
}
