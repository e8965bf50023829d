//! What is asked without a token, and how it is asked.

use mcp_auth::{Misconfigured, ResourceMetadata, ResourceServer, StaticKeys, TokenError, Verified};
use mcp_core::{Client, Revision, implementation};
use mcp_http::reqwest::{
    self, Method,
    header::{AUTHORIZATION, HeaderValue},
};
use mcp_ws::Ws;
use serde_json::{Value, json};

use super::{Answer, RESOURCE, Site, guarded};

const PATHS: [&str; 2] = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];

fn keys() -> StaticKeys {
    StaticKeys::new()
        .key("adas-key", Verified::new("ada").scopes(["mcp", "admin"]))
        .key("bobs-key", Verified::new("bob"))
}

async fn site() -> Site {
    Site::start(guarded(keys()).scopes(["mcp"]).build().unwrap()).await
}

async fn plain(site: &Site, method: Method, path: &str) -> reqwest::Response {
    reqwest::Client::new().request(method, format!("http://{}{path}", site.address())).send().await.unwrap()
}

#[tokio::test]
async fn the_metadata_is_at_both_its_paths_for_everybody() {
    let site = site().await;
    for path in PATHS {
        let response = plain(&site, Method::GET, path).await;
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert_eq!(response.headers()["content-type"], "application/json");
        let document: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let expected = json!({
            "resource": RESOURCE,
            "authorization_servers": ["https://as.example.com"],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(document, expected);
        let asked = plain(&site, Method::OPTIONS, path).await;
        assert_eq!(
            (asked.status().as_u16(), &asked.headers()["access-control-allow-headers"]),
            (204, &HeaderValue::from_static("*"))
        );
        assert_eq!(plain(&site, Method::POST, path).await.status(), 405);
    }
    for path in
        ["/", "/mcp", "/.well-known/oauth-protected-resource/other", "/.well-known/oauth-protected-resource/mcp/x"]
    {
        assert_eq!(plain(&site, Method::GET, path).await.status(), 401, "{path}");
    }
}

#[tokio::test]
async fn whoever_sends_nothing_is_told_where_the_metadata_is_and_what_to_ask_for() {
    let answer = site().await.call_with(&[], "whoami").await;
    assert_eq!((answer.status, answer.challenges.len()), (401, 1));
    let challenge = &answer.challenges[0];
    assert!(challenge.is("Bearer") && challenge.get("error").is_none(), "{challenge:?}");
    assert_eq!(
        challenge.get("resource_metadata"),
        Some("https://mcp.example.com/.well-known/oauth-protected-resource/mcp")
    );
    assert_eq!(challenge.get("scope"), Some("mcp"));
    assert_eq!(answer.json()["error"]["code"], -32600);
}

#[tokio::test]
async fn c172_no_challenge_names_anything_twice() {
    let site = site().await;
    let nothing: &[(&str, &str)] = &[];
    for headers in [
        nothing,
        &[("authorization", "Bearer wrong")],
        &[("authorization", "Bearer bobs-key")],
        &[("authorization", "Bearer")],
    ] {
        let answer = site.call_with(headers, "whoami").await;
        for name in ["resource_metadata", "scope", "error", "error_description"] {
            assert!(answer.challenges[0].all(name).count() <= 1, "{answer:?}");
        }
        assert_eq!(answer.challenges.len(), 1);
    }
}

#[tokio::test]
async fn a_header_that_is_malformed_or_stands_twice_is_no_request() {
    let site = site().await;
    for headers in [
        &[("authorization", "Bearer")][..],
        &[("authorization", "Bearer a b")],
        &[("authorization", "Bearer \"adas-key\"")],
        &[("authorization", "Bearer adas-key"), ("authorization", "Bearer adas-key")],
        &[("authorization", "Basic x:y"), ("authorization", "Bearer adas-key")],
    ] {
        site.call_with(headers, "whoami").await.refused(400, "invalid_request");
    }
    for other in ["Negotiate abc", "Basic YTpi", "adas-key", "DPoP adas-key"] {
        let answer = site.call_with(&[("authorization", other)], "whoami").await;
        assert_eq!((answer.status, answer.challenged("error")), (401, None), "{other}");
    }
}

#[tokio::test]
async fn a_token_in_the_url_is_none() {
    let site = site().await;
    let url = format!("http://{}/mcp?access_token=adas-key", site.address());
    let answer = Answer::of(reqwest::Client::new().post(url).body("access_token=adas-key").send().await.unwrap()).await;
    assert_eq!((answer.status, answer.challenged("error")), (401, None));
    assert!(!answer.text.contains("adas-key"));
}

#[tokio::test]
async fn a_path_can_need_more_than_the_rest() {
    let guard = guarded(keys()).route("/mcp", ["admin"]).route("/mc", ["never"]).build().unwrap();
    let site = Site::start(guard).await;
    assert_eq!(site.call("adas-key").await.said(), "ada");
    let answer = site.call("bobs-key").await;
    answer.refused(403, "insufficient_scope");
    assert_eq!(answer.challenged("scope"), Some("admin"));
}

#[tokio::test]
async fn a_function_can_judge_tokens() {
    let guard = guarded(|token: String| async move {
        match token.as_str() {
            "good" => Ok(Verified::new("ada").claim("tenant", "t")),
            "later" => Err(TokenError::Unavailable("the table is locked".into())),
            _ => Err(TokenError::Invalid("never heard of it".into())),
        }
    });
    let site = Site::start(guard.build().unwrap()).await;
    assert_eq!(site.call("good").await.said(), "ada");
    assert_eq!(site.call("bad").await.refused(401, "invalid_token"), "never heard of it");
    assert_eq!(site.call("later").await.status, 503);
}

#[tokio::test]
async fn a_socket_is_opened_by_who_has_a_token() {
    let site = site().await;
    let url = format!("ws://{}/mcp", site.address());
    let ws = |token: &'static str| Ws::new(&url).header(AUTHORIZATION, HeaderValue::from_static(token));
    for revision in [Revision::LATEST, Revision::V2025_11_25] {
        let client =
            Client::builder(implementation!()).revisions([revision]).connect(ws("Bearer adas-key")).await.unwrap();
        let said: String = client.call("whoami", json!({})).await.unwrap();
        assert_eq!(said, "ada");
        client.disconnect().await;
    }
    for (token, status) in [("Bearer wrong", 401), ("Bearer bobs-key", 403), ("Bearer", 400)] {
        let error = Client::connect(ws(token)).await.unwrap_err();
        assert_eq!(error.status(), Some(status), "{error:?}");
    }
}

#[test]
fn a_resource_is_a_url_of_the_web_without_more() {
    for resource in ["mcp.example.com", "ftp://h/mcp", "https://h/mcp?a", "https://h/mcp#a", "https://u@h/mcp", ""] {
        let built = ResourceServer::builder(ResourceMetadata::new(resource), keys()).build();
        assert_eq!(built.unwrap_err(), Misconfigured::Resource(resource.to_owned()));
    }
}

#[tokio::test]
async fn without_an_authorization_server_there_is_no_metadata() {
    let guard = ResourceServer::builder(ResourceMetadata::new(RESOURCE), keys()).build().unwrap();
    let site = Site::start(guard).await;
    let answer = Answer::of(plain(&site, Method::GET, PATHS[0]).await).await;
    assert_eq!((answer.status, answer.challenged("resource_metadata")), (401, None));
    assert_eq!(site.call("adas-key").await.said(), "ada");
}
