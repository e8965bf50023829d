//! Peers that say back what they were told, wherever they can say anything.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    response::Response,
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use http::{HeaderMap, Uri, header};
use mcp_core::{Client, Revision, implementation};
use mcp_test::HttpServer;
use serde_json::{Value, json};
use tokio::sync::watch;
use url::form_urlencoded::byte_serialize;

use super::{BOTH, builder, has_secret, over_ws, secret, tell, tell_error, use_it, with_secrets, with_user_info};

/// The lines of a request's head that have secrets in them.
pub(super) fn lines(uri: &Uri, headers: &HeaderMap) -> Vec<String> {
    let text = |(name, value): (&_, &http::HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    let lines = headers.iter().map(text).chain([format!("no such page: {uri}")]);
    lines.filter(|line| has_secret(line)).collect()
}

/// One of these lines, each time another, and in other writing, or so that an excerpt breaks off within it.
fn echo(lines: &[String], round: usize) -> String {
    const WRITINGS: usize = 6;
    let line = &lines[round / WRITINGS % lines.len()];
    match round % WRITINGS {
        0 => line.clone(),
        1 => STANDARD.encode(line),
        2 => URL_SAFE.encode(format!("?{line}")),
        3 => byte_serialize(line.as_bytes()).collect(),
        4 => json!({ "message": line }).to_string().replace('/', "\\/"),
        _ => format!("{}{line}", "x".repeat(200 - line.len().min(200) + 3)),
    }
}

async fn serve<F: Future<Output = Response> + Send>(
    answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static,
) -> HttpServer {
    HttpServer::start_router(Router::new().fallback(answer)).await
}

fn response(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    Response::builder().status(status).header(header::CONTENT_TYPE, kind).body(body.into()).unwrap()
}

/// Refuses with that status, in what it was told.
async fn refusing(status: u16) -> HttpServer {
    let round = Arc::new(AtomicUsize::new(0));
    serve(move |request| {
        let round = round.fetch_add(1, SeqCst);
        async move {
            let lines = lines(request.uri(), request.headers());
            let kind =
                ["text/plain", "application/json", "text/html", &lines[0].replace(' ', "/")][round % 4].to_owned();
            let mut response = response(status, &kind, echo(&lines, round));
            let challenge = format!("Bearer scope=\"{0}\", realm=\"{0}\"", lines[round % lines.len()].replace('"', ""));
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge.try_into().unwrap());
            response
        }
    })
    .await
}

/// Points elsewhere, by what it was told.
async fn redirecting(status: u16) -> HttpServer {
    let round = Arc::new(AtomicUsize::new(0));
    serve(move |request| {
        let round = round.fetch_add(1, SeqCst);
        async move {
            let query = request.uri().query().unwrap_or_default().replace("key=", "");
            let to = [
                format!("https://{query}.example/{query}?{query}"),
                format!("https://{query}@host.example/"),
                format!("{query}:{query}"),
                format!("/{query}?{query}"),
            ];
            let mut response = response(status, "text/plain", "");
            response.headers_mut().insert(header::LOCATION, to[round % 4].clone().try_into().unwrap());
            response
        }
    })
    .await
}

/// As many scenarios as it has gone through.
pub(super) async fn refusals() -> usize {
    let mut scenarios = 0;
    for (status, rounds) in [(400, 40), (401, 12), (403, 12), (404, 12), (409, 6), (500, 12), (503, 6), (200, 12)] {
        let served = refusing(status).await;
        for round in 0..rounds {
            let builder =
                if round % 2 == 0 { builder(BOTH[round / 2 % 2]) } else { Client::builder(implementation!()) };
            match round % 3 {
                0 => use_it(builder, with_secrets(&served.url())).await,
                1 => use_it(builder, with_user_info(&served.url())).await,
                _ => use_it(builder, over_ws(&served.url()).subprotocol_auth(secret("subprotocol"))).await,
            };
            scenarios += 1;
        }
    }
    for status in [301, 302, 303, 307, 308] {
        let served = redirecting(status).await;
        for _ in 0..4 {
            use_it(builder(Revision::LATEST), with_secrets(&served.url())).await;
            use_it(builder(Revision::LATEST), over_ws(&served.url())).await;
            scenarios += 2;
        }
    }
    scenarios
}

