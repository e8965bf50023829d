//! The layer in front of a server's routes and sockets.
//!
//! Specification: *Authorization*; *RFC 6750*; *RFC 9728*.

use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use mcp_core::{BoxFuture, Fault};
use tower_layer::Layer;
use tower_service::Service;
use url::Position;

use super::{
    authorization::{self, Sent},
    dpop::{self, Dpop, Target},
    metadata::{ResourceMetadata, WELL_KNOWN, path_of},
    misconfigured::Misconfigured,
    refusal::{self, Refusal},
    validator::{Scheme, Validator, Verified},
};
use crate::challenge::Challenge;

/// A layer that lets in who has good credentials, tells what is behind it who that is, and tells everybody else what to do.
///
/// Who is let in becomes the [`Principal`](mcp_core::Principal) in the request's extensions, and the credentials are taken
/// out of the request: no handler can pass them on. WebSocket upgrades are requests like any other. Where the metadata names an
/// authorization server, it is served at its two well-known paths, without credentials and to pages of any origin.
///
/// | status | when | challenge |
/// |---|---|---|
/// | 400 | an `Authorization` header that is malformed, or more than one | `invalid_request` |
/// | 401 | no credentials, or of another scheme | without an error |
/// | 401 | a token that is no good; a bound one that comes as `Bearer` | `invalid_token` |
/// | 401 | a proof that is no good, or lacks the nonce | `invalid_dpop_proof`, `use_dpop_nonce` |
/// | 403 | scopes are missing | `insufficient_scope`, with all that are needed |
/// | 503 | the credentials cannot be judged at the moment | none |
///
/// ```
/// use mcp_auth::{Jwt, ResourceMetadata, ResourceServer};
///
/// # fn example() -> Result<(), mcp_auth::Misconfigured> {
/// let resource = "https://mcp.example.com/mcp";
/// let tokens = Jwt::builder(resource).issuer("https://as.example.com", "https://as.example.com/jwks").build()?;
/// let metadata = ResourceMetadata::new(resource).authorization_server("https://as.example.com");
/// let guard = ResourceServer::builder(metadata, tokens).scopes(["mcp"]).build()?;
/// // mcp_http::Routes::new(server).into_router().layer(guard)
/// # drop(guard); Ok(()) }
/// ```
#[derive(Clone)]
pub struct ResourceServer(Arc<Guard>);

/// Builds a [`ResourceServer`].
#[must_use = "nothing is guarded before it is built"]
pub struct ResourceServerBuilder {
    metadata: ResourceMetadata,
    validator: Box<dyn Validator>,
    scopes: Vec<String>,
    routes: Vec<(String, Vec<String>)>,
    dpop: Option<Dpop>,
    most_bytes: usize,
}

struct Guard {
    validator: Box<dyn Validator>,
    /// The metadata, where it is served, and where that is.
    document: Option<String>,
    paths: [String; 2],
    /// What a request's path is put behind, and what may be its whole.
    origin: String,
    resource: String,
    challenges: Vec<Challenge>,
    scopes: Vec<String>,
    routes: Vec<(String, Vec<String>)>,
    dpop: Option<Dpop>,
    most_bytes: usize,
}

impl ResourceServer {
    /// A layer for the resource that `metadata` is about, which lets in whom `validator` knows.
    pub fn builder(metadata: ResourceMetadata, validator: impl Validator) -> ResourceServerBuilder {
        ResourceServerBuilder {
            metadata,
            validator: Box::new(validator),
            scopes: Vec::new(),
            routes: Vec::new(),
            dpop: None,
            most_bytes: 8 << 10,
        }
    }
}

impl ResourceServerBuilder {
    /// Sets the scopes that everything needs, which a client is told with its first 401. Default: none.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Wants these scopes beside them for `path` and what is below it. What tools, prompts and resources need is said by
    /// [`Scopes`](crate::Scopes).
    pub fn route<S: Into<String>>(mut self, path: &str, scopes: impl IntoIterator<Item = S>) -> Self {
        self.routes.push((path.trim_end_matches('/').to_owned(), scopes.into_iter().map(Into::into).collect()));
        self
    }

