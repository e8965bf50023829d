//! The same handlers, asking on every revision and every wire: what is asked, and what comes of it, is the same.

use everything_server::asking_server;
use mcp_core::{Era, Revision};
use mcp_http::Routes;
use serde_json::{Value, json};

use crate::{
    duplex::{Peer, Wire},
    http::{Post, Served},
};

/// A client of one revision on one wire. It answers what it is asked.
enum Client {
    Shared(Peer),
    Http { served: Served, session: Option<String> },
}

struct Asked {
    revision: Revision,
    client: Client,
    next: u64,
}

/// What the user says to a question; `None` where there is no answer at all.
type User = fn(&str) -> Option<Value>;

fn accepts(question: &str) -> Option<Value> {
    Some(json!({ "action": "accept", "content": { "name": format!("<{question}>") } }))
}

fn declines(_: &str) -> Option<Value> {
    Some(json!({ "action": "decline" }))
}

fn cancels(_: &str) -> Option<Value> {
    Some(json!({ "action": "cancel" }))
}

fn is_silent(_: &str) -> Option<Value> {
    None
}

fn capabilities() -> Value {
    json!({ "elicitation": {} })
}

impl Asked {
    async fn connect(wire: Wire, revision: Revision) -> Self {
        let client = match wire {
            Wire::Memory => Client::Shared(Peer::memory(asking_server())),
            Wire::Lines => Client::Shared(Peer::lines(asking_server())),
            Wire::Ws => Client::Shared(Peer::ws(asking_server()).await),
            Wire::Http => {
                Client::Http { served: Served::with(Routes::new(asking_server()), "127.0.0.1").await, session: None }
            }
            Wire::Stdio => Client::Shared(Peer::asking()),
        };
        let mut asked = Self { revision, client, next: 0 };
        if revision.era() == Era::Legacy {
            asked.greet().await;
        }
        asked
    }

    async fn greet(&mut self) {
        let client = json!({ "name": "t", "version": "0" });
        let params =
            json!({ "protocolVersion": self.revision.as_str(), "capabilities": capabilities(), "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params });
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        match &mut self.client {
            Client::Shared(peer) => {
                peer.say(&hello.to_string()).await;
                assert!(peer.hear().await["result"].is_object());
                peer.say(&initialized.to_string()).await;
            }
            Client::Http { served, session } => {
                let response = served.send(Post::new(hello.to_string())).await;
                let id = response.head.header("Mcp-Session-Id").unwrap().to_owned();
                let post = Post::new(initialized.to_string()).header("Mcp-Session-Id", &*id);
                assert_eq!(served.send(post).await.status(), 202);
                *session = Some(id);
            }
        }
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        if self.revision.era() == Era::Modern {
            params["_meta"] = super::modern_meta();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities();
        }
        json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })
    }

    /// Makes a request and answers what it asks: the questions, sorted within a round, and the response.
    async fn run(&mut self, method: &str, params: &Value, user: User) -> (Vec<String>, Value) {
        match self.revision.era() {
            Era::Modern => self.run_rounds(method, params, user).await,
            _ => self.run_in_place(method, params, user).await,
        }
    }

    async fn run_rounds(&mut self, method: &str, params: &Value, user: User) -> (Vec<String>, Value) {
        let (mut said, mut params) = (Vec::new(), params.clone());
        loop {
            let request = self.request(method, params.clone());
            let response = match &mut self.client {
                Client::Shared(peer) => {
                    peer.say(&request.to_string()).await;
                    peer.hear().await
                }
                Client::Http { served, .. } => {
                    served.send(Post::speaking(Revision::LATEST, request.to_string())).await.json()
                }
            };
            if response["result"]["resultType"] != "input_required" {
                return (said, response);
            }
            let mut given = json!({});
            for (key, question) in response["result"]["inputRequests"].as_object().unwrap() {
                said.push(shown(question));
                match user(key) {
                    Some(answer) => given[key] = answer,
                    // Then the call is not made again.
                    None => return (said, response),
                }
            }
            params["inputResponses"] = given;
            params["requestState"] = response["result"]["requestState"].clone();
        }
    }

