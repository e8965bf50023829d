//! What handlers, layers and filters know of who calls, on every wire.

use axum::middleware::{Next, from_fn};
use http::{HeaderName, HeaderValue};
use mcp_core::{
    Client, Context, Exchange, Principal, Revision, Server, Tool, ToolError, implementation,
    jsonrpc::Raw,
    memory,
    server::{Arrival, Introduction, Peer, serve_peer},
    types::TraceContext,
};
use mcp_http::Http;
use mcp_test::{HttpServer, RawClient};
use mcp_ws::{Ws, WsLayer};
use serde_json::{Value, json};
use tower::util::MapRequestLayer;

use super::{call, text};

/// Who calls, and the header `x-flavour` of the request or upgrade.
async fn whoami(context: Context) -> Result<String, ToolError> {
    let who = context.principal().map_or("nobody", Principal::id);
    let tenant = context.principal().and_then(|principal| principal.claims()?.member("tenant"));
    let flavour = context.request_head().and_then(|head| head.header("X-Flavour"));
    let parts = mcp_http::request_parts(&context).or(mcp_ws::request_parts(&context));
    let path = parts.map_or("-", |parts| parts.uri.path());
    let tenant = tenant.map_or_else(|| "-".into(), |tenant| tenant.as_str().to_owned());
    Ok(format!("{who} of {tenant}, {} at {path}", flavour.unwrap_or("plain")))
}

