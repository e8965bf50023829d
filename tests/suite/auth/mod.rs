//! A client that logs in, against an MCP server and an authorization server.

mod discovery;
mod dpop;
mod login;
mod machine;
mod processes;
mod proofs;
mod refresh;
mod scopes;
mod server;
mod setup;
mod site;

use mcp_auth::{OAuth, OAuthBuilder};
use mcp_core::{Client, Error, Revision, implementation};
use mcp_http::{Http, reqwest};
use mcp_ws::Ws;
use serde_json::json;

use setup::{RESOURCE_METADATA, SERVER_METADATA, Setup};
use site::Site;

const MODERN: Revision = Revision::LATEST;

/// Credentials of a user who agrees to everything.
fn user() -> OAuthBuilder {
    OAuth::builder("Test", |url: mcp_auth::Url| async move {
        let shown = reqwest::get(url).await;
        shown
            .and_then(reqwest::Response::error_for_status)
            .map(drop)
            .map_err(|error| Error::caused(mcp_core::ErrorKind::TransportError, "the browser failed", error))
    })
}

fn credentials() -> OAuth {
    user().build().unwrap()
}

async fn over_http(site: &Site, revision: Revision, credentials: &OAuth) -> Result<Client, Error> {
    let http = Http::new(site.url()).credentials(credentials.clone());
    Client::builder(implementation!()).revisions([revision]).connect(http).await
}

async fn over_ws(site: &Site, credentials: &OAuth) -> Result<Client, Error> {
    Client::connect(Ws::new(site.socket()).credentials(credentials.clone())).await
}

async fn call(client: &Client, tool: &str) -> Result<String, Error> {
    client.call(tool, json!({})).await
}

/// A client logs in at a site like that, and can call; over every wire and in both eras.
async fn can_log_in(setup: Setup) -> Vec<Site> {
    let mut sites = Vec::new();
    for revision in [MODERN, Revision::V2025_11_25] {
        let site = Site::start(setup.clone()).await;
        let client = over_http(&site, revision, &credentials()).await.unwrap();
        assert_eq!(call(&client, "free").await.unwrap(), "free");
        client.disconnect().await;
        sites.push(site);
    }
    let site = Site::start(setup).await;
    let client = over_ws(&site, &credentials()).await.unwrap();
    assert_eq!(call(&client, "free").await.unwrap(), "free");
    client.disconnect().await;
    sites.push(site);
    sites
}

/// No login is begun at a site like that; the error says why.
async fn cannot_log_in(setup: Setup) -> String {
    let site = Site::start(setup.clone()).await;
    let error = over_http(&site, MODERN, &credentials()).await.unwrap_err();
    let over_ws = over_ws(&site, &credentials()).await.unwrap_err();
    assert_eq!(error.kind(), over_ws.kind(), "{error:?} {over_ws:?}");
    assert_eq!(site.consents(), [""; 0]);
    assert!(!site.paths().contains(&"/token".to_owned()));
    assert!(mcp_auth::AuthError::of(&error).is_some(), "{error:?}");
    error.to_string()
}
