//! An MCP server behind a check of tokens, and the authorization server that gives them, at one address.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{StatusCode, Uri, header, request::Parts},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mcp_core::{Server, Tool, ToolError, implementation};
use mcp_http::Routes;
use mcp_test::HttpServer;
use mcp_ws::WsLayer;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

use super::{RESOURCE_METADATA, Setup, proofs::Proofs};

/// What it was asked for beside `/mcp`: path, parameters of query or form, and who asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) parameters: HashMap<String, String>,
    pub(super) authorization: Option<String>,
}

/// What an access token is good for, and for the holder of which key.
#[derive(Clone)]
struct Access {
    scopes: Vec<String>,
    key: Option<String>,
}

struct Code {
    challenge: String,
    scopes: Vec<String>,
}

#[derive(Default)]
struct Book {
    asked: Vec<Asked>,
    codes: HashMap<String, Code>,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Access>,
    given: usize,
    /// The authorization servers that the MCP server names now, where these are others.
    named: Option<Value>,
    /// What is below that path is not to be had.
    fails: Option<&'static str>,
    /// How often a request to `/mcp` was refused.
    refused: usize,
    proofs: Proofs,
}

#[derive(Clone)]
struct Shared {
    setup: Arc<Setup>,
    book: Arc<Mutex<Book>>,
}

pub(super) struct Site {
    http: HttpServer,
    shared: Shared,
}

impl Site {
    pub(super) async fn start(setup: Setup) -> Self {
        let shared = Shared { setup: Arc::new(setup), book: Arc::default() };
        let server = server();
        let endpoint = Routes::new(server.clone()).into_router().layer(WsLayer::new(server));
        let guarded = endpoint.layer(from_fn_with_state(shared.clone(), guard));
        let rest = Router::new().fallback(authorization).with_state(shared.clone());
        Self { http: HttpServer::start_router(guarded.fallback_service(rest)).await, shared }
    }

    pub(super) fn url(&self) -> String {
        self.http.url()
    }

    pub(super) fn socket(&self) -> String {
        self.url().replace("http:", "ws:")
    }

    pub(super) fn origin(&self) -> String {
        self.http.url_of("")
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.book.lock().unwrap()
    }

    /// Every access token ends.
    pub(super) fn expire(&self) {
        self.book().access.clear();
    }

    /// Every refresh token ends.
    pub(super) fn revoke(&self) {
        self.book().refresh.clear();
    }

    /// What is below that path is answered with 503 from now on.
    pub(super) fn fail(&self, path: &'static str) {
        self.book().fails = Some(path);
    }

    /// The MCP server names these authorization servers from now on.
    pub(super) fn name<const N: usize>(&self, issuers: [&str; N]) {
        self.book().named = Some(json!({ "resource": self.url(), "authorization_servers": issuers.as_slice() }));
    }

    /// How often a request to the MCP server was refused.
    pub(super) fn refused(&self) -> usize {
        self.book().refused
    }

    /// What it makes of proofs.
    pub(super) fn proofs<T>(&self, with: impl FnOnce(&mut Proofs) -> T) -> T {
        with(&mut self.book().proofs)
    }

    /// What was asked of that path.
    pub(super) fn asked(&self, path: &str) -> Vec<Asked> {
        self.book().asked.iter().filter(|asked| asked.path == path).cloned().collect()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.book().asked.iter().map(|asked| asked.path.clone()).collect()
    }

    /// How often tokens were refreshed, or should have been.
    pub(super) fn refreshes(&self) -> usize {
        self.asked("/token").iter().filter(|asked| asked.parameters["grant_type"] == "refresh_token").count()
    }

    /// The scopes that each login asked for.
    pub(super) fn consents(&self) -> Vec<String> {
        let asked = self.asked("/authorize");
        asked.iter().map(|asked| asked.parameters.get("scope").cloned().unwrap_or_default()).collect()
    }
}

fn server() -> Server {
    let tool = |name: &'static str| Tool::new(name, move || async move { Ok::<_, ToolError>(name) });
    ["free", "a", "b", "write"]
        .into_iter()
        .fold(Server::builder(implementation!()), |server, name| server.tool(tool(name)))
        .build()
}

