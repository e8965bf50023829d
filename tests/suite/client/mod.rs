//! The client against scripted servers: what it says, and what it makes of what is said to it.
//!
//! What a conversation can say is data: `../cases/client/*.txt`, which `cases` runs. The rest is ordinary tests.
//! Tests named after `C…` keep the cases of that number; the others stand for the same kind of fault on another wire
//! or in the other era.

#![allow(clippy::unwrap_used, reason = "tests, and what only they call")]

mod answers;
mod auto;
mod cancel;
mod cases;
mod envelope;
mod era;
mod errors;
mod gateway;
mod gateway_faults;
mod handshake;
mod hostile;
mod http;
mod http_headers;
mod http_old;
mod http_pool;
mod http_redirects;
mod http_renewal;
mod http_session;
mod listening;
mod load;
mod lost_session;
mod metadata;
mod mirrored;
mod options;
mod progress;
mod recovery;
mod results;
mod sse;
mod sse_listen;
mod sse_resume;
mod stdio;
mod tasks;
mod tolerance;
mod tools;

use std::time::Duration;

use mcp_suite::{Client, Era, Error, Revision, client::IntoTransport, http::Http, implementation};
use mcp_test::script::{discovered, handshake, initialized, legacy, modern};
use serde_json::{Value, json};

use crate::peer::memory::{Script, ScriptedPeer, Step, expect, send};

/// How a server of that era begins.
fn opening(era: Era) -> Script {
    if era == Era::Modern { modern() } else { legacy() }
}

/// How many messages a client sends until it is connected.
fn opening_length(era: Era) -> usize {
    if era == Era::Modern { 1 } else { 3 }
}

/// A peer that begins as a server of that era and goes on with `script`, and a client that is connected to it.
async fn connected(era: Era, script: impl IntoIterator<Item = Step>) -> (Client, ScriptedPeer) {
    let peer = ScriptedPeer::of(era, script);
    let client = Client::builder(implementation!()).connect(peer.clone()).await.unwrap();
    assert_eq!(client.revision().era(), era);
    peer.heard(opening_length(era)).await;
    (client, peer)
}

/// Connects in that era and in no other.
async fn connect_in(era: Era, transport: impl IntoTransport) -> Result<Client, Error> {
    let revisions = Revision::ALL.iter().copied().filter(|revision| revision.era() == era);
    Client::builder(implementation!()).revisions(revisions).connect(transport).await
}

/// Connects over HTTP.
async fn over_http(url: &str) -> Result<Client, Error> {
    Client::builder(implementation!()).connect(Http::new(url)).await
}

/// Counts when it is dropped.
struct OnDrop(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A tool's result of one text.
fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A call of the tool `name` comes, and is answered with a text.
fn answers(name: &str, with: &str) -> Script {
    vec![
        expect(json!({ "method": "tools/call", "params": { "name": name } })),
        send(json!({ "id": "$id", "result": text(with) })),
    ]
}

/// Far longer than anything on the loopback takes, far shorter than the client's own patience.
const SOON: Duration = Duration::from_secs(10);

/// The end of a future that must not take long in real time.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(SOON, future).await.expect("it took too long")
}

type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

const ERAS: [Era; 2] = [Era::Modern, Era::Legacy];
