//! What a handler asks a legacy client over HTTP: on the stream of the call, or on the one for what belongs to no call.

use std::time::Duration;

use mcp_core::{Context, Limits, Server, Tool, ToolError, implementation, jsonrpc::Raw, types::ElicitParams};
use mcp_http::Routes;
use serde_json::{Value, json};

use super::{Connection, Post, Response, Served, raw::soon};

pub(super) async fn ask(context: Context) -> Result<String, ToolError> {
    let form = ElicitParams::form("Sure?", Raw::parse(r#"{"type":"object","properties":{}}"#)?);
    Ok(context.elicit("sure", form).await?.action.as_str().to_owned())
}

fn server(limits: Limits) -> Server {
    Server::builder(implementation!()).limits(limits).tool(Tool::new("ask", ask)).build()
}

/// A client with a session.
struct Client {
    served: Served,
    session: String,
}

impl Client {
    async fn connect(limits: Limits) -> Self {
        let served = Served::with(Routes::new(server(limits)), "127.0.0.1").await;
        let mut client = Self { served, session: String::new() };
        client.session = client.greet().await;
        client
    }

    async fn greet(&self) -> String {
        let (capabilities, info) = (json!({ "elicitation": {} }), json!({ "name": "t", "version": "0" }));
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let response = self.served.send(Post::new(hello.to_string())).await;
        let session = response.head.header("Mcp-Session-Id").expect("a session").to_owned();
        let initialized = Post::new(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!(self.served.send(initialized.header("Mcp-Session-Id", &*session)).await.status(), 202);
        session
    }

    fn post(&self, message: &Value) -> Post {
        Post::new(message.to_string()).header("Mcp-Session-Id", &*self.session)
    }

    fn call(&self) -> Post {
        self.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "ask" } }))
    }

    fn listen(&self) -> Post {
        Post::to("GET /mcp", "").header("Accept", "text/event-stream").header("Mcp-Session-Id", &*self.session)
    }

    async fn open(&self, post: &Post) -> Stream {
        let mut connection = self.served.connect().await;
        connection.write(&post.bytes(self.served.address)).await;
        let head = soon("the head", connection.head()).await.unwrap();
        assert_eq!(head.header("Content-Type"), Some("text/event-stream"), "{head:?}");
        Stream { connection, text: String::new(), last: None }
    }

    async fn answer(&self, question: &Value, action: &str) -> Response {
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action } });
        self.served.send(self.post(&answer)).await
    }
}

/// What is read as events.
struct Stream {
    connection: Connection,
    text: String,
    /// The id of the last event.
    last: Option<String>,
}

impl Stream {
    /// The next message; `None` at the end.
    async fn message(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (format!("{event}\n\n"), rest.to_owned());
                self.text = rest;
                if let Some(id) = event.lines().find_map(|line| line.strip_prefix("id: ")) {
                    self.last = Some(id.to_owned());
                }
                match event.lines().find_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty()) {
                    Some(data) => return Some(serde_json::from_str(data).unwrap()),
                    None => continue,
                }
            }
            let chunk = soon("an event", self.connection.chunk()).await?;
            self.text.push_str(&String::from_utf8(chunk).unwrap());
        }
    }

    async fn question(&mut self) -> Value {
        let question = self.message().await.expect("a question");
        assert_eq!(question["method"], "elicitation/create", "{question}");
        question
    }
}

fn text(answer: &Value) -> &str {
    crate::server::text(answer)
}

#[tokio::test]
async fn a_question_goes_out_on_the_stream_of_its_call_and_the_answer_is_posted() {
    let client = Client::connect(Limits::default()).await;
    let mut stream = client.open(&client.call()).await;
    let question = stream.question().await;
    let accepted = client.answer(&question, "accept").await;
    assert_eq!((accepted.status(), accepted.text()), (202, ""));
    assert_eq!(text(&stream.message().await.unwrap()), "accept");
    assert_eq!(stream.message().await, None);
    // What comes twice, late, or for nobody is dropped.
    assert_eq!(client.answer(&question, "decline").await.status(), 202);
    assert_eq!(client.answer(&json!({ "id": "nobody's" }), "decline").await.status(), 202);
}

