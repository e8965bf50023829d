//! The CORS example, as a browser meets it: case C081.

#[path = "../../../crates/mcp-suite/examples/cors.rs"]
#[expect(dead_code, reason = "an example has a `main` too")]
mod example;

use mcp_core::Revision;
use mcp_test::HttpServer;
use serde_json::json;

use super::{Connection, Post, Response};

const ORIGIN: &str = "http://localhost:6274";
const HEADERS: &str =
    "content-type,authorization,mcp-protocol-version,mcp-session-id,last-event-id,mcp-method,mcp-name";

struct App(HttpServer);

impl App {
    async fn start() -> Self {
        Self(HttpServer::start_router(example::app(everything_server::server(), ORIGIN).unwrap()).await)
    }

    async fn send(&self, origin: &str, post: Post) -> Response {
        let mut connection = Connection::open(self.0.address()).await;
        connection.write(&post.header("Origin", origin).bytes(self.0.address())).await;
        connection.response().await.expect("an answer")
    }

    /// What a browser asks before it sends a request.
    async fn preflight(&self, origin: &str, method: &str) -> Response {
        let post = Post::to("OPTIONS /mcp", "").never("Content-Type").never("Accept");
        let post = post.header("Access-Control-Request-Method", method);
        self.send(origin, post.header("Access-Control-Request-Headers", HEADERS)).await
    }

    /// A session of Ada's.
    async fn session(&self) -> String {
        let answer = self.send(ORIGIN, adas(initialize())).await;
        readable(&answer);
        answer.head.header("mcp-session-id").expect("a session").to_owned()
    }
}

fn initialize() -> Post {
    let revision = Revision::LATEST_LEGACY.as_str();
    let client = json!({ "name": "page", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client });
    Post::new(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string())
}

fn ping(session: &str) -> Post {
    Post::new(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).header("Mcp-Session-Id", session)
}

fn adas(post: Post) -> Post {
    post.header("Authorization", "Bearer token-of-ada")
}

fn words(value: Option<&str>) -> Vec<String> {
    value.unwrap_or_default().split(',').map(|word| word.trim().to_ascii_lowercase()).collect()
}

/// A page of the origin that is allowed can read the answer, and the headers that it needs.
fn readable(answer: &Response) {
    assert_eq!(answer.head.header("access-control-allow-origin"), Some(ORIGIN), "{:?}", answer.head);
    let exposed = words(answer.head.header("access-control-expose-headers"));
    for name in ["mcp-session-id", "www-authenticate"] {
        assert!(exposed.contains(&name.to_owned()), "{name} is not among {exposed:?}");
    }
    assert_eq!(answer.head.header("access-control-allow-credentials"), None, "{:?}", answer.head);
}

fn says_nothing_of_cors(answer: &Response) {
    let said: Vec<_> = answer.head.headers.iter().filter(|(name, _)| name.starts_with("access-control-")).collect();
    assert!(said.is_empty(), "{said:?}");
}

#[tokio::test]
async fn c081_what_a_browser_asks_first_is_answered_before_anybody_is_asked_who_they_are() {
    let app = App::start().await;
    for method in ["GET", "POST", "DELETE"] {
        let answer = app.preflight(ORIGIN, method).await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert_eq!(answer.head.header("access-control-allow-origin"), Some(ORIGIN));
        let allowed = words(answer.head.header("access-control-allow-methods"));
        assert!(allowed.contains(&method.to_ascii_lowercase()), "{method} is not among {allowed:?}");
        let allowed = words(answer.head.header("access-control-allow-headers"));
        for name in HEADERS.split(',') {
            assert!(allowed.contains(&name.to_owned()), "{name} is not among {allowed:?}");
        }
    }
}

#[tokio::test]
async fn c081_a_page_can_read_every_answer_whatever_its_status() {
    let app = App::start().await;
    let session = app.session().await;
    let token = |token: &str| ping(&session).header("Authorization", format!("Bearer {token}"));
    let delete = adas(Post::to("DELETE /mcp", "").header("Mcp-Session-Id", session.as_str()));
    for (status, post) in [
        (401, ping(&session)),
        (401, token("made-up")),
        (404, token("token-of-bob")),
        (200, token("token-of-ada")),
        (
            202,
            adas(Post::new(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#))
                .header("Mcp-Session-Id", session.as_str()),
        ),
        (400, adas(Post::new("{"))),
        (406, adas(ping(&session)).header("Accept", "text/html")),
        (204, delete),
        (404, token("token-of-ada")),
    ] {
        let answer = app.send(ORIGIN, post).await;
        assert_eq!(answer.status(), status, "{answer:?}");
        assert_eq!(answer.head.header("www-authenticate").is_some(), status == 401, "{answer:?}");
        readable(&answer);
    }
}

#[tokio::test]
async fn c081_pages_of_other_origins_get_no_cors_headers_and_nothing_else() {
    let app = App::start().await;
    let session = app.session().await;
    for origin in ["http://localhost:6275", "https://localhost:6274", "http://localhost:6274.evil.example", "null"] {
        says_nothing_of_cors(&app.preflight(origin, "POST").await);
        for (status, post) in [(401, initialize()), (403, adas(initialize())), (403, adas(ping(&session)))] {
            let answer = app.send(origin, post).await;
            assert_eq!(answer.status(), status, "{origin}: {answer:?}");
            says_nothing_of_cors(&answer);
        }
    }
}
