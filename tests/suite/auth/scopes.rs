//! More scopes, where a call needs them.

use mcp_auth::AuthError;
use mcp_core::{ErrorKind, Revision};

use serde_json::json;

use super::{MODERN, SERVER_METADATA, Setup, Site, call, credentials, over_http, over_ws, user};

/// A site whose tokens begin with the scope `read`.
fn reading() -> Setup {
    let challenge = "Bearer scope=\"read\", resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"";
    Setup::default().challenges(&[challenge])
}

async fn steps_up(revision: Revision) {
    let site = Site::start(reading()).await;
    let client = over_http(&site, revision, &credentials()).await.unwrap();
    assert_eq!(call(&client, "write").await.unwrap(), "write");
    assert_eq!(site.consents(), ["read", "read write"]);
    assert_eq!(site.refreshes(), 0);
}

#[tokio::test]
async fn c182_a_missing_scope_is_asked_for_beside_those_that_are_there() {
    steps_up(MODERN).await;
}

#[tokio::test]
async fn c182_a_session_goes_on_when_its_client_is_stepped_up() {
    steps_up(Revision::V2025_11_25).await;
}

#[tokio::test]
async fn c182_a_scope_that_nobody_is_given_is_asked_for_once() {
    for revision in [MODERN, Revision::V2025_11_25] {
        let site = Site::start(Setup { withheld: vec!["write"], ..reading() }).await;
        let client = over_http(&site, revision, &credentials()).await.unwrap();
        for _ in 0..2 {
            let error = call(&client, "write").await.unwrap_err();
            assert_eq!((error.kind(), error.status()), (ErrorKind::Unauthorized, Some(403)), "{error:?}");
            let expected = AuthError::InsufficientScope { missing: vec!["write".to_owned()] };
            assert_eq!(AuthError::of(&error), Some(&expected));
        }
        assert_eq!(site.consents(), ["read", "read write"]);
        assert_eq!(call(&client, "free").await.unwrap(), "free");
    }
}

#[tokio::test]
async fn c182_a_refusal_without_a_challenge_is_no_reason_to_log_in() {
    let site = Site::start(Setup { explains: false, ..reading() }).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    let error = call(&client, "write").await.unwrap_err();
    assert_eq!((error.status(), AuthError::of(&error)), (Some(403), None), "{error:?}");
    assert_eq!(site.consents(), ["read"]);
}

#[tokio::test]
async fn c182_an_upgrade_is_stepped_up_like_a_request() {
    let site = Site::start(Setup { of_socket: Some("socket"), ..reading() }).await;
    let client = over_ws(&site, &credentials()).await.unwrap();
    assert_eq!(call(&client, "free").await.unwrap(), "free");
    assert_eq!(site.consents(), ["read", "read socket"]);
}

async fn takes_turns(revision: Revision, rounds: usize) {
    let site = Site::start(Setup::default()).await;
    let client = over_http(&site, revision, &credentials()).await.unwrap();
    for _ in 0..rounds {
        for tool in ["a", "b"] {
            assert_eq!(call(&client, tool).await.unwrap(), tool);
        }
    }
    assert_eq!(site.consents(), ["", "a", "a b"]);
}

#[tokio::test]
async fn c183_two_tools_in_turn_cost_one_consent_each() {
    takes_turns(MODERN, 2).await;
}

#[tokio::test]
async fn c183_they_do_in_a_session_too() {
    takes_turns(Revision::V2025_11_25, 10).await;
}

#[tokio::test]
async fn c183_a_login_anew_asks_for_all_that_was_asked_for() {
    let site = Site::start(reading()).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    for tool in ["a", "b"] {
        call(&client, tool).await.unwrap();
    }
    site.expire();
    site.revoke();
    call(&client, "a").await.unwrap();
    call(&client, "b").await.unwrap();
    assert_eq!(site.consents(), ["read", "read a", "read a b", "read a b"]);
}

#[tokio::test]
async fn c183_a_second_client_of_the_same_user_takes_what_was_given() {
    let site = Site::start(Setup::default()).await;
    let credentials = credentials();
    let [one, two] = [MODERN, Revision::V2025_11_25].map(|revision| over_http(&site, revision, &credentials));
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    for (client, tool) in [(&one, "a"), (&two, "b"), (&one, "b"), (&two, "a")] {
        assert_eq!(call(client, tool).await.unwrap(), tool);
    }
    assert_eq!(site.consents(), ["", "a", "a b"]);
}

#[tokio::test]
async fn c183_calls_at_once_that_need_different_scopes_end() {
    let site = Site::start(Setup::default()).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    let (a, b, write) = tokio::join!(call(&client, "a"), call(&client, "b"), call(&client, "write"));
    assert_eq!((a.unwrap(), b.unwrap(), write.unwrap()), ("a".into(), "b".into(), "write".into()));
    assert_eq!(site.consents().len(), 4);
}

#[tokio::test]
async fn a_user_stays_logged_in_where_the_authorization_server_has_a_scope_for_that() {
    let offered = json!({ "scopes_supported": ["read", "offline_access"] });
    let site = Site::start(reading().issuer(SERVER_METADATA, "{origin}", offered)).await;
    let client = over_http(&site, MODERN, &credentials()).await.unwrap();
    assert_eq!(call(&client, "write").await.unwrap(), "write");
    assert_eq!(site.consents(), ["read offline_access", "read offline_access write"]);
    assert_eq!(site.asked("/authorize")[0].parameters["prompt"], "consent");
    let plain = Site::start(reading()).await;
    over_http(&plain, MODERN, &credentials()).await.unwrap();
    assert!(!plain.asked("/authorize")[0].parameters.contains_key("prompt"));
}

#[tokio::test]
async fn what_the_user_says_is_asked_for_beside_what_the_server_wants() {
    let site = Site::start(reading()).await;
    let credentials = user().scopes(["own", "read"]).build().unwrap();
    over_http(&site, MODERN, &credentials).await.unwrap();
    assert_eq!(site.consents(), ["read own"]);
}