/// Lets in who has a token, to what its scopes allow.
async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    if request.uri().path() != "/mcp" {
        return next.run(request).await;
    }
    let origin = origin(&request);
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let scopes = match shared.scopes(&parts, &origin) {
        Ok(scopes) => scopes,
        Err(refusal) => return refusal,
    };
    let is_upgrade = parts.headers.contains_key(header::UPGRADE);
    let needed = if is_upgrade { shared.setup.of_socket } else { needed(&shared.setup, &body) };
    match needed.filter(|needed| !scopes.iter().any(|scope| scope == needed)) {
        Some(_) if !shared.setup.explains => refused(StatusCode::FORBIDDEN, &[], &origin),
        Some(scope) => {
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            refused(StatusCode::FORBIDDEN, &[challenge], &origin)
        }
        None => next.run(Request::from_parts(parts, Body::from(body))).await,
    }
}

fn needed(setup: &Setup, body: &Bytes) -> Option<&'static str> {
    let message: Value = serde_json::from_slice(body).ok()?;
    setup.needs.get(message["params"]["name"].as_str()?).copied()
}

fn refused(status: StatusCode, challenges: &[String], origin: &str) -> Response {
    let response = challenges.iter().fold(Response::builder().status(status), |response, challenge| {
        response.header(header::WWW_AUTHENTICATE, challenge.replace("{origin}", origin))
    });
    response.body(Body::empty()).unwrap()
}

fn origin(request: &Request) -> String {
    format!("http://{}", request.headers()[header::HOST].to_str().unwrap())
}

