//! Secrets, planted wherever one can be, and looked for in all that is told to a log, in errors and in `Debug` output.
//!
//! A test binary of its own: what listens to `log` and `tracing`, our dependencies' included, is the process's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed, in its helpers too")]

#[path = "peer/log.rs"]
#[allow(dead_code, reason = "warnings are the other binary's")]
mod peer_log;
#[path = "report.rs"]
#[allow(dead_code, reason = "cases are the other binary's")]
mod report;

use std::{
    error::Error as _,
    fmt::Debug,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use axum::middleware::{Next, from_fn};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_core::{
    Client, ClientBuilder, Context, Error, Principal, ResourceTemplate, Revision, Server, Tool, ToolError,
    client::{CallOptions, IntoTransport},
    implementation,
    jsonrpc::Raw,
    server::{StateKeys, form},
    types::{ElicitParams, ElicitResult},
    uri_template::Variables,
};
use mcp_http::{Http, Routes};
use mcp_stdio::Child;
use mcp_test::HttpServer;
use mcp_ws::{Ws, WsLayer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tracing::{Event, Metadata, Subscriber, span};

use peer_log::Line;

/// What every secret has in it, and nothing else has.
const SECRET: &str = "s3cr3tZq";

/// A secret that says where it was planted.
fn secret(place: &str) -> String {
    format!("{SECRET}{place}")
}

/// All that was told to anybody since the last look.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn told() -> MutexGuard<'static, Vec<String>> {
    TOLD.lock().unwrap()
}

fn tell(text: impl Into<String>) {
    told().push(text.into());
}

/// Hears all levels of `tracing`, spans included, and of `log`.
struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}:", event.metadata().target()));
        event.record(&mut line);
        tell(line.0);
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut line = Line(format!("{}:", span.metadata().name()));
        span.record(&mut line);
        tell(line.0);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        tell(line.0);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl log::Log for Listener {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        // It tells all that is on the wire, as docs/websocket.md says.
        if record.target().starts_with("tungstenite") && record.level() == log::Level::Trace {
            return;
        }
        tell(format!("{}: {}", record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// The forms in which a text may stand in another.
fn forms(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    // Base64 of something that has it in it, wherever in it: the first and the last characters depend on what is around.
    let base64 = (0..3).map(|shift| {
        let encoded = STANDARD.encode([&vec![0; shift], bytes].concat());
        encoded.trim_end_matches('=')[if shift == 0 { 0 } else { shift + 1 }..].to_owned()
    });
    let base64 = base64.map(|mut encoded| {
        encoded.truncate(encoded.len() - 2);
        encoded
    });
    let numbers = bytes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [text.to_owned(), numbers, hex].into_iter().chain(base64).collect()
}

fn has_secret(text: &str) -> bool {
    forms(SECRET).iter().any(|form| text.contains(form))
}

/// The outcome of something that may fail: what an error says of itself in every way.
fn tell_error<T>(outcome: Result<T, Error>) -> Option<T> {
    let error = match outcome {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    tell(format!("{error}\n{error:?}\n{error:#?}\n{:?}", error.object()));
    let mut source = error.source();
    while let Some(cause) = source {
        tell(format!("{cause}\n{cause:?}"));
        source = cause.source();
    }
    None
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

fn server() -> Server {
    let echo = async |context: Context, Text { text }: Text| {
        tell(format!("{context:?} {:?}", context.exchange()));
        tell(format!("{:?} {:?}", context.principal(), context.meta()));
        Ok::<_, ToolError>(text)
    };
    let fail = async |_: Text| Err::<(), _>(ToolError::new("no such row"));
    let burst = async |Text { text }: Text| -> Result<(), ToolError> { panic!("{text}") };
    let ask = async |context: Context| {
        let Name { name } = context.elicit("who", form("Who?")).await?;
        Ok::<_, ToolError>(name)
    };
    let sleep = async |_: Text| {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Ok::<_, ToolError>(())
    };
    let read = async |_: Context, variables: Variables| {
        Ok::<_, ToolError>(format!("{} {}", variables.get("id").unwrap_or_default(), secret("resource")))
    };
    let server = Server::builder(implementation!())
        .state_keys(StateKeys::new(*b"s3cr3tZqs3cr3tZqs3cr3tZqs3cr3tZq"))
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("fail", fail))
        .tool(Tool::new("burst", burst))
        .tool(Tool::new("ask", ask))
        .tool(Tool::new("sleep", sleep))
        .template(ResourceTemplate::new("x:{id}", "x", read))
        .build();
    tell(format!("{server:?}"));
    server
}

async fn authenticate(mut request: axum::extract::Request, next: Next) -> axum::response::Response {
    if request.headers().contains_key(header::AUTHORIZATION) {
        let claims = Raw::encode(&json!({ "email": secret("claim") })).unwrap();
        request.extensions_mut().insert(Principal::new("ada").with_claims(claims));
    }
    next.run(request).await
}

fn builder(revision: Revision) -> ClientBuilder {
    Client::builder(implementation!())
        .revisions([revision])
        .on_elicit(|_: ElicitParams| async { ElicitResult::accept(json!({ "name": secret("answer") })) })
}

/// Connects and does all that can be done with the server, well and badly; whether it connected.
async fn use_it(builder: ClientBuilder, transport: impl IntoTransport + Debug) -> bool {
    tell(format!("{transport:?} {builder:?}"));
    let Some(client) = tell_error(builder.connect(transport).await) else { return false };
    tell(format!("{client:?}"));
    for tool in ["echo", "fail", "burst", "ask", "nobody"] {
        tell_error(client.call::<String>(tool, json!({ "text": secret("argument") })).await);
    }
    // What does not fit, and what is never answered.
    tell_error(client.call::<u64>("echo", json!({ "text": secret("argument") })).await);
    tell_error(client.call::<String>("echo", json!({ "text": [secret("argument")] })).await);
    let options = CallOptions::new().timeout(Duration::from_millis(20));
    tell(format!("{options:?}"));
    tell_error(client.call_with::<String>("sleep", json!({ "text": secret("argument") }), options).await);
    tell_error(client.read_resource(&format!("x:{}", secret("uri"))).await);
    tell_error(client.read_resource(&format!("y:{}", secret("uri"))).await);
    client.disconnect().await;
    tell_error(client.call::<String>("echo", json!({ "text": secret("argument") })).await);
    true
}

fn token() -> HeaderValue {
    HeaderValue::try_from(format!("Bearer {}", secret("token"))).unwrap()
}

fn with_secrets(url: &str) -> Http {
    let url = url.replace("http://", &format!("http://{}:{}@", secret("user"), secret("password")));
    Http::new(format!("{url}?key={}", secret("query")))
        .header(header::AUTHORIZATION, token())
        .header(HeaderName::from_static("x-api-key"), HeaderValue::try_from(secret("key")).unwrap())
        .header(header::COOKIE, HeaderValue::try_from(format!("a={}", secret("cookie"))).unwrap())
        .headers_with(|| async {
            let value = HeaderValue::try_from(secret("asked")).unwrap();
            Ok(HeaderMap::from_iter([(HeaderName::from_static("x-asked"), value)]))
        })
}

fn over_ws(url: &str) -> Ws {
    let url = url.replace("http://", "ws://");
    Ws::new(format!("{url}?key={}", secret("query")))
        .header(HeaderName::from_static("x-api-key"), HeaderValue::try_from(secret("key")).unwrap())
        .header(header::AUTHORIZATION, token())
}

/// A peer that answers each connection with the same bytes, and closes it.
async fn answering(bytes: impl Into<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, bytes) = (format!("http://{}/mcp", listener.local_addr().unwrap()), bytes.into());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let bytes = bytes.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 64 << 10];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(&bytes).await;
            });
        }
    });
    url
}