    /// Takes tokens that are bound to a key, with proofs that the client has it. Default: none are taken.
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = Some(dpop);
        self
    }

    /// Sets how long credentials may be, in bytes. Default: 8 KiB.
    pub fn token_bytes(mut self, most: usize) -> Self {
        self.most_bytes = most;
        self
    }

    /// The layer.
    ///
    /// # Errors
    /// [`Misconfigured::Resource`] where the metadata is about what cannot be one.
    pub fn build(self) -> Result<ResourceServer, Misconfigured> {
        let url = self.metadata.url()?;
        let origin = url[..Position::BeforePath].to_owned();
        let path = path_of(url.path());
        let mut metadata = self.metadata;
        if let Some(dpop) = &self.dpop {
            metadata = metadata.with("dpop_signing_alg_values_supported", dpop.algorithms());
            metadata = metadata.with("dpop_bound_access_tokens_required", dpop.is_required());
        }
        let place = metadata.is_served().then(|| format!("{origin}{path}"));
        let challenges = challenges(self.validator.scheme(), self.dpop.as_ref(), place.as_deref());
        let document = metadata.is_served().then(|| serde_json::to_string(&metadata)).transpose();
        Ok(ResourceServer(Arc::new(Guard {
            validator: self.validator,
            document: document.map_err(|error| Misconfigured::Local(error.to_string()))?,
            paths: [path, WELL_KNOWN.to_owned()],
            resource: metadata.resource().to_owned(),
            origin,
            challenges,
            scopes: self.scopes,
            routes: self.routes,
            dpop: self.dpop,
            most_bytes: self.most_bytes,
        })))
    }
}

/// What the server takes, in the order in which it is preferred.
fn challenges(scheme: Scheme, dpop: Option<&Dpop>, place: Option<&str>) -> Vec<Challenge> {
    let at = |challenge: Challenge| match place {
        Some(place) => challenge.with("resource_metadata", place),
        None => challenge,
    };
    let bearer = at(Challenge::bearer());
    match (scheme, dpop) {
        (Scheme::Basic, _) => vec![Challenge::new("Basic").with("realm", "mcp").with("charset", "UTF-8")],
        (Scheme::Bearer, None) => vec![bearer],
        (Scheme::Bearer, Some(dpop)) => {
            let bound = at(Challenge::new("DPoP").with("algs", &dpop.algorithms().join(" ")));
            if dpop.is_required() { vec![bound] } else { vec![bound, bearer] }
        }
    }
}

impl Guard {
    /// Whose request it is. What proved it is no part of the request any more.
    async fn admit(&self, parts: &mut Parts) -> Result<(), Refusal> {
        let sent = authorization::read(&parts.headers)?;
        let (Sent::Bearer(credentials) | Sent::Dpop(credentials) | Sent::Basic(credentials)) =
            sent.ok_or(Refusal::NoCredentials)?;
        if credentials.len() > self.most_bytes {
            return Err(Refusal::Token("the token is too long".into()));
        }
        let is_taken = match sent {
            Some(Sent::Basic(_)) => self.validator.scheme() == Scheme::Basic,
            _ => self.validator.scheme() == Scheme::Bearer,
        };
        if !is_taken {
            return Err(Refusal::NoCredentials);
        }
        let verified = self.validator.validate(credentials).await?;
        match sent {
            Some(Sent::Dpop(token)) => self.check_proof(parts, token, &verified)?,
            _ => self.check_unbound(&verified)?,
        }
        let needed = self.needed(parts.uri.path());
        if !verified.claims.allow(&needed) {
            return Err(Refusal::Scope(needed));
        }
        parts.headers.remove(header::AUTHORIZATION);
        parts.headers.remove(dpop::DPOP);
        parts.extensions.insert(verified.claims.into_principal(verified.id));
        Ok(())
    }

    fn check_proof(&self, parts: &Parts, token: &str, verified: &Verified) -> Result<(), Refusal> {
        let Some(dpop) = &self.dpop else { return Err(Refusal::NoCredentials) };
        let bound = verified.claims.thumbprint().map_err(|why| Refusal::Token(why.into()))?;
        let bound = bound.ok_or(Refusal::Token("the token is bound to no key".into()))?;
        let seen = format!("{}{}", self.origin, parts.uri.path());
        let urls = [seen.as_str(), &self.resource];
        dpop.check(&parts.headers, &Target { method: &parts.method, urls, token, bound })
    }