fn pairs(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

async fn authorization(State(shared): State<Shared>, request: Request) -> Response {
    let (origin, path, query) = (origin(&request), request.uri().path().to_owned(), query(request.uri()));
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let parameters = if query.is_empty() { pairs(std::str::from_utf8(&body).unwrap()) } else { pairs(&query) };
    let authorization = text(&parts, "authorization");
    let asked = Asked { path: path.clone(), parameters: parameters.clone(), authorization };
    shared.book.lock().unwrap().asked.push(asked);
    let fails = shared.book.lock().unwrap().fails;
    match path.as_str() {
        path if fails.is_some_and(|fails| path.starts_with(fails)) => answer(503, ""),
        "/authorize" => shared.authorize(&parameters, &origin),
        "/token" => shared.token(&parameters, &parts, &origin),
        "/device" => answer(200, &device(&origin).to_string()),
        "/register" => answer(201, &json!({ "client_id": "registered" }).to_string()),
        path if path.starts_with(RESOURCE_METADATA) && shared.named().is_some() => {
            answer(200, &json!(shared.named()).to_string())
        }
        path => match shared.setup.documents.get(path) {
            Some(document) => answer(200, &document.replace("{origin}", &origin)),
            None => answer(404, "{}"),
        },
    }
}

fn device(origin: &str) -> Value {
    json!({
        "device_code": "device", "user_code": "WDJB-MJHT", "verification_uri": format!("{origin}/enter"),
        "expires_in": 60, "interval": 1,
    })
}

fn text(parts: &Parts, name: &str) -> Option<String> {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn query(uri: &Uri) -> String {
    uri.query().unwrap_or_default().to_owned()
}

fn answer(status: u16, body: &str) -> Response {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(Body::from(body.to_owned())).unwrap()
}

impl Shared {
    fn named(&self) -> Option<Value> {
        self.book.lock().unwrap().named.clone()
    }

    fn authorize(&self, parameters: &HashMap<String, String>, origin: &str) -> Response {
        assert_eq!(parameters["code_challenge_method"], "S256");
        let scopes = parameters.get("scope").map(String::as_str).unwrap_or_default().split_whitespace();
        let scopes = scopes.filter(|scope| !self.setup.withheld.contains(scope)).map(str::to_owned).collect();
        let mut book = self.book.lock().unwrap();
        book.given += 1;
        let code = format!("code-{}", book.given);
        book.codes.insert(code.clone(), Code { challenge: parameters["code_challenge"].clone(), scopes });
        let issuer = self.setup.documents.values().find_map(|document| {
            serde_json::from_str::<Value>(document).ok()?["issuer"]
                .as_str()
                .map(|issuer| issuer.replace("{origin}", origin))
        });
        let mut back = url::Url::parse(&parameters["redirect_uri"]).unwrap();
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &parameters["state"]);
        let said = self.setup.answers_as.map(|issuer| issuer.replace("{origin}", origin)).or(issuer);
        let said = said.filter(|issuer| !issuer.is_empty());
        back.query_pairs_mut().extend_pairs(said.map(|issuer| ("iss", issuer)));
        Response::builder().status(302).header(header::LOCATION, back.as_str()).body(Body::empty()).unwrap()
    }

    /// The scopes of whoever asks, or the answer that refuses them.
    fn scopes(&self, parts: &Parts, origin: &str) -> Result<Vec<String>, Response> {
        let mut book = self.book.lock().unwrap();
        let shown = text(parts, "authorization").unwrap_or_default();
        let (scheme, token) = shown.split_once(' ').unwrap_or_default();
        let access = book.access.get(token).cloned();
        let outcome = match access {
            Some(Access { scopes, key: None }) if scheme == "Bearer" => Ok(scopes),
            Some(Access { scopes, key: Some(key) }) if scheme == "DPoP" => {
                let (proof, target) = (text(parts, "dpop"), format!("{origin}{}", parts.uri.path()));
                let judged = book.proofs.judge(proof.as_deref(), parts.method.as_str(), &target, Some(token));
                judged.map(|shown| assert_eq!(shown, key, "another key")).map(|()| scopes)
            }
            _ => Err(None),
        };
        outcome.map_err(|nonce| {
            book.refused += 1;
            let asks = nonce.as_ref().map(|_| vec!["DPoP error=\"use_dpop_nonce\"".to_owned()]);
            let refusal = refused(StatusCode::UNAUTHORIZED, asks.as_ref().unwrap_or(&self.setup.challenges), origin);
            with_nonce(refusal, nonce)
        })
    }

    fn token(&self, parameters: &HashMap<String, String>, parts: &Parts, origin: &str) -> Response {
        let mut book = self.book.lock().unwrap();
        let judged = text(parts, "dpop")
            .map(|proof| book.proofs.judge(Some(&proof), "POST", &format!("{origin}/token"), None))
            .transpose();
        let key = match judged {
            Ok(key) => key,
            Err(nonce) => return with_nonce(no("use_dpop_nonce"), nonce),
        };
        let grant = parameters["grant_type"].as_str();
        if let Some(error) = self.setup.refuses.get(grant) {
            return no(error);
        }
        let scopes = match grant {
            "authorization_code" => book.codes.remove(&parameters["code"]).and_then(|code| {
                let shown = URL_SAFE_NO_PAD.encode(Sha256::digest(&parameters["code_verifier"]));
                (shown == code.challenge).then_some(code.scopes)
            }),
            "refresh_token" => book.refresh.remove(&parameters["refresh_token"]).map(|access| {
                assert_eq!(access.key, key, "a refresh token of another key");
                access.scopes
            }),
            "urn:ietf:params:oauth:grant-type:token-exchange" => return answer(200, &identity().to_string()),
            _ => Some(
                parameters.get("scope").map(|scope| scope.split(' ').map(str::to_owned).collect()).unwrap_or_default(),
            ),
        };
        let Some(scopes) = scopes else { return no("invalid_grant") };
        let access = Access { scopes, key };
        answer(200, &book.give(&access, self.setup.expires_in).to_string())
    }
}

impl Book {
    fn give(&mut self, access: &Access, expires_in: Option<u64>) -> Value {
        self.given += 1;
        let (token, refresh) = (format!("access-{}", self.given), format!("refresh-{}", self.given));
        self.access.insert(token.clone(), access.clone());
        self.refresh.insert(refresh.clone(), access.clone());
        let mut tokens = json!({
            "access_token": token, "token_type": if access.key.is_some() { "DPoP" } else { "Bearer" },
            "refresh_token": refresh, "scope": access.scopes.join(" "),
        });
        if let Some(seconds) = expires_in {
            tokens["expires_in"] = seconds.into();
        }
        tokens
    }
}

/// What an identity provider gives for an ID token.
fn identity() -> Value {
    json!({
        "access_token": "identity assertion", "token_type": "N_A",
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    })
}

fn no(error: &str) -> Response {
    answer(400, &json!({ "error": error }).to_string())
}

fn with_nonce(mut response: Response, nonce: Option<String>) -> Response {
    if let Some(nonce) = nonce {
        response.headers_mut().insert("dpop-nonce", nonce.parse().unwrap());
    }
    response
}
