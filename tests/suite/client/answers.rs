//! What a server asks its client, on every revision and every wire: the same handlers, the same outcome.
//!
//! Specification: *Elicitation; Sampling; Roots; Multi Round-Trip Requests*.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use mcp_suite::{
    Blame, ClientBuilder, Context, ErrorKind, Limits, Resource, Server, Tool, ToolError,
    client::CallOptions,
    server::form,
    types::{CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, Root, SamplingMessage},
    ws::Ws,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use mcp_http::Routes;

use super::*;
use crate::{http::Served, ws::Served as WsServed};

#[derive(Deserialize, JsonSchema)]
struct Name {
    #[schemars(default = "nobody")]
    name: String,
}

#[allow(dead_code, reason = "the schema names it")]
fn nobody() -> String {
    "nobody".into()
}

async fn one(context: Context) -> Result<String, ToolError> {
    Ok(context.elicit("who", form::<Name>("Who?")).await?.name)
}

async fn all(context: Context) -> Result<String, ToolError> {
    let question = CreateMessageParams::new([SamplingMessage::user("Say hello")], 10);
    let (said, roots) = tokio::join!(context.sample("say", question), context.roots("where"));
    let name = one(context).await?;
    let roots: Vec<_> = roots?.into_iter().map(|root| root.uri).collect();
    Ok(format!("{name}: {} in {}", said?.to_text(), roots.join(" ")))
}

async fn visit(context: Context) -> Result<String, ToolError> {
    let question = ElicitParams::url("Log in", "https://example.com/login", "visit-1");
    Ok(format!("{:?}", context.elicit("visit", question).await?.action))
}

fn server() -> Server {
    Server::builder(implementation!())
        .tool(Tool::new("one", one))
        .tool(Tool::new("all", all))
        .tool(Tool::new("visit", visit))
        .resource(Resource::new("x:asks", "asks", one))
        .build()
}

fn answering() -> ClientBuilder {
    Client::builder(implementation!())
        .on_elicit(|question: ElicitParams| async move {
            assert_eq!(question.message, "Who?");
            ElicitResult::accept(json!({ "name": "Ada" }))
        })
        .on_elicit_url(|_| async { Ok(ElicitResult::agree()) })
        .on_sample(|params: CreateMessageParams| async move {
            let asked = params.messages[0].content[0].as_text().unwrap_or_default().to_owned();
            Ok(CreateMessageResult::new("test", format!("<{asked}>")))
        })
        .on_roots(|| async { Ok(vec![Root::new("file:///a"), Root::new("file:///b").name("b")]) })
}

#[tokio::test]
async fn a_handler_text_is_answered_alike_on_every_revision_and_every_wire() {
    let (http, ws) = (Served::with(Routes::new(server()), "127.0.0.1").await, WsServed::start(server()).await);
    for revision in Revision::ALL.iter().copied() {
        let builder = || answering().revisions([revision]);
        for client in [
            builder().connect(server()).await,
            builder().connect(Http::new(format!("http://{}/mcp", http.address))).await,
            builder().connect(Ws::new(ws.url())).await,
        ] {
            let client = client.unwrap();
            assert_eq!(client.revision(), revision);
            let said = soon(client.call::<String>("all", ())).await.unwrap();
            assert_eq!(said, "Ada: <Say hello> in file:///a file:///b", "{revision}");
            assert_eq!(soon(client.call::<String>("visit", ())).await.unwrap(), "Accept", "{revision}");
            let read = soon(client.read_resource("x:asks")).await.unwrap();
            assert_eq!(read.contents[0].as_text(), Some("Ada"), "{revision}");
            client.disconnect().await;
        }
    }
}

#[tokio::test]
async fn many_calls_at_once_are_each_asked_and_answered() {
    for era in ERAS {
        let client = answering().revisions(revisions_of(era)).connect(server()).await.unwrap();
        let calls = (0..500).map(|_| client.call::<String>("one", ()));
        for said in soon(futures_util::future::join_all(calls)).await {
            assert_eq!(said.unwrap(), "Ada");
        }
    }
}

fn revisions_of(era: Era) -> impl Iterator<Item = Revision> {
    Revision::ALL.iter().copied().filter(move |revision| revision.era() == era)
}

