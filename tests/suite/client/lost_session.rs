//! A session that the server has forgotten: begun anew once, by whoever finds it so, with all that was agreed in it.
//!
//! Specification: *2025-11-25, Transports, Session Management*.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use mcp_suite::{
    ErrorKind,
    client::{CallOptions, Changed, Subscription},
    http::Http,
    types::{CompleteParams, LogLevel, NotificationFilter},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::*;
use crate::peer::http::{Answer, HttpPeer, Request};

/// The sessions of a server that forgets.
#[derive(Default)]
struct Sessions {
    /// How many were begun.
    begun: usize,
    /// Whether the last one is known.
    is_known: bool,
    /// Whether each is forgotten as soon as it is begun.
    is_forgetful: bool,
    /// What `initialize` is answered with instead of a session.
    refusal: Option<Answer>,
}

/// A legacy server with sessions `s-1`, `s-2`, …, and what makes it forget them.
struct Forgetting {
    peer: HttpPeer,
    sessions: Arc<Mutex<Sessions>>,
}

const CAPABILITIES: &str = r#"{"tools":{},"prompts":{},"completions":{},"logging":{},"resources":{"subscribe":true}}"#;

/// What a request is answered with in a session that is known.
fn served(request: &Request) -> Answer {
    match request.method() {
        "tools/call" => Answer::result(json!({ "structuredContent": request.body["params"]["arguments"]["number"] })),
        "tools/list" => Answer::result(json!({ "tools": [] })),
        "prompts/list" => Answer::result(json!({ "prompts": [] })),
        "resources/list" => Answer::result(json!({ "resources": [] })),
        "resources/templates/list" => Answer::result(json!({ "resourceTemplates": [] })),
        "completion/complete" => Answer::result(json!({ "completion": { "values": [] } })),
        _ => Answer::result(json!({})),
    }
}

impl Sessions {
    fn answer(&mut self, request: &Request) -> Answer {
        let named = request.header("mcp-session-id");
        match (request.verb.as_str(), request.method()) {
            ("GET", _) => Answer::status(405),
            (_, "initialize") => match &self.refusal {
                Some(refusal) => refusal.clone(),
                None => {
                    (self.begun, self.is_known) = (self.begun + 1, true);
                    let mut result = initialized("2025-11-25");
                    result["capabilities"] = serde_json::from_str(CAPABILITIES).unwrap();
                    Answer::result(result).header("Mcp-Session-Id", &format!("s-{}", self.begun))
                }
            },
            // C047: not to name one is another fault than to name one that is gone.
            _ if named.is_none() => Answer::error(400, -32600, "no session"),
            _ if !self.is_known || named != Some(&format!("s-{}", self.begun)) => {
                Answer::error(404, -32001, "Session not found")
            }
            ("DELETE", _) => Answer::status(204),
            (_, "notifications/initialized") => {
                self.is_known = !self.is_forgetful;
                Answer::status(202)
            }
            _ if request.body.get("id").is_none() => Answer::status(202),
            _ => served(request),
        }
    }
}

impl Forgetting {
    async fn start() -> Self {
        Self::start_with(|_, answer| answer).await
    }

    /// `alter` has the last word about each answer.
    async fn start_with(alter: impl Fn(&Request, Answer) -> Answer + Send + Sync + 'static) -> Self {
        let sessions = Arc::<Mutex<Sessions>>::default();
        let held = sessions.clone();
        let peer = HttpPeer::start(move |request| {
            let answer = held.lock().unwrap().answer(request);
            alter(request, answer)
        });
        Self { peer: peer.await, sessions }
    }

    async fn connect(&self) -> Client {
        soon(connect_in(Era::Legacy, Http::new(self.peer.url()))).await.unwrap()
    }

    fn forget(&self) {
        self.sessions.lock().unwrap().is_known = false;
    }

    /// The requests of that method.
    fn of(&self, method: &str) -> Vec<Request> {
        self.peer.requests().into_iter().filter(|request| request.method() == method).collect()
    }
}

async fn number(client: &Client, number: usize) -> Result<usize, Error> {
    soon(client.call("number", json!({ "number": number }))).await
}

