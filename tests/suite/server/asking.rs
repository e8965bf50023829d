//! The same handlers, asking on every revision and every wire: what is asked, and what comes of it, is the same.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_core::{
    Context, Era, Limits, Prompt, Resource, Revision, Server, Tool, ToolError, implementation,
    server::{PromptArguments, form},
};
use mcp_http::Routes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    duplex::{Peer, Wire},
    http::{Post, Served},
};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn name(context: &Context, key: &str) -> Result<String, ToolError> {
    Ok(context.elicit(key, form::<Name>(key)).await?.name)
}

async fn one(context: Context) -> Result<String, ToolError> {
    Ok(format!("hello {}", name(&context, "who").await?))
}

async fn two(context: Context) -> Result<String, ToolError> {
    let (one, other) = tokio::join!(name(&context, "left"), name(&context, "right"));
    Ok(format!("{} and {}", one?, other?))
}

async fn dependent(context: Context) -> Result<String, ToolError> {
    let first = name(&context, "first").await?;
    let second = name(&context, &format!("after {first}")).await?;
    Ok(format!("{first}, then {second}"))
}

async fn read(context: Context) -> Result<String, ToolError> {
    one(context).await
}

async fn fill_in(context: Context, _: PromptArguments) -> Result<String, ToolError> {
    one(context).await
}

fn server() -> Server {
    let done = Arc::<AtomicU32>::default();
    let once = move |context: Context| {
        let done = done.clone();
        async move {
            let count =
                context.once("count", async || Ok::<_, ToolError>(done.fetch_add(1, Ordering::Relaxed))).await?;
            let name = name(&context, "who").await?;
            let done = done.load(Ordering::Relaxed);
            Ok::<_, ToolError>(format!("{name} is number {count}, and it was done {done} time(s)"))
        }
    };
    Server::builder(implementation!())
        .limits(Limits::default().question_timeout(Duration::from_millis(500)))
        .tool(Tool::new("one", one))
        .tool(Tool::new("two", two))
        .tool(Tool::new("dependent", dependent))
        .tool(Tool::new("once", once))
        .resource(Resource::new("x:asks", "asks", read))
        .prompt(Prompt::new("asks", fill_in))
        .build()
}

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
            Wire::Memory => Client::Shared(Peer::memory(server())),
            Wire::Lines => Client::Shared(Peer::lines(server())),
            Wire::Ws => Client::Shared(Peer::ws(server()).await),
            Wire::Http => {
                Client::Http { served: Served::with(Routes::new(server()), "127.0.0.1").await, session: None }
            }
            Wire::Stdio => unreachable!("a process has a server of its own"),
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
                    None => return (said, Value::Null),
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
                connection.head().await.unwrap();
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
    ("tools/call", r#"{"name":"once"}"#, accepts, &["who"], "<who> is number 0, and it was done 1 time(s)"),
    ("resources/read", r#"{"uri":"x:asks"}"#, accepts, &["who"], "hello <who>"),
    ("prompts/get", r#"{"name":"asks"}"#, accepts, &["who"], "hello <who>"),
    ("tools/call", r#"{"name":"one"}"#, declines, &["who"], "The user declined"),
    ("tools/call", r#"{"name":"one"}"#, cancels, &["who"], "The user did not answer"),
];

#[tokio::test]
async fn the_same_is_asked_and_comes_of_it_on_every_revision_and_every_wire() {
    for wire in [Wire::Memory, Wire::Lines, Wire::Ws, Wire::Http] {
        for revision in Revision::ALL {
            let mut asked = Asked::connect(wire, *revision).await;
            for (method, params, user, questions, outcome) in CASES {
                let params: Value = serde_json::from_str(params).unwrap();
                let (said, response) = asked.run(method, &params, *user).await;
                let expected: Vec<_> = questions.iter().map(|key| expected(key)).collect();
                assert_eq!(said, expected, "{wire:?} {revision} {method} {params}");
                assert_eq!(words(&response), *outcome, "{wire:?} {revision} {method}: {response}");
            }
            let (said, response) = asked.run("tools/call", &json!({ "name": "one" }), is_silent).await;
            assert_eq!(said, [expected("who")]);
            match revision.era() {
                Era::Modern => assert_eq!(response, Value::Null),
                _ => assert!(words(&response).contains("did not answer within"), "{response}"),
            }
        }
    }
}

fn expected(key: &str) -> String {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let params = json!({ "message": key, "requestedSchema": schema });
    shown(&json!({ "method": "elicitation/create", "params": params }))
}