fn response(status: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// Answers that are none.
fn failures() -> Vec<String> {
    let json = "application/json";
    vec![
        response("401 Unauthorized", "text/plain", "no"),
        response("403 Forbidden", "text/plain", "no"),
        response("404 Not Found", "text/html", "<html>"),
        response("429 Too Many Requests", "text/plain", ""),
        response("500 Internal Server Error", "text/plain", "boom"),
        response("200 OK", "text/html", "<html>login</html>"),
        response("200 OK", json, "{"),
        response("200 OK", json, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"m"}}"#),
        response("200 OK", "text/event-stream", "data: {\n\n"),
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://other.example/mcp\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "garbage\r\n\r\n".to_owned(),
        String::new(),
    ]
}

const BOTH: [Revision; 2] = [Revision::LATEST, Revision::LATEST_LEGACY];

/// What was told since the last time must have no secret in it; some must have been told at all.
fn look(place: &str, scenarios: usize) {
    let told = std::mem::take(&mut *told());
    let found: Vec<&String> = told.iter().filter(|text| has_secret(text)).collect();
    let cells = [
        ("where planted", place.to_owned()),
        ("scenarios", scenarios.to_string()),
        ("lines and texts searched", told.len().to_string()),
        ("found", found.len().to_string()),
    ];
    report::row("Secrets", cells);
    assert!(told.len() >= scenarios, "{place}: hardly anything was told");
    assert!(found.is_empty(), "{place}: {} of {} texts have a secret: {found:#?}", found.len(), told.len());
}