/// In which sessions each number was asked for, in the order in which they came.
fn asked(server: &Forgetting) -> HashMap<u64, Vec<String>> {
    let mut asked = HashMap::<u64, Vec<String>>::new();
    for call in server.of("tools/call") {
        let number = call.body["params"]["arguments"]["number"].as_u64().unwrap();
        asked.entry(number).or_default().push(call.header("mcp-session-id").unwrap_or("none").to_owned());
    }
    asked
}

#[tokio::test]
async fn c046_a_call_is_made_again_in_a_new_session() {
    let server = Forgetting::start().await;
    let client = server.connect().await;
    assert_eq!(number(&client, 1).await.unwrap(), 1);
    server.forget();
    assert_eq!(number(&client, 2).await.unwrap(), 2);
    assert_eq!(number(&client, 3).await.unwrap(), 3);
    let methods = server.peer.methods();
    let expected = [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
    ];
    assert_eq!(methods, expected);
    let sessions: Vec<_> =
        server.peer.requests().iter().map(|request| request.header("mcp-session-id").map(str::to_owned)).collect();
    let named: Vec<_> = sessions.iter().map(Option::as_deref).collect();
    let (old, new) = (Some("s-1"), Some("s-2"));
    assert_eq!(named, [None, old, old, old, None, new, new, new]);
    // It is the same client that shakes hands, and nothing of the old session is in it.
    let hands = server.of("initialize");
    assert_eq!(hands[0].body["params"], hands[1].body["params"]);
    assert_eq!(hands[1].header("mcp-protocol-version"), None);
    for request in &server.peer.requests()[5..] {
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

/// However many find the session lost, it is begun anew once, and each call is made once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c046_calls_at_once_share_one_new_session() {
    const CALLS: usize = 64;
    let server = Forgetting::start().await;
    let client = server.connect().await;
    for round in 1..=3 {
        server.forget();
        let mut calls = JoinSet::new();
        for call in 0..CALLS {
            let (client, asked) = (client.clone(), round * CALLS + call);
            calls.spawn(async move { assert_eq!(number(&client, asked).await.unwrap(), asked) });
        }
        soon(calls.join_all()).await;
        assert_eq!(server.of("initialize").len(), round + 1);
    }
    for (number, sessions) in asked(&server) {
        let round = number as usize / CALLS;
        let (old, new) = (format!("s-{round}"), format!("s-{}", round + 1));
        // One that came late found the new session, and was made once.
        assert!(sessions == [old, new.clone()] || sessions == [new], "{number} was asked in {sessions:?}");
    }
}

/// While a new session is begun, calls come that cannot know of it: they are made again too, and never outside of a session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c046_calls_that_come_while_a_session_is_begun_are_answered_in_it() {
    const CALLS: usize = 16;
    let server = Forgetting::start_with(|request, answer| match request.method() {
        "initialize" | "notifications/initialized" => answer.after(std::time::Duration::from_millis(200)),
        _ => answer,
    });
    let server = server.await;
    let client = server.connect().await;
    server.forget();
    let first = tokio::spawn({
        let client = client.clone();
        async move { number(&client, 0).await }
    });
    let mut calls = JoinSet::new();
    for (hands, method) in [(2, "initialize"), (2, "notifications/initialized")] {
        let is_begun = |seen: &[Request]| seen.iter().filter(|request| request.method() == method).count() == hands;
        server.peer.until("it is begun anew", is_begun).await;
        for _ in 0..CALLS {
            let (client, call) = (client.clone(), calls.len() + 1);
            calls.spawn(async move { assert_eq!(number(&client, call).await.unwrap(), call) });
        }
    }
    assert_eq!(first.await.unwrap().unwrap(), 0);
    soon(calls.join_all()).await;
    assert_eq!(server.of("initialize").len(), 2);
    for (number, sessions) in asked(&server) {
        assert!(sessions == ["s-1", "s-2"] || sessions == ["s-2"], "{number} was asked in {sessions:?}");
    }
}

/// A server that forgets each session at once is not asked for ever.
#[tokio::test]
async fn c046_a_session_that_is_lost_again_fails_the_call() {
    let server = Forgetting::start().await;
    let client = server.connect().await;
    server.forget();
    server.sessions.lock().unwrap().is_forgetful = true;
    for hands in 2..=3 {
        let error = number(&client, hands).await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::NotInitialized, Some(404)), "{error}");
        assert_eq!(server.of("initialize").len(), hands);
        assert_eq!(asked(&server)[&(hands as u64)].len(), 2);
    }
    server.sessions.lock().unwrap().is_forgetful = false;
    assert_eq!(number(&client, 4).await.unwrap(), 4);
}

