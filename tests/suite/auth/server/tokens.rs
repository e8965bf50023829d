//! Tokens that are good, and all the ways in which one can be none.

use std::time::Duration;

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use futures_util::future::join_all;
use jsonwebtoken::{Algorithm, EncodingKey, crypto::sign, jwk::Jwk};
use mcp_auth::{Jwt, Misconfigured, Network};
use mcp_test::{AuthorizationServer, HttpServer, SigningKey};
use serde_json::{Value, json};

use super::{Answer, RESOURCE, Site, good, guarded, tokens_of};

fn now() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}

/// A token of that issuer's key with this head and these claims in place of the good ones; null is left out.
fn made(issuer: &AuthorizationServer, head: Value, claims: Value) -> String {
    let (kid, key) = issuer.key();
    let whole = json!({ "iss": issuer.issuer(), "sub": "ada", "aud": RESOURCE, "exp": now() + 3600 });
    key.sign(&changed(json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid }), head), &changed(whole, claims))
}

fn changed(mut all: Value, by: Value) -> Value {
    let members = all.as_object_mut().unwrap();
    members.extend(by.as_object().unwrap().clone());
    members.retain(|_, value| !value.is_null());
    all
}

#[tokio::test]
async fn a_good_token_is_its_owner_to_the_handler_who_does_not_see_it() {
    let issuer = AuthorizationServer::start().await;
    let site = Site::of(&issuer).await;
    let id = format!("{}#ada", issuer.issuer());
    for claims in [good(), json!({ "aud": ["https://other.example", RESOURCE] })] {
        assert_eq!(site.call(&issuer.token(claims)).await.said(), id);
    }
    for typ in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        assert_eq!(site.call(&made(&issuer, json!({ "typ": typ }), json!({}))).await.said(), id, "{typ}");
    }
    let by_the_only_key = made(&issuer, json!({ "kid": null }), json!({}));
    assert_eq!(site.call(&by_the_only_key).await.said(), id);
    let of_a_client = made(&issuer, json!({}), json!({ "sub": null, "client_id": "robot" }));
    assert_eq!(site.call(&of_a_client).await.said(), format!("{}?client_id=robot", issuer.issuer()));
    assert_eq!(issuer.asked("/jwks"), 1);
}

#[tokio::test]
async fn a_hostile_token_is_refused_and_nothing_of_it_repeated() {
    let issuer = AuthorizationServer::start().await;
    let site = Site::of(&issuer).await;
    let none = json!({});
    let row = |head: Value, claims: Value| made(&issuer, head, claims);
    let unsigned = |token: String| format!("{}.", token.rsplit_once('.').unwrap().0);
    let stranger = SigningKey::random();
    let (kid, _) = issuer.key();
    let by_a_stranger = |head: Value| {
        let claims = json!({ "iss": issuer.issuer(), "sub": "ada", "aud": RESOURCE, "exp": now() + 3600 });
        stranger.sign(&changed(json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid }), head), &claims)
    };
    let rows = [
        ("algorithm", unsigned(row(json!({ "alg": "none" }), none.clone()))),
        ("algorithm", unsigned(row(json!({ "alg": "NONE" }), none.clone()))),
        ("algorithm", row(json!({ "alg": "HS256" }), none.clone())),
        ("algorithm", row(json!({ "alg": "ES512" }), none.clone())),
        ("key", row(json!({ "alg": "RS256" }), none.clone())),
        ("JWT", row(json!({ "alg": null }), none.clone())),
        ("JWT", row(json!({ "alg": 5 }), none.clone())),
        ("JWT", row(json!({ "crit": ["exp"] }), none.clone())),
        ("JWT", "a.b".to_owned()),
        ("JWT", "....".to_owned()),
        ("JWT", "x".to_owned()),
        ("signature", unsigned(row(none.clone(), none.clone()))),
        ("signature", by_a_stranger(json!({}))),
        ("signature", by_a_stranger(json!({ "jwk": stranger.jwk() }))),
        ("signature", by_a_stranger(json!({ "x5u": "http://127.0.0.1:1/x", "x5c": ["AAAA"] }))),
        ("key", row(json!({ "kid": "../../etc/passwd" }), none.clone())),
        ("key", row(json!({ "kid": "https://evil.example/jwks" }), none.clone())),
        ("key", row(json!({ "kid": "' OR 1=1 --" }), none.clone())),
        ("key", row(json!({ "kid": "k".repeat(257) }), none.clone())),
        ("JWT", row(json!({ "kid": ["a"] }), none.clone())),
        ("type", row(json!({ "typ": "JWT" }), none.clone())),
        ("type", row(json!({ "typ": null }), none.clone())),
        ("type", row(json!({ "typ": "dpop+jwt" }), none.clone())),
        ("issuer", row(none.clone(), json!({ "iss": "https://evil.example" }))),
        ("issuer", row(none.clone(), json!({ "iss": format!("{}/", issuer.issuer()) }))),
        ("issuer", row(none.clone(), json!({ "iss": null }))),
        ("issuer", row(none.clone(), json!({ "iss": [issuer.issuer()] }))),
        ("resource", row(none.clone(), json!({ "aud": "https://other.example/mcp" }))),
        ("resource", row(none.clone(), json!({ "aud": format!("{RESOURCE}/") }))),
        ("resource", row(none.clone(), json!({ "aud": null }))),
        ("expired", row(none.clone(), json!({ "exp": now() - 61 }))),
        ("expires", row(none.clone(), json!({ "exp": null }))),
        ("number", row(none.clone(), json!({ "exp": "2999999999" }))),
        ("not valid yet", row(none.clone(), json!({ "nbf": now() + 120 }))),
        ("whose", row(none.clone(), json!({ "sub": null }))),
        ("too long", row(none.clone(), json!({ "sub": "a".repeat(8 << 10) }))),
    ];
    for (why, token) in rows {
        let answer = site.call(&token).await;
        let reason = answer.refused(401, "invalid_token");
        assert!(reason.contains(why), "{why}: {reason}");
        assert!(!answer.text.contains("evil") && !answer.text.contains("passwd"), "{answer:?}");
    }
    assert_eq!(site.call(&issuer.token(good())).await.status, 200);
}

