//! An MCP server behind a check of tokens, and the authorization server that gives them, at one address.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{StatusCode, Uri, header},
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

/// How such a site is; `{origin}` in any text is where it turned out to be.
#[derive(Clone)]
pub(super) struct Setup {
    /// The lines of `WWW-Authenticate` in a 401.
    pub(super) challenges: Vec<String>,
    /// What stands at each path.
    pub(super) documents: HashMap<String, String>,
    /// The scope that each tool needs.
    pub(super) needs: HashMap<&'static str, &'static str>,
    /// Whether what lacks a scope is told so, or refused without a word.
    pub(super) explains: bool,
    /// Scopes that nobody is given.
    pub(super) withheld: Vec<&'static str>,
    /// What the upgrade of a WebSocket needs.
    pub(super) of_socket: Option<&'static str>,
    /// Who answers to have logged somebody in, where that is not the issuer; nobody says so where it is empty.
    pub(super) answers_as: Option<&'static str>,
}

pub(super) const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
pub(super) const SERVER_METADATA: &str = "/.well-known/oauth-authorization-server";

impl Default for Setup {
    fn default() -> Self {
        Self {
            challenges: vec![format!("Bearer resource_metadata=\"{{origin}}{RESOURCE_METADATA}/mcp\"")],
            documents: HashMap::new(),
            needs: HashMap::from([("a", "a"), ("b", "b"), ("write", "write")]),
            explains: true,
            withheld: Vec::new(),
            of_socket: None,
            answers_as: None,
        }
        .resource(&format!("{RESOURCE_METADATA}/mcp"), "{origin}/mcp", "{origin}")
        .issuer(SERVER_METADATA, "{origin}", json!({}))
    }
}

impl Setup {
    /// A site without metadata and without a challenge that names it.
    pub(super) fn bare() -> Self {
        Self { documents: HashMap::new(), challenges: vec!["Bearer".to_owned()], ..Self::default() }
    }

    pub(super) fn challenges(mut self, lines: &[&str]) -> Self {
        self.challenges = lines.iter().map(|line| (*line).to_owned()).collect();
        self
    }

    pub(super) fn resource(self, path: &str, resource: &str, issuer: &str) -> Self {
        let document = json!({ "resource": resource, "authorization_servers": [issuer] });
        self.document(path, &document)
    }

    /// The metadata of an issuer, with these members in place of others; `null` is none.
    pub(super) fn issuer(self, path: &str, issuer: &str, members: Value) -> Self {
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": "{origin}/authorize",
            "token_endpoint": "{origin}/token",
            "registration_endpoint": "{origin}/register",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        for (name, value) in members.as_object().unwrap() {
            document[name] = value.clone();
        }
        document.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        self.document(path, &document)
    }

    fn document(mut self, path: &str, document: &Value) -> Self {
        self.documents.insert(path.to_owned(), document.to_string());
        self
    }
}

/// What it was asked for beside `/mcp`: path, and parameters of query or form.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) parameters: HashMap<String, String>,
}

struct Code {
    challenge: String,
    scopes: Vec<String>,
}

#[derive(Default)]
struct Book {
    asked: Vec<Asked>,
    codes: HashMap<String, Code>,
    access: HashMap<String, Vec<String>>,
    refresh: HashMap<String, Vec<String>>,
    given: usize,
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
    let token = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let scopes = token.and_then(|token| shared.book.lock().unwrap().access.get(token).cloned());
    let Some(scopes) = scopes else {
        return refused(StatusCode::UNAUTHORIZED, &shared.setup.challenges, &origin);
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
    let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let parameters = if query.is_empty() { pairs(std::str::from_utf8(&body).unwrap()) } else { pairs(&query) };
    shared.book.lock().unwrap().asked.push(Asked { path: path.clone(), parameters: parameters.clone() });
    match path.as_str() {
        "/authorize" => shared.authorize(&parameters, &origin),
        "/token" => shared.token(&parameters),
        "/register" => answer(201, &json!({ "client_id": "registered" }).to_string()),
        path => match shared.setup.documents.get(path) {
            Some(document) => answer(200, &document.replace("{origin}", &origin)),
            None => answer(404, "{}"),
        },
    }
}

fn query(uri: &Uri) -> String {
    uri.query().unwrap_or_default().to_owned()
}

fn answer(status: u16, body: &str) -> Response {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(Body::from(body.to_owned())).unwrap()
}

impl Shared {
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

    fn token(&self, parameters: &HashMap<String, String>) -> Response {
        let mut book = self.book.lock().unwrap();
        let scopes = match parameters["grant_type"].as_str() {
            "authorization_code" => book.codes.remove(&parameters["code"]).and_then(|code| {
                let shown = URL_SAFE_NO_PAD.encode(Sha256::digest(&parameters["code_verifier"]));
                (shown == code.challenge).then_some(code.scopes)
            }),
            _ => book.refresh.remove(&parameters["refresh_token"]),
        };
        let Some(scopes) = scopes else { return answer(400, &json!({ "error": "invalid_grant" }).to_string()) };
        book.given += 1;
        let (access, refresh) = (format!("access-{}", book.given), format!("refresh-{}", book.given));
        book.access.insert(access.clone(), scopes.clone());
        book.refresh.insert(refresh.clone(), scopes.clone());
        let tokens = json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": refresh, "scope": scopes.join(" "),
        });
        answer(200, &tokens.to_string())
    }
}
