//! Tokens that are bound to a key, and the proofs that come with them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mcp_auth::Dpop;
use mcp_core::Client;
use mcp_http::reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use mcp_test::{AuthorizationServer, SigningKey};
use mcp_ws::Ws;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Answer, RESOURCE, Site, good, guarded, tokens_of};

static MADE: AtomicUsize = AtomicUsize::new(0);

struct Bound {
    site: Site,
    issuer: AuthorizationServer,
    key: SigningKey,
    token: String,
}

impl Bound {
    async fn start(dpop: Dpop) -> Self {
        let issuer = AuthorizationServer::start().await;
        let guard = guarded(tokens_of(&issuer).build().unwrap()).dpop(dpop).build().unwrap();
        let (site, key) = (Site::start(guard).await, SigningKey::random());
        let token = issuer.token(json!({ "aud": RESOURCE, "cnf": { "jkt": key.thumbprint() } }));
        Self { site, issuer, key, token }
    }

    /// A proof with this head and these claims in place of the good ones; null is left out.
    fn proof(&self, head: Value, claims: Value) -> String {
        let mut whole = json!({ "typ": "dpop+jwt", "alg": "EdDSA", "jwk": self.key.jwk() });
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let mut all = json!({
            "jti": MADE.fetch_add(1, Ordering::Relaxed).to_string(), "htm": "POST", "htu": RESOURCE, "iat": now,
            "ath": URL_SAFE_NO_PAD.encode(Sha256::digest(&self.token)),
        });
        for (all, changes) in [(&mut whole, head), (&mut all, claims)] {
            let members = all.as_object_mut().unwrap();
            members.extend(changes.as_object().unwrap().clone());
            members.retain(|_, value| !value.is_null());
        }
        self.key.sign(&whole, &all)
    }

    async fn call(&self, proofs: &[&str]) -> Answer {
        let authorization = format!("DPoP {}", self.token);
        let proofs = proofs.iter().map(|proof| ("dpop", *proof));
        let headers: Vec<_> = [("authorization", authorization.as_str())].into_iter().chain(proofs).collect();
        self.site.call_with(&headers, "whoami").await
    }
}

#[tokio::test]
async fn a_bound_token_is_good_with_a_proof_for_this_request() {
    let bound = Bound::start(Dpop::new()).await;
    let id = format!("{}#ada", bound.issuer.issuer());
    for url in [RESOURCE, "HTTPS://MCP.example.com:443/mcp", "https://mcp.example.com/mcp?a=b#c"] {
        let proof = bound.proof(json!({}), json!({ "htu": url }));
        assert_eq!(bound.call(&[&proof]).await.said(), id, "{url}");
    }
    // Others are taken beside them.
    assert_eq!(bound.site.call(&bound.issuer.token(good())).await.said(), id);
}

#[tokio::test]
async fn a_proof_that_is_not_about_this_request_is_refused() {
    let bound = Bound::start(Dpop::new()).await;
    let mut private = bound.key.jwk().clone();
    private["d"] = json!("AAAA");
    let stranger = SigningKey::random();
    let now = |offset: i64| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        i64::try_from(now).unwrap() + offset
    };
    let none = json!({});
    let another_key = Bound { key: stranger.clone(), ..Bound::start(Dpop::new()).await };
    let rows = [
        ("method", none.clone(), json!({ "htm": "GET" })),
        ("method", none.clone(), json!({ "htm": "post" })),
        ("URL", none.clone(), json!({ "htu": "https://mcp.example.com/other" })),
        ("URL", none.clone(), json!({ "htu": "http://mcp.example.com/mcp" })),
        ("URL", none.clone(), json!({ "htu": "https://evil.example/mcp" })),
        ("URL", none.clone(), json!({ "htu": "mcp" })),
        ("token", none.clone(), json!({ "ath": URL_SAFE_NO_PAD.encode(Sha256::digest("another")) })),
        ("claim", none.clone(), json!({ "ath": null })),
        ("claim", none.clone(), json!({ "jti": null })),
        ("claim", none.clone(), json!({ "iat": null })),
        ("claim", none.clone(), json!({ "iat": "now" })),
        ("id", none.clone(), json!({ "jti": "" })),
        ("id", none.clone(), json!({ "jti": "j".repeat(257) })),
        ("old", none.clone(), json!({ "iat": now(-70) })),
        ("old", none.clone(), json!({ "iat": now(60) })),
        ("type", json!({ "typ": "JWT" }), none.clone()),
        ("type", json!({ "typ": null }), none.clone()),
        ("algorithm", json!({ "alg": "none" }), none.clone()),
        ("algorithm", json!({ "alg": "HS256" }), none.clone()),
        ("signature", json!({ "alg": "ES256" }), none.clone()),
        ("no key", json!({ "jwk": null }), none.clone()),
        ("private", json!({ "jwk": private }), none.clone()),
        ("private", json!({ "jwk": { "kty": "oct", "k": "AAAA" } }), none.clone()),
        ("kind", json!({ "jwk": {} }), none.clone()),
        ("signature", json!({ "jwk": stranger.jwk() }), none.clone()),
    ];
    for (why, head, claims) in rows {
        let answer = bound.call(&[&bound.proof(head, claims)]).await;
        let reason = answer.refused(401, "invalid_dpop_proof");
        assert!(reason.contains(why), "{why}: {reason}");
        assert!(answer.challenges[0].is("DPoP") && answer.challenged("algs").is_some(), "{answer:?}");
    }
    let (one, two) = (bound.proof(none.clone(), none.clone()), bound.proof(none.clone(), none.clone()));
    let none_at_all: &[&str] = &[];
    for proofs in [none_at_all, &[one.as_str(), two.as_str()], &["x"]] {
        bound.call(proofs).await.refused(401, "invalid_dpop_proof");
    }
    let mut stolen = another_key;
    stolen.token.clone_from(&bound.token);
    let answer = bound.call(&[&stolen.proof(none.clone(), none)]).await;
    assert!(answer.refused(401, "invalid_dpop_proof").contains("another key"));
}