fn ada() -> Principal {
    Principal::new("ada").with_claims(Raw::parse(r#"{"tenant":"x"}"#).unwrap())
}

fn server() -> Server {
    Server::builder(implementation!()).tool(Tool::new("whoami", whoami)).build()
}

/// One that a user of an authenticating layer would write.
async fn authenticate(mut request: axum::extract::Request, next: Next) -> axum::response::Response {
    if request.headers().contains_key("authorization") {
        request.extensions_mut().insert(ada());
    }
    next.run(request).await
}

async fn asked(client: &Client) -> String {
    client.call("whoami", ()).await.unwrap()
}

#[tokio::test]
async fn a_layer_in_front_of_http_says_who_calls() {
    let router = mcp_http::routes(server()).layer(from_fn(authenticate));
    let served = HttpServer::start_router(router).await;
    let known = Http::new(served.url())
        .header(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer x"))
        .header(HeaderName::from_static("x-flavour"), HeaderValue::from_static("mint"));
    assert_eq!(asked(&Client::connect(known).await.unwrap()).await, r#"ada of "x", mint at /mcp"#);
    let unknown = Client::connect(Http::new(served.url())).await.unwrap();
    assert_eq!(asked(&unknown).await, "nobody of -, plain at /mcp");
}

#[tokio::test]
async fn a_layer_in_front_of_a_socket_says_who_calls_on_it() {
    let router = axum::Router::new().layer(WsLayer::new(server())).layer(from_fn(authenticate));
    let served = HttpServer::start_router(router).await;
    let url = served.url().replace("http://", "ws://");
    let known = Ws::new(&url)
        .header(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer x"))
        .header(HeaderName::from_static("x-flavour"), HeaderValue::from_static("mint"));
    assert_eq!(asked(&Client::connect(known).await.unwrap()).await, r#"ada of "x", mint at /mcp"#);
    assert_eq!(asked(&Client::connect(Ws::new(&url)).await.unwrap()).await, "nobody of -, plain at /mcp");
}

#[tokio::test]
async fn whoever_serves_a_wire_says_who_is_at_its_end() {
    let (here, there) = memory();
    let mut client = RawClient::over(here, serve_peer(server(), there, Peer::new().principal(Some(ada()))));
    client.open(Revision::V2025_06_18).await.unwrap();
    assert_eq!(text(&client.call("whoami", json!({})).await), r#"ada of "x", plain at -"#);
    assert!(!format!("{:?}", ada()).contains("tenant"), "claims stay out of logs");
}

/// Answers one message for somebody.
async fn ask(server: &Server, peer: &Peer, message: &str) -> Value {
    let request = serde_json::from_str(message).map(|message: Value| {
        let params = Raw::encode(&message["params"]).unwrap();
        mcp_jsonrpc::Request::new(1u64.into(), message["method"].as_str().unwrap(), Some(params))
    });
    let reply = match server.accept(request.unwrap(), Arrival::alone().of(peer)) {
        Ok(exchange) => server.call(exchange).await,
        Err(reply) => reply,
    };
    serde_json::from_slice(&server.encode(&reply)).unwrap()
}

#[derive(Clone, Debug)]
struct Tier(&'static str);

/// What a layer finds out, handlers know; and so is what the server was built with, by its type.
#[tokio::test]
async fn layers_hand_values_to_handlers_and_the_server_has_some_of_its_own() {
    struct Greeting(&'static str);
    async fn greet(context: Context) -> Result<String, ToolError> {
        let tier = context.extension::<Tier>().map_or("none", |tier| tier.0);
        Ok(format!("{} {tier} {}", context.state::<Greeting>()?.0, context.state::<u8>()?))
    }
    async fn lost(context: Context) -> Result<u64, ToolError> {
        Ok(*context.state::<u64>()?)
    }
    let tiers = MapRequestLayer::new(|mut exchange: Exchange| {
        exchange.extensions_mut().insert(Tier("gold"));
        exchange
    });
    let server = Server::builder(implementation!())
        .tool(Tool::new("greet", greet))
        .tool(Tool::new("lost", lost))
        .state(Greeting("hello"))
        .state(1u8)
        .state(2u8)
        .layer(tiers)
        .build();
    let answer = ask(&server, &Peer::new(), &call(1, "greet", json!({}))).await;
    assert_eq!(text(&answer), "hello gold 2");
    assert_eq!(server.state::<u8>(), Some(&2));
    let answer = ask(&server, &Peer::new(), &call(1, "lost", json!({}))).await;
    assert!(answer["result"]["isError"] == true && !answer.to_string().contains("u64"), "{answer}");
}

#[tokio::test]
async fn each_request_has_a_place_of_its_own_and_may_be_part_of_a_trace() {
    async fn place(context: Context) -> Result<String, ToolError> {
        let TraceContext { traceparent, baggage, .. } = context.trace_context();
        Ok(format!("{} {traceparent:?} {baggage:?}", context.sequence()))
    }
    let server = Server::builder(implementation!()).tool(Tool::new("place", place)).build();
    let mut traced: Value = serde_json::from_str(&call(1, "place", json!({}))).unwrap();
    let plain = ask(&server, &Peer::new(), &traced.to_string()).await;
    assert_eq!(text(&plain), "1 None None");
    traced["params"]["_meta"]["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into();
    traced["params"]["_meta"]["baggage"] = 5.into();
    let answer = ask(&server, &Peer::new(), &traced.to_string()).await;
    assert_eq!(text(&answer), "2 Some(\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\") None");
}

/// What a server says of itself can depend on who comes, in both eras.
#[tokio::test]
async fn a_server_introduces_itself_to_each_client_in_its_own_way() {
    let server = Server::builder(implementation!())
        .instructions("for all")
        .introduce(|exchange: &Exchange, mut introduction: Introduction| {
            if let Some(client) = exchange.client_info() {
                introduction.instructions = Some(format!("for {} in {}", client.name, exchange.revision()));
                introduction.info = introduction.info.description("a greeting");
                introduction.meta = Raw::parse(r#"{"k":1}"#).ok();
            }
            introduction
        })
        .build();
    let hello = |client: Value| {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        json!({ "method": "initialize", "params": params }).to_string()
    };
    let answer = ask(&server, &Peer::new(), &hello(json!({ "name": "ada", "version": "1" }))).await;
    assert_eq!(answer["result"]["instructions"], "for ada in 2025-11-25");
    assert_eq!(answer["result"]["serverInfo"]["description"], "a greeting");
    assert_eq!(answer["result"]["_meta"], json!({ "k": 1 }));
    let mut meta = super::modern_meta();
    let discover = |meta: &Value| json!({ "method": "server/discover", "params": { "_meta": meta } }).to_string();
    let answer = ask(&server, &Peer::new(), &discover(&meta)).await;
    assert_eq!(answer["result"]["instructions"], "for all");
    meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "bob", "version": "1" });
    let answer = ask(&server, &Peer::new(), &discover(&meta)).await;
    assert_eq!(answer["result"]["instructions"], "for bob in 2026-07-28");
    assert_eq!((&answer["result"]["_meta"]["k"], &answer["result"]["cacheScope"]), (&json!(1), &json!("private")));

    let bad = Server::builder(implementation!()).introduce(|_: &Exchange, _| panic!("a secret")).build();
    let answer = ask(&bad, &Peer::new(), &hello(json!({ "name": "ada" }))).await;
    assert!(answer["error"]["code"] == -32603 && !answer.to_string().contains("secret"), "{answer}");
}