#[tokio::test]
async fn a_token_says_nothing_of_where_its_key_is() {
    let (issuer, evil) = (AuthorizationServer::start().await, AuthorizationServer::start().await);
    let site = Site::of(&issuer).await;
    let (kid, key) = evil.key();
    let head = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid, "jku": evil.jwks_url(), "jwk": key.jwk() });
    let claims = json!({ "iss": issuer.issuer(), "sub": "ada", "aud": RESOURCE, "exp": now() + 3600 });
    site.call(&key.sign(&head, &claims)).await.refused(401, "invalid_token");
    assert_eq!(evil.asked("/jwks"), 0);
}

/// Whoever may check by a public key must not be able to sign with it as a secret.
#[tokio::test]
async fn a_public_rsa_key_is_no_secret() {
    let der = STANDARD.decode(include_str!("rsa.b64").replace('\n', "")).unwrap();
    let private = EncodingKey::from_rsa_der(&der);
    let mut public = serde_json::to_value(Jwk::from_encoding_key(&private, Algorithm::RS256).unwrap()).unwrap();
    public["kid"] = json!("rsa");
    let keys = json!({ "keys": [public] }).to_string();
    let tokens = Jwt::builder(RESOURCE).issuer_with_keys("https://as.example.com", keys).build().unwrap();
    let site = Site::start(guarded(tokens).build().unwrap()).await;
    let signed = |alg: Algorithm, key: &EncodingKey| {
        let head = json!({ "alg": format!("{alg:?}"), "typ": "at+jwt", "kid": "rsa" });
        let claims = json!({ "iss": "https://as.example.com", "sub": "ada", "aud": RESOURCE, "exp": now() + 60 });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&head), encode(&claims));
        format!("{text}.{}", sign(text.as_bytes(), key, alg).unwrap())
    };
    assert_eq!(site.call(&signed(Algorithm::RS256, &private)).await.said(), "https://as.example.com#ada");
    for secret in [public["n"].as_str().unwrap().to_owned(), public.to_string()] {
        let token = signed(Algorithm::HS256, &EncodingKey::from_secret(secret.as_bytes()).unwrap());
        assert!(site.call(&token).await.refused(401, "invalid_token").contains("algorithm"));
    }
    // The key names `RS256`, so it serves nothing else.
    site.call(&signed(Algorithm::PS256, &private)).await.refused(401, "invalid_token");
}