/// Its upgrade is a GET, for the URL that the resource has over HTTP.
#[tokio::test]
async fn a_socket_is_opened_with_a_proof() {
    let bound = Bound::start(Dpop::new()).await;
    let open = |proof: String| {
        let header = |text: String| HeaderValue::from_str(&text).unwrap();
        let ws = Ws::new(format!("ws://{}/mcp", bound.site.address()));
        let ws = ws.header(AUTHORIZATION, header(format!("DPoP {}", bound.token)));
        Client::connect(ws.header(HeaderName::from_static("dpop"), header(proof)))
    };
    let of_a_post = open(bound.proof(json!({}), json!({}))).await.unwrap_err();
    assert_eq!(of_a_post.status(), Some(401), "{of_a_post:?}");
    let of_a_get = json!({ "htm": "GET", "htu": "wss://mcp.example.com/mcp" });
    let client = open(bound.proof(json!({}), of_a_get)).await.unwrap();
    let said: String = client.call("whoami", json!({})).await.unwrap();
    assert_eq!(said, format!("{}#ada", bound.issuer.issuer()));
}

#[tokio::test]
async fn a_proof_is_good_once() {
    let bound = Bound::start(Dpop::new()).await;
    let proof = bound.proof(json!({}), json!({}));
    assert_eq!(bound.call(&[&proof]).await.status, 200);
    assert!(bound.call(&[&proof]).await.refused(401, "invalid_dpop_proof").contains("before"));
}

#[tokio::test]
async fn proofs_that_cannot_be_remembered_are_not_taken() {
    let bound = Bound::start(Dpop::new().remembered(2)).await;
    for status in [200, 200, 503] {
        assert_eq!(bound.call(&[&bound.proof(json!({}), json!({}))]).await.status, status);
    }
}

#[tokio::test]
async fn a_bound_token_is_no_bearer_token_and_a_free_one_is_not_bound() {
    let bound = Bound::start(Dpop::new()).await;
    assert!(bound.site.call(&bound.token).await.refused(401, "invalid_token").contains("bound to a key"));
    let free = Bound { token: bound.issuer.token(good()), ..bound };
    let answer = free.call(&[&free.proof(json!({}), json!({}))]).await;
    assert!(answer.refused(401, "invalid_token").contains("bound to no key"));
    // A server that knows nothing of proofs must not take it for an ordinary one.
    let site = Site::of(&free.issuer).await;
    let token = free.issuer.token(json!({ "aud": RESOURCE, "cnf": { "jkt": free.key.thumbprint() } }));
    site.call(&token).await.refused(401, "invalid_token");
}

#[tokio::test]
async fn a_server_can_take_bound_tokens_alone() {
    let bound = Bound::start(Dpop::new().required()).await;
    assert_eq!(bound.call(&[&bound.proof(json!({}), json!({}))]).await.status, 200);
    let answer = bound.site.call(&bound.issuer.token(good())).await;
    answer.refused(401, "invalid_token");
    assert!(answer.challenges.len() == 1 && answer.challenges[0].is("DPoP"), "{answer:?}");
}

#[tokio::test]
async fn a_proof_holds_the_nonce_that_the_server_gave() {
    let bound = Bound::start(Dpop::new().nonces()).await;
    let answer = bound.call(&[&bound.proof(json!({}), json!({}))]).await;
    answer.refused(401, "use_dpop_nonce");
    let nonce = answer.nonce.unwrap();
    assert_eq!(bound.call(&[&bound.proof(json!({}), json!({ "nonce": nonce }))]).await.status, 200);
    let answer = bound.call(&[&bound.proof(json!({}), json!({ "nonce": "made-up" }))]).await;
    assert_eq!((answer.challenged("error"), &answer.nonce), (Some("use_dpop_nonce"), &Some(nonce)));
}