    async fn run_in_place(&mut self, method: &str, params: &Value, user: User) -> (Vec<String>, Value) {
        let request = self.request(method, params.clone());
        let (mut said, id) = (Vec::new(), request["id"].clone());
        let answer = |question: &Value| {
            let key = question["params"]["message"].as_str().unwrap();
            Some(json!({ "jsonrpc": "2.0", "id": question["id"], "result": user(key)? }).to_string())
        };
        match &mut self.client {
            Client::Shared(peer) => {
                peer.say(&request.to_string()).await;
                loop {
                    let message = peer.hear().await;
                    if message["id"] == id && message.get("method").is_none() {
                        return (said, message);
                    }
                    if message["method"] == "elicitation/create" {
                        said.push(shown(&message));
                        if let Some(answer) = answer(&message) {
                            peer.say(&answer).await;
                        }
                    }
                }
            }
            Client::Http { served, session } => {
                let session = session.clone().unwrap();
                let post = Post::new(request.to_string()).header("Mcp-Session-Id", &*session);
                let mut connection = served.connect().await;
                connection.write(&post.bytes(served.address)).await;
                let head = connection.head().await.unwrap();
                if head.header("Content-Type") == Some("application/json") {
                    return (said, serde_json::from_slice(&connection.body(&head).await).unwrap());
                }
                let mut text = String::new();
                loop {
                    text.push_str(&String::from_utf8(connection.chunk().await.unwrap()).unwrap());
                    while let Some((event, rest)) = text.split_once("\n\n") {
                        let (event, rest) = (event.to_owned(), rest.to_owned());
                        text = rest;
                        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
                        let Ok(message) = serde_json::from_str::<Value>(data) else { continue };
                        if message["id"] == id && message.get("method").is_none() {
                            return (said, message);
                        }
                        if message["method"] == "elicitation/create" {
                            said.push(shown(&message));
                            if let Some(answer) = answer(&message) {
                                let post = Post::new(answer).header("Mcp-Session-Id", &*session);
                                assert_eq!(served.send(post).await.status(), 202);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What a question is, whichever way it comes.
fn shown(question: &Value) -> String {
    format!("{} {}", question["method"], question["params"])
}

/// The words of a response.
fn words(response: &Value) -> String {
    let result = &response["result"];
    let text = [
        &result["content"][0]["text"],
        &result["contents"][0]["text"],
        &result["messages"][0]["content"]["text"],
        &response["error"]["message"],
    ];
    text.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned()
}

const CASES: &[(&str, &str, User, &[&str], &str)] = &[
    ("tools/call", r#"{"name":"one"}"#, accepts, &["who"], "hello <who>"),
    ("tools/call", r#"{"name":"two"}"#, accepts, &["left", "right"], "<left> and <right>"),
    ("tools/call", r#"{"name":"dependent"}"#, accepts, &["first", "after <first>"], "<first>, then <after <first>>"),
    ("tools/call", r#"{"name":"once"}"#, accepts, &["who"], "<who> is number 0, and 1 number(s) were drawn"),
    ("resources/read", r#"{"uri":"test://asks"}"#, accepts, &["who"], "hello <who>"),
    ("prompts/get", r#"{"name":"asks"}"#, accepts, &["who"], "hello <who>"),
    ("tools/call", r#"{"name":"one"}"#, declines, &["who"], "The user declined"),
    ("tools/call", r#"{"name":"one"}"#, cancels, &["who"], "The user did not answer"),
];

#[tokio::test]
async fn the_same_is_asked_and_comes_of_it_on_every_revision_and_every_wire() {
    for wire in Wire::ALL {
        for revision in Revision::ALL {
            let mut asked = Asked::connect(wire, *revision).await;
            for (method, params, user, questions, outcome) in CASES {
                let params: Value = serde_json::from_str(params).unwrap();
                let (said, response) = asked.run(method, &params, *user).await;
                let expected: Vec<_> = questions.iter().map(|key| expected(key)).collect();
                assert_eq!(said, expected, "{wire:?} {revision} {method} {params}");
                assert_eq!(words(&response), *outcome, "{wire:?} {revision} {method}: {response}");
            }
        }
    }
}

/// The legacy handler fails in time; the modern one does not wait.
#[tokio::test]
async fn a_question_that_is_never_answered_leaves_nothing_behind_on_any_revision_and_any_wire() {
    for wire in Wire::ALL {
        for revision in Revision::ALL {
            let mut asked = Asked::connect(wire, *revision).await;
            let (said, response) = asked.run("tools/call", &json!({ "name": "one" }), is_silent).await;
            assert_eq!(said, [expected("who")]);
            match revision.era() {
                Era::Modern => assert_eq!(response["result"]["resultType"], "input_required", "{response}"),
                _ => assert!(words(&response).contains("did not answer within"), "{response}"),
            }
            let (_, running) = asked.run("tools/call", &json!({ "name": "running" }), is_silent).await;
            assert_eq!(words(&running), "0", "{wire:?} {revision}: {running}");
            let (_, response) = asked.run("tools/call", &json!({ "name": "one" }), accepts).await;
            assert_eq!(words(&response), "hello <who>", "{wire:?} {revision}: {response}");
        }
    }
}

fn expected(key: &str) -> String {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let params = json!({ "message": key, "requestedSchema": schema });
    shown(&json!({ "method": "elicitation/create", "params": params }))
}
