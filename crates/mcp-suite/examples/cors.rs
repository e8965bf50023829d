//! A server that the web pages of one origin may call, behind a check of who calls.
//!
//! The browser asks before it sends a request with such headers, and does so without credentials: the layer that answers
//! it is outside of the one that checks them. Run it with `cargo run -p mcp-suite --example cors`.

use std::{error::Error, time::Duration};

use mcp_suite::{
    Principal, Server, Tool, ToolError,
    http::{
        self, LAST_EVENT_ID, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, Routes,
        axum::{
            Router,
            extract::Request,
            http::{
                HeaderValue, Method, StatusCode,
                header::{
                    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
                    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CONTENT_TYPE,
                    WWW_AUTHENTICATE,
                },
            },
            middleware::{self, Next},
            response::{IntoResponse, Response},
        },
    },
    implementation,
    origin::Origins,
};
use tokio::net::TcpListener;
use tower_http::cors::CorsLayer;

/// The routes of a server, for pages of `origin` and for clients that are no pages. The layer that is added last is met
/// first.
pub(crate) fn app(server: Server, origin: &str) -> Result<Router, Box<dyn Error>> {
    // The server refuses pages of other origins itself, which CORS does not.
    let routes = Routes::new(server).origins(Origins::list([origin])?).into_router();
    Ok(routes
        .layer(middleware::from_fn(authenticate))
        .layer(cors(origin.parse()?))
        .layer(middleware::map_response(nothing_for_others)))
}

/// What a page of that origin may send, and what of the answer it may read.
fn cors(origin: HeaderValue) -> CorsLayer {
    CorsLayer::new()
        .allow_origin([origin])
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        // A tool with `x-mcp-header` needs its `Mcp-Param-*` here too.
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            LAST_EVENT_ID,
            MCP_METHOD,
            MCP_NAME,
            MCP_PROTOCOL_VERSION,
            MCP_SESSION_ID,
        ])
        .expose_headers([MCP_SESSION_ID, WWW_AUTHENTICATE])
        .max_age(Duration::from_secs(3600))
}

/// The layer says what may be done even to those who may do nothing.
async fn nothing_for_others(mut response: Response) -> Response {
    let headers = response.headers_mut();
    if !headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        for name in [
            ACCESS_CONTROL_ALLOW_HEADERS,
            ACCESS_CONTROL_ALLOW_METHODS,
            ACCESS_CONTROL_EXPOSE_HEADERS,
            ACCESS_CONTROL_MAX_AGE,
        ] {
            headers.remove(name);
        }
    }
    response
}

/// Lets nobody through without a token, and tells the routes whose it is: sessions belong to that principal.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let credentials = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match credentials.and_then(|value| value.strip_prefix("Bearer ")).and_then(owner) {
        Some(id) => {
            request.extensions_mut().insert(Principal::new(id));
            next.run(request).await
        }
        None => (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")]).into_response(),
    }
}

/// Whose token that is. A real server checks a signature, or asks whoever gave it out.
fn owner(token: &str) -> Option<&'static str> {
    match token {
        "token-of-ada" => Some("ada"),
        "token-of-bob" => Some("bob"),
        _ => None,
    }
}

async fn greet() -> Result<&'static str, ToolError> {
    Ok("Good day")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder(implementation!()).tool(Tool::new("greet", greet)).build();
    let (limits, app) = (server.limits().clone(), app(server, "http://localhost:6274")?);
    Ok(http::serve_service(app, TcpListener::bind("127.0.0.1:8080").await?, &limits).await?)
}