#[tokio::test]
async fn no_issuer_speaks_for_another() {
    let (one, two) = (AuthorizationServer::start().await, AuthorizationServer::start().await);
    let tokens = tokens_of(&one).issuer(two.issuer(), two.jwks_url()).build().unwrap();
    let site = Site::start(guarded(tokens).build().unwrap()).await;
    for issuer in [&one, &two] {
        let said = site.call(&issuer.token(good())).await.said();
        assert_eq!(said, format!("{}#ada", issuer.issuer()));
    }
    let (_, key) = two.key();
    let (kid, _) = one.key();
    let claims = json!({ "iss": one.issuer(), "sub": "ada", "aud": RESOURCE, "exp": now() + 60 });
    let forged = key.sign(&json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid }), &claims);
    site.call(&forged).await.refused(401, "invalid_token");
}

#[tokio::test]
async fn what_a_server_says_of_tokens_holds() {
    let issuer = AuthorizationServer::start().await;
    let of_type = |typ: &str, claims: Value| made(&issuer, json!({ "typ": typ }), claims);
    let token = of_type("JWT", json!({ "aud": "api://mcp" }));
    for (most, status) in [(token.len(), 200), (token.len() - 1, 401)] {
        let tokens = tokens_of(&issuer).audience("api://mcp").types(["JWT"]).algorithms(["EdDSA"]).build().unwrap();
        let site = Site::start(guarded(tokens).token_bytes(most).build().unwrap()).await;
        assert_eq!(site.call(&token).await.status, status);
        assert_eq!(site.call(&of_type("at+jwt", json!({}))).await.status, 401);
    }
    let tokens = tokens_of(&issuer).any_type().algorithms(["ES256", "RS256"]).leeway(Duration::ZERO).build().unwrap();
    let site = Site::start(guarded(tokens).build().unwrap()).await;
    assert!(site.call(&token).await.refused(401, "invalid_token").contains("algorithm"));
}

#[tokio::test]
async fn clocks_may_differ_as_far_as_a_server_says() {
    let issuer = AuthorizationServer::start().await;
    let late = made(&issuer, json!({ "typ": null }), json!({ "exp": now() - 30 }));
    for (leeway, status) in [(60, 200), (10, 401)] {
        let tokens = tokens_of(&issuer).any_type().leeway(Duration::from_secs(leeway)).build().unwrap();
        let site = Site::start(guarded(tokens).build().unwrap()).await;
        assert_eq!(site.call(&late).await.status, status);
    }
}

#[test]
fn what_could_let_in_anybody_is_refused_when_it_is_built() {
    let error = |builder: mcp_auth::JwtBuilder| builder.build().unwrap_err();
    let issuer = || Jwt::builder(RESOURCE).issuer("https://as.example.com", "https://as.example.com/jwks");
    assert!(issuer().build().is_ok());
    assert_eq!(error(Jwt::builder(RESOURCE)), Misconfigured::NoIssuer);
    for name in ["none", "HS256", "es256", ""] {
        assert_eq!(error(issuer().algorithms([name])), Misconfigured::Algorithm(name.to_owned()));
    }
    let twice = issuer().issuer("https://as.example.com", "https://as.example.com/other");
    assert!(matches!(error(twice), Misconfigured::Issuer(_)));
    for other in ["as.example.com", "https://as.example.com?a", "https://as.example.com#a"] {
        let builder = Jwt::builder(RESOURCE).issuer(other, "https://as.example.com/jwks");
        assert!(matches!(error(builder), Misconfigured::Issuer(_)), "{other}");
    }
    for url in [
        "http://as.example.com/jwks",
        "https://10.0.0.1/jwks",
        "http://127.0.0.1/jwks",
        "https://169.254.169.254/",
        "file:///k",
    ] {
        let builder = Jwt::builder(RESOURCE).issuer("https://as.example.com", url);
        assert!(matches!(error(builder), Misconfigured::Url { .. }), "{url}");
    }
    for url in ["http://as.example.com/jwks", "https://169.254.169.254/"] {
        let builder = Jwt::builder(RESOURCE).issuer("https://as.example.com", url).network(Network::Loopback);
        assert!(matches!(error(builder), Misconfigured::Url { .. }), "{url}");
    }
    for keys in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#] {
        let builder = Jwt::builder(RESOURCE).issuer_with_keys("https://as.example.com", keys);
        assert!(matches!(error(builder), Misconfigured::NoKey(_)), "{keys}");
    }
}