    /// A bound token that whoever found it could use would not be bound.
    fn check_unbound(&self, verified: &Verified) -> Result<(), Refusal> {
        let bound = verified.claims.thumbprint().map_err(|why| Refusal::Token(why.into()))?;
        match bound {
            Some(_) => Err(Refusal::Token("the token is bound to a key: send it as DPoP, with a proof".into())),
            None if self.dpop.as_ref().is_some_and(Dpop::is_required) => {
                Err(Refusal::Token("only tokens that are bound to a key are taken".into()))
            }
            None => Ok(()),
        }
    }

    fn needed(&self, path: &str) -> Vec<String> {
        let is_below =
            |route: &str| path.strip_prefix(route).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let more = self.routes.iter().filter(|(route, _)| is_below(route)).flat_map(|(_, scopes)| scopes);
        let mut needed = self.scopes.clone();
        for scope in more {
            if !needed.contains(scope) {
                needed.push(scope.clone());
            }
        }
        needed
    }

    fn refuse<B: From<String>>(&self, refusal: &Refusal, path: &str) -> Response<B> {
        tracing::debug!(reason = %refusal, "a request was not let in");
        let scopes = self.needed(path).join(" ");
        let challenges =
            self.challenges.iter().cloned().map(|challenge| match scopes.is_empty() || challenge.is("Basic") {
                true => challenge,
                false => challenge.with("scope", &scopes),
            });
        refusal.answer(challenges)
    }

    /// The metadata, if that is what is asked for.
    fn metadata<B: From<String>>(&self, parts: &Parts) -> Option<Response<B>> {
        let document = self.document.as_ref().filter(|_| self.paths.iter().any(|path| path == parts.uri.path()))?;
        let (status, body) = match parts.method {
            Method::GET => (StatusCode::OK, document.clone()),
            Method::HEAD => (StatusCode::OK, String::new()),
            Method::OPTIONS => (StatusCode::NO_CONTENT, String::new()),
            _ => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
        };
        let mut response = Response::new(B::from(body));
        *response.status_mut() = status;
        let open = [
            (header::CONTENT_TYPE, "application/json"),
            (header::CACHE_CONTROL, "public, max-age=300"),
            (header::ALLOW, "GET, HEAD, OPTIONS"),
            // Clients in browsers read it before they have any credentials, and send headers of their own.
            (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "*"),
        ];
        response.headers_mut().extend(open.map(|(name, value)| (name, HeaderValue::from_static(value))));
        Some(response)
    }

    /// Adds what a client has to do, where a call was refused for the scopes that it needs.
    fn explain<B>(&self, response: &mut Response<B>) {
        if let Some(Fault::InsufficientScope(scopes)) = response.extensions().get::<Fault>() {
            let challenges = refusal::missing(scopes, self.challenges.iter().cloned());
            refusal::challenge(response.headers_mut(), challenges);
        }
    }
}

impl<S> Layer<S> for ResourceServer {
    type Service = ResourceService<S>;

    fn layer(&self, inner: S) -> ResourceService<S> {
        ResourceService { guard: self.0.clone(), inner }
    }
}

/// What [`ResourceServer`] makes of a service.
#[derive(Clone)]
pub struct ResourceService<S> {
    guard: Arc<Guard>,
    inner: S,
}

impl<S, A, B> Service<Request<A>> for ResourceService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    A: Send + 'static,
    B: From<String> + Send,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let guard = self.guard.clone();
        // The clone that is left is not ready; the one that is taken is.
        let inner = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, inner);
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            if let Some(metadata) = guard.metadata(&parts) {
                return Ok(metadata);
            }
            if let Err(refusal) = guard.admit(&mut parts).await {
                return Ok(guard.refuse(&refusal, parts.uri.path()));
            }
            let mut response = inner.call(Request::from_parts(parts, body)).await?;
            guard.explain(&mut response);
            Ok(response)
        })
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer").field("resource", &self.0.resource).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResourceServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServerBuilder").field("metadata", &self.metadata).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for ResourceService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
