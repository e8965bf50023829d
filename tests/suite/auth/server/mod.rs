//! A server that checks who calls it, over HTTP and WebSocket, with an authorization server beside it.

mod dpop;
mod introspection;
mod keys;
mod login;
mod routes;
mod scopes;
mod tokens;

use std::net::SocketAddr;

use mcp_auth::{
    Challenge, Jwt, JwtBuilder, Network, ResourceMetadata, ResourceServer, ResourceServerBuilder, Scopes, Validator,
};
use mcp_core::{Context, Prompt, Resource, Server, Tool, ToolError, implementation};
use mcp_http::{Routes, reqwest};
use mcp_test::{AuthorizationServer, HttpServer};
use mcp_ws::WsLayer;
use serde_json::{Value, json};

/// What clients know the server by. That it listens elsewhere is what proxies do.
const RESOURCE: &str = "https://mcp.example.com/mcp";

async fn whoami(context: Context) -> Result<String, ToolError> {
    let principal = context.principal().map_or("nobody", |principal| principal.id()).to_owned();
    let leaks =
        ["authorization", "dpop"].map(|name| context.request_head().and_then(|head| head.header(name)).is_some());
    Ok(if leaks == [false, false] { principal } else { "a handler sees credentials".to_owned() })
}

/// Tools, a prompt and resources, of which some need scopes.
fn server() -> Server {
    let builder = Server::builder(implementation!())
        .tool(Tool::new("whoami", whoami))
        .tool(Tool::new("write", || async { Ok::<_, ToolError>("written") }))
        .prompt(Prompt::new("secret", |_, _| async { Ok("a prompt") }))
        .resource(Resource::fixed("x:open", "open", "text"))
        .resource(Resource::fixed("x:secret/1", "secret", "text"));
    let scopes = Scopes::new().tool("write", ["write", "audit"]).prompt("secret", ["prompts"]);
    scopes.template("x:secret/{id}", ["secrets"]).unwrap().guard(builder).build()
}

fn guarded(validator: impl Validator) -> ResourceServerBuilder {
    let metadata = ResourceMetadata::new(RESOURCE).authorization_server("https://as.example.com").scopes(["mcp"]);
    ResourceServer::builder(metadata, validator)
}

/// Tokens of `issuer`, whose keys may be asked for at any time.
fn tokens_of(issuer: &AuthorizationServer) -> JwtBuilder {
    let builder = Jwt::builder(RESOURCE).network(Network::Loopback).cooldown(std::time::Duration::ZERO);
    builder.issuer(issuer.issuer(), issuer.jwks_url())
}

/// Claims of a token that is good.
fn good() -> Value {
    json!({ "aud": RESOURCE })
}

struct Site(HttpServer);

impl Site {
    async fn start(guard: ResourceServer) -> Self {
        let routes = Routes::new(server()).stateless().into_router().layer(WsLayer::new(server()));
        Self(HttpServer::start_router(routes.layer(guard)).await)
    }

    /// One whose tokens come from `issuer`.
    async fn of(issuer: &AuthorizationServer) -> Self {
        Self::start(guarded(tokens_of(issuer).build().unwrap()).build().unwrap()).await
    }

    fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// A call with these lines of headers.
    async fn call_with(&self, headers: &[(&str, &str)], tool: &str) -> Answer {
        self.ask(headers, "tools/call", json!({ "name": tool })).await
    }

    async fn call(&self, token: &str) -> Answer {
        self.call_with(&[("authorization", &format!("Bearer {token}"))], "whoami").await
    }

    /// A modern request.
    async fn ask(&self, headers: &[(&str, &str)], method: &str, mut params: Value) -> Answer {
        params["_meta"] = crate::server::modern_meta();
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name.as_str())];
        let headers: Vec<_> = modern.iter().filter(|(_, value)| !value.is_empty()).chain(headers).copied().collect();
        self.post(&headers, json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await
    }

    async fn post(&self, headers: &[(&str, &str)], message: Value) -> Answer {
        let request = reqwest::Client::new().post(self.0.url()).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.body(message.to_string()).send().await.unwrap()).await
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    challenges: Vec<Challenge>,
    nonce: Option<String>,
    text: String,
}

impl Answer {
    async fn of(response: reqwest::Response) -> Self {
        let lines = response.headers().get_all("www-authenticate").iter().map(|line| line.to_str().unwrap().to_owned());
        Self {
            status: response.status().as_u16(),
            challenges: Challenge::parse(lines.collect::<Vec<_>>()),
            nonce: response.headers().get("dpop-nonce").map(|nonce| nonce.to_str().unwrap().to_owned()),
            text: response.text().await.unwrap(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The text of a tool's result.
    fn said(&self) -> String {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }

    /// The first challenge's parameter.
    fn challenged(&self, name: &str) -> Option<&str> {
        self.challenges.first()?.get(name)
    }

    /// The reason of a refusal, which a challenge and a JSON-RPC error give alike.
    fn refused(&self, status: u16, error: &str) -> String {
        assert_eq!((self.status, self.challenged("error")), (status, Some(error)), "{self:?}");
        let reason = self.challenged("error_description").unwrap().to_owned();
        let body = self.json();
        assert_eq!((&body["error"]["code"], &body["error"]["message"]), (&json!(-32600), &json!(reason)), "{body}");
        reason
    }
}