/// A server that begins no other session fails the call, with both reasons; the next call tries again.
#[tokio::test]
async fn c046_a_server_that_begins_no_other_session_fails_the_call() {
    for refusal in [
        Answer::new(500, "text/plain", "out of order"),
        Answer::error(200, -32603, "out of order"),
        Answer::stream([json!({ "id": "$id", "error": { "code": -32603, "message": "out of order" } })]),
        Answer::events(": begun\n\n"),
        Answer::new(200, "application/json", "no JSON"),
        Answer::hang_up(),
    ] {
        let said = format!("{refusal:?}");
        let server = Forgetting::start().await;
        let client = server.connect().await;
        server.forget();
        server.sessions.lock().unwrap().refusal = Some(refusal);
        for tries in 1..=2 {
            let error = number(&client, 0).await.unwrap_err();
            assert!(error.to_string().contains("forgotten the session"), "{said}: {error}");
            assert_eq!(server.of("initialize").len(), 1 + tries, "{said}");
        }
        server.sessions.lock().unwrap().refusal = None;
        assert_eq!(number(&client, 1).await.unwrap(), 1, "{said}");
    }
}

/// Every request leans on the session, and not the calls of tools alone.
#[tokio::test]
async fn c046_a_request_of_any_kind_is_made_again() {
    type Ask = fn(Client) -> BoxFuture<'static, Result<(), Error>>;
    let kinds: [(&str, Ask); 10] = [
        ("tools/call", |client| Box::pin(async move { client.call_raw("a", ()).await.map(drop) })),
        ("tools/list", |client| Box::pin(async move { client.tools().await.map(drop) })),
        ("prompts/list", |client| Box::pin(async move { client.prompts().await.map(drop) })),
        ("prompts/get", |client| Box::pin(async move { client.get_prompt("p", ()).await.map(drop) })),
        ("resources/list", |client| Box::pin(async move { client.resources().await.map(drop) })),
        ("resources/templates/list", |client| Box::pin(async move { client.resource_templates().await.map(drop) })),
        ("resources/read", |client| Box::pin(async move { client.read_resource("x:y").await.map(drop) })),
        ("completion/complete", |client| {
            Box::pin(async move { client.complete(CompleteParams::prompt("p", "a", "")).await.map(drop) })
        }),
        ("ping", |client| Box::pin(async move { client.ping().await })),
        ("logging/setLevel", |client| Box::pin(async move { client.set_log_level(LogLevel::Error).await })),
    ];
    let server = Forgetting::start().await;
    let client = server.connect().await;
    for (lost, (method, ask)) in kinds.into_iter().enumerate() {
        server.forget();
        soon(ask(client.clone())).await.unwrap_or_else(|error| panic!("{method}: {error}"));
        let sessions: Vec<_> =
            server.of(method).iter().map(|request| request.header("mcp-session-id").unwrap().to_owned()).collect();
        let (old, new) = (format!("s-{}", lost + 1), format!("s-{}", lost + 2));
        assert!(sessions.ends_with(&[old, new]), "{method}: {sessions:?}");
    }
    server.forget();
    let mut subscribed = soon(client.subscribe("x:y")).await.unwrap();
    assert_eq!(subscribed.acknowledged().resource_subscriptions, ["x:y"]);
    soon(subscribed.close()).await;
}

async fn changed(subscription: &mut Subscription) -> Option<Changed> {
    soon(subscription.next()).await
}