/// One test, since all that is told in this process is told to one listener.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_told() {
    // What a handler panics with is its own to keep; the hook that prints it is not ours.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload().downcast_ref::<String>().is_some_and(|text| text.starts_with(SECRET)) {
            hook(panic);
        }
    }));
    tracing::subscriber::set_global_default(Listener).unwrap();
    log::set_logger(&Listener).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    told().clear();

    for revision in BOTH {
        let routes = Routes::new(server());
        tell(format!("{routes:?}"));
        let served = HttpServer::start_router(routes.into_router().layer(from_fn(authenticate))).await;
        assert!(use_it(builder(revision), with_secrets(&served.url())).await);
        let router = axum::Router::new().layer(WsLayer::new(server())).layer(from_fn(authenticate));
        let served = HttpServer::start_router(router).await;
        assert!(use_it(builder(revision), over_ws(&served.url())).await);
        let with_token = over_ws(&served.url()).subprotocol_auth(secret("token"));
        use_it(builder(revision), with_token).await;
    }
    look("headers, URLs, arguments, results, answers, resources, claims and keys, on HTTP and WebSocket", 6);

    for failure in failures() {
        let url = answering(failure).await;
        use_it(builder(Revision::LATEST), with_secrets(&url)).await;
        use_it(Client::builder(implementation!()), with_secrets(&url)).await;
        use_it(builder(Revision::LATEST), over_ws(&url)).await;
    }
    use_it(builder(Revision::LATEST), with_secrets("http://127.0.0.1:1/mcp")).await;
    use_it(builder(Revision::LATEST), over_ws("http://127.0.0.1:1/mcp")).await;
    use_it(builder(Revision::LATEST), with_secrets("http://no host/mcp")).await;
    use_it(builder(Revision::LATEST), over_ws("http://no host/mcp")).await;
    let own = format!("ws://{}:{}@127.0.0.1/mcp", secret("user"), secret("password"));
    assert!(!use_it(builder(Revision::LATEST), Ws::new(own)).await, "a WebSocket takes no credentials in its URL");
    look("headers and URLs, on HTTP and WebSocket, where the server refuses or breaks off", 3 * failures().len() + 5);

    let child = |program: &str| {
        Child::new(program).arg("-c").arg(format!("exit 3 # {}", secret("argument"))).env("KEY", secret("environment"))
    };
    use_it(builder(Revision::LATEST), child("sh")).await;
    use_it(builder(Revision::LATEST), child("/no/such/program")).await;
    look("arguments and environment of a child that ends or is not there", 2);
}

#[test]
fn a_secret_is_found_in_every_form() {
    let planted = secret("here");
    let basic = STANDARD.encode(format!("u:{planted}"));
    let longer = STANDARD.encode(format!("us:{planted}"));
    let bytes = format!("{:?}", planted.as_bytes());
    for text in [planted, basic, longer, STANDARD.encode(secret("x")), bytes] {
        assert!(has_secret(&text), "{text}");
    }
    assert!(!has_secret("no secret"));
}
