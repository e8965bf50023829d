//! What the authorization server answers at each path.

use std::collections::HashMap;

use mcp_http::axum::{
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::{Book, Shared, grants};

const MOST_BYTES: usize = 1 << 20;

/// What was sent, of the query and of a form.
pub(super) type Form = HashMap<String, String>;

/// Answers whatever is asked.
pub(super) async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MOST_BYTES).await.unwrap_or_default();
    let mut form: Form =
        form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    form.extend(form_urlencoded::parse(&body).into_owned());
    let path = parts.uri.path();
    let mut book = shared.book();
    book.asked.push(path.to_owned());
    if book.is_down {
        return json_of(503, &json!({ "error": "temporarily_unavailable" }));
    }
    match path {
        "/.well-known/oauth-authorization-server" | "/.well-known/openid-configuration" => {
            json_of(200, &metadata(&book))
        }
        "/jwks" => json_of(200, &book.key_set()),
        "/register" => register(&mut book, &body),
        "/authorize" => authorize(&mut book, &form),
        "/device" => device(&mut book, form),
        "/token" => token(&mut book, &parts.headers, &form),
        "/introspect" => json_of(200, &introspect(&book, &form)),
        _ => json_of(404, &json!({ "error": "not_found" })),
    }
}

fn json_of(status: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn metadata(book: &Book) -> Value {
    let issuer = &book.issuer;
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "device_authorization_endpoint": format!("{issuer}/device"),
        "introspection_endpoint": format!("{issuer}/introspect"),
        "jwks_uri": format!("{issuer}/jwks"),
        "response_types_supported": ["code"],
        "grant_types_supported": grants::SUPPORTED,
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "dpop_signing_alg_values_supported": ["EdDSA", "ES256", "RS256"],
        "authorization_response_iss_parameter_supported": true,
    })
}

/// Every client is taken, with what it said of itself.
fn register(book: &mut Book, body: &[u8]) -> Response {
    let mut client = serde_json::from_slice::<Value>(body).unwrap_or_default();
    if !client.is_object() {
        return json_of(400, &json!({ "error": "invalid_client_metadata" }));
    }
    client["client_id"] = json!(book.name("client"));
    json_of(201, &client)
}

/// The user agrees at once.
fn authorize(book: &mut Book, form: &Form) -> Response {
    let back = form.get("redirect_uri").and_then(|uri| Url::parse(uri).ok());
    let (Some(mut back), Some("S256")) = (back, form.get("code_challenge_method").map(String::as_str)) else {
        return json_of(400, &json!({ "error": "invalid_request" }));
    };
    let code = book.give("code", form);
    back.query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("iss", &book.issuer)
        .extend_pairs(form.get("state").map(|state| ("state", state)));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    if let Ok(place) = header::HeaderValue::from_str(back.as_str()) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// The user has agreed by the time that anybody asks.
fn device(book: &mut Book, form: Form) -> Response {
    let code = book.give("device", &form);
    let place = format!("{}/activate", book.issuer);
    json_of(
        200,
        &json!({ "device_code": code, "user_code": "ABCD-EFGH", "verification_uri": place, "expires_in": 600, "interval": 1 }),
    )
}

fn token(book: &mut Book, headers: &HeaderMap, form: &Form) -> Response {
    match book.grant(headers, form) {
        Ok(tokens) => json_of(200, &tokens),
        Err(error) => json_of(400, &json!({ "error": error })),
    }
}

fn introspect(book: &Book, form: &Form) -> Value {
    let Some(claims) = form.get("token").and_then(|token| book.tokens.get(token)) else {
        return json!({ "active": false });
    };
    let mut claims = claims.clone();
    claims["active"] = json!(true);
    claims
}