/// What a session held is in the next one too: what was subscribed to, and from where on the log is told.
#[tokio::test]
async fn c170_subscriptions_and_log_level_are_restored() {
    let server = Forgetting::start().await;
    let client = server.connect().await;
    let mut one = soon(client.subscribe("x:1")).await.unwrap();
    let mut same = soon(client.subscribe("x:1")).await.unwrap();
    let mut two = soon(client.listen(NotificationFilter::new().resource("x:2"))).await.unwrap();
    let mut gone = soon(client.subscribe("x:gone")).await.unwrap();
    soon(gone.close()).await;
    soon(client.set_log_level(LogLevel::Debug)).await.unwrap();
    soon(client.set_log_level(LogLevel::Warning)).await.unwrap();
    for session in ["s-2", "s-3"] {
        server.forget();
        assert_eq!(number(&client, 1).await.unwrap(), 1);
        let told = |method: &str, member: &str| {
            let here = server.of(method).into_iter().filter(|told| told.header("mcp-session-id") == Some(session));
            let mut told: Vec<_> = here.map(|told| told.body["params"][member].as_str().unwrap().to_owned()).collect();
            told.sort();
            told
        };
        assert_eq!(told("resources/subscribe", "uri"), ["x:1", "x:2"], "{session}");
        assert_eq!(told("logging/setLevel", "level"), ["warning"], "{session}");
        assert_eq!(told("resources/unsubscribe", "uri"), [""; 0], "{session}");
        // What has changed meanwhile was told to nobody: it may be anything.
        for (subscription, uri) in [(&mut one, "x:1"), (&mut same, "x:1"), (&mut two, "x:2")] {
            assert_eq!(changed(subscription).await, Some(Changed::Resource(uri.into())), "{session}");
        }
        assert!(one.ended().is_none() && two.ended().is_none());
    }
    // And they can be taken back there.
    soon(one.close()).await;
    assert_eq!(server.of("resources/unsubscribe").len(), 1, "somebody else listens still");
    soon(same.close()).await;
    let taken_back = server.of("resources/unsubscribe").pop().unwrap();
    assert_eq!((taken_back.header("mcp-session-id"), &taken_back.body["params"]["uri"]), (Some("s-3"), &json!("x:1")));
}

/// What the server will not have again is not worth the call that found the session lost.
#[tokio::test]
async fn c170_what_cannot_be_restored_does_not_cost_the_call() {
    let server = Forgetting::start_with(|request, answer| match (request.method(), request.header("mcp-session-id")) {
        ("resources/subscribe" | "logging/setLevel", Some("s-2")) => Answer::error(200, -32603, "not again"),
        _ => answer,
    });
    let server = server.await;
    let client = server.connect().await;
    let _subscribed = soon(client.subscribe("x:1")).await.unwrap();
    soon(client.set_log_level(LogLevel::Warning)).await.unwrap();
    server.forget();
    assert_eq!(number(&client, 1).await.unwrap(), 1);
    assert_eq!(server.of("initialize").len(), 2);
}

/// The stream for what belongs to no call is the new session's too.
#[tokio::test]
async fn c170_the_new_session_is_listened_to() {
    let server = Forgetting::start_with(|request, answer| match request.verb.as_str() {
        "GET" if request.header("mcp-session-id") == Some("s-2") => {
            let updated =
                json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": "x:1" } });
            // The first change is that everything may have changed.
            Answer::events("").then(std::time::Duration::from_millis(300), format!("data: {updated}\n\n")).without_end()
        }
        "GET" => Answer::events(": nothing\n\n").without_end(),
        _ => answer,
    });
    let server = server.await;
    let client = server.connect().await;
    let mut subscribed = soon(client.subscribe("x:1")).await.unwrap();
    server.forget();
    assert_eq!(number(&client, 1).await.unwrap(), 1);
    assert_eq!(changed(&mut subscribed).await, Some(Changed::Resource("x:1".into())));
    let is_heard =
        |seen: &[Request]| seen.iter().any(|get| get.verb == "GET" && get.header("mcp-session-id") == Some("s-2"));
    server.peer.until("the new session is listened to", is_heard).await;
    assert_eq!(changed(&mut subscribed).await, Some(Changed::Resource("x:1".into())));
}

/// Whose patience ends while a session is begun is told so, and not later.
#[tokio::test]
async fn c046_a_new_session_that_never_comes_ends_by_a_timeout() {
    let server = Forgetting::start().await;
    let limits = mcp_suite::Limits::default().request_timeout(std::time::Duration::from_millis(300));
    let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == Era::Legacy);
    let client = Client::builder(implementation!()).limits(limits).revisions(revisions);
    let client = soon(client.connect(Http::new(server.peer.url()))).await.unwrap();
    server.forget();
    server.sessions.lock().unwrap().refusal = Some(Answer::silence());
    let options = CallOptions::new().timeout(std::time::Duration::from_millis(300));
    let error = soon(client.call_with::<usize>("number", (), options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}