/// What is not offered is not asked, and what fails fails the one call.
#[tokio::test]
async fn handlers_that_are_missing_or_fail_fail_the_one_call() {
    for era in ERAS {
        let panics = Client::builder(implementation!()).on_elicit(|_| async { panic!("the secret") });
        let fails = Client::builder(implementation!())
            .on_elicit(|_| async { Err(Error::new(ErrorKind::HandlerFailed, "the secret").blaming(Blame::Local)) });
        let misfits =
            Client::builder(implementation!()).on_elicit(|_| async { ElicitResult::accept(json!({"name": 5})) });
        let declines = Client::builder(implementation!()).on_elicit(|_| async { Ok(ElicitResult::decline()) });
        for builder in [Client::builder(implementation!()), panics, fails, misfits, declines] {
            let client = builder.revisions(revisions_of(era)).connect(server()).await.unwrap();
            for _ in 0..2 {
                let error = soon(client.call::<String>("one", ())).await.unwrap_err();
                let is_told = era == Era::Modern || !error.to_string().contains("secret");
                assert!(is_told, "{era:?} {error}");
            }
        }
    }
}

/// A modern call that is given up while its user thinks takes the question back, and so does a legacy one.
#[tokio::test]
async fn a_call_that_is_given_up_takes_its_question_back() {
    for era in ERAS {
        let (asked, thinking) = (Arc::new(tokio::sync::Notify::new()), Arc::new(()));
        let (asks, thinks) = (asked.clone(), thinking.clone());
        let client = Client::builder(implementation!())
            .on_elicit(move |_| {
                let (asks, thinks) = (asks.clone(), thinks.clone());
                async move {
                    asks.notify_one();
                    std::future::pending::<()>().await;
                    drop(thinks);
                    Ok(ElicitResult::cancel())
                }
            })
            .revisions(revisions_of(era))
            .connect(server())
            .await
            .unwrap();
        let token = CancellationToken::new();
        let options = CallOptions::new().cancel_with(token.clone());
        let calling = client.call_with::<String>("one", (), options);
        let (outcome, ()) = tokio::join!(soon(calling), async {
            soon(asked.notified()).await;
            assert_eq!(Arc::strong_count(&thinking), 3);
            token.cancel();
        });
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::RequestCancelled);
        let forgotten = async {
            while Arc::strong_count(&thinking) > 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        soon(forgotten).await;
        assert_eq!(client.tools().await.unwrap().len(), 3, "{era:?}");
    }
}

fn wants(input: Value) -> Vec<Step> {
    vec![expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "result": input }))]
}

#[tokio::test(start_paused = true)]
async fn what_a_round_leads_to_goes_into_the_next_and_nowhere_else() {
    let asked = json!({
        "resultType": "input_required", "requestState": "{\"exact\":  1.0}",
        "inputRequests": { "k": { "method": "elicitation/create", "params": { "message": "Who?", "requestedSchema": { "type": "object" } } } },
    });
    let stateless = json!({ "resultType": "input_required", "inputRequests": { "r": { "method": "roots/list" } } });
    let again = json!({ "resultType": "input_required", "requestState": "later" });
    let script = [wants(asked), wants(stateless), wants(again), answers("a", "b"), answers("c", "d")].concat();
    let server = ScriptedPeer::of(Era::Modern, script);
    let client = answering().connect(server.clone()).await.unwrap();
    assert_eq!(client.call::<String>("a", json!({ "x": 1 })).await.unwrap(), "b");
    assert_eq!(client.call::<String>("c", ()).await.unwrap(), "d");
    let sent: Vec<Value> = server.received()[1..].to_vec();
    let of = |call: usize, member: &str| sent[call]["params"].get(member).cloned();
    let ids: std::collections::HashSet<_> = sent.iter().map(|message| message["id"].to_string()).collect();
    assert_eq!(ids.len(), sent.len());
    assert_eq!((of(0, "inputResponses"), of(0, "requestState")), (None, None));
    let answer = json!({ "k": { "action": "accept", "content": { "name": "Ada" } } });
    assert_eq!((of(1, "inputResponses"), of(1, "requestState")), (Some(answer), Some(json!("{\"exact\":  1.0}"))));
    assert_eq!(of(2, "inputResponses").unwrap()["r"]["roots"][0]["uri"], "file:///a");
    assert_eq!(of(2, "requestState"), None);
    assert_eq!((of(3, "inputResponses"), of(3, "requestState")), (None, Some(json!("later"))));
    assert_eq!((of(4, "inputResponses"), of(4, "requestState")), (None, None));
    assert!((0..4).all(|call| of(call, "arguments") == Some(json!({ "x": 1 }))));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_ever_is_given_up() {
    let asks = |message: &Value| {
        vec![json!({ "id": message["id"], "result": { "resultType": "input_required", "requestState": "s" } })]
    };
    let server = ScriptedPeer::of(Era::Modern, [crate::peer::memory::serve(asks)]);
    let client = Client::builder(implementation!())
        .limits(Limits::default().input_rounds(3))
        .connect(server.clone())
        .await
        .unwrap();
    let error = client.call::<String>("a", ()).await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::ProtocolInvalid, Blame::Peer));
    assert_eq!(server.methods().len(), 1 + 4);
    // A list may not ask at all, and what was not offered may nobody.
    let odd =
        json!({ "resultType": "input_required", "inputRequests": { "k": { "method": "sampling/createMessage" } } });
    let script = vec![expect(json!({})), send(json!({ "id": "$id", "result": odd }))];
    let server = ScriptedPeer::of(Era::Modern, [script.clone(), script].concat());
    let client = Client::builder(implementation!()).connect(server).await.unwrap();
    assert_eq!(client.tools().await.unwrap_err().kind(), ErrorKind::ProtocolInvalid);
    assert_eq!(client.call::<String>("a", ()).await.unwrap_err().blame(), Blame::Peer);
}