/// The session is the only one that may answer, however the question is named.
#[tokio::test]
async fn another_session_answers_nothing() {
    let client = Client::connect(Limits::default()).await;
    let mut stream = client.open(&client.call()).await;
    let question = stream.question().await;
    let foreign = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } }).to_string();
    let other = client.greet().await;
    assert_eq!(client.served.send(Post::new(foreign.clone()).header("Mcp-Session-Id", other)).await.status(), 202);
    assert_eq!(client.served.send(Post::new(foreign)).await.status(), 400);
    client.answer(&question, "accept").await;
    assert_eq!(text(&stream.message().await.unwrap()), "accept");
}

#[tokio::test]
async fn a_question_that_was_lost_with_its_connection_comes_again_and_its_answer_completes_the_call() {
    let client = Client::connect(Limits::default()).await;
    let mut stream = client.open(&client.call()).await;
    let question = stream.question().await;
    stream.connection.abort();
    // The last event that the client has seen is the one before.
    let last = stream.last.unwrap();
    let (stream_id, _) = last.split_once('-').unwrap();
    let mut resumed = client.open(&client.listen().header("Last-Event-ID", format!("{stream_id}-0"))).await;
    assert_eq!(resumed.question().await["id"], question["id"]);
    client.answer(&question, "accept").await;
    assert_eq!(text(&resumed.message().await.unwrap()), "accept");
    assert_eq!(resumed.message().await, None);
}

#[tokio::test]
async fn a_call_that_cannot_stream_asks_on_the_stream_for_what_belongs_to_no_call() {
    let client = Client::connect(Limits::default()).await;
    let mut listening = client.open(&client.listen()).await;
    let call = client.call().header("Accept", "application/json");
    let mut connection = client.served.connect().await;
    connection.write(&call.bytes(client.served.address)).await;
    let question = listening.question().await;
    client.answer(&question, "decline").await;
    let response = connection.response_to(&call).await.unwrap();
    assert_eq!(text(&response.json()), "decline");
}

#[tokio::test]
async fn where_nothing_can_be_asked_the_call_says_so_at_once() {
    let client = Client::connect(Limits::default().session_streams(0)).await;
    let response = client.served.send(client.call().header("Accept", "application/json")).await;
    let failure = response.json();
    assert!(failure["result"]["isError"] == true && text(&failure).contains("listens to no questions"), "{failure}");
}

/// A form that nobody fills in any more is closed: the client is told on the stream that it was opened on.
#[tokio::test]
async fn a_question_of_a_call_that_is_cancelled_is_taken_back() {
    let client = Client::connect(Limits::default()).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let mut stream = client.open(&client.call()).await;
    let mut listening = client.open(&client.listen()).await;
    for is_streamed in [true, false] {
        let json = client.call().header("Accept", "application/json");
        let mut connection = client.served.connect().await;
        if !is_streamed {
            connection.write(&json.bytes(client.served.address)).await;
        }
        let asking = if is_streamed { &mut stream } else { &mut listening };
        let question = asking.question().await;
        assert_eq!(client.served.send(client.post(&cancel)).await.status(), 202);
        let taken_back = asking.message().await.expect("it is taken back");
        assert_eq!(taken_back["method"], "notifications/cancelled");
        assert_eq!(taken_back["params"]["requestId"], question["id"]);
        if is_streamed {
            assert_eq!(asking.message().await, None);
        } else {
            assert_eq!(connection.response_to(&json).await.unwrap().body.len(), 0);
        }
    }
}

/// C139: whoever waits for the client does not outlive its session.
#[tokio::test]
async fn c139_a_question_ends_with_its_time_and_with_its_session() {
    let client = Client::connect(Limits::default().question_timeout(Duration::from_millis(200))).await;
    let mut stream = client.open(&client.call()).await;
    let question = stream.question().await;
    let cancelled = stream.message().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    assert_eq!(stream.message().await.unwrap()["result"]["isError"], true);

    let client = Client::connect(Limits::default()).await;
    let mut stream = client.open(&client.call()).await;
    stream.question().await;
    let delete = Post::to("DELETE /mcp", "").header("Mcp-Session-Id", &*client.session);
    assert_eq!(client.served.send(delete).await.status(), 204);
    assert_eq!(stream.message().await, None);
    assert_eq!(client.served.send(client.call()).await.status(), 404);
}