#[tokio::test]
async fn a_new_key_is_taken_and_an_old_one_is_not() {
    let issuer = AuthorizationServer::start().await;
    let site = Site::of(&issuer).await;
    let old = issuer.token(good());
    assert_eq!(site.call(&old).await.status, 200);
    issuer.rotate();
    assert_eq!(site.call(&issuer.token(good())).await.status, 200);
    assert_eq!(issuer.asked("/jwks"), 2);
    site.call(&old).await.refused(401, "invalid_token");
}

#[tokio::test]
async fn unknown_keys_do_not_have_an_issuer_asked_again_and_again() {
    let issuer = AuthorizationServer::start().await;
    let tokens = tokens_of(&issuer).cooldown(Duration::from_secs(600)).build().unwrap();
    let site = Site::start(guarded(tokens).build().unwrap()).await;
    let forged: Vec<_> = (0..20).map(|n| made(&issuer, json!({ "kid": format!("{n}") }), json!({}))).collect();
    for answer in join_all(forged.iter().map(|token| site.call(token))).await {
        answer.refused(401, "invalid_token");
    }
    assert_eq!(site.call(&issuer.token(good())).await.status, 200);
    assert_eq!(issuer.asked("/jwks"), 1);
}

#[tokio::test]
async fn an_issuer_that_is_down_is_no_reason_to_refuse_a_token_for_good() {
    let issuer = AuthorizationServer::start().await;
    let tokens = tokens_of(&issuer).keys_for(Duration::ZERO).build().unwrap();
    let site = Site::start(guarded(tokens).build().unwrap()).await;
    issuer.set_down(true);
    let unavailable = |answer: &Answer| (answer.status, answer.challenges.is_empty()) == (503, true);
    let answer = site.call(&issuer.token(good())).await;
    assert!(unavailable(&answer), "{answer:?}");
    issuer.set_down(false);
    assert_eq!(site.call(&issuer.token(good())).await.status, 200);
    issuer.set_down(true);
    assert_eq!(site.call(&issuer.token(good())).await.status, 200, "the last keys serve on");
    // Whether this key is new cannot be told.
    let answer = site.call(&made(&issuer, json!({ "kid": "new" }), json!({}))).await;
    assert!(unavailable(&answer), "{answer:?}");
}

async fn with_keys_at(issuer: &AuthorizationServer, url: &str) -> u16 {
    let tokens = Jwt::builder(RESOURCE).issuer(issuer.issuer(), url).network(Network::Loopback).build().unwrap();
    let site = Site::start(guarded(tokens).build().unwrap()).await;
    site.call(&issuer.token(good())).await.status
}

#[tokio::test]
async fn keys_are_not_looked_for_where_an_answer_leads() {
    let issuer = AuthorizationServer::start().await;
    let mut detour = url::Url::parse(&format!("{}/authorize", issuer.issuer())).unwrap();
    detour
        .query_pairs_mut()
        .append_pair("redirect_uri", &issuer.jwks_url())
        .append_pair("code_challenge_method", "S256");
    assert_eq!(with_keys_at(&issuer, detour.as_str()).await, 503);
    assert_eq!((issuer.asked("/authorize"), issuer.asked("/jwks")), (1, 0));
}

#[tokio::test]
async fn a_document_of_keys_has_64_kib_at_most() {
    let issuer = AuthorizationServer::start().await;
    let (kid, key) = issuer.key();
    let mut jwk = key.jwk().clone();
    jwk["kid"] = json!(kid);
    let document = json!({ "keys": [jwk] }).to_string();
    for (length, status) in [(64 << 10, 200), ((64 << 10) + 1, 503)] {
        let padded = format!("{document}{}", " ".repeat(length - document.len()));
        let router = axum::Router::new().fallback(move || async move { padded });
        let elsewhere = HttpServer::start_router(router).await;
        assert_eq!(with_keys_at(&issuer, &elsewhere.url()).await, status);
    }
}
