//! The scenarios of the conformance suite that want credentials.

use std::{env, error::Error};

use mcp_suite::{
    Client, ErrorKind,
    auth::{OAuth, OAuthBuilder, Url},
    http::{Http, reqwest},
};

/// What the suite takes a Client ID Metadata Document to be at; nobody fetches it.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Runs a scenario of that name, which begins with `auth/`.
pub(crate) async fn run(scenario: &str, url: &str) -> Result<(), Box<dyn Error>> {
    let credentials = user().client_id_document(DOCUMENT).build()?;
    let client: Client = crate::conformance::builder()?.connect(Http::new(url).credentials(credentials)).await?;
    let _ = (scenario, env::var("MCP_CONFORMANCE_CONTEXT"));
    for tool in client.tools().await? {
        client.call_raw(&tool.definition().name, ()).await?;
    }
    client.disconnect().await;
    Ok(())
}

/// A user who agrees to everything, at once.
fn user() -> OAuthBuilder {
    OAuth::builder("conformance", |url: Url| async move {
        let shown = reqwest::get(url).await.and_then(reqwest::Response::error_for_status);
        shown.map(drop).map_err(|error| mcp_suite::Error::caused(ErrorKind::TransportError, "no page was shown", error))
    })
}
