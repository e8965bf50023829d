//! Tokens that are bound to a key of the client.

use mcp_auth::{AuthError, FileStore, Key, TokenStore as _};
use mcp_core::Revision;
use serde_json::json;

use super::{
    MODERN, RESOURCE_METADATA, SERVER_METADATA, Setup, Site, call, cannot_log_in, credentials, over_http, over_ws, user,
};

/// Both servers know how to bind tokens, and the MCP server says so in its challenge.
fn binding() -> Setup {
    let challenge = format!("DPoP resource_metadata=\"{{origin}}{RESOURCE_METADATA}/mcp\"");
    let known = json!({ "dpop_signing_alg_values_supported": ["RS256", "ES256"] });
    Setup::default().challenges(&[&challenge]).issuer(SERVER_METADATA, "{origin}", known)
}

#[tokio::test]
async fn every_request_has_a_proof_of_its_own_where_both_servers_know_them() {
    for revision in [MODERN, Revision::V2025_11_25] {
        let site = Site::start(binding()).await;
        let client = over_http(&site, revision, &credentials()).await.unwrap();
        let before = site.proofs(|proofs| proofs.count());
        for _ in 0..2 {
            assert_eq!(call(&client, "free").await.unwrap(), "free");
        }
        assert!(site.proofs(|proofs| proofs.count()) >= before + 2);
        assert!(site.asked("/authorize")[0].parameters.contains_key("dpop_jkt"));
        assert_eq!(site.consents().len(), 1);
    }
}

#[tokio::test]
async fn the_upgrade_to_a_websocket_has_a_proof_too() {
    let site = Site::start(binding()).await;
    site.proofs(|proofs| proofs.nonce = Some("first".to_owned()));
    let client = over_ws(&site, &credentials()).await.unwrap();
    assert_eq!(call(&client, "free").await.unwrap(), "free");
    assert_eq!(site.proofs(|proofs| proofs.without_nonce), 2, "one at each server");
}

#[tokio::test]
async fn a_nonce_is_learned_from_each_server_once() {
    let site = Site::start(binding()).await;
    site.proofs(|proofs| proofs.nonce = Some("first".to_owned()));
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    call(&client, "free").await.unwrap();
    assert_eq!(site.proofs(|proofs| proofs.without_nonce), 2, "one at each server");
    site.proofs(|proofs| proofs.nonce = Some("second".to_owned()));
    call(&client, "free").await.unwrap();
    call(&client, "free").await.unwrap();
    assert_eq!((site.proofs(|proofs| proofs.without_nonce), site.consents().len()), (3, 1));
}

#[tokio::test]
async fn a_key_is_kept_with_its_tokens_and_refreshes_and_steps_up_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let (site, store) = (Site::start(binding()).await, FileStore::new(folder.path().join("logins")));
    let kept = async || store.load(&Key::new(site.origin(), site.url())).await.unwrap().unwrap();
    let first = over_http(&site, MODERN, &user().store(store.clone()).build().unwrap()).await.unwrap();
    call(&first, "free").await.unwrap();
    let key = kept().await.proof_key;
    assert!(key.is_some());
    site.expire();
    // Another process, which has nothing but the file. The site holds the refresh token to the key.
    let second = over_http(&site, MODERN, &user().store(store.clone()).build().unwrap()).await.unwrap();
    call(&second, "free").await.unwrap();
    assert_eq!((site.refreshes(), kept().await.proof_key == key), (1, true));
    call(&second, "write").await.unwrap();
    assert_eq!((site.consents().len(), kept().await.proof_key == key), (2, true));
}

#[tokio::test]
async fn tokens_are_anybodys_where_one_of_the_two_servers_knows_no_proofs() {
    let known = json!({ "dpop_signing_alg_values_supported": ["ES256"] });
    let plain_resource = Setup::default().issuer(SERVER_METADATA, "{origin}", known);
    let plain_issuer = binding().issuer(SERVER_METADATA, "{origin}", json!({}));
    for setup in [plain_resource, plain_issuer] {
        let site = Site::start(setup).await;
        let client = over_http(&site, MODERN, &credentials()).await.unwrap();
        assert_eq!(call(&client, "free").await.unwrap(), "free");
        assert_eq!(site.proofs(|proofs| proofs.count()), 0);
    }
}

#[tokio::test]
async fn nobody_logs_in_for_a_token_that_the_server_cannot_take() {
    let mut setup = Setup::default();
    let document = json!({
        "resource": "{origin}/mcp", "authorization_servers": ["{origin}"], "dpop_bound_access_tokens_required": true,
    });
    setup.documents.insert(format!("{RESOURCE_METADATA}/mcp"), document.to_string());
    let why = cannot_log_in(setup).await;
    assert!(why.contains("bound to a key"), "{why}");
}

#[tokio::test]
async fn a_nonce_that_never_fits_ends_the_request() {
    let site = Site::start(binding()).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    // Longer than any that is taken.
    site.proofs(|proofs| proofs.nonce = Some("n".repeat(1025)));
    let error = call(&client, "free").await.unwrap_err();
    assert_eq!(error.status(), Some(401), "{error:?}");
    assert_eq!((site.consents().len(), AuthError::of(&error)), (1, None));
}