/// A legacy server that shakes hands and then says back what it is told. How often it was asked for a stream is sent on.
async fn conversing(streams: Arc<watch::Sender<usize>>) -> HttpServer {
    serve(move |request| {
        let streams = Arc::clone(&streams);
        async move {
            let (parts, body) = request.into_parts();
            let lines = lines(&parts.uri, &parts.headers);
            if parts.method == "GET" {
                streams.send_modify(|streams| *streams += 1);
                return stream(&lines, parts.headers.contains_key("last-event-id"));
            }
            let body = to_bytes(body, 1 << 20).await.unwrap();
            answer(&serde_json::from_slice(&body).unwrap_or_default(), &lines)
        }
    })
    .await
}

/// Each line as whatever a stream can have in it.
fn stream(lines: &[String], is_resumed: bool) -> Response {
    if is_resumed {
        return response(
            400,
            "text/plain",
            lines.iter().find(|line| line.starts_with("last-event-id")).unwrap().clone(),
        );
    }
    let mut events = format!("id: {}\nretry: 1\n\n", secret("event"));
    for line in lines {
        let answer = json!({ "jsonrpc": "2.0", "id": line, "result": {} });
        let notification = json!({ "jsonrpc": "2.0", "method": line });
        events += &format!(": {line}\n{line}\nevent: {line}\ndata: {line}\n\n");
        events += &format!("data: {answer}\n\ndata: {notification}\n\ndata: {line}\n\n");
    }
    response(200, "text/event-stream", events)
}

fn answer(message: &Value, lines: &[String]) -> Response {
    let json = |answer: Value| response(200, "application/json", answer.to_string());
    let (id, line) = (&message["id"], lines.last().unwrap());
    match (message["method"].as_str().unwrap_or_default(), message["params"]["name"].as_str().unwrap_or_default()) {
        ("initialize", _) => {
            let result = json!({ "protocolVersion": Revision::LATEST_LEGACY.as_str(), "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "0" } });
            let mut answer = json(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            answer.headers_mut().insert("mcp-session-id", secret("session").try_into().unwrap());
            answer
        }
        (_, "stream") => stream(lines, false),
        (_, "error") => json(
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": lines.join("\n"), "data": lines } }),
        ),
        (_, "misfit") => json(json!({ "jsonrpc": "2.0", "id": id, "result": { "content": line } })),
        (_, "another") => json(json!({ "jsonrpc": "2.0", "id": line, "result": {} })),
        (_, "nothing") => response(200, "application/json", line.clone()),
        (_, "session") => {
            let session = lines.iter().find(|line| line.starts_with("mcp-session-id")).unwrap();
            response(400, "text/plain", session.clone())
        }
        _ if message["id"].is_null() => response(202, "text/plain", ""),
        _ => response(500, "text/plain", line.clone()),
    }
}

/// Sessions that come about, with a server that repeats everything.
pub(super) async fn conversations() -> usize {
    const TOLD: [&str; 6] = ["stream", "misfit", "another", "nothing", "session", "other"];
    let (streams, mut counted) = watch::channel(0);
    let served = conversing(Arc::new(streams)).await;
    let transport = with_secrets(&served.url());
    let client = builder(Revision::LATEST_LEGACY).connect(transport).await.unwrap();
    for tool in TOLD {
        tell_error(client.call::<String>(tool, json!({})).await);
    }
    // Its words are the application's to see, and nobody else's.
    let error = client.call::<String>("error", json!({})).await.unwrap_err();
    assert!(error.object().is_some_and(|object| has_secret(&object.message)), "{error:?}");
    tell(format!("{client:?}"));
    // The stream of no call, and the attempt to go back to it, which is refused.
    counted.wait_for(|streams| *streams >= 3).await.unwrap();
    client.disconnect().await;
    TOLD.len() + 2
}
