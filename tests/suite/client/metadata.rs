//! What goes out around each request: `_meta`, headers, the session. A server or a proxy refuses what is missing here.
//!
//! Specification: *Overview, `_meta`*; *Streamable HTTP, Request Metadata*; *2025-11-25, Transports, Session Management*.

use mcp_suite::{Client, http::Http, types::Implementation};
use serde_json::json;

use super::*;
use crate::peer::{
    http::{self, Answer, HttpPeer, Request},
    memory::serve,
};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Answers whatever a client may ask, in either era.
fn anything(message: &Value) -> Vec<Value> {
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => discovered(),
        "initialize" => initialized("2025-11-25"),
        "tools/list" => json!({ "tools": [{ "name": "a", "inputSchema": { "type": "object" } }] }),
        "tools/call" => text("b"),
        "ping" => json!({}),
        _ => return Vec::new(),
    };
    vec![json!({ "id": message["id"], "result": result })]
}

/// Anything, over HTTP.
fn served(request: &Request) -> Answer {
    match anything(&request.body).pop() {
        Some(response) => Answer::result(response["result"].clone()),
        None => Answer::status(202),
    }
}

#[tokio::test(start_paused = true)]
async fn every_modern_request_says_who_asks_and_how() {
    let peer = ScriptedPeer::new([serve(anything)]);
    let me = Implementation::new("me \"quoted\"", "1.2.3").title("Größe");
    let client = Client::builder(me).connect(peer.clone()).await.unwrap();
    client.tools().await.unwrap();
    client.call::<String>("a", json!({ "x": 1 })).await.unwrap();
    client.call::<String>("a", ()).await.unwrap();
    assert_eq!(peer.methods(), ["server/discover", "tools/list", "tools/call", "tools/call"]);
    let info = json!({ "name": "me \"quoted\"", "version": "1.2.3", "title": "Größe" });
    for message in peer.received() {
        let meta = &message["params"]["_meta"];
        assert_eq!(meta[VERSION], "2026-07-28", "{message}");
        assert_eq!(meta[INFO], info, "{message}");
        assert_eq!(meta[CAPABILITIES], json!({}), "{message}");
        assert_eq!(message["jsonrpc"], "2.0");
    }
    // What is around the parameters does not displace them.
    assert_eq!(peer.received()[2]["params"]["arguments"], json!({ "x": 1 }));
    assert_eq!(peer.received()[3]["params"].get("arguments"), None);
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_says_so_once() {
    let peer = ScriptedPeer::new([serve(anything)]);
    let client = connect_in(Era::Legacy, peer.clone()).await.unwrap();
    client.tools().await.unwrap();
    client.call::<String>("a", json!({ "x": 1 })).await.unwrap();
    client.ping().await.unwrap();
    let received = peer.received();
    let params = &received[0]["params"];
    assert_eq!(params["protocolVersion"], "2025-11-25");
    assert_eq!(params["capabilities"], json!({}));
    assert_eq!(params["clientInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(peer.methods()[1..], ["notifications/initialized", "tools/list", "tools/call", "ping"]);
    for message in received {
        assert!(!message.to_string().contains("io.modelcontextprotocol"), "{message}");
    }
}

/// Were an id used twice, one of two answers would go to the wrong call.
#[tokio::test(start_paused = true)]
async fn ids_and_progress_tokens_are_used_once() {
    for era in ERAS {
        let peer = ScriptedPeer::new([serve(anything)]);
        let client = connect_in(era, peer.clone()).await.unwrap();
        for _ in 0..5 {
            client.call::<String>("a", ()).await.unwrap();
            client.clone().tools().await.unwrap();
        }
        let received = peer.received();
        let mut ids: Vec<_> = received.iter().filter_map(|m| m.get("id")).map(Value::to_string).collect();
        let mut tokens: Vec<_> =
            received.iter().filter_map(|m| m["params"]["_meta"].get("progressToken")).map(Value::to_string).collect();
        assert_eq!((ids.len(), tokens.len()), (11, 5));
        ids.dedup();
        tokens.dedup();
        assert_eq!((ids.len(), tokens.len()), (11, 5), "{ids:?} {tokens:?}");
    }
}

fn decoded(header: &str) -> String {
    let encoded = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    encoded.map_or(header.to_owned(), |encoded| String::from_utf8(base64(encoded)).unwrap())
}

/// Base64 by the book: the tests must not believe the code that they test.
fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text
        .trim_end_matches('=')
        .bytes()
        .map(|byte| u32::try_from(ALPHABET.iter().position(|digit| *digit == byte).expect("a Base64 digit")).unwrap());
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in digits {
        (bits, held) = (bits << 6 | digit, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    bytes
}

#[tokio::test]
async fn modern_headers_say_what_the_body_says() {
    let server = HttpPeer::start(served).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    client.tools().await.unwrap();
    for name in ["a", "a/b", "a b"] {
        client.call::<String>(name, json!({ "name": "inner" })).await.unwrap();
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for request in requests {
        let method = request.method();
        assert_eq!((request.verb.as_str(), request.path.as_str()), ("POST", "/mcp"));
        assert_eq!(request.header("MCP-Protocol-Version"), Some("2026-07-28"), "{method}");
        assert_eq!(request.body["params"]["_meta"][VERSION], "2026-07-28", "{method}");
        assert_eq!(request.header("Mcp-Method"), Some(method));
        assert_eq!(request.header("Mcp-Name").map(decoded).as_deref(), request.body["params"]["name"].as_str());
        assert_eq!(request.header("Mcp-Session-Id"), None, "{method}");
    }
}

/// A proxy in front of the server routes by these; both eras send them, and in each the same.
#[tokio::test]
async fn c054_content_type_and_accept_are_exactly_what_the_specification_says() {
    for era in ERAS {
        let server = HttpPeer::start(served).await;
        let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
        client.call::<String>("a", ()).await.unwrap();
        for request in server.requests() {
            assert_eq!(request.header("Content-Type"), Some("application/json"), "{}", request.method());
            let accept = request.header("Accept").unwrap();
            let mut types: Vec<_> = accept.split(',').map(str::trim).collect();
            types.sort_unstable();
            assert_eq!(types, ["application/json", "text/event-stream"], "{}", request.method());
        }
    }
}

/// The name of a prompt and the URI of a resource are mirrored by the same rule.
#[tokio::test]
async fn c101_prompts_and_resources_are_named_by_the_same_rule() {
    let server = HttpPeer::start(|request: &Request| match request.method() {
        "prompts/get" => Answer::result(json!({ "messages": [] })),
        "resources/read" => Answer::result(json!({ "contents": [] })),
        _ => served(request),
    })
    .await;
    let client = soon(over_http(&server.url())).await.unwrap();
    let names = [
        ("file:///docs/größe.txt", true),
        ("=?base64?QUJD?=", true),
        (" padded ", true),
        ("a\r\nX-Evil: 1", true),
        ("名", true),
        ("x:y?a=1&b=%20#c", false),
        ("a b", false),
    ];
    for (name, is_wrapped) in names {
        client.get_prompt(name, ()).await.unwrap();
        client.read_resource(name).await.unwrap();
        let requests = server.requests();
        for (request, member) in requests[requests.len() - 2..].iter().zip(["name", "uri"]) {
            let header = request.header("Mcp-Name").unwrap();
            assert_eq!(header.starts_with("=?base64?"), is_wrapped, "{name:?} went out as {header:?}");
            assert_eq!(if is_wrapped { decoded(header) } else { header.to_owned() }, name);
            assert_eq!(request.body["params"][member], name);
            assert_eq!(request.header("X-Evil"), None);
        }
    }
}

#[tokio::test]
async fn a_session_is_echoed_after_initialize_and_ended_once() {
    let rule = http::with_session(http::legacy("2025-11-25", served));
    // One that comes before there can be a session is none.
    let server = HttpPeer::start(move |request| match request.method() {
        "server/discover" => rule(request).header("Mcp-Session-Id", "early"),
        _ => rule(request),
    })
    .await;
    let client = soon(over_http(&server.url())).await.unwrap();
    client.tools().await.unwrap();
    client.call::<String>("a", ()).await.unwrap();
    client.disconnect().await;
    client.disconnect().await;
    assert_eq!(
        server.methods(),
        ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"]
    );
    for (index, request) in server.requests().iter().enumerate() {
        let session = (index > 1).then_some("s-1");
        assert_eq!(request.header("Mcp-Session-Id"), session, "{}", request.method());
        assert_eq!(request.path, "/mcp");
    }
}

/// Without it a server takes each of them for 2025-03-26, or refuses it.
///
/// Specification: *2025-11-25, Transports, Protocol Version Header*: on all requests after `initialize`.
#[tokio::test]
async fn the_version_goes_with_every_request_after_the_handshake() {
    let server = HttpPeer::start(http::with_session(http::legacy("2025-06-18", served))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    client.call::<String>("a", ()).await.unwrap();
    client.disconnect().await;
    let requests = server.requests();
    assert_eq!(requests[1].method(), "initialize");
    for request in &requests[2..] {
        let version = request.header("MCP-Protocol-Version");
        assert_eq!(version, Some("2025-06-18"), "{} {}", request.verb, request.method());
    }
}

/// What the server asks on a stream is answered by a POST, which is a request like any other.
#[tokio::test]
async fn the_version_and_the_session_go_with_answers_to_the_server() {
    let rule = http::legacy("2025-06-18", |request| match request.method() {
        "tools/call" => Answer::stream([
            json!({ "id": "from-server", "method": "ping" }),
            json!({ "id": "$id", "result": text("b") }),
        ]),
        _ => Answer::status(202),
    });
    let server = HttpPeer::start(http::with_session(rule)).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    client.call::<String>("a", ()).await.unwrap();
    server.until("the ping is answered", |all| all.iter().any(|r| r.body["id"] == "from-server")).await;
    let requests = server.requests();
    let pong = requests.iter().find(|request| request.body["id"] == "from-server").unwrap();
    assert_eq!(pong.body["result"], json!({}));
    assert_eq!(pong.header("Mcp-Session-Id"), Some("s-1"));
    assert_eq!(pong.header("MCP-Protocol-Version"), Some("2025-06-18"));
}

#[tokio::test]
async fn without_a_session_none_is_echoed_and_none_ended() {
    let server = HttpPeer::start(http::legacy("2025-11-25", served)).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    client.call::<String>("a", ()).await.unwrap();
    client.disconnect().await;
    assert!(server.requests().iter().all(|request| request.header("Mcp-Session-Id").is_none()));
    assert!(!server.methods().contains(&"DELETE".into()), "{:?}", server.methods());
}

/// A server that still sends one in the modern era gets nothing back: there are no sessions in it.
#[tokio::test]
async fn a_session_id_in_the_modern_era_is_ignored() {
    let server = HttpPeer::start(|request| served(request).header("Mcp-Session-Id", "s-1")).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    client.call::<String>("a", ()).await.unwrap();
    client.disconnect().await;
    assert_eq!(server.methods(), ["server/discover", "tools/call"]);
    assert!(server.requests().iter().all(|request| request.header("Mcp-Session-Id").is_none()));
}

/// Servers may refuse to end a session (405), know it no more (404), or not answer at all.
#[tokio::test]
async fn the_end_of_a_session_is_a_courtesy() {
    for farewell in [Answer::status(405), Answer::status(404), Answer::hang_up(), Answer::silence()] {
        let said = format!("{farewell:?}");
        let rule = http::with_session(http::legacy("2025-11-25", served));
        let rule = move |request: &Request| if request.verb == "DELETE" { farewell.clone() } else { rule(request) };
        let server = HttpPeer::start(rule).await;
        let client = soon(over_http(&server.url())).await.unwrap();
        soon(client.disconnect()).await;
        assert_eq!(server.methods().last().unwrap(), "DELETE", "{said}");
    }
}

/// Headers of the user's own go with every request, the last one among them.
#[tokio::test]
async fn headers_of_the_users_own_go_with_every_request() {
    for era in ERAS {
        let server = HttpPeer::start(http::with_session(served)).await;
        let authorization = ::http::HeaderValue::from_static("Bearer t");
        let transport = Http::new(server.url()).header(::http::header::AUTHORIZATION, authorization);
        let client = soon(connect_in(era, transport)).await.unwrap();
        client.call::<String>("a", ()).await.unwrap();
        client.disconnect().await;
        assert!(server.requests().len() >= 2);
        for request in server.requests() {
            assert_eq!(request.header("Authorization"), Some("Bearer t"), "{} {}", request.verb, request.method());
        }
    }
}

/// A server whose list has one tool, with these properties.
fn annotated(properties: Value) -> impl Fn(&Request) -> Answer + Send + Sync + 'static {
    move |request| match request.method() {
        "tools/list" => {
            let tools = ["a", "b"]
                .map(|name| json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } }));
            Answer::result(json!({ "tools": tools }))
        }
        _ => served(request),
    }
}

#[tokio::test]
async fn annotated_arguments_stand_in_headers_once_the_tool_was_listed() {
    let properties = json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "n": { "type": "integer", "x-mcp-header": "N" },
        "deep": { "type": "object", "properties": { "dry": { "type": "boolean", "x-mcp-header": "Method" } } },
        "query": { "type": "string" },
    });
    let server = HttpPeer::start(annotated(properties)).await;
    let client = connect_in(Era::Modern, Http::new(server.url())).await.unwrap();
    let arguments = json!({ "region": "Hello, 世界", "n": 42, "deep": { "dry": false }, "query": "q" });
    client.call::<String>("a", &arguments).await.unwrap();
    client.tools().await.unwrap();
    client.call::<String>("a", &arguments).await.unwrap();
    client.call::<String>("a", json!({ "region": null, "n": "", "deep": [] })).await.unwrap();
    client.call::<String>("c", &arguments).await.unwrap();
    let params = |request: &Request| -> Vec<(String, String)> {
        let headers = request.headers.iter().filter(|(name, _)| name.starts_with("mcp-param-"));
        let mut headers: Vec<_> = headers.cloned().collect();
        headers.sort();
        headers
    };
    let calls: Vec<_> = server.requests().into_iter().filter(|request| request.method() == "tools/call").collect();
    let pair = |name: &str, value: &str| (format!("mcp-param-{name}"), value.to_owned());
    assert_eq!(params(&calls[0]), []);
    assert_eq!(
        params(&calls[1]),
        [pair("method", "false"), pair("n", "42"), pair("region", "=?base64?SGVsbG8sIOS4lueVjA==?=")]
    );
    assert_eq!(calls[1].header("mcp-method"), Some("tools/call"));
    assert_eq!(params(&calls[2]), [pair("n", "=?base64??=")]);
    assert_eq!(params(&calls[3]), []);
}
