//! Tokens about which their issuer is asked.

use std::time::Duration;

use mcp_auth::{Introspection, IntrospectionBuilder, Misconfigured, Network};
use mcp_test::AuthorizationServer;
use serde_json::json;

use super::{RESOURCE, Site, good, guarded};

fn asking(issuer: &AuthorizationServer) -> IntrospectionBuilder {
    let builder = Introspection::builder(RESOURCE, issuer.issuer(), issuer.introspection_url());
    builder.network(Network::Loopback).client("server", "secret")
}

async fn site(builder: IntrospectionBuilder) -> Site {
    Site::start(guarded(builder.build().unwrap()).build().unwrap()).await
}

#[tokio::test]
async fn a_token_is_asked_about_once_while_it_is_remembered() {
    let issuer = AuthorizationServer::start().await;
    let site = site(asking(&issuer)).await;
    let token = issuer.token(good());
    for _ in 0..3 {
        assert_eq!(site.call(&token).await.said(), format!("{}#ada", issuer.issuer()));
    }
    assert_eq!(issuer.asked("/introspect"), 1);
}

#[tokio::test]
async fn a_token_that_was_taken_back_is_refused_once_it_is_not_remembered() {
    let issuer = AuthorizationServer::start().await;
    let site = site(asking(&issuer).remember(Duration::ZERO)).await;
    let token = issuer.token(good());
    assert_eq!(site.call(&token).await.status, 200);
    issuer.revoke(&token);
    assert!(site.call(&token).await.refused(401, "invalid_token").contains("not active"));
}

#[tokio::test]
async fn a_token_that_is_active_may_still_be_none_of_ours() {
    let issuer = AuthorizationServer::start().await;
    let site = site(asking(&issuer)).await;
    for (why, claims) in [
        ("resource", json!({ "aud": "https://other.example" })),
        ("resource", json!({ "aud": null })),
        ("issuer", json!({ "aud": RESOURCE, "iss": "https://evil.example" })),
        ("expired", json!({ "aud": RESOURCE, "exp": 1 })),
        ("expires", json!({ "aud": RESOURCE, "exp": null })),
        ("whose", json!({ "aud": RESOURCE, "sub": null, "client_id": null })),
    ] {
        let reason = site.call(&issuer.token(claims)).await.refused(401, "invalid_token");
        assert!(reason.contains(why), "{why}: {reason}");
    }
    site.call("unknown").await.refused(401, "invalid_token");
}

#[tokio::test]
async fn what_is_remembered_is_bounded() {
    let issuer = AuthorizationServer::start().await;
    let site = site(asking(&issuer).remembered(1)).await;
    let (one, two) = (issuer.token(good()), issuer.token(good()));
    for token in [&one, &two, &one] {
        assert_eq!(site.call(token).await.status, 200);
    }
    assert_eq!(issuer.asked("/introspect"), 3);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_told_apart_from_a_bad_token() {
    let issuer = AuthorizationServer::start().await;
    let site = site(asking(&issuer)).await;
    let (known, unknown) = (issuer.token(good()), issuer.token(good()));
    assert_eq!(site.call(&known).await.status, 200);
    issuer.set_down(true);
    assert_eq!((site.call(&known).await.status, site.call(&unknown).await.status), (200, 503));
}

#[test]
fn nothing_shows_the_secret_and_no_network_is_asked_that_was_not_allowed() {
    let builder =
        || Introspection::builder(RESOURCE, "https://as.example.com", "https://as.example.com/i").client("id", "hush");
    let shown = format!("{:?} {:?}", builder(), builder().build().unwrap());
    assert!(!shown.contains("hush") && !shown.contains("Basic"), "{shown}");
    let local = Introspection::builder(RESOURCE, "https://as.example.com", "http://127.0.0.1/i").build();
    assert!(matches!(local.unwrap_err(), Misconfigured::Url { .. }));
}