fn question(id: Value) -> Step {
    let params = json!({ "message": "?", "requestedSchema": { "type": "object" } });
    send(json!({ "id": id, "method": "elicitation/create", "params": params }))
}

/// However many questions wait for the user, the protocol itself goes on.
#[tokio::test(start_paused = true)]
async fn questions_that_wait_hold_up_no_ping_and_no_cancel() {
    let limits = Limits::default().in_flight(4).waiting(4);
    let questions = (0..9).map(|number| question(json!(format!("q{number}"))));
    let mut script: Vec<Step> = questions.collect();
    script.push(expect(json!({ "id": "q8", "error": { "code": -32603 } })));
    script.push(send(json!({ "id": "p", "method": "ping" })));
    script.push(expect(json!({ "id": "p", "result": {} })));
    script.push(question(json!("q0")));
    script.push(expect(json!({ "id": "q0", "error": { "code": -32600 } })));
    for cancelled in ["q0", "q5"] {
        script.push(send(json!({ "method": "notifications/cancelled", "params": { "requestId": cancelled } })));
    }
    script.push(send(json!({ "id": "p2", "method": "ping" })));
    script.push(expect(json!({ "id": "p2", "result": {} })));
    let asked = Arc::<AtomicU32>::default();
    let counting = asked.clone();
    let server = ScriptedPeer::of(Era::Legacy, script);
    let _client = Client::builder(implementation!())
        .limits(limits)
        .on_elicit(move |_| {
            counting.fetch_add(1, Ordering::SeqCst);
            std::future::pending()
        })
        .connect(server.clone())
        .await
        .unwrap();
    server.done().await;
    // The place of the one that was cancelled while it ran went to the next.
    assert_eq!(asked.load(Ordering::SeqCst), 5);
}

#[tokio::test(start_paused = true)]
async fn what_a_legacy_server_is_told_where_there_is_no_answer() {
    let form = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } });
    let script = vec![
        send(json!({ "id": 1, "method": "sampling/createMessage", "params": {} })),
        expect(json!({ "id": 1, "error": { "code": -32602 } })),
        send(json!({ "id": 2, "method": "elicitation/create", "params": { "mode": "telepathy", "message": "?" } })),
        expect(json!({ "id": 2, "error": { "code": -32602 } })),
        send(json!({ "id": 3, "method": "tasks/list" })),
        expect(json!({ "id": 3, "error": { "code": -32601 } })),
        send(json!({ "id": 4, "method": "elicitation/create", "params": form })),
        expect(json!({ "id": 4, "error": { "code": -1, "message": "The user would not" } })),
    ];
    let refusal = || Error::from_object(mcp_suite::jsonrpc::ErrorObject::new(-1, "The user would not"));
    let server = ScriptedPeer::of(Era::Legacy, script);
    let client = Client::builder(implementation!())
        .on_sample(|_| async { Ok(CreateMessageResult::new("m", "x")) })
        .on_elicit(move |_| std::future::ready(Err(refusal())))
        .connect(server.clone())
        .await
        .unwrap();
    server.done().await;
    drop(client);
}

