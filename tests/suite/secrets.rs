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

#[path = "secrets/debug.rs"]
mod debug;
#[path = "secrets/echo.rs"]
mod echo;
#[path = "secrets/listener.rs"]
mod listener;
#[path = "secrets/oauth.rs"]
mod oauth;
#[path = "secrets/sockets.rs"]
mod sockets;

use std::{error::Error as _, fmt::Debug, time::Duration};

use axum::middleware::{Next, from_fn};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use mcp_core::{
    Client, ClientBuilder, Context, Error, Exchange, Principal, Reply, ResourceTemplate, Revision, Server, Tool,
    ToolError,
    client::{CallOptions, Called, IntoTransport},
    implementation,
    jsonrpc::Raw,
    observer::{CloseReason, ConnectionEvent, NotificationEvent, Observer, Outcome, RequestEvent},
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
use tower::util::{MapRequestLayer, MapResponseLayer};

use listener::{Listener, SECRET, has_secret, plant, secret, tell, told};

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

/// Tells all that it hears of.
struct Teller;

impl Observer for Teller {
    fn request_started(&self, request: &RequestEvent<'_>) {
        tell(format!("{request:?}"));
    }

    fn request_completed(&self, request: &RequestEvent<'_>, outcome: Outcome, _: Duration) {
        tell(format!("{request:?} {outcome:?}"));
    }

    fn notification(&self, notification: &NotificationEvent<'_>) {
        tell(format!("{notification:?}"));
    }

    fn connection_closed(&self, _: &ConnectionEvent, reason: &CloseReason<'_>) {
        tell(format!("{reason:?}"));
    }

    fn transport_error(&self, _: &ConnectionEvent, error: &Error) {
        tell(format!("{error:?}"));
    }
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
        .tool(Tool::new("task", async |Text { text }: Text| Ok::<_, ToolError>(text)).task())
        .layer(MapRequestLayer::new(|exchange: Exchange| {
            tell(format!("{exchange:?}"));
            exchange
        }))
        .layer(MapResponseLayer::new(|reply: Reply| {
            tell(format!("{reply:?}"));
            reply
        }))
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
    let response = next.run(request).await;
    let session = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok());
    session.into_iter().for_each(plant);
    response
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
    if let Some(Called::Task(task)) =
        tell_error(client.call_as_task("task", json!({ "text": secret("argument") })).await)
    {
        plant(task.id());
        tell(format!("{task:?}"));
        tell_error(task.wait().await.map(drop));
    }
    client.disconnect().await;
    tell_error(client.call::<String>("echo", json!({ "text": secret("argument") })).await);
    true
}

fn token() -> HeaderValue {
    HeaderValue::try_from(format!("Bearer {}", secret("token"))).unwrap()
}

/// What is in the URL is sent as `Authorization: Basic`.
fn with_user_info(url: &str) -> Http {
    let url = url.replace("http://", &format!("http://{}:{}@", secret("user"), secret("password")));
    Http::new(format!("{url}?key={}", secret("query")))
}

fn with_secrets(url: &str) -> Http {
    with_user_info(url)
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

/// What of what was told since the last time has a secret in it; something must have been told at all.
fn look(place: &str, scenarios: usize) -> Vec<String> {
    let told = std::mem::take(&mut *told());
    let found: Vec<String> =
        told.iter().filter(|text| has_secret(text)).map(|text| format!("{place}: {text}")).collect();
    let cells = [
        ("where planted", place.to_owned()),
        ("scenarios", scenarios.to_string()),
        ("lines and texts searched", told.len().to_string()),
        ("found", found.len().to_string()),
    ];
    report::row("Secrets", cells);
    assert!(told.len() >= scenarios, "{place}: hardly anything was told");
    found
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

    let mut found = Vec::new();
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
    found.extend(look(
        "headers, URLs, arguments, results, answers, resources, claims, keys and ids, on HTTP and WebSocket",
        6,
    ));

    for revision in BOTH {
        let observed = Routes::new(server()).into_router();
        let served = HttpServer::start_router(observed).await;
        assert!(use_it(builder(revision).observer(Teller), with_secrets(&served.url())).await);
        assert!(use_it(builder(revision).observer(Teller), server()).await);
    }
    found.extend(look("the same, where somebody observes", 4));

    let scenarios = echo::refusals().await;
    found.extend(look("what a server repeats that refuses or redirects, on HTTP and WebSocket", scenarios));
    let scenarios = echo::conversations().await;
    found.extend(look("what a server repeats within a session, on HTTP", scenarios));
    let scenarios = sockets::sockets().await;
    found.extend(look("what a server repeats in messages and when it closes, on WebSocket", scenarios));
    let scenarios = oauth::logins().await;
    found.extend(look("what an authorization server repeats: client secret, code, verifier, state, tokens", scenarios));

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
    found.extend(look(
        "headers and URLs, on HTTP and WebSocket, where the server refuses or breaks off",
        3 * failures().len() + 5,
    ));

    let child = |program: &str| {
        Child::new(program).arg("-c").arg(format!("exit 3 # {}", secret("argument"))).env("KEY", secret("environment"))
    };
    use_it(builder(Revision::LATEST), child("sh")).await;
    use_it(builder(Revision::LATEST), child("/no/such/program")).await;
    // Also where it stands at the end of what is shown of a line.
    let script = "echo $KEY >&2; printf '%0195d%s\\n' 0 $KEY >&2; exit 3";
    let told = Child::new("sh").arg("-c").arg(script).env("KEY", secret("stderr")).keep_stderr(1 << 10);
    let tail = told.stderr_tail();
    use_it(builder(Revision::LATEST), told).await;
    let heard = async {
        while !tail.lines().iter().any(|line| has_secret(line)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("what it said is kept");
    tell(format!("{tail:?}"));
    found.extend(look("arguments, environment and stderr of a child that ends or is not there", 3));
    assert!(found.is_empty(), "{} texts have a secret: {found:#?}", found.len());
}

#[test]
fn a_secret_is_found_in_every_form() {
    let planted = secret("here");
    let basic = STANDARD.encode(format!("u:{planted}"));
    let longer = STANDARD.encode(format!("us:{planted}"));
    let bytes = format!("{:?}", planted.as_bytes());
    let of_urls = URL_SAFE.encode(format!("?>~{planted}"));
    for text in [planted, basic, longer, of_urls, STANDARD.encode(secret("x")), bytes] {
        assert!(has_secret(&text), "{text}");
    }
    assert!(!has_secret("no secret"));
}
