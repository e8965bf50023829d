//! Clients that act for themselves, or for users who log in elsewhere.

use std::sync::{Arc, Mutex};

use mcp_auth::{
    AuthError, ClientCredentials, ClientKey, DeviceCode, IdentityProvider, OAuth, OAuthBuilder, SigningAlgorithm,
};
use mcp_core::{Client, Error, implementation};
use mcp_http::Http;
use serde_json::json;

use super::{MODERN, SERVER_METADATA, Setup, Site, call, over_http};

const KEY: &str = include_str!("../../../crates/mcp-auth/tests/keys/es256.pem");
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// An authorization server that has a scope for staying logged in, and these members.
fn offering(members: serde_json::Value) -> Setup {
    let mut all = json!({ "scopes_supported": ["offline_access"] });
    all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    Setup::default().issuer(SERVER_METADATA, "{origin}", all)
}

fn service(site: &Site) -> OAuthBuilder {
    OAuth::client_credentials().client(site.origin(), ClientCredentials::secret("service", "s3cret"))
}

async fn called(site: &Site, credentials: &OAuth) -> Client {
    let client = over_http(site, MODERN, credentials).await.unwrap();
    assert_eq!(call(&client, "free").await.unwrap(), "free");
    client
}

#[tokio::test]
async fn a_service_shows_its_secret_and_sends_nobody_to_log_in() {
    let site = Site::start(offering(json!({}))).await;
    called(&site, &service(&site).scopes(["mcp"]).build().unwrap()).await;
    let asked = site.asked("/token");
    assert_eq!(asked[0].authorization.as_deref(), Some("Basic c2VydmljZTpzM2NyZXQ="));
    assert_eq!(asked[0].parameters["grant_type"], "client_credentials");
    assert_eq!(asked[0].parameters["resource"], site.url());
    assert_eq!(asked[0].parameters["scope"], "mcp");
    assert!(!asked[0].parameters.contains_key("client_secret"));
    assert_eq!((asked.len(), site.consents().len(), site.asked("/register").len()), (1, 0, 0));
}

#[tokio::test]
async fn a_service_with_a_key_signs_who_it_is_and_sends_no_secret() {
    let site = Site::start(offering(json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }))).await;
    let key = ClientKey::from_pem(SigningAlgorithm::Es256, KEY).unwrap();
    let client = ClientCredentials::public("service");
    called(&site, &OAuth::client_credentials().client(site.origin(), client).client_key(key).build().unwrap()).await;
    let asked = &site.asked("/token")[0];
    assert_eq!(asked.parameters["client_assertion_type"], "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    assert_eq!(asked.parameters["client_assertion"].split('.').count(), 3);
    assert!(!asked.parameters.contains_key("client_id") && asked.authorization.is_none(), "{asked:?}");
}

#[tokio::test]
async fn a_service_that_is_known_to_another_issuer_alone_is_told_so_and_sends_nothing() {
    let site = Site::start(Setup::default()).await;
    let other = ClientCredentials::secret("service", "s3cret");
    let credentials = OAuth::client_credentials().client("https://other.example", other).build().unwrap();
    let error = over_http(&site, MODERN, &credentials).await.unwrap_err();
    assert!(matches!(AuthError::of(&error), Some(AuthError::Registration(_))), "{error:?}");
    assert_eq!((site.asked("/token").len(), site.asked("/register").len()), (0, 0));
}

#[tokio::test]
async fn a_services_token_that_has_ended_is_replaced_before_it_is_refused() {
    let site = Site::start(Setup { expires_in: Some(0), ..offering(json!({})) }).await;
    let credentials = service(&site).build().unwrap();
    let client = called(&site, &credentials).await;
    let (refused, given) = (site.refused(), site.asked("/token").len());
    call(&client, "free").await.unwrap();
    assert_eq!(site.refused(), refused);
    assert!(site.asked("/token").len() > given);
}

#[tokio::test]
async fn a_service_is_stepped_up_by_the_scopes_that_it_lacks() {
    let site = Site::start(offering(json!({}))).await;
    let client = called(&site, &service(&site).scopes(["mcp"]).build().unwrap()).await;
    assert_eq!(call(&client, "write").await.unwrap(), "write");
    let scopes: Vec<_> = site.asked("/token").iter().map(|asked| asked.parameters["scope"].clone()).collect();
    assert_eq!(scopes, ["mcp", "mcp write"]);
}

fn workload(site: &Site, asked: &Arc<Mutex<Vec<String>>>) -> OAuth {
    let asked = Arc::clone(asked);
    let workload = OAuth::workload(move |issuer| {
        asked.lock().unwrap().push(issuer);
        std::future::ready(Ok("workload assertion".to_owned()))
    });
    workload.client(site.origin(), ClientCredentials::public("workload")).build().unwrap()
}

