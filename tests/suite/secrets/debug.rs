//! What the public types that hold a secret show of it.

use std::{fmt::Debug, time::Duration};

use mcp_auth::{ClientCredentials, Grant, Key, MemoryStore, TokenStore as _};
use mcp_core::{
    Principal, Revision, Secrets,
    client::{Incoming, Outgoing, Refusal, Target},
    jsonrpc::{Bytes, DecodeLimits, Frame, Inbound, Message, Raw, decode},
    server::{Aside, CallEvent, StateKeys},
    store::{
        EventLog as _, LoggedEvent, MemoryEventLog, MemorySessions, MemoryTasks, SessionId, SessionRecord,
        SessionStore as _, StreamId, TaskId, TaskRecord, TaskStore as _,
    },
    types::{Task, TaskParams, UpdateTaskParams},
};
use mcp_http::Http;
use mcp_stdio::Child;
use mcp_ws::Ws;
use serde_json::json;

use super::{has_secret, secret};

const HOUR: Duration = Duration::from_secs(3600);

/// Neither on one line nor on several.
fn hides(what: &dyn Debug) {
    let shown = format!("{what:?}\n{what:#?}");
    assert!(!has_secret(&shown), "{shown}");
}

fn request() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t", "requestState": secret("state"),
        "arguments": { "a": secret("argument") } } })
    .to_string()
}

fn message(text: &str) -> Message {
    match decode(Bytes::from(text.to_owned()), &DecodeLimits::default()) {
        Inbound::One(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_show_how_long_they_are() {
    let frame = || Bytes::from(request());
    hides(&Frame::Line(frame()));
    hides(&Frame::TooLong(frame()));
    hides(&message(&request()));
    hides(&Outgoing::new(&message(&request()), Some(Revision::LATEST)));
    hides(&CallEvent::Frame(frame()));
    hides(&Aside::Question(frame()));
    hides(&Aside::Notice(frame()));
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": secret("result") } }).to_string();
    let Message::Response(response) = message(&answer) else { panic!("{answer}") };
    hides(&Incoming::Response(response));
    hides(&Raw::parse(request()).unwrap());
}

#[tokio::test]
async fn stores_and_what_they_keep_show_neither_whose_it_is_nor_what_was_said() {
    let record = json!({ "revision": "2025-11-25", "client_info": { "name": secret("name") }, "capabilities": {},
        "principal": null, "is_ready": true, "log_level": "info", "lists": [true, true, true],
        "subscriptions": [format!("x:{}", secret("uri"))] });
    let record: SessionRecord = serde_json::from_value(record).unwrap();
    hides(&record);
    let (session, sessions) = (SessionId::random(), MemorySessions::new(8));
    assert!(sessions.create(session, record, HOUR).await.unwrap());
    hides(&sessions);
    assert!(!format!("{session:?} {sessions:?}").contains(&session.to_string()));

    let event = LoggedEvent { stream: StreamId(1), seq: 1, is_answer: true, frame: request().into() };
    hides(&event);
    let log = MemoryEventLog::new(&mcp_core::Limits::default());
    log.append(session, event).await.unwrap();
    hides(&log);
    assert!(!format!("{log:?}").contains(&session.to_string()));

    let mut record = TaskRecord::new(Some([7; 32]), 0, HOUR, HOUR);
    assert!(record.ask(&secret("key"), Raw::encode(&json!({ "a": secret("question") })).unwrap(), 1));
    assert!(!format!("{record:?}").contains("7, 7"), "{record:?}");
    hides(&record);
    let (task, tasks) = (TaskId::random(), MemoryTasks::new(8, 1 << 20));
    assert!(tasks.create(task, record, 8).await.unwrap());
    hides(&tasks);
    assert!(!format!("{task:?} {tasks:?}").contains(&task.to_string()));
}

#[test]
fn tasks_show_the_beginning_of_their_id() {
    let id = format!("t-12345678{}", secret("task"));
    let task = json!({ "taskId": id, "status": "working", "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": null });
    hides(&serde_json::from_value::<Task>(task).unwrap());
    hides(&serde_json::from_value::<TaskParams>(json!({ "taskId": id })).unwrap());
    let update = json!({ "taskId": id, "inputResponses": { "k": { "content": secret("answer") } } });
    hides(&serde_json::from_value::<UpdateTaskParams>(update).unwrap());
}

#[tokio::test]
async fn what_opens_something_is_not_shown() {
    let client = ClientCredentials::secret("id", secret("client"));
    hides(&client);
    let grant = json!({ "access_token": secret("access"), "refresh_token": secret("refresh"), "expires_at": null,
        "scopes": [], "client": client });
    let (key, grant): (_, Grant) = (Key::new("https://as", "https://mcp"), serde_json::from_value(grant).unwrap());
    hides(&grant);
    let store = MemoryStore::default();
    assert!(store.swap(&key, None, Some(grant)).await.unwrap());
    hides(&store);
    let sent = [("authorization".to_owned(), format!("Bearer {}", secret("token")))];
    hides(&Refusal::new(401, &[format!("Bearer realm=\"{}\"", secret("token"))], &sent));
    let url = format!("https://host/?key={}", secret("query"));
    hides(&Target::new(&url, "POST", &url));
    hides(&Http::new(&url));
    hides(&Ws::new(&url).subprotocol_auth(secret("token")));
    hides(&StateKeys::new(*b"s3cr3tZqs3cr3tZqs3cr3tZqs3cr3tZq"));
    hides(&Principal::new("ada").with_claims(Raw::encode(&json!({ "email": secret("claim") })).unwrap()));
    let mut secrets = Secrets::default();
    secrets.add(&secret("any"));
    hides(&secrets);
    hides(&Child::new("sh").arg(secret("argument")).env("KEY", secret("environment")));
}
