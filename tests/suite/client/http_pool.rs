//! Connections are used again, whatever the last response on them was.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use mcp_http::Routes;
use mcp_suite::{Blame, ErrorKind, Limits, Server, Tool, ToolError, http::Http, types::NotificationFilter};
use tokio::{task::JoinSet, time::sleep};

use super::*;
use crate::{
    http::Served,
    peer::http::{self, Answer, HttpPeer, Request},
};

/// Over how many connections POSTs came.
fn connections(server: &HttpPeer) -> usize {
    server.requests().iter().map(|request| request.connection).collect::<BTreeSet<_>>().len()
}

/// How a response may be that ends.
fn responses() -> Vec<Answer> {
    let response = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"b"}]}}"#;
    let event = format!("id: 1\ndata:\n\ndata: {response}\n\n");
    vec![
        Answer::result(text("b")),
        Answer::new(200, "application/json", response).cut_every(7),
        Answer::events(event.clone()),
        Answer::events(event.clone()).cut_every(1),
        // What comes behind the response is nothing that anybody waits for.
        Answer::events(event.clone() + &": more\n\n".repeat(1000)),
        Answer::events(event).then(Duration::from_millis(20), ": the end\n\n"),
        Answer::error(404, -32601, "no such method"),
        Answer::error(200, -32602, "no such tool"),
        Answer::status(404),
        Answer::new(500, "text/html", "x".repeat(10_000)),
        Answer::new(503, "application/json", "x".repeat(10_000)),
        Answer::new(400, "text/plain", "no").cut_every(1),
        Answer::new(200, "text/html", "<p>hello</p>".repeat(1000)),
        Answer::status(307).header("Location", "http://127.0.0.1:1/"),
        Answer::new(401, "text/plain", "who are you".repeat(100)),
        Answer::status(204),
    ]
}

/// So many calls, one after another, over a good deal fewer connections.
const CALLS: usize = 10;

async fn is_used_again(era: Era, answer: Answer) {
    let said = format!("{era:?} {answer:?}");
    let rule = move |_: &Request| answer.clone();
    let server = match era {
        Era::Modern => HttpPeer::start(http::modern(rule)).await,
        _ => HttpPeer::start(http::legacy("2025-11-25", rule)).await,
    };
    let client = soon(connect_in(era, Http::new(server.url()))).await.unwrap();
    for _ in 0..CALLS {
        let _ = soon(client.call::<String>("a", ())).await;
        // What is left of a response is read behind the caller's back. If that takes longer, another connection is made,
        // and both are used from then on.
        sleep(Duration::from_millis(20)).await;
    }
    let count = connections(&server);
    assert!(count <= CALLS / 2, "{said}: {count} connections");
}

#[tokio::test]
async fn a_connection_is_used_again_whatever_came_on_it() {
    for era in ERAS {
        join_all(responses().into_iter().map(|answer| is_used_again(era, answer))).await;
    }
}

/// So do notifications, and the end of a session, whose bodies say nothing.
#[tokio::test]
async fn what_a_notification_is_answered_with_is_read_away() {
    let accepted = Answer::new(202, "text/plain", "Accepted ".repeat(1000));
    let rest = http::with_session(http::legacy("2025-11-25", |_| Answer::result(text("b"))));
    let server = HttpPeer::start(move |request: &Request| match request.method() {
        "notifications/initialized" => accepted.clone(),
        _ => rest(request),
    })
    .await;
    for _ in 0..3 {
        let client = soon(connect_in(Era::Legacy, Http::new(server.url()))).await.unwrap();
        sleep(Duration::from_millis(60)).await;
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
        soon(client.disconnect()).await;
    }
    // Each client has a pool of its own.
    let count = connections(&server);
    assert!(count <= 6, "{count} connections");
}

/// As many connections as there are calls at once, and no more for those that follow.
#[tokio::test]
async fn calls_at_once_share_a_pool() {
    const AT_ONCE: usize = 8;
    let server = HttpPeer::start(http::modern(|_| Answer::result(text("b")).after(Duration::from_millis(5)))).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    for _ in 0..10 {
        let mut calls = JoinSet::new();
        for _ in 0..AT_ONCE {
            let client = client.clone();
            calls.spawn(async move { client.call::<String>("a", ()).await.unwrap() });
        }
        soon(calls.join_all()).await;
    }
    let count = connections(&server);
    assert!(count <= 2 * AT_ONCE, "{count} connections for {AT_ONCE} calls at once");
}

/// A response that does not end is not waited for: its connection goes.
#[tokio::test]
async fn a_response_that_does_not_end_costs_its_connection_and_no_time() {
    let response = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"b"}]}}"#;
    let endless = Answer::events(format!("data: {response}\n\n")).without_end();
    let server = HttpPeer::start(http::modern(move |_| endless.clone())).await;
    let client = soon(over_http(&server.url())).await.unwrap();
    for _ in 0..5 {
        assert_eq!(soon(client.call::<String>("a", ())).await.unwrap(), "b");
    }
    server.given_up("tools/call").await;
}

/// Whoever listens does so for as long as it likes, and must not keep calls from their turn.
#[tokio::test]
async fn whoever_listens_takes_no_turn_of_a_call() {
    let server = listened_to().await;
    let http = Http::new(format!("http://{}/mcp", server.address)).calls_at_once(1);
    let client = soon(Client::connect(http)).await.unwrap();
    let filter = || NotificationFilter::new().tools();
    let _all =
        join_all((0..3).map(|_| client.listen(filter()))).await.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    soon(client.call::<()>("one", ())).await.unwrap();
}

/// A client keeps a bound of its own to the streams that it listens to, and says so.
#[tokio::test]
async fn no_more_streams_are_listened_to_than_the_limit_says() {
    let server = listened_to().await;
    let http = Http::new(format!("http://{}/mcp", server.address));
    let client = Client::builder(implementation!()).limits(Limits::default().subscriptions(2)).connect(http);
    let client = soon(client).await.unwrap();
    let listen = || soon(client.listen(NotificationFilter::new().tools()));
    let (first, _second) = (listen().await.unwrap(), listen().await.unwrap());
    let error = listen().await.unwrap_err();
    assert_eq!((error.kind(), error.blame()), (ErrorKind::InvalidParams, Blame::Caller));
    assert!(error.to_string().contains("2 streams"), "{error}");
    // One that ends makes room.
    drop(first);
    soon(async {
        while listen().await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server of ours, with a tool.
async fn listened_to() -> Served {
    let tool = Tool::new("one", || async { Ok::<_, ToolError>(()) });
    let server = Server::builder(implementation!()).tool(tool).build();
    Served::with(Routes::new(server), "127.0.0.1").await
}