#[tokio::test]
async fn a_workload_shows_what_its_platform_says_to_the_issuer_that_it_is_said_to() {
    let (site, told) = (Site::start(Setup::default()).await, Arc::default());
    called(&site, &workload(&site, &told)).await;
    assert_eq!(*told.lock().unwrap(), [site.origin()]);
    let asked = &site.asked("/token")[0].parameters;
    assert_eq!((asked["grant_type"].as_str(), asked["assertion"].as_str()), (JWT_BEARER, "workload assertion"));
    assert_eq!((asked["client_id"].as_str(), asked["resource"].as_str()), ("workload", site.url().as_str()));
}

#[tokio::test]
async fn a_workload_that_is_refused_does_not_try_again_by_itself() {
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let refuses = [(JWT_BEARER, error)].into();
        let (site, told) = (Site::start(Setup { refuses, ..Setup::default() }).await, Arc::default());
        // It would speak the legacy era, if this were a sign of that.
        let http = Http::new(site.url()).credentials(workload(&site, &told));
        let failed = Client::builder(implementation!()).connect(http).await.unwrap_err();
        assert!(failed.to_string().contains(error), "{failed:?}");
        assert!(AuthError::of(&failed).is_some(), "{failed:?}");
        assert_eq!(site.asked("/token").len(), 1);
    }
}

#[tokio::test]
async fn an_organisations_user_is_known_to_its_provider_and_nothing_is_told_to_the_wrong_one() {
    let provider = Site::start(Setup::bare().issuer("/.well-known/openid-configuration", "{origin}", json!({}))).await;
    let site = Site::start(Setup::default()).await;
    let id_token = || std::future::ready(Ok::<_, Error>("id token".to_owned()));
    let at_provider = ClientCredentials::secret("at provider", "of provider");
    let credentials = OAuth::managed("Test", IdentityProvider::new(provider.origin(), at_provider, id_token))
        .client(site.origin(), ClientCredentials::secret("at server", "of server"))
        .scopes(["mcp"])
        .build()
        .unwrap();
    assert_eq!(credentials.extension(), Some("io.modelcontextprotocol/enterprise-managed-authorization"));
    called(&site, &credentials).await;
    let exchanged = &provider.asked("/token")[0].parameters;
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("subject_token", "id token"),
        ("audience", &site.origin()),
        ("resource", &site.url()),
        ("scope", "mcp"),
    ] {
        assert_eq!(exchanged[name], value, "{name}");
    }
    let granted = site.asked("/token");
    assert_eq!((granted.len(), granted[0].parameters["assertion"].as_str()), (1, "identity assertion"));
    let (theirs, ours) = (format!("{:?}", provider.asked("/token")), format!("{granted:?}"));
    assert!(!theirs.contains("of server") && !ours.contains("of provider") && !ours.contains("id token"));
}

#[tokio::test]
async fn a_user_may_log_in_on_another_device() {
    let site = Site::start(offering(json!({ "device_authorization_endpoint": "{origin}/device" }))).await;
    let shown = Arc::<Mutex<Vec<DeviceCode>>>::default();
    let seen = Arc::clone(&shown);
    let credentials = OAuth::device("Test", move |code| {
        seen.lock().unwrap().push(code);
        std::future::ready(Ok(()))
    });
    called(&site, &credentials.build().unwrap()).await;
    let shown = shown.lock().unwrap().pop().unwrap();
    assert_eq!((shown.user_code.as_str(), shown.verification_uri.path()), ("WDJB-MJHT", "/enter"));
    let begun = &site.asked("/device")[0].parameters;
    assert_eq!((begun["client_id"].as_str(), begun["scope"].as_str()), ("registered", "offline_access"));
    assert_eq!(begun["resource"], site.url());
    let asked = &site.asked("/token")[0].parameters;
    assert_eq!(asked["grant_type"], "urn:ietf:params:oauth:grant-type:device_code");
    assert_eq!((asked["device_code"].as_str(), asked["client_id"].as_str()), ("device", "registered"));
    assert!(site.consents().is_empty());
}

#[tokio::test]
async fn a_server_without_a_place_for_other_devices_is_named() {
    let site = Site::start(Setup::default()).await;
    let credentials = OAuth::device("Test", |_| std::future::ready(Ok(()))).build().unwrap();
    let error = over_http(&site, MODERN, &credentials).await.unwrap_err();
    assert!(error.to_string().contains("another device"), "{error:?}");
}
