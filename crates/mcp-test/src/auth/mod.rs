//! An authorization server for tests: what it knows, and what a test has it do.

mod endpoints;
mod grants;
mod key;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use mcp_http::axum::Router;
use serde_json::{Map, Value, json};

use self::grants::Given;
pub use self::key::SigningKey;
use crate::HttpServer;

/// An authorization server on a free port of 127.0.0.1, until this is dropped. It is for tests and demonstrations alone:
/// everybody is let in, as the user `ada`, with all that is asked for.
///
/// It has metadata (RFC 8414), keys that rotate, registration, and introspection; the code flow with PKCE, refresh tokens that
/// rotate, client credentials, the device flow, token exchange; and DPoP. Tokens are JWTs (RFC 9068), signed by `EdDSA`, for the
/// `resource` that was asked for.
///
/// ```
/// use mcp_test::AuthorizationServer;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let issuer = AuthorizationServer::start().await;
/// let token = issuer.token(json!({ "aud": "https://mcp.example.com/mcp", "scope": "read" }));
/// assert_eq!(token.split('.').count(), 3);
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a server that is dropped has stopped"]
pub struct AuthorizationServer {
    http: HttpServer,
    shared: Shared,
}

#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Book>>);

/// All that it knows.
#[derive(Debug, Default)]
struct Book {
    issuer: String,
    /// With their names; the last one signs.
    keys: Vec<(String, SigningKey)>,
    given: HashMap<String, Given>,
    /// The claims of each token, until it is revoked.
    tokens: HashMap<String, Value>,
    asked: Vec<String>,
    is_down: bool,
    made: usize,
}

impl AuthorizationServer {
    /// Starts one, with one key.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start() -> Self {
        let shared = Shared::default();
        let router = Router::new().fallback(endpoints::answer).with_state(shared.clone());
        let http = HttpServer::start_router(router).await;
        let server = Self { http, shared };
        server.book().issuer = server.issuer();
        server.rotate();
        server
    }

    /// Its issuer.
    #[must_use]
    pub fn issuer(&self) -> String {
        self.http.url_of("")
    }

    /// Where its keys are.
    #[must_use]
    pub fn jwks_url(&self) -> String {
        self.http.url_of("/jwks")
    }

    /// Where it is asked about tokens.
    #[must_use]
    pub fn introspection_url(&self) -> String {
        self.http.url_of("/introspect")
    }

    /// An access token with these claims in place of the usual ones: `iss`, `sub`, `client_id`, `iat`, `exp` in an hour, `jti`.
    /// One that is null is left out.
    #[must_use]
    pub fn token(&self, claims: Value) -> String {
        self.book().token(claims)
    }

    /// The name of the key that signs, and the key.
    ///
    /// # Panics
    /// Never: there always is one.
    #[must_use]
    pub fn key(&self) -> (String, SigningKey) {
        self.book().key()
    }

    /// Signs with another key from now on; those before go.
    pub fn rotate(&self) {
        let mut book = self.book();
        let name = book.name("key");
        book.keys = vec![(name, SigningKey::random())];
    }

    /// Answers everything with 503, or goes on.
    pub fn set_down(&self, is_down: bool) {
        self.book().is_down = is_down;
    }

    /// Takes a token back, which introspection alone tells.
    pub fn revoke(&self, token: &str) {
        self.book().tokens.remove(token);
    }

    /// How often that path was asked for.
    #[must_use]
    pub fn asked(&self, path: &str) -> usize {
        self.book().asked.iter().filter(|asked| *asked == path).count()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.shared.book()
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// Something that was not there before.
    fn name(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-{}", self.made)
    }

    fn key(&self) -> (String, SigningKey) {
        self.keys.last().cloned().unwrap_or_else(|| panic!("there is no key"))
    }

    fn token(&mut self, claims: Value) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let jti = self.name("token");
        let mut all = json!({
            "iss": self.issuer, "sub": "ada", "client_id": "client", "iat": now, "exp": now + 3600, "jti": jti,
        });
        if let (Value::Object(all), Value::Object(claims)) = (&mut all, claims) {
            all.extend(claims);
            all.retain(|_, value| !value.is_null());
        }
        let (kid, key) = self.key();
        let token = key.sign(&json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": kid }), &all);
        self.tokens.insert(token.clone(), all);
        token
    }

    /// The set of its keys.
    fn key_set(&self) -> Value {
        let named = self.keys.iter().map(|(kid, key)| {
            let mut jwk = key.jwk().as_object().cloned().unwrap_or_else(Map::new);
            jwk.insert("kid".to_owned(), json!(kid));
            Value::Object(jwk)
        });
        json!({ "keys": named.collect::<Vec<_>>() })
    }
}
