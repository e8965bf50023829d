//! Logins at an authorization server that says back what it is sent.

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    response::Response,
};
use http::{StatusCode, header};
use mcp_auth::{ClientCredentials, Grant, Key, MemoryStore, OAuth, TokenStore as _, Url};
use mcp_core::Revision;
use mcp_http::{Http, reqwest};
use mcp_test::HttpServer;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{builder, plant, secret, tell, use_it};

/// What the token endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tokens {
    /// It refuses, in the words of who asked.
    Repeats,
    /// It gives a token, which the server then finds to lack a scope that is called like it.
    Gives,
}

fn json(status: StatusCode, body: &Value) -> Response {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}

fn refused(status: StatusCode, challenge: String) -> Response {
    Response::builder().status(status).header(header::WWW_AUTHENTICATE, challenge).body(Body::empty()).unwrap()
}

async fn site(tokens: Tokens, method: &'static str) -> HttpServer {
    let answer = move |request: Request| async move {
        let origin = format!("http://{}", request.headers()[header::HOST].to_str().unwrap());
        let (parts, body) = request.into_parts();
        let form = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
        let authorization = parts.headers.get(header::AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
        match parts.uri.path() {
            "/mcp" if authorization.is_empty() => {
                refused(StatusCode::UNAUTHORIZED, format!("Bearer resource_metadata=\"{origin}/resource\""))
            }
            "/mcp" => {
                let scope = authorization.trim_start_matches("Bearer ");
                refused(StatusCode::FORBIDDEN, format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""))
            }
            "/resource" => {
                json(StatusCode::OK, &json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] }))
            }
            "/.well-known/oauth-authorization-server" => json(
                StatusCode::OK,
                &json!({
                    "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"), "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": [method],
                }),
            ),
            "/token" => token(tokens, &form, authorization),
            _ => json(StatusCode::NOT_FOUND, &json!({})),
        }
    };
    HttpServer::start_router(Router::new().fallback(answer)).await
}

fn token(tokens: Tokens, form: &str, authorization: &str) -> Response {
    let verifier = form_urlencoded::parse(form.as_bytes()).find(|(name, _)| name == "code_verifier");
    verifier.into_iter().for_each(|(_, verifier)| plant(&verifier));
    match tokens {
        Tokens::Repeats => {
            let words = json!({ "error": "invalid_request", "error_description": format!("{authorization} {form}") });
            json(StatusCode::BAD_REQUEST, &words)
        }
        Tokens::Gives => json(
            StatusCode::OK,
            &json!({ "access_token": secret("access"), "refresh_token": secret("refresh"), "token_type": "Bearer" }),
        ),
    }
}

/// Comes back from the login with a code, or with the server's no in the words of the question.
async fn visit(url: Url, is_denied: bool) {
    let value = |name: &str| url.query_pairs().find(|(other, _)| other == name).unwrap().1.into_owned();
    let (mut back, state) = (Url::parse(&value("redirect_uri")).unwrap(), value("state"));
    plant(&state);
    back.query_pairs_mut().append_pair("state", &state);
    if is_denied {
        back.query_pairs_mut().append_pair("error", "access_denied").append_pair("error_description", &state);
    } else {
        back.query_pairs_mut().append_pair("code", &secret("code"));
    }
    reqwest::get(back).await.unwrap();
}

fn kept(site: &HttpServer, client: &ClientCredentials) -> (Key, Grant) {
    let grant = json!({ "access_token": secret("access"), "refresh_token": secret("refresh"), "expires_at": 1,
        "scopes": [], "client": client });
    (Key::new(site.url_of(""), site.url()), serde_json::from_value(grant).unwrap())
}

/// As many scenarios as it has gone through.
pub(super) async fn logins() -> usize {
    let mut scenarios = 0;
    for method in ["client_secret_post", "client_secret_basic"] {
        for (tokens, is_denied, is_kept) in [
            (Tokens::Repeats, false, false),
            (Tokens::Repeats, false, true),
            (Tokens::Repeats, true, false),
            (Tokens::Gives, false, false),
        ] {
            let site = site(tokens, method).await;
            let client = ClientCredentials::secret("id", secret("client"));
            let store = MemoryStore::default();
            if is_kept {
                let (key, grant) = kept(&site, &client);
                tell(format!("{key:?} {grant:?}"));
                assert!(store.swap(&key, None, Some(grant)).await.unwrap());
            }
            let builder_of = OAuth::builder("Test", move |url| async move {
                visit(url, is_denied).await;
                Ok(())
            });
            let builder_of = builder_of.client(site.url_of(""), client).store(store);
            tell(format!("{builder_of:?}"));
            let credentials = builder_of.build().unwrap();
            tell(format!("{credentials:?}"));
            let is_connected = use_it(builder(Revision::LATEST), Http::new(site.url()).credentials(credentials)).await;
            assert!(!is_connected, "it can be used: {tokens:?}, {is_denied}, {is_kept}");
            scenarios += 1;
        }
    }
    scenarios
}