/// A user takes longer than a server may: the time does not count, in either era. What the caller allows at most does.
#[tokio::test(start_paused = true)]
async fn a_user_who_thinks_runs_no_call_out_of_time() {
    for era in ERAS {
        let client = Client::builder(implementation!())
            .on_elicit(|_| async {
                tokio::time::sleep(Duration::from_secs(45)).await;
                ElicitResult::accept(json!({ "name": "Ada" }))
            })
            .revisions(revisions_of(era))
            .connect(server())
            .await
            .unwrap();
        assert_eq!(client.call::<String>("one", ()).await.unwrap(), "Ada", "{era:?}");
    }
    let slow = Client::builder(implementation!())
        .on_elicit(|_| std::future::pending())
        .revisions(revisions_of(Era::Legacy))
        .connect(server())
        .await
        .unwrap();
    let options = CallOptions::new().at_most(Duration::from_secs(100));
    let begun = tokio::time::Instant::now();
    let error = slow.call_with::<String>("one", (), options).await.unwrap_err();
    assert_eq!((error.kind(), begun.elapsed().as_secs()), (ErrorKind::Timeout, 100));
}

/// A call that needs pages visited first is made again when the server says that they are.
///
/// Specification: *2025-11-25, Elicitation, URL Elicitation Required Error*.
#[tokio::test(start_paused = true)]
async fn a_call_waits_until_the_pages_that_it_needs_are_visited() {
    let page = |id: &str| json!({ "mode": "url", "elicitationId": id, "url": "https://x", "message": id });
    let required = |pages: &[Value]| {
        let error = json!({ "code": -32042, "message": "log in", "data": { "elicitations": pages } });
        vec![expect(json!({ "method": "tools/call" })), send(json!({ "id": "$id", "error": error }))]
    };
    let done = |id: &str| {
        let params = json!({ "elicitationId": id });
        vec![
            crate::peer::memory::wait(Duration::from_secs(60)),
            send(json!({ "method": "notifications/elicitation/complete", "params": params })),
        ]
    };
    let script = [
        required(&[page("yes-1"), page("yes-2")]),
        done("yes-2"),
        done("yes-1"),
        answers("a", "b"),
        required(&[page("yes-3"), page("no")]),
        required(&[]),
        required(&[json!({ "mode": "form", "message": "?" })]),
        required(&[page("yes-4")]),
    ];
    let client = Client::builder(implementation!())
        .on_elicit_url(|asked: ElicitParams| async move {
            Ok(if asked.message == "no" { ElicitResult::decline() } else { ElicitResult::agree() })
        })
        .connect(ScriptedPeer::of(Era::Legacy, script.concat()))
        .await
        .unwrap();
    assert_eq!(client.call::<String>("a", ()).await.unwrap(), "b");
    // The user will not, the server does not say where to, or never that it is done.
    for _ in 0..4 {
        let error = client.call::<String>("a", ()).await.unwrap_err();
        assert_eq!(error.object().unwrap().code, -32042);
    }
}

/// A default that its own field would refuse is no default, and spoils no answer.
#[tokio::test(start_paused = true)]
async fn a_default_that_does_not_fit_is_left_out() {
    let properties = json!({
        "a": { "type": "number", "default": "x" }, "b": { "type": "string", "default": null }, "c": { "type": "integer", "default": 3 },
    });
    let params = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": properties } });
    let script = vec![
        send(json!({ "id": "q", "method": "elicitation/create", "params": params })),
        expect(json!({ "id": "q", "result": { "action": "accept", "content": { "c": 3 } } })),
    ];
    let peer = ScriptedPeer::of(Era::Legacy, script);
    let client = Client::builder(implementation!())
        .on_elicit(|_| async { ElicitResult::accept(json!({})) })
        .connect(peer.clone())
        .await
        .unwrap();
    peer.heard(opening_length(Era::Legacy) + 1).await;
    drop(client);
}
